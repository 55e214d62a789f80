"""Tests of sweeps over threads and over a cluster on this machine."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import fullstroke
import pytest
from fullstroke import cluster

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "target/release/fullstroke"


def stacks() -> list[fullstroke.Stack]:
    short = fullstroke.Stack(ROOT / "stacks/demo/raid5.toml", "workload.to=5s")
    return [short.set(f"volume.chunk={kib}KiB", f"seed={seed}") for kib in (16, 64) for seed in (1, 2)]


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as two:
        with distributed.Client(two) as client:
            yield client


def test_a_sweep_has_the_numbers_of_its_runs_and_is_not_made_twice(tmp_path):
    table = fullstroke.sweep(stacks(), tmp_path, jobs=2)
    assert table.num_rows == 4
    for stack, row in zip(stacks(), table.to_pylist()):
        report = fullstroke.run(stack)
        assert row["response_ms.mean"] == report["response_ms"]["mean"]
        assert row["keys"] == stack.keys and row["seed"] == report["seed"]
    before = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.parquet")}
    again = fullstroke.sweep(reversed(stacks()), tmp_path)
    assert again.to_pylist() == table.to_pylist()[::-1]
    assert before == {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.parquet")}


def test_an_interrupted_sweep_goes_on_where_it_was(tmp_path, monkeypatch):
    made = []
    measure = fullstroke._fullstroke._measure

    def counted(*arguments):
        made.append(arguments[1:])
        if len(made) == 3:
            raise KeyboardInterrupt
        return measure(*arguments)

    monkeypatch.setattr(fullstroke._fullstroke, "_measure", counted)
    with pytest.raises(KeyboardInterrupt):
        fullstroke.sweep(stacks(), tmp_path, jobs=1, seconds=0)
    kept = sum(parquet.read_table(file).num_rows for file in tmp_path.rglob("*.parquet"))
    assert 1 <= kept <= 3
    made.extend([None] * 3)
    assert fullstroke.sweep(stacks(), tmp_path, jobs=1).num_rows == 4
    assert len(made) == 6 + 4 - kept


def test_a_run_that_fails_is_told_and_the_others_are_kept(tmp_path):
    good, bad = stacks()[0], stacks()[1].set("workload.from=4s", "workload.to=4000000001ns")
    try:
        fullstroke.run(bad)
    except ValueError as error:
        words = str(error)
    else:
        pytest.fail("this stack was to have no requests")
    with pytest.raises(ValueError, match="1 of 2 runs failed, the others are kept") as raised:
        fullstroke.sweep([bad, good], tmp_path)
    assert words in str(raised.value)
    assert fullstroke.sweep([good], tmp_path).num_rows == 1


def test_a_damaged_file_is_named(tmp_path):
    fullstroke.sweep(stacks()[:1], tmp_path)
    file = next(tmp_path.rglob("*.parquet"))
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(ValueError, match=file.name):
        fullstroke.sweep(stacks()[:1], tmp_path)


def test_a_file_of_somebody_else_s_is_named(tmp_path):
    fullstroke.sweep(stacks()[:1], tmp_path)
    file = next(tmp_path.rglob("*.parquet")).with_name("batch-x.parquet")
    parquet.write_table(pyarrow.table({"a": [1]}), file)
    with pytest.raises(ValueError, match="batch-x.parquet: found other columns"):
        fullstroke.sweep(stacks()[:1], tmp_path)


@pytest.mark.parametrize("name", ["batch-000000.parquet", "batch-x.parquet"])
def test_batches_are_read_under_any_name(tmp_path, name):
    table = fullstroke.sweep(stacks()[:1], tmp_path)
    file = next(tmp_path.rglob("*.parquet"))
    file.rename(file.with_name(name))
    assert fullstroke.sweep(stacks()[:1], tmp_path).equals(table)
    assert len(list(tmp_path.rglob("*.parquet"))) == 1


def test_sweeps_into_one_folder_keep_each_other_s_results(tmp_path, monkeypatch):
    """The second sweep starts during the first run of the other."""
    measure = fullstroke._fullstroke._measure

    def beside(*arguments):
        monkeypatch.setattr(fullstroke._fullstroke, "_measure", measure)
        fullstroke.sweep(stacks()[2:], tmp_path, jobs=1)
        return measure(*arguments)

    monkeypatch.setattr(fullstroke._fullstroke, "_measure", beside)
    fullstroke.sweep(stacks()[:2], tmp_path, jobs=1)
    assert sum(parquet.read_table(file).num_rows for file in tmp_path.rglob("*.parquet")) == 4
    assert not list(tmp_path.rglob("*.partial"))


def test_an_interrupted_sweep_does_not_keep_the_process(tmp_path):
    code = f"""
