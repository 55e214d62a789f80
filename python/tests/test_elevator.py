"""Tests of elevators written in Python."""

from pathlib import Path

import fullstroke
import pytest

ROOT = Path(__file__).parents[2]
STACK = ROOT / "stacks/demo/raid5.toml"


def stack(elevator: str) -> fullstroke.Stack:
    return fullstroke.Stack(STACK, f'host.elevator="{elevator}"', "host.queue_depth=2", "workload.to=20s")


def two_disks() -> fullstroke.Stack:
    """Large pieces of two disks, so that the distance of addresses is the distance of the arm."""
    return fullstroke.Stack(STACK, 'host.elevator="noop"', "host.queue_depth=2", "workload.to=20s",
                            'volume={layout="raid0", chunk="1GiB", drives=2, drive="seagate-exos-x24-24tb"}')


def numbers(report: dict) -> dict:
    return {key: report[key] for key in ("requests", "response_ms", "reads", "writes", "members", "time_ms")}


class Fifo:
    def __init__(self, site: fullstroke.Site):
        assert site.queue_depth == 2 and site.capacity > 0 and not site.drive

    def choose(self, now, waiting, device):
        assert device.issued < device.queue_depth
        assert all(one.queued <= now for one in waiting)
        return waiting[0]

    def may_join(self, kept, other, how):
        assert kept.end == other.start or other.end == kept.start
        return False


class Sstf:
    """Chooses the request that begins nearest to the end of the last one."""

    def __init__(self, site):
        self.at = 0

    def choose(self, now, waiting, device):
        chosen = min(waiting, key=lambda one: abs(one.start - self.at))
        self.at = chosen.end
        return chosen


def test_order_of_arrival_is_rust_s_to_the_bit():
    own = fullstroke.run(stack("fifo").with_elevator(Fifo))
    theirs = fullstroke.run(stack("fifo"))
    assert own["requests"] > 100
    assert numbers(own) == numbers(theirs)
    assert own["name"] == "raid5 with Fifo" and own["config_digest"] != theirs["config_digest"]


def test_shortest_seek_first_beats_order_of_arrival():
    ranking = fullstroke.compare([two_disks().with_elevator(Sstf), two_disks().with_elevator(Fifo)], jobs=2)
    assert ranking["candidates"][0]["name"] == "raid5 with Sstf"


@pytest.mark.parametrize("chosen, words", [
    (lambda waiting: 1 / 0, "division by zero"),
    (lambda waiting: None, "names no later instant"),
    (lambda waiting: "first", "str"),
])
def test_what_goes_wrong_is_raised_and_nothing_is_answered(chosen, words):
    class Wrong:
        def __init__(self, site):
            self.left = 50

        def choose(self, now, waiting, device):
            self.left -= 1
            return waiting[0] if self.left > 0 or device.issued else chosen(waiting)

    with pytest.raises(Exception, match=words):
        fullstroke.run(stack("noop").with_elevator(Wrong))


def test_a_request_is_chosen_once():
    class Twice(Fifo):
        last = None

        def choose(self, now, waiting, device):
            self.last = self.last or waiting[0]
            return self.last

    with pytest.raises(ValueError, match="does not wait"):
        fullstroke.run(stack("noop").with_elevator(Twice))


def test_waiting_is_answered_at_the_instant_that_was_named():
    """The elevator holds all requests for a millisecond."""
    held = []

    class Late:
        def __init__(self, site):
            self.wake = None

        def choose(self, now, waiting, device):
            self.wake = waiting[0].queued + 1_000_000
            if now < self.wake:
                return None
            held.append(now - waiting[0].queued)
            return waiting[0]

        def next_wake(self):
            return self.wake

    fullstroke.run(stack("noop").with_elevator(Late))
    assert len(held) > 100 and min(held) == 1_000_000 and held.count(1_000_000) > 10


@pytest.mark.parametrize("wake", [2**64 - 2, 2**70, -1])
def test_an_instant_beyond_the_clock_is_refused(wake):
    class Never:
        def __init__(self, site): ...
        def choose(self, now, waiting, device): ...
        def next_wake(self):
            return wake

    with pytest.raises(ValueError, match=rf"next_wake\(\): found {wake}; expected 0 to"):
        fullstroke.run(stack("noop").with_elevator(Never))


def test_the_last_instant_of_the_clock_is_waited_for():
    class Late(Fifo):
        def choose(self, now, waiting, device):
            return waiting[0] if now >= 2**63 - 1 else None

        def next_wake(self):
            return 2**63 - 1

    # The requests begin at the last instant, so none ends before the end of the clock.
    with pytest.raises(ValueError, match="the last event at 9223372036854.775807ms"):
        fullstroke.run(stack("noop").with_elevator(Late))


def test_the_protocol_is_there_to_be_built_upon():
    class Last(fullstroke.Elevator):
        def __init__(self, site: fullstroke.Site): ...
        def choose(self, now, waiting, device):
            return waiting[-1]

    assert fullstroke.run(stack("noop").with_elevator(Last))["name"] == "raid5 with Last"
    with pytest.raises(TypeError, match="choose"):
        stack("noop").with_elevator(type("Nothing", (fullstroke.Elevator,), {"__init__": lambda self, site: None}))


def test_elevators_of_one_name_are_told_apart():
    tried = [two_disks().with_elevator(Fifo), two_disks().with_elevator(type("Fifo", (Sstf,), {}))]
    ranking = fullstroke.compare(tried)
    assert [one["name"] for one in ranking["candidates"]] == ["raid5 with Fifo (2)", "raid5 with Fifo"]


@pytest.mark.parametrize("elevator, words", [
    (lambda site: 3, "choose"),
    (lambda: None, "argument"),
    (None, "callable"),
])
def test_what_is_no_elevator_is_refused_at_once(elevator, words):
    with pytest.raises((TypeError, AttributeError), match=words):
        stack("noop").with_elevator(elevator)


def test_there_must_be_a_place_for_it():
    with pytest.raises(ValueError, match="no elevator to replace"):
        fullstroke.Stack(STACK).with_elevator(Fifo)
    with pytest.raises(ValueError, match="does not know this key"):
        stack("deadline").set("host.read_expire=100ms").with_elevator(Fifo)
