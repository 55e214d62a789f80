from collections.abc import Sequence
from os import PathLike
from typing import Any, final

__version__: str

@final
class Stack:
    """A stack file with keys set in it, as by `--set`.

    Raises ValueError with the file, the line and the key if it cannot be used.
    """

    path: PathLike[str]
    keys: list[str]
    name: str
    def __new__(cls, path: str | PathLike[str], *keys: str) -> Stack: ...
    def set(self, *keys: str) -> Stack:
        """The same stack with further `key=value`, which come last."""

@final
class Trace:
    """A block trace in memory, a row for each request.

    Columns: arrival_ns, operation, start and sectors (of 512 bytes), device, process,
    issued_ns, completed_ns. `polars.from_arrow(trace)`, `pyarrow.table(trace)`,
    `duckdb.from_arrow(...)` take it by the Arrow C stream interface.
    """

    format: str
    rows: int
    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

def run(stack: Stack | str | PathLike[str]) -> dict[str, Any]:
    """Run a stack: the value that `fullstroke run --json` prints."""

def compare(
    stacks: Sequence[Stack | str | PathLike[str]],
    *,
    by: str | None = None,
    seeds: int = 1,
    jobs: int | None = None,
) -> dict[str, Any]:
    """Run stacks side by side and rank them: `by`, `candidates` and so on, as in
    `fullstroke compare --json`. Other threads run meanwhile."""

def read_trace(path: str | PathLike[str]) -> Trace:
    """Read a block trace of any format that `fullstroke trace` knows, compressed or not."""