import fullstroke, os, signal, threading
stack = fullstroke.Stack({str(ROOT / "stacks/bench/closed-random-8k.toml")!r}, "workload.requests=60000000")
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
fullstroke.sweep([stack, stack.set("seed=9")], {str(tmp_path)!r}, jobs=1)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ran.returncode != 0 and "KeyboardInterrupt" in ran.stderr


def test_a_path_is_no_list_of_stacks(tmp_path):
    with pytest.raises(TypeError, match="expected several"):
        fullstroke.sweep("file.toml", tmp_path)
    with pytest.raises(ValueError, match="jobs: found -1; expected 1 to"):
        fullstroke.sweep(stacks(), tmp_path, jobs=-1)


def test_policies_in_python_are_not_swept(tmp_path):
    stack = stacks()[0].set('host.elevator="noop"')

    class First:
        def __init__(self, site): ...
        def choose(self, now, waiting, device):
            return waiting[0]

    with pytest.raises(ValueError, match="no digest"):
        fullstroke.sweep([stack.with_elevator(First)], tmp_path)
    assert pickle.loads(pickle.dumps(stack)).keys == stack.keys
    with pytest.raises(TypeError, match="stays in its process"):
        pickle.dumps(stack.with_elevator(First))


def test_workers_give_the_same_numbers(tmp_path, client):
    here = fullstroke.sweep(stacks(), tmp_path / "here", jobs=1)
    there = fullstroke.sweep(stacks(), tmp_path / "there", client=client)
    assert here.to_pylist() == there.to_pylist()


def test_batches_are_worth_a_message():
    """The crew is simulated: each item takes 0.1 s of a simulated clock."""
    sent = []

    def submit(function, work, batch):
        from concurrent.futures import Future

        sent.append(len(batch))
        future = Future()
        future.set_result((work(batch), 0.1 * len(batch)))
        return future

    from concurrent.futures import wait

    out = list(cluster.spread(cluster.Crew(submit, wait, 2), lambda batch: [item + 1 for item in batch], range(200)))
    assert sorted(pair for batch in out for pair in batch) == [(number, number + 1) for number in range(200)]
    assert sent[:4] == [1, 1, 1, 1] and set(sent[4:-12]) == {10}


def test_a_batch_that_breaks_off_is_told_for_each_of_its_items():
    def work(batch):
        raise MemoryError("no room")

    out = [pair for batch in cluster.spread(cluster.local(2), work, "abc") for pair in batch]
    assert sorted(number for number, _ in out) == [0, 1, 2]
    assert all(isinstance(result, MemoryError) for _, result in out)


def test_a_study_runs_on_a_cluster_as_it_does_here(tmp_path, client):
    if not PROGRAM.exists():
        pytest.skip("target/release/fullstroke is not there; `make demo` builds it")
    words = [str(PROGRAM), "study", "run", "carroll-2008/low-load", "--set", "workload.duration=2s", "--results"]
    here = subprocess.run([*words, tmp_path / "here"], cwd=ROOT, capture_output=True, text=True)
    there = subprocess.run([*words, tmp_path / "there", "--dask", client.scheduler.address], cwd=ROOT,
                           capture_output=True, text=True, env=os.environ | {"PYTHON": sys.executable})
    if "unexpected argument '--dask'" in there.stderr:
        pytest.skip("target/release/fullstroke is older than the module; `make demo` builds it")
    assert (here.returncode, there.returncode) == (0, 0), there.stderr

    def rows(folder):
        (file,) = folder.rglob("*.parquet")
        return sorted(map(str, parquet.read_table(file).to_pylist()))

    assert rows(tmp_path / "here") == rows(tmp_path / "there") != []
