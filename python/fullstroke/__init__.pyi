from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, final

from ._policies import Elevator as Elevator, Opportunity as Opportunity

__version__: str

@final
class Stack:
    """A stack file with overridden keys, as by `--set`.

    Raises ValueError with file, line and key if the stack is invalid.
    """

    @property
    def path(self) -> Path: ...
    @property
    def keys(self) -> list[str]: ...
    @property
    def name(self) -> str: ...
    def __new__(cls, path: str | PathLike[str], *keys: str) -> Stack: ...
    def set(self, *keys: str) -> Stack:
        """Returns the stack with further `key=value`, which override earlier ones."""
    def with_elevator(self, elevator: Callable[[Site], Elevator]) -> Stack:
        """Returns the stack with an elevator written in Python. It replaces the elevator of the
        host (for example `elevator = "noop"`). The block layer still merges and plugs.

        For experiments: a choice in Python costs as much as hundreds of choices in Rust.
        An exception ends the run at once, and `run` or `compare` raises it.
        """

    def with_opportunity(self, opportunity: Callable[[Storage], Opportunity]) -> Stack:
        """Returns the stack with a further opportunity written in Python, which looks after the
        stack's own ones. No check requires that a host follows the signals (`memory`, `pushed`).

        For experiments: each request calls Python at least twice. An exception ends the run
        at once, and `run` or `compare` raises it.
        """

@final
class Site:
    """Properties of the place of an elevator."""

    @property
    def queue_depth(self) -> int:
        """Maximum number of requests in the device."""
    @property
    def nr_requests(self) -> int:
        """Maximum number of pending and in-flight requests per direction."""
    @property
    def capacity(self) -> int:
        """Capacity in sectors of 512 bytes."""
    @property
    def drive(self) -> bool:
        """True if the device is a single drive."""

