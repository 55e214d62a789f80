from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, final

from ._policies import Elevator as Elevator, Opportunity as Opportunity

__version__: str

@final
class Stack:
    """A stack file with keys set in it, as by `--set`.

    Raises ValueError with the file, the line and the key if it cannot be used.
    """

    @property
    def path(self) -> Path: ...
    @property
    def keys(self) -> list[str]: ...
    @property
    def name(self) -> str: ...
    def __new__(cls, path: str | PathLike[str], *keys: str) -> Stack: ...
    def set(self, *keys: str) -> Stack:
        """The same stack with further `key=value`, which come last."""
    def with_elevator(self, elevator: Callable[[Site], Elevator]) -> Stack:
        """The same stack with an elevator written in Python in the place of the one that its
        host names (say `elevator = "noop"`); merging and plugging stay the block layer's.

        For trying an idea: each choice calls Python, and costs as much as hundreds of Rust's.
        An exception ends the run at once, and is raised by `run` or `compare`.
        """

    def with_opportunity(self, opportunity: Callable[[Storage], Opportunity]) -> Stack:
        """The same stack with an opportunity written in Python beside those that it has, after
        which it looks. Whether a host heeds what it says (`memory`, `pushed`) is not looked at.

        For trying an idea: each request calls Python twice and more. An exception ends the run
        at once, and is raised by `run` or `compare`.
        """

@final
class Site:
    """What an elevator is built for."""

    @property
    def queue_depth(self) -> int:
        """Requests that the device may have at once."""
    @property
    def nr_requests(self) -> int:
        """Requests that may wait or be in flight, in each direction."""
    @property
    def capacity(self) -> int:
        """Sectors of 512 bytes."""
    @property
    def drive(self) -> bool:
        """Whether the device is a single drive."""

