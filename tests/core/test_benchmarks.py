"""The command that measures: what it runs on a device runs on a CPU, small."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.reach import __main__ as reach

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_programs_of_the_reach_gate_run_and_are_recorded(tmp_path):
    rows = tmp_path / "rows.jsonl"
    words = ["device", "--like", "float64", "--out", str(rows)]
    subprocess.run([sys.executable, "-m", "benchmarks", *words], cwd=ROOT, check=True)
    (row,) = map(json.loads, rows.read_text().splitlines())
    assert row["name"] == "device, pair sums, float64" and row["amount"] == 2048**2
    assert "cpu" in row["environment"]["device"] and row["results"][0]["wall"][1] > 0


def test_every_benchmark_is_named_where_benchmarks_are_run():
    """And what is named has the function that is called."""
    (names,) = [
        ast.literal_eval(node.value)
        for node in ast.parse((ROOT / "benchmarks/__main__.py").read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "NAMES"
    ]
    measured = [
        file.stem
        for file in (ROOT / "benchmarks").glob("*.py")
        if file.stem != "__main__" and re.search(r"^def entries\(", file.read_text(), re.MULTILINE)
    ]
    assert sorted(measured) == list(names)


def test_the_reach_gate_looks_again_when_a_source_has_changed(tmp_path):
    """And not for its own record or for bytecode."""
    (tmp_path / "benchmarks" / "reach").mkdir(parents=True)
    for name in ("requirements.lock", "benchmarks/reach/h100.txt", "benchmarks/reach/h100.json"):
        (tmp_path / name).write_text("1")
    step = tmp_path / "physics" / "nbody" / "step.py"
    step.parent.mkdir(parents=True)
    step.write_text("dt = 1")
    found = [reach.sources("h100", tmp_path)]
    (tmp_path / "benchmarks/reach/h100.json").write_text("2")
    step.with_suffix(".pyc").write_text("3")
    assert reach.sources("h100", tmp_path) == found[0]
    for path in (step, tmp_path / "requirements.lock", tmp_path / "benchmarks/reach/h100.txt"):
        path.write_text("dt = 2")
        found.append(reach.sources("h100", tmp_path))
    step.rename(step.with_name("leap.py"))
    found.append(reach.sources("h100", tmp_path))
    assert len(set(found)) == len(found)
