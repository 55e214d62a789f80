"""Sweeps: many runs whose results are stored at once, so that an interrupted sweep can continue."""

import functools
import os
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from . import _fullstroke, cluster
from ._fullstroke import Stack


def sweep(
    stacks: Iterable[Stack | str | os.PathLike[str]],
    to: str | os.PathLike[str],
    *,
    client: Any = None,
    jobs: int | None = None,
    seconds: float = 1.0,
) -> Any:
    """Run the stacks without results in the folder `to`. Returns the results of all stacks as a table."""
    import pyarrow
    from pyarrow import parquet

    if isinstance(stacks, (str, os.PathLike)):
        raise TypeError(f"stacks: found {stacks!r}; expected several, as in [{stacks!r}]")
    threads = _fullstroke._threads(jobs)
    wanted = [stack if isinstance(stack, Stack) else Stack(stack) for stack in stacks]
    keys = _fullstroke._keys(wanted)
    folder = Path(to) / _fullstroke._build
    folder.mkdir(parents=True, exist_ok=True)
    schema = pyarrow.schema(
        [("digest", "string"), ("seed", "uint64"), ("stack", "string"), ("keys", pyarrow.list_(pyarrow.string()))]
        + [(name + end, "float64") for name in _fullstroke._metrics for end in ("", WIDTH)]
    )
    kept: dict[tuple[str, int], dict[str, Any]] = {}
    for file in sorted(folder.glob("batch-*.parquet")):
        for row in read(file, schema, parquet):
            kept[row["digest"], row["seed"]] = row

    missing = {key: stack for key, stack in zip(keys, wanted) if key not in kept}
    todo, failures = list(missing.items()), []
    stop = _fullstroke._Stop()
    crew = cluster.dask(client) if client else cluster.local(threads)
    try:
        for batch in cluster.spread(crew, work if client else functools.partial(work, stop=stop), todo, seconds):
            rows = []
            for number, result in batch:
                key, stack = todo[number]
                if isinstance(result, Exception):
                    failures.append((stack, result))
                else:
                    identity = {"digest": key[0], "seed": key[1], "stack": str(stack.path), "keys": stack.keys}
                    rows.append(identity | result)
            if rows:
                write(folder, pyarrow.Table.from_pylist(rows, schema), parquet)
            kept |= {(row["digest"], row["seed"]): row for row in rows}
    finally:
        # After Ctrl-C the process would otherwise wait for the runs of its threads.
        stop.set()
    if failures:
        stack, first = failures[0]
        raise ValueError(f"{len(failures)} of {len(todo)} runs failed, the others are kept; the first: {stack!r}: {first}")
    # The rows have the names and the order of keys of this call, not of the call that ran the stack.
    named = ({"stack": str(stack.path), "keys": stack.keys} for stack in wanted)
    return pyarrow.Table.from_pylist([kept[key] | name for key, name in zip(keys, named)], schema)


WIDTH = ".ci95_half_width"


def read(file: Path, schema: Any, parquet: Any) -> list[dict[str, Any]]:
    try:
        table = parquet.read_table(file)
    except (OSError, ValueError) as error:
        raise ValueError(f"{file}: {error}; delete it, and its runs are made again") from None
    if not table.schema.equals(schema):
        raise ValueError(f"{file}: found other columns than this build writes; give another folder")
    return table.to_pylist()


def write(folder: Path, table: Any, parquet: Any) -> None:
    """Write a batch atomically, under a unique name, because other sweeps may use the folder."""
    file = folder / f"batch-{uuid.uuid4().hex}.parquet"
    partial = file.with_suffix(".partial")
    try:
        # A batch has few rows and many columns, so dictionaries would cost more time than the numbers.
        parquet.write_table(table, partial, compression="zstd", use_dictionary=False)
        os.replace(partial, file)
    finally:
        partial.unlink(missing_ok=True)


def work(items: list[tuple[tuple[str, int], Stack]], stop: Any = None) -> list[Any]:
    """Returns the numbers of each stack, or its error."""
    results: list[Any] = []
    known = _fullstroke._Known()
    for key, stack in items:
        try:
            results.append(dict(_fullstroke._measure(stack, *key, known, stop)))
        except ValueError as error:
            results.append(error)
    return results
