from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Protocol, final

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
    def with_elevator(self, elevator: Callable[[Site], Elevator]) -> Stack:
        """The same stack with an elevator written in Python in the place of the one that its
        host names (say `elevator = "noop"`); merging and plugging stay the block layer's.

        For trying an idea: each choice calls Python, and costs as much as hundreds of Rust's.
        An exception ends the run, and is raised by `run` or `compare`.
        """

    def with_opportunity(self, opportunity: Callable[[Storage], Opportunity]) -> Stack:
        """The same stack with an opportunity written in Python beside those that it has, after
        which it looks. Whether a host heeds what it says (`memory`, `pushed`) is not looked at.

        For trying an idea: each request calls Python twice and more. An exception ends the run,
        and is raised by `run` or `compare`.
        """

@final
class Site:
    """What an elevator is built for."""

    queue_depth: int
    """Requests that the device may have at once."""
    nr_requests: int
    """Requests that may wait or be in flight, in each direction."""
    capacity: int
    """Sectors of 512 bytes."""
    drive: bool
    """Whether the device is a single drive."""

@final
class Request:
    """A request that waits, as it is now: another object stands for it when one has joined it."""

    start: int
    """Its first sector."""
    sectors: int
    end: int
    operation: str
    """read, write or discard."""
    process: int
    """0 = unknown."""
    synchronous: bool
    """Whether somebody waits for it."""
    queued: int
    """When it came, in ns."""
    slot: int
    """Its number until it has completed, when another takes it."""

@final
class Device:
    """What the device below says."""

    issued: int
    """Requests that it has from here."""
    queue_depth: int
    queue_length: int

class Elevator(Protocol):
    """What `Stack.with_elevator` takes, built with its Site. Times are ns. Only `choose` is needed."""

    def choose(self, now: int, waiting: list[Request], device: Device) -> Request | None:
        """One of those that wait, which stand in order of arrival, or None, to wait for something
        else: then there must be something in flight, or a later `next_wake`."""
    # And, where they are there:
    #   arrived(now, request), completed(now, request)
    #   next_wake() -> int | None        after a None of choose: when to ask again at the latest
    #   may_join(kept, other, how) -> bool        how: "back", "front" or "coalesce"

@final
class Storage:
    """What an opportunity is built for: the array that it stands above."""

    page_cache: int
    """Bytes of the largest page cache of a host above; 0 if there is none."""
    hosts: int
    stop: int | None
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

    now: int
    """ns"""
    inside: int
    """Requests from above that were not answered."""
    standing: int
    """Drives whose platters stand."""
    head: int
    """The cylinder of the (first) arm, or where it will be when what is in service ends; as of
    the last request or answer, before it."""
    queue_length: int
    """Requests in the array, as of then."""

@final
class Access:
    """A request on its way to the array, or answered."""

    operation: str
    """read, write, discard, flush, standby or start."""
    start: int
    sectors: int
    end: int
    process: int
    """0 = unknown."""
    synchronous: bool
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

    operation: str
    start: int
    sectors: int
    verify: bool
    members: bool
    def __new__(cls, operation: str, start: int, sectors: int, *, verify: bool = False, members: bool = False) -> Own: ...

class Opportunity(Protocol):
    """What `Stack.with_opportunity` takes, built with its Storage. Times are ns. Only `look` and
    `next_look` are needed."""

    def next_look(self) -> int | None:
        """When it wants to look; None if only a request changes anything. Asked after each call."""
    def look(self, seen: Seen) -> Iterable[Pull | Push | Own] | None:
        """What there is to say and to do. Then `next_look` must be later than now."""
    # And, where they are there:
    #   arrived(seen, access) -> bool | None     true: it waits as long as `holding()` is true
    #   holding() -> bool                        whether those that wait still have to
    #   released(access)                         one that waited goes to the array
    #   left(seen, access, status)               status: "done", "differs", "lost" or "out of range"
    #   served(seen, own, status)                the array has done what it asked for

@final
class Trace:
    """A block trace in memory, a row for each request.

    Columns: arrival_ns, operation, start and sectors (of 512 bytes), device, process,
    issued_ns, completed_ns. `polars.DataFrame(trace)`, `pyarrow.table(trace)`,
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
    """Search combinations of values of keys for the best: what `fullstroke tune --json` prints."""

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
    interrupted goes on where it was. Workers need the files of the stacks at the same paths.

    Raises ValueError if runs failed: how many, and the first of them. The others are kept.
    Needs `fullstroke[cluster]`.
    """

def read_trace(path: str | PathLike[str]) -> Trace:
    """Read a block trace of any format that `fullstroke trace` knows, compressed or not."""