@final
class Request:
    """Snapshot of a pending request. After a merge a new object replaces this one."""

    @property
    def start(self) -> int:
        """First sector."""
    @property
    def sectors(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def operation(self) -> str:
        """Operation: read, write or discard."""
    @property
    def process(self) -> int:
        """Number of the process; 0 = unknown."""
    @property
    def synchronous(self) -> bool:
        """True if a process waits for the request."""
    @property
    def queued(self) -> int:
        """Time of arrival, in ns."""
    @property
    def slot(self) -> int:
        """Slot number. Another request may reuse it after the completion."""

@final
class Device:
    """State of the device below."""

    @property
    def issued(self) -> int:
        """Number of requests in the device from this queue."""
    @property
    def queue_depth(self) -> int: ...
    @property
    def queue_length(self) -> int: ...

@final
class Storage:
    """Properties of the array of an opportunity."""

    @property
    def page_cache(self) -> int:
        """Bytes of the largest page cache of a host above; 0 if there is none."""
    @property
    def hosts(self) -> int: ...
    @property
    def stop(self) -> int | None:
        """Shortest idle time, in ns, after which a drive stops its platters; None if no drive does."""
    def track(self, sector: int) -> tuple[int, int]:
        """Returns the first sector and the length of the array's track with this sector.
        Raises ValueError with the reason if the tracks are unknown."""
    def positioning(self, seen: Seen, sector: int, *, write: bool = False) -> int:
        """Returns the seek and rotation time, in ns, before a transfer if the arm leaves now.
        Raises ValueError if the array is not a single drive with one arm."""

@final
class Seen:
    """State of the array."""

    @property
    def now(self) -> int:
        """Current time in ns."""
    @property
    def inside(self) -> int:
        """Number of unanswered requests from above."""
    @property
    def standing(self) -> int:
        """Number of drives in standby."""
    @property
    def head(self) -> int:
        """Cylinder of the first arm, or its cylinder after the request in service. Taken before
        the last request or completion."""
    @property
    def queue_length(self) -> int:
        """Number of requests in the array before the last request or completion."""

@final
class Access:
    """A request before or after its service by the array."""

    @property
    def operation(self) -> str:
        """Operation: read, write, discard, flush, standby or start."""
    @property
    def start(self) -> int: ...
    @property
    def sectors(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def process(self) -> int:
        """Number of the process; 0 = unknown."""
    @property
    def synchronous(self) -> bool:
        """True if a process waits for the request."""

@final
class Pull:
    """Asks hosts for dirty data of these addresses. Without `start` any addresses."""

    def __new__(cls, sectors: int, start: int | None = None) -> Pull: ...

@final
class Push:
    """Offers the stored data of these addresses to hosts."""

    def __new__(cls, start: int, sectors: int) -> Push: ...

@final
class Own:
    """A request of the opportunity to the array, hidden from hosts. "read" reads; "write" repeats
    the last write of these addresses. With `verify` the read is from the medium and is compared
    with the last write. With `members` the addresses are those of each member, and all members
    are read."""

    @property
    def operation(self) -> str: ...
    @property
    def start(self) -> int: ...
    @property
    def sectors(self) -> int: ...
    @property
    def verify(self) -> bool: ...
    @property
    def members(self) -> bool: ...
    def __new__(cls, operation: str, start: int, sectors: int, *, verify: bool = False, members: bool = False) -> Own: ...

@final
class Trace:
    """A block trace in memory, with a row per request.

    Columns: arrival_ns, operation, start and sectors (of 512 bytes), device, process,
    issued_ns, completed_ns. `polars.DataFrame(trace)`, `pyarrow.table(trace)`,
    `duckdb.from_arrow(...)` read the trace through the Arrow C stream interface.
    """

    @property
    def format(self) -> str: ...
    @property
    def rows(self) -> int: ...
    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

def run(stack: Stack | str | PathLike[str]) -> dict[str, Any]:
    """Run a stack. Returns the value of `fullstroke run --json`. Ctrl-C ends the run."""

def compare(
    stacks: Sequence[Stack | str | PathLike[str]],
    *,
    by: str | None = None,
    seeds: int = 1,
    jobs: int | None = None,
) -> dict[str, Any]:
    """Run stacks side by side and rank them. Returns the value of `fullstroke compare --json`,
    with `by`, `candidates` and so on. `varied` of a candidate has the overridden keys that differ
    between stacks of one file. Files of equal names are named by their paths. Stacks that are
    still alike are numbered in the given order: "raid5", "raid5 (2)". Other threads continue
    meanwhile, and Ctrl-C ends the runs.

    `seeds` is 1 to 10,000, `jobs` 1 to 1024 (default: number of cores).
    """

def tune(
    stack: Stack | str | PathLike[str],
    vary: Mapping[str, Iterable[Any]],
    *,
    by: str = "response_ms.mean",
    sample: int = 64,
    batches: int = 64,
    first: int = 8,
    confidence: float = 0.95,
    jobs: int | None = None,
) -> dict[str, Any]:
    """Search the best combination of values of keys. Returns the value of `fullstroke tune --json`.
    Ctrl-C ends the search.

    `sample` is 1 to 1,000,000, `batches` 4 to 10,000, `first` 2 to 10,000, `jobs` 1 to 1024.
    """

def energy(
    stack: Stack | str | PathLike[str],
    *,
    after: Sequence[str] = (),
    trace: str | PathLike[str] | None = None,
    assume_power: bool = False,
    jobs: int | None = None,
) -> dict[str, Any]:
    """Calculate whether spin-down pays for the load of a stack, or for a trace. Returns the value of
    `fullstroke energy --json`. Ctrl-C ends the runs.

    `after` has idle times to try, such as "5min" (default: 30 s to an hour). `assume_power` gives
    drives without power figures the assumed figures of their class.
    """

def predict(
    stack: Stack | str | PathLike[str],
    *,
    trace: str | PathLike[str] | None = None,
    assume_power: bool = False,
    simulate: bool = True,
) -> dict[str, Any]:
    """Predict latency, bandwidth and energy of the load of a stack, or of a trace, by formulas.
    Returns the value of `fullstroke predict --json`. Ctrl-C ends the prediction.

    `simulate=False` leaves out the simulation of the stack for comparison.
    """

def sweep(
    stacks: Iterable[Stack | str | PathLike[str]],
    to: str | PathLike[str],
    *,
    client: Any = None,
    jobs: int | None = None,
    seconds: float = 1.0,
) -> Any:
    """Run the stacks without results in the folder `to`. Returns a `pyarrow.Table` with a row per
    stack: digest, seed, stack, keys, and each metric with the half width of its 95 % interval.
    Runs go to threads, or to the workers of a `distributed.Client`, in batches of about `seconds`.
    Each batch is stored at once as a Parquet file. So an interrupted sweep continues where it
    stopped, and several sweeps may share a folder. Workers need the files of the stacks at the
    same paths.

    Raises ValueError if runs failed, with their number and the first error. Other results stay.
    Needs `fullstroke[cluster]`.
    """

def read_trace(path: str | PathLike[str]) -> Trace:
    """Read a block trace of any format of `fullstroke trace`, compressed or not."""
