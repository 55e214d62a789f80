"""What policies written in Python have to have."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from . import Device, Own, Pull, Push, Request, Seen


class Elevator(Protocol):
    """What `Stack.with_elevator` takes, built with its Site. Times are ns, to 2**63 - 1. Only `choose` is needed."""

    @abstractmethod
    def choose(self, now: int, waiting: list[Request], device: Device) -> Request | None:
        """One of those that wait, which stand in order of arrival, or None, to wait for something
        else: then there must be something in flight, or a later `next_wake`."""

    # And, where they are there:
    #   arrived(now, request), completed(now, request)
    #   next_wake() -> int | None        after a None of choose: when to ask again at the latest
    #   may_join(kept, other, how) -> bool        how: "back", "front" or "coalesce"


class Opportunity(Protocol):
    """What `Stack.with_opportunity` takes, built with its Storage. Times are ns, to 2**63 - 1. Only `look` and
    `next_look` are needed."""

    @abstractmethod
    def next_look(self) -> int | None:
        """When it wants to look; None if only a request changes anything. Asked after each call."""

    @abstractmethod
    def look(self, seen: Seen) -> Iterable[Pull | Push | Own] | None:
        """What there is to say and to do. Then `next_look` must be later than now."""

    # And, where they are there:
    #   arrived(seen, access) -> bool | None     true: it waits as long as `holding()` is true
    #   holding() -> bool                        whether those that wait still have to
    #   released(access)                         one that waited goes to the array
    #   left(seen, access, status)               status: "done", "differs", "lost" or "out of range"
    #   served(seen, own, status)                the array has done what it asked for
