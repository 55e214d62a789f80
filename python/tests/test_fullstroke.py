"""`make python-check` builds the module and runs these."""

import json
import subprocess
import threading
from pathlib import Path

import fullstroke
import pytest

ROOT = Path(__file__).parents[2]
TRACE = ROOT / "samples/disksim/example.trace"


def stacks() -> list[Path]:
    found = sorted((ROOT / "stacks/demo").glob("*.toml"))
    assert len(found) >= 3
    return found


def command(*arguments: object) -> dict:
    binary = ROOT / "target/release/fullstroke"
    if not binary.exists():
        pytest.skip("target/release/fullstroke is not there; `make demo` builds it")
    if binary.stat().st_mtime < Path(fullstroke._fullstroke.__file__).stat().st_mtime:
        pytest.skip("target/release/fullstroke is older than the module; `make demo` builds it")
    words = [str(binary), *map(str, arguments), "--json"]
    return json.loads(subprocess.run(words, check=True, capture_output=True).stdout)


def bare(report: dict) -> dict:
    """Without what differs from run to run."""
    return {key: value for key, value in report.items() if key not in ("wall_s", "requests_per_wall_s", "peak_rss_mb")}


def test_run_gives_what_the_command_prints():
    report = fullstroke.run(stacks()[0])
    assert report["requests"] > 0
    assert bare(report) == bare(command("run", stacks()[0]))
    assert bare(report) == bare(fullstroke.run(fullstroke.Stack(stacks()[0])))


def test_compare_ranks_as_the_command_does():
    ranking = fullstroke.compare(stacks(), by="response_ms.p99", jobs=2)
    assert ranking["by"] == "response_ms.p99"
    printed = command("compare", *stacks(), "--by", "response_ms.p99")
    order = lambda found: [(one["rank"], one["name"], one["value"]) for one in found["candidates"]]
    assert order(ranking) == order(printed)


def test_keys_are_set_and_others_are_refused_with_the_command_s_words():
    stack = fullstroke.Stack(stacks()[0])
    again = stack.set("seed=5")
    assert again.keys == ["seed=5"] and stack.keys == []
    assert fullstroke.run(again)["seed"] == 5
    with pytest.raises(ValueError, match="did you mean|unknown key"):
        stack.set("volume.chnk=4KiB")
    with pytest.raises(ValueError, match="nowhere.toml"):
        fullstroke.Stack("nowhere.toml")
    with pytest.raises(ValueError, match="no stacks"):
        fullstroke.compare([])
    with pytest.raises(ValueError):
        fullstroke.compare(stacks(), by="response_ms.p98x")


def test_a_trace_is_columns_that_others_take():
    pyarrow = pytest.importorskip("pyarrow")
    trace = fullstroke.read_trace(TRACE)
    table = pyarrow.table(trace)
    assert len(trace) == trace.rows == table.num_rows > 100
    assert table.column_names[:4] == ["arrival_ns", "operation", "start", "sectors"]
    assert table.column("arrival_ns")[0].as_py() == 0
    assert set(table.column("operation").to_pylist()) <= {"read", "write"}
    # The stream can be taken again.
    assert pyarrow.table(trace).equals(table)
    with pytest.raises(ValueError, match="pyproject.toml"):
        fullstroke.read_trace(ROOT / "pyproject.toml")


def test_other_threads_go_on_while_stacks_run():
    ticks, done = [], threading.Event()

    def tick() -> None:
        while not done.wait(0.001):
            ticks.append(1)

    thread = threading.Thread(target=tick)
    thread.start()
    fullstroke.run(stacks()[0])
    done.set()
    thread.join()
    assert len(ticks) >= 2
