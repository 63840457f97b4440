"""The record of mutants, which are small errors, and the tests that must detect them."""

import json
from pathlib import Path

from tests.trust import nearest_tests

ROOT = Path(__file__).parents[2]


def test_each_file_of_the_mutants_on_record_is_there():
    rows = (ROOT / "tests" / "trust" / "mutants.jsonl").read_text().splitlines()
    assert not [row for row in map(json.loads, rows) if not (ROOT / row["file"]).exists()]


def test_the_nearest_tests_are_those_of_the_name_or_of_the_folder():
    nearby_tests = lambda file: nearest_tests.tests_of(file, ROOT)
    assert nearby_tests("jaxgpu/geometry/rotations.py") == ["tests/geometry/test_rotations.py"]
    assert nearby_tests("jaxgpu/studies/pour/findings.py") == ["tests/studies/test_pour.py"]
    of_both = ["tests/physics/rigid/test_convex.py", "tests/physics/rigid/test_collision.py"]
    assert nearby_tests("physics/rigid/collision/convex.py") == of_both
    assert nearby_tests("jaxgpu/runs/saving/history.py") == ["tests/core/test_history.py"]
