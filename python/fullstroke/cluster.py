"""Distributes work to threads or a Dask cluster, in batches large enough for a message each.

`fullstroke study run --dask ADDRESS` runs this file alone, without the module.
"""

import collections
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent import futures
from typing import Any, NamedTuple


class Crew(NamedTuple):
    """Workers: `submit(function, *arguments)` returns a future, `wait` waits for futures, `threads` run at once."""

    submit: Callable[..., Any]
    wait: Callable[..., Any]
    threads: int


def local(jobs: int) -> Crew:
    """Returns threads of this process."""
    return Crew(futures.ThreadPoolExecutor(jobs).submit, futures.wait, jobs)


def dask(client: Any, patience: float = 60.0) -> Crew:
    """Returns the workers of a `distributed.Client`. Waits for the first worker."""
    import distributed

    try:
        client.wait_for_workers(1, timeout=patience)
    except TimeoutError:
        address = client.scheduler.address
        raise TimeoutError(f"{address}: no worker came within {patience:.0f} s; start one with `dask worker {address}`")

    def submit(function: Callable[..., Any], *arguments: Any) -> Any:
        return client.submit(function, *arguments, pure=False)

    return Crew(submit, distributed.wait, sum(client.nthreads().values()))


def spread(
    crew: Crew, work: Callable[[list[Any]], Sequence[Any]], items: Iterable[Any], seconds: float = 1.0
) -> Iterator[list[tuple[int, Any]]]:
    """Runs `work` on the items in batches of about `seconds`. Yields each batch as pairs of an item's
    number and its result. After an exception in a batch, the exception is the result of its items.
    The last batches are smaller, so that all workers end at about the same time."""
    waiting = collections.deque(enumerate(items))
    under_way: dict[Any, list[int]] = {}
    done, took = 0, 0.0
    try:
        while waiting or under_way:
            # Two batches per thread: one in work, and one waiting, so that the thread never idles.
            while waiting and len(under_way) < 2 * crew.threads:
                worth = math.ceil(seconds * done / took) if took > 0 else 1
                size = max(1, min(worth, math.ceil(len(waiting) / (2 * crew.threads))))
                batch = [waiting.popleft() for _ in range(min(size, len(waiting)))]
                future = crew.submit(timed, work, [item for _, item in batch])
                under_way[future] = [number for number, _ in batch]
            for future in crew.wait(list(under_way), return_when="FIRST_COMPLETED").done:
                numbers = under_way.pop(future)
                try:
                    results, elapsed = future.result()
                except Exception as error:
                    results = [error] * len(numbers)
                else:
                    done, took = done + len(numbers), took + elapsed
                yield list(zip(numbers, results, strict=True))
    finally:
        for future in under_way:
            future.cancel()


def timed(work: Callable[[list[Any]], Sequence[Any]], batch: list[Any]) -> tuple[Sequence[Any], float]:
    began = time.perf_counter()
    return work(batch), time.perf_counter() - began


class StudyWork:
    """Runs tasks of studies with `fullstroke study work` on the worker's machine."""

    def __init__(self, program: str, build: str, folder: str):
        self.words, self.folder = [program, "study", "work", "--build", build], folder

    def __call__(self, tasks: list[Any]) -> list[str]:
        lines = "".join(json.dumps(task) + "\n" for task in tasks)
        ran = subprocess.run(self.words, input=lines, cwd=self.folder, capture_output=True, text=True)
        if ran.returncode != 0:
            raise RuntimeError(ran.stderr.strip() or f"{self.words[0]} ended with status {ran.returncode}")
        return ran.stdout.splitlines()


def main() -> None:
    """Reads the order and the tasks from standard input, one line of JSON each, and writes the results."""
    order = json.loads(sys.stdin.readline())
    tasks = [json.loads(line) for line in sys.stdin]
    try:
        import distributed

        client = distributed.Client(order["scheduler"], timeout=30)
        crew = dask(client)
    except ModuleNotFoundError:
        sys.exit("this Python has no Dask; `python3 -m pip install distributed` installs it")
    except OSError as error:
        sys.exit(f"{order['scheduler']}: {error}")
    with client:
        for batch in spread(crew, StudyWork(order["program"], order["build"], order["folder"]), tasks):
            for number, result in batch:
                failed = isinstance(result, Exception)
                line = json.dumps({"failed": str(result)}) if failed else result
                print(number, line, flush=True)


if __name__ == "__main__":
    main()
