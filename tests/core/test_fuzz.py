"""The fuzzer: it detects the errors that it should, and a seeded part of it finds none.

The full program is `python -m tests.trust.fuzz`.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import fuzz_outcomes
import jax.numpy as jnp
import numpy as np
import pytest
from fuzz_calls import Call, chunks, public_names
from fuzz_values import attacks, hostile_values

from jaxgpu.inputs.fields import number, pytree
from jaxgpu.inputs.ranges import check
from tests.trust import fuzz, kills

ROOT = Path(__file__).parents[2]


@pytree
class Rule:
    rate: float = number(1.0, above=0, most=2)


def scale_input(rule, x):
    check("scale_input", rule)
    return rule.rate * jnp.asarray(x)


def outcomes(f, **arguments):
    call = Call("f", f, arguments)
    good, found = call(arguments), {}
    for attack in attacks(arguments):
        try:
            outcome = fuzz_outcomes.answer_outcome("f", call(attack.arguments), good)
        except Exception as error:
            outcome = fuzz_outcomes.error_outcome("f", error)
        found[f"{attack.at}: {attack.value}"] = outcome[0]
    return found


def test_silence_and_errors_from_below_are_faults():
    found = outcomes(scale_input, rule=Rule(), x=np.ones(3, np.float32))
    assert found["rule.rate: nan"] == found["rule.rate: 1e-300"] == "refused"
    assert found["x: one nan in it"] == "silent nan"
    assert found["x: one inf in it"] == "silent inf"
    assert found["x: words"] == "foreign exception"
    assert found["x: all -1"] == "accepted"


def test_at_least_twenty_values_stand_in_for_a_number_and_an_array():
    assert len(hostile_values(1.5)) >= 20 and len(hostile_values(np.ones(2))) >= 20
    assert "degrees" in hostile_values(0.5, "rad") and "degrees" not in hostile_values(0.5, "m")


def test_every_public_name_is_in_a_piece_of_work():
    from registry import CASES

    doors = " ".join(door.name for door in CASES)
    shown = {name for names in chunks().values() for name in names}
    missing = [n for n in public_names() if n not in shown and n.rpartition(".")[2] not in doors]
    assert not missing, missing


def test_a_walk_that_was_stopped_goes_on_behind_what_is_without_fault(tmp_path):
    good = [{"name": "f", "outcome": "refused"}, {"end": "a"}]
    bad = [{"name": "g", "outcome": "silent nan"}, {"end": "b"}]
    log, half = tmp_path / "log", [{"name": "h", "begin": 3}]
    lines = [json.dumps(line) for line in [*bad, *good, *half]]
    log.write_text("\n".join(lines) + '\n{"name": ')
    assert fuzz._finished_lines(log) == good and fuzz._finished_lines(tmp_path / "none") == []


def test_runs_that_were_ended_at_random_are_not_ended_again(tmp_path, monkeypatch):
    monkeypatch.setattr(kills, "KEPT", tmp_path / "kept")
    row = {"kills": 5, "options": kills.OPTIONS["pour"], "found": {"SIGKILL": 5}, "fault": ""}
    rows = {"pour": row, "run": row, "escapers": row | {"fault": "other bits"}}
    assert kills.load_kept({"pour": 5}) == {}
    kills.keep(rows)
    assert kills.load_kept({"pour": 5, "run": 5, "escapers": 5}) == {
        "pour": row
    }  # `run` has no options
    assert kills.load_kept({"pour": 4}) == {"pour": row} and kills.load_kept({"pour": 6}) == {}


def run_fuzzer(only, tries):
    words = [sys.executable, "-m", "tests.trust.fuzz", "--tries", str(tries), "--only", only]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, env=os.environ)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("only", ["jaxgpu.numerics.covariance"])
def test_a_part_of_the_walk_finds_no_fault(only):
    found = run_fuzzer(only, 12)
    assert found["faults"] == {} and found["tried"] >= 12, found


@pytest.mark.slow
def test_a_longer_part_of_the_walk_finds_no_fault():
    found = run_fuzzer("jaxgpu.physics.nbody.orbits", 60)
    assert found["faults"] == {} and found["tried"] >= 60, found
