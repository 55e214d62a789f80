"""Tests that the examples in the documents work."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_readme_s_examples(tmp_path):
    pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    text = (ROOT / "python/README.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    assert len(blocks) == 4
    code = "\n".join(blocks).replace('"sweep"', repr(str(tmp_path)))
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "best by response_ms" in ran.stdout
    first = next(line for line in ran.stdout.splitlines() if line.startswith("1 raid5 "))
    assert "KiB" in first and not first.endswith(" 0.0"), "which chunk won, with an interval over seeds"


def test_the_fleet_answers_the_same_when_it_goes_on(tmp_path):
    pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    words = [sys.executable, ROOT / "python/examples/fleet.py", "--volumes", "3", "--window", "2", "--to", tmp_path]
    first = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "raid10" in first and "3 volumes on 4 arrays" in first
    assert subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout == first


def test_the_notebook_s_cells_run(monkeypatch):
    pytest.importorskip("polars")
    pytest.importorskip("matplotlib").use("Agg")
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(ROOT)
    shown = runpy.run_path(str(ROOT / "python/notebooks/a_day.py"))
    assert shown["ranking"]["candidates"] and shown["means"].height == 12


def test_the_notebook_is_what_its_source_says():
    sys.path.insert(0, str(ROOT / "python/notebooks"))
    json = __import__("json")
    try:
        from make import cells
    except ModuleNotFoundError as absent:
        pytest.skip(f"{absent.name} is not there")
    notebook = json.loads((ROOT / "python/notebooks/a_day.ipynb").read_text())
    stored = ["".join(cell["source"]) for cell in notebook["cells"]]
    assert stored == [cell.source for cell in cells((ROOT / "python/notebooks/a_day.py").read_text())]
