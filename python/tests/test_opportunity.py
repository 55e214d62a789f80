"""Tests of opportunities written in Python."""

from pathlib import Path

import fullstroke
import pytest

ROOT = Path(__file__).parents[2]
CLIENTS = ROOT / "stacks/signals/two-clients.toml"
MS = 1_000_000


@pytest.fixture
def clients(tmp_path):
    """Returns a function that builds the stack of two clients for 20 s with the given opportunities."""

    def make(tables: str = "") -> fullstroke.Stack:
        text = CLIENTS.read_text().replace("5min", "20s")
        own = '[[opportunities]]\nkind = "idle-flush-on"\nwait = "20ms"\n'
        assert own in text
        file = tmp_path / "clients.toml"
        file.write_text(text.replace(own, tables))
        return fullstroke.Stack(file)

    return make


def numbers(report: dict) -> dict:
    for layer in report["layers"]:
        # Only Rust kinds that wait for quiet show this reading.
        layer["readings"].pop("quiet_ms_max", None)
    return {key: report[key] for key in ("requests", "response_ms", "reads", "writes", "members", "layers", "time_ms")}


class IdleFlush:
    """The same policy as the kind idle-flush with its defaults."""

    every = wait = 120 * MS

    def __init__(self, storage):
        assert storage.page_cache == 192 << 20 and storage.hosts == 2 and storage.stop is None
        self.came, self.at = 0, self.every

    def arrived(self, seen, access):
        assert seen.inside > 0 and access.end == access.start + access.sectors
        self.came = seen.now

    def next_look(self):
        return self.at

    def look(self, seen):
        self.at += self.every * ((seen.now - self.at) // self.every + 1)
        if seen.now >= self.came + self.wait and seen.inside == 0:
            return [fullstroke.Pull(128)]


def test_idle_flush_is_rust_s_to_the_bit(clients):
    own = fullstroke.run(clients().with_opportunity(IdleFlush))
    theirs = fullstroke.run(clients('[[opportunities]]\nkind = "idle-flush"\n'))
    nobody = fullstroke.run(clients())
    assert own["requests"] > 1000
    assert numbers(own) == numbers(theirs) and numbers(own) != numbers(nobody)
    assert own["name"] == "clients with IdleFlush" and own["config_digest"] != theirs["config_digest"]


def test_it_stands_beside_those_that_the_stack_has(clients):
    class Nothing:
        def __init__(self, storage):
            pass

        def next_look(self):
            return None

        def look(self, seen):
            raise AssertionError("nobody has asked for it")

    stack = clients('[[opportunities]]\nkind = "idle-flush"\n')
    assert numbers(fullstroke.run(stack.with_opportunity(Nothing))) == numbers(fullstroke.run(stack))
    both = stack.with_opportunity(Nothing).with_opportunity(IdleFlush)
    assert both.name == "clients with Nothing and IdleFlush"
    ranking = fullstroke.compare([both, stack], jobs=2)
    assert len(ranking["candidates"]) == 2


def test_the_array_reads_for_it_and_requests_wait_meanwhile(clients):
    """Before every eighth read, the opportunity reads the track."""
    read, waited, refused = [], [], []

    class TrackFirst:
        def __init__(self, storage):
            self.storage, self.at, self.wanted, self.count = storage, None, None, 0

        def arrived(self, seen, access):
            self.count += 1
            if access.operation == "read" and self.count % 8 == 0 and self.wanted is None:
                self.wanted, self.at = access, seen.now
                assert self.storage.positioning(seen, access.start) < 30 * MS
                return True

        def next_look(self):
            return self.at

        def look(self, seen):
            first, sectors = self.storage.track(self.wanted.start)
            assert first <= self.wanted.start < first + sectors
            self.at = seen.now + 1000 * MS
            return [fullstroke.Own("read", first, sectors)]

        def served(self, seen, own, status):
            assert (own.operation, status, own.verify) == ("read", "done", False)
            read.append(own.sectors)
            self.wanted, self.at = None, None

        def holding(self):
            return self.wanted is not None

        def released(self, access):
            waited.append(access)

        def left(self, seen, access, status):
            refused.extend([access] if status != "done" else [])

    report = fullstroke.run(clients().with_opportunity(TrackFirst))
    assert len(read) > 20 and min(read) > 400 and len(waited) >= len(read) and not refused
    held = next(layer["readings"] for layer in report["layers"] if layer["layer"] == "pro-active storage")
    assert 1 < held["signals_held_ms"] / len(waited) < 30


def opportunity(**methods):
    """Returns a class with these methods. By default it looks once a second."""
    given = {
        "__init__": lambda self, storage: setattr(self, "at", 1000 * MS),
        "next_look": lambda self: self.at,
        "look": lambda self, seen: setattr(self, "at", seen.now + 1000 * MS),
    }
    return type("Wrong", (), given | methods)


@pytest.mark.parametrize("methods, words", [
    ({"look": lambda self, seen: 1 / 0}, "division by zero"),
    ({"look": lambda self, seen: None}, "expected a later instant"),
    ({"look": lambda self, seen: ["pull"]}, "expected Pull, Push and Own"),
    ({"look": lambda self, seen: 3}, "iterable"),
    ({"look": lambda self, seen: [fullstroke.Pull(0)]}, "sectors: found 0; expected 1 to"),
    ({"look": lambda self, seen: [fullstroke.Own("flush", 0, 8)]}, "found \"flush\""),
    ({"look": lambda self, seen: [fullstroke.Push(2**64 - 1, 2)]}, "start: found 18446744073709551615; expected 0 to"),
    ({"look": lambda self, seen: [fullstroke.Pull(-1)]}, "sectors: found -1; expected 1 to"),
    ({"look": lambda self, seen: setattr(self, "at", 2**64 - 2)}, r"next_look\(\): found 18446744073709551614"),
    ({"arrived": lambda self, seen, access: "yes"}, "bool"),
    ({"arrived": lambda self, seen, access: True, "holding": lambda self: True, "next_look": lambda self: None},
     "wait for ever"),
])
def test_what_goes_wrong_is_raised_and_nothing_is_answered(clients, methods, words):
    with pytest.raises(Exception, match=words):
        fullstroke.run(clients().with_opportunity(opportunity(**methods)))


@pytest.mark.parametrize("given, words", [
    (lambda storage: 3, "look"),
    (lambda: None, "argument"),
    (None, "callable"),
    (opportunity(next_look=lambda self: "soon"), "str"),
])
def test_what_is_no_opportunity_is_refused_at_once(clients, given, words):
    with pytest.raises((TypeError, AttributeError), match=words):
        clients().with_opportunity(given)


def test_it_stays_in_its_process_and_in_no_sweep(clients, tmp_path):
    import pickle

    stack = clients().with_opportunity(IdleFlush)
    with pytest.raises(TypeError, match="stays in its process"):
        pickle.dumps(stack)
    with pytest.raises(ValueError, match="no digest"):
        fullstroke.sweep([stack], tmp_path / "swept")