@final
class Request:
    """A request that waits, as it is now: another object stands for it when one has joined it."""

    @property
    def start(self) -> int:
        """Its first sector."""
    @property
    def sectors(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def operation(self) -> str:
        """read, write or discard."""
    @property
    def process(self) -> int:
        """0 = unknown."""
    @property
    def synchronous(self) -> bool:
        """Whether somebody waits for it."""
    @property
    def queued(self) -> int:
        """When it came, in ns."""
    @property
    def slot(self) -> int:
        """Its number until it has completed, when another takes it."""

@final
class Device:
    """What the device below says."""

    @property
    def issued(self) -> int:
        """Requests that it has from here."""
    @property
    def queue_depth(self) -> int: ...
    @property
    def queue_length(self) -> int: ...

@final
class Storage:
    """What an opportunity is built for: the array that it stands above."""

    @property
    def page_cache(self) -> int:
        """Bytes of the largest page cache of a host above; 0 if there is none."""
    @property
    def hosts(self) -> int: ...
    @property
    def stop(self) -> int | None:
        """The shortest idle time, in ns, behind which a drive stops its platters; None if none does."""
    def track(self, sector: int) -> tuple[int, int]:
        """The first sector of the array's track that holds this one, and its length.
        Raises ValueError where tracks are not known, with the reason."""
    def positioning(self, seen: Seen, sector: int, *, write: bool = False) -> int:
        """Seek and rotation, in ns, before a transfer could begin there if the arm left now.
        Raises ValueError where the array is not a single drive with one arm."""

@final
class Seen:
    """What an opportunity is told of the array."""

    @property
    def now(self) -> int:
        """ns"""
    @property
    def inside(self) -> int:
        """Requests from above that were not answered."""
    @property
    def standing(self) -> int:
        """Drives whose platters stand."""
    @property
    def head(self) -> int:
        """The cylinder of the (first) arm, or where it will be when what is in service ends; as of
        the last request or answer, before it."""
    @property
    def queue_length(self) -> int:
        """Requests in the array, as of then."""

@final
class Access:
    """A request on its way to the array, or answered."""

    @property
    def operation(self) -> str:
        """read, write, discard, flush, standby or start."""
    @property
    def start(self) -> int: ...
    @property
    def sectors(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def process(self) -> int:
        """0 = unknown."""
    @property
    def synchronous(self) -> bool:
        """Whether somebody waits for it."""

@final
class Pull:
    """Asks for dirty data: of these addresses, or any, if there is no `start`."""

    def __new__(cls, sectors: int, start: int | None = None) -> Pull: ...

@final
class Push:
    """Offers what storage holds of these addresses."""

    def __new__(cls, start: int, sectors: int) -> Push: ...

@final
class Own:
    """Something that the array is to do, of which nobody above hears: "read", or "write" what
    was written there last. `verify`: the medium answers, and is compared with that. `members`: the
    addresses are those of each member, and read from all of them."""

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
    """A block trace in memory, a row for each request.

    Columns: arrival_ns, operation, start and sectors (of 512 bytes), device, process,
    issued_ns, completed_ns. `polars.DataFrame(trace)`, `pyarrow.table(trace)`,
    `duckdb.from_arrow(...)` take it by the Arrow C stream interface.
    """

    @property
    def format(self) -> str: ...
    @property
    def rows(self) -> int: ...
    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

def run(stack: Stack | str | PathLike[str]) -> dict[str, Any]:
    """Run a stack: the value that `fullstroke run --json` prints. Ctrl-C ends it."""

def compare(
    stacks: Sequence[Stack | str | PathLike[str]],
    *,
    by: str | None = None,
    seeds: int = 1,
    jobs: int | None = None,
) -> dict[str, Any]:
    """Run stacks side by side and rank them: `by`, `candidates` and so on, as in
    `fullstroke compare --json`. `varied` of a candidate has the keys that were set in which the
    stacks of one file differ; files of one name are called by their paths, and what is alike all
    the same is numbered in the order given: "raid5", "raid5 (2)". Other threads run meanwhile,
    and Ctrl-C ends the runs.

    `seeds` is 1 to 10,000, `jobs` 1 to 1024 (as many as there are cores unless said).
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
    """Search combinations of values of keys for the best: what `fullstroke tune --json` prints.
    Ctrl-C ends it.

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
    """Say whether stopping the platters pays for the load of a stack, or for a trace: the value that
    `fullstroke energy --json` prints. Ctrl-C ends it.

    `after` has idle times to try, such as "5min"; 30 s to an hour if it is empty. `assume_power`: drives
    whose files do not say what they draw draw what their class is assumed to.
    """

def predict(
    stack: Stack | str | PathLike[str],
    *,
    trace: str | PathLike[str] | None = None,
    assume_power: bool = False,
    simulate: bool = True,
) -> dict[str, Any]:
    """Predict latency, bandwidth and energy of the load of a stack, or of a trace, by formulas: the value
    that `fullstroke predict --json` prints. Ctrl-C ends it.

    `simulate=False` leaves the simulation of the stack beside the formulas out.
    """

def sweep(
    stacks: Iterable[Stack | str | PathLike[str]],
    to: str | PathLike[str],
    *,
    client: Any = None,
    jobs: int | None = None,
    seconds: float = 1.0,
) -> Any:
    """Run the stacks that have no results in the folder `to` yet, and give a `pyarrow.Table` with a
    row for each: digest, seed, stack, keys, and each metric with half the width of its 95 %
    interval. Runs go to threads, or to the workers of a `distributed.Client`, in batches of about
    so many seconds; each batch becomes a Parquet file of its own at once, so that a sweep that was
    interrupted goes on where it was, and several sweeps may share a folder. Workers need the files
    of the stacks at the same paths.

    Raises ValueError if runs failed: how many, and the first of them. The others are kept.
    Needs `fullstroke[cluster]`.
    """

def read_trace(path: str | PathLike[str]) -> Trace:
    """Read a block trace of any format that `fullstroke trace` knows, compressed or not."""
