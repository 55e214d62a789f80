"""Tests of the module. `make python-check` builds the module and runs them."""

import ast
import json
import os
import signal
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
    """Returns the report without the values that differ from run to run."""
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


def test_the_hours_of_a_rebuild_come_from_windows_as_the_commands_do(tmp_path):
    stack = tmp_path / "stack.toml"
    stack.write_text(
        """
        [workload]
        kind = "synthetic"
        arrivals = { process = "poisson", rate_per_s = 20 }
        requests = 2000
        [volume]
        layout = "raid1"
        drive = "wd-red-plus-4tb"
        drives = 2
        rebuild = 1
        """
    )
    rebuild = fullstroke.run(stack)["rebuild"]
    assert rebuild["hours_ci95_half_width"] > 0 and rebuild["windows"] >= 12
    [candidate] = fullstroke.compare([stack], by="rebuild.hours")["candidates"]
    assert candidate["value"] == pytest.approx(rebuild["hours"], rel=0.05)


CLOCKS = ("answered_us", "equations_us", "tabulated_ms", "took_ms")


def without_clocks(value: object) -> object:
    if isinstance(value, dict):
        return {key: without_clocks(inner) for key, inner in value.items() if key not in CLOCKS}
    return [without_clocks(inner) for inner in value] if isinstance(value, list) else value


def test_energy_gives_what_the_command_prints():
    stack = ROOT / "stacks/energy/raid5.toml"
    answer = fullstroke.energy(stack, after=["60s", "1s"], jobs=2)
    names = [policy["name"] for policy in answer["policies"]]
    assert names[0] == "always turning" and "60 s" in names and "adaptive" in names
    assert answer["policies"][0]["saved_share"] == 0 and all(policy["mean_w"] > 0 for policy in answer["policies"])
    assert [one["name"] for one in answer["refused"]] == ["1 s"]
    assert answer == command("energy", "--stack", stack, "--after", "60s,1s")


def test_energy_of_drives_that_do_not_say_what_they_draw_is_refused_unless_it_is_assumed():
    silent = fullstroke.Stack(stacks()[0], 'volume.drive="hp-dg072a4951"')
    with pytest.raises(ValueError, match="has no power figures"):
        fullstroke.energy(silent)
    assert fullstroke.energy(silent, after=["60s"], assume_power=True)["assumed"].startswith("assumed")


def test_predict_gives_what_the_command_prints():
    stack = stacks()[0]
    answer = fullstroke.predict(stack)
    assert answer["requests"] > 0 and answer["simulated"]["response_ms_mean"] > 0
    assert fullstroke.predict(stack, simulate=False)["simulated"] is None
    assert without_clocks(answer) == without_clocks(command("predict", "--stack", stack))


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


def varied(*stacks: object, **options: object) -> list[tuple[str, dict]]:
    ranking = fullstroke.compare(stacks, **options)
    return sorted(((one["name"], one["varied"]) for one in ranking["candidates"]), key=str)


def test_candidates_of_one_file_are_told_apart_by_the_keys_in_which_they_differ():
    stack = fullstroke.Stack(ROOT / "stacks/demo/raid5.toml", "workload.to=5s", "volume.chunk=64KiB")
    small, mirror = stack.set("volume.chunk = 16KiB"), fullstroke.Stack(ROOT / "stacks/demo/raid10.toml", "workload.to=5s")
    assert varied(stack, small, mirror, seeds=2) == [
        ("raid10", {}), ("raid5", {"volume.chunk": "16KiB"}), ("raid5", {"volume.chunk": "64KiB"}),
    ]
    assert "raid5 volume.chunk=" in fullstroke.compare([stack, small])["verdict"]
    assert varied(stack, stack.set("host.queue_depth=4")) == [("raid5", {"host.queue_depth": "4"}), ("raid5", {})]
    assert varied(stack, stack) == [("raid5 (2)", {}), ("raid5", {})]


def test_files_of_one_name_are_called_by_their_paths():
    here, there = ROOT / "stacks/demo/raid5.toml", ROOT / "stacks/demo/../demo/raid5.toml"
    assert varied(here, there) == sorted([(str(here), {}), (str(there), {})])


@pytest.mark.parametrize("key, found, expected", [
    ("seeds", -1, "1 to 10000"), ("seeds", 0, "1 to 10000"), ("seeds", 10**12, "1 to 10000"),
    ("seeds", 2**63, "1 to 10000"), ("seeds", 2**70, "1 to 10000"), ("jobs", -1, "1 to 1024"),
])
def test_numbers_out_of_range_are_refused(key, found, expected):
    with pytest.raises(ValueError, match=f"^{key}: found {found}; expected {expected}$"):
        fullstroke.compare([stacks()[0]], **{key: found})


def test_what_is_of_another_type_is_refused_in_a_line():
    with pytest.raises(TypeError) as raised:
        fullstroke.run(None)
    assert str(raised.value) == "found NoneType; expected a Stack or a path"
    with pytest.raises(TypeError, match="volume.chunk: found '64KiB'; expected several"):
        fullstroke.tune(stacks()[0], {"volume.chunk": "64KiB"})
    with pytest.raises(ValueError, match="batches: found -1; expected 4 to"):
        fullstroke.tune(stacks()[0], {"volume.chunk": ["64KiB"]}, batches=-1)


LONG = fullstroke.Stack(ROOT / "stacks/bench/closed-random-8k.toml", "workload.requests=60000000")


@pytest.mark.parametrize("long", [
    lambda: fullstroke.run(LONG),
    lambda: fullstroke.compare([LONG, LONG.set("seed=9")], seeds=2, jobs=2),
    lambda: fullstroke.tune(LONG, {"host.queue_depth": [1, 2]}),
])
def test_an_interrupt_ends_runs(long):
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        long()


def test_the_types_are_those_of_the_module():
    stub = ast.parse((ROOT / "python/fullstroke/__init__.pyi").read_text())
    defined = [node for node in stub.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))]
    imported = [one.asname for node in stub.body if isinstance(node, ast.ImportFrom) for one in node.names if one.asname]
    assert {node.name for node in defined} | {*imported, "__version__"} == set(fullstroke.__all__)
    settable = [node.name for node in defined if any(isinstance(one, ast.AnnAssign) for one in node.body)]
    assert not settable, "objects of the module are frozen"


def test_a_trace_is_columns_that_others_take():
    pyarrow = pytest.importorskip("pyarrow")
    trace = fullstroke.read_trace(TRACE)
    table = pyarrow.table(trace)
    assert len(trace) == trace.rows == table.num_rows > 100
    assert table.column_names[:4] == ["arrival_ns", "operation", "start", "sectors"]
    assert table.column("arrival_ns")[0].as_py() == 0
    assert set(table.column("operation").to_pylist()) <= {"read", "write"}
    # A trace gives its stream more than once.
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
