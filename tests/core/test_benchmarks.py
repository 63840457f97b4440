"""The benchmark command: what it runs on a device also runs on a CPU, at small size."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

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
    """Each module that is named must also have the function that is called."""
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


@pytest.mark.slow
def test_the_reach_gate_looks_again_when_a_source_has_changed(tmp_path):
    """A new record of the check or new bytecode does not count as a changed source."""
    before = {
        "requirements.lock": "1",
        "benchmarks/reach/h100.txt": "1",
        "benchmarks/reach/h100.json": "1",
        "physics/nbody/step.py": "dt = 1",
    }
    changes = [
        {},
        {"benchmarks/reach/h100.json": "2"},
        {"physics/nbody/step.pyc": "3"},
        *({file: "4"} for file in before if not file.endswith(".json")),
        {"physics/nbody/leap.py": ""},
    ]
    for number, change in enumerate(changes):
        for file, text in (before | change).items():
            path = tmp_path / str(number) / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    code = "import sys, pathlib; from benchmarks.reach import __main__ as gate\n"
    code += "for root in sys.argv[1:]: print(gate.sources('h100', pathlib.Path(root)))"
    roots = [str(tmp_path / str(number)) for number in range(len(changes))]
    done = subprocess.run(
        [sys.executable, "-c", code, *roots], cwd=ROOT, capture_output=True, text=True, check=True
    )
    first, *others = done.stdout.split()
    assert others[:2] == [first, first]
    assert len({first, *others[2:]}) == 5
