"""Protocols of policies written in Python."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from . import Device, Own, Pull, Push, Request, Seen


class Elevator(Protocol):
    """An elevator for `Stack.with_elevator`. The class is called with a Site. Times are ns, at most 2**63 - 1.
    Only `choose` is required."""

    @abstractmethod
    def choose(self, now: int, waiting: list[Request], device: Device) -> Request | None:
        """Returns one of `waiting`, which is in order of arrival, or None for a later choice.
        None requires a request in flight or a later `next_wake`."""

    # Optional methods:
    #   arrived(now, request), completed(now, request)
    #   next_wake() -> int | None        after a None of choose: latest time of the next choice
    #   may_join(kept, other, how) -> bool        how: "back", "front" or "coalesce"


class Opportunity(Protocol):
    """An opportunity for `Stack.with_opportunity`. The class is called with a Storage. Times are ns, at most
    2**63 - 1. Only `look` and `next_look` are required."""

    @abstractmethod
    def next_look(self) -> int | None:
        """Returns the time of the next look; None if only a request changes anything. Called after each other method."""

    @abstractmethod
    def look(self, seen: Seen) -> Iterable[Pull | Push | Own] | None:
        """Returns signals and own requests. The following `next_look` must be later than now."""

    # Optional methods:
    #   arrived(seen, access) -> bool | None     true: the request is held while `holding()` is true
    #   holding() -> bool                        true while held requests must wait
    #   released(access)                         a held request goes to the array
    #   left(seen, access, status)               status: "done", "differs", "lost", "refused" or "out of range"
    #   served(seen, own, status)                the array has served an own request
