"""Thirty changes of every one-call form, all rejected by name, and a hundred accepted resumes.

A run is started and interrupted. It is then resumed thirty times with one change each, which must
raise an error that names the change. After that it is resumed unchanged: in this process and in
others, with functions redefined at another line and in another module, another import order, other
hashes, an end condition, and in several calls. Each of these must end with the bits of an
uninterrupted run. `jaxgpu.load` must return the result of the form, even without the script.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxgpu
from jaxgpu.inputs import arguments
from jaxgpu.runs.checkpoint import CheckpointError
from tests.helpers.experiments import BASE, run_form
from tests.helpers.run_changes import CHANGES

ROOT = Path(__file__).parents[2]
LEFT, WHOLE = 2, 4  # steps, generations, updates or intervals
MOVED = {"lines": 40}
ELSEWHERE = {"lines": 7, "module": "__main__"}
# ways to resume: changes of the functions' text, steps after each call, with a condition
HONEST: dict[str, tuple[dict[str, Any], tuple[int, ...], bool]] = {
    "as it was": ({}, (WHOLE,), False),
    "at another line": (MOVED, (WHOLE,), False),
    "in another module": (ELSEWHERE, (WHOLE,), False),
    "with a condition": ({}, (WHOLE,), True),
    "in two goes": (MOVED, (3, WHOLE), False),
}
# processes, each with its hash seed and its first imports
OTHERS = {
    "as it was": ("0", "jaxgpu.rl, jaxgpu.physics.nbody"),
    "at another line": ("1", "optax, jaxgpu.numerics"),
    "in another module": ("random", "jaxgpu.physics.continuum, jaxgpu.evolution"),
    "with a condition": ("random", "jaxgpu.studies"),
    "in two goes": ("31", "flax, scipy.special"),
}
CLOSED = ("run", "plan")  # their specs hold functions of a script, which no folder stores


def measure() -> dict[str, Any]:
    """Try all changes and honest resumes, and return the results to record."""
    began, faults = time.perf_counter(), {}
    cpu = sum(os.times()[:4])
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        for name in BASE:
            run_half(name, at)
        refused = {name: refusals(name, at / name) for name in BASE}
        for name, said in refused.items():
            faults |= {f"{name} {i}": text for i, text in enumerate(said) if text}
        here = {f"{name}, {how}": honest_fault(name, how, at) for name in BASE for how in HONEST}
        there = {}
        for how in OTHERS:
            there |= run_elsewhere(how, at)
        loads = load_faults(at)
    resumes = [*here.values(), *there.values()]
    for part in (here, there, loads):
        faults |= {name: text for name, text in part.items() if text}
    counts = {
        "forms": len(BASE),
        "changes": sum(map(len, refused.values())),
        "refused and named": sum(not text for said in refused.values() for text in said),
        "honest resumes": len(resumes),
        "in other processes": len(there),
        "false alarms and other bits": sum(map(bool, resumes)),
        "folders loaded": len(loads),
        "loaded otherwise": sum(map(bool, loads.values())),
    }
    return {
        "counts": counts,
        "forms": {name: [sum(not t for t in said), len(said)] for name, said in refused.items()},
        "faults": faults,
        "failed": len(faults),
        "seconds": round(time.perf_counter() - began),
        "cpu": round(sum(os.times()[:4]) - cpu),
    }


def run_half(name: str, at: Path) -> Any:
    """Run a form to the end, then half of it in a folder, and return the half's result."""
    np.savez(at / f"{name}.npz", **numbers(run_form(name, WHOLE)))
    done = run_form(name, LEFT, out=at / name)
    np.savez(at / f"{name}-left.npz", **numbers(done))
    (at / f"{name}.txt").write_text(str(jax.tree.structure(done.state)))
    return done


def refusals(name: str, out: Path, number: int | None = None, seed: int = 0) -> list[str]:
    """Return for each change why it is not rejected as required, or "" if it is.

    `number` of them are sampled.
    """
    changes = CHANGES[name]
    if number is not None:
        pick = np.random.default_rng(seed).permutation(len(changes))[:number]
        changes = [changes[i] for i in pick]
    return [_check_change(name, values, said, out) for values, said in changes]


def _check_change(name: str, values: dict[str, Any], said: str, out: Path) -> str:
    try:
        run_form(name, WHOLE, values, out=out, resume=True)
    except (CheckpointError, ValueError) as error:
        return "" if said in str(error) else f"{values}: not {said!r} in {error}"
    return f"{values}: taken for the same"


def always_false(state: Any) -> Any:
    return jnp.zeros((), bool)


def honest_fault(name: str, how: str, at: Path) -> str:
    """Return why a resume does not end as the full run does, or "" if it does."""
    functions, goes, condition = HONEST[how]
    where = {"until": always_false} if condition else {}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, name)
        shutil.copytree(at / name, out)
        try:
            for far in goes:
                done = run_form(name, far, parts(name, functions), out=out, resume=True, **where)
        except (CheckpointError, ValueError) as error:
            return str(error)
    return difference(numbers(done), at / f"{name}.npz")


def parts(name: str, functions: dict[str, Any]) -> dict[str, Any]:
    """Return both functions of a form's script with these changes."""
    return {part: BASE[name][part] | functions for part in ("f", "m")}


def run_elsewhere(how: str, at: Path) -> dict[str, str]:
    """Return the results of `honest_fault` for every form, from a separate process."""
    hashes, first = OTHERS[how]
    code = (
        f"import {first}; from tests.trust import identity; identity.report({how!r}, {str(at)!r})"
    )
    return {f"{name}, {how}, elsewhere": text for name, text in _run_code(code, hashes).items()}


def report(how: str, at: str) -> None:
    """Print the results of `honest_fault` for every form."""
    print(json.dumps({name: honest_fault(name, how, Path(at)) for name in BASE}))


def load_faults(at: Path) -> dict[str, str]:
    """Return for each folder why `jaxgpu.load` does not return the form's result, or ""."""
    code = f"from tests.trust import load_checks; load_checks.report({str(at)!r}, {list(BASE)!r})"
    without = _run_code(code, "5")  # without the script
    found = {f"{name}, loaded without": without[name] for name in BASE}
    return found | {f"{name}, loaded": resume_fault(name, at) for name in BASE}


def resume_fault(name: str, at: Path) -> str:
    """Return why a run resumed with its folder's spec does not end as the full one does, or ""."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, name)
        shutil.copytree(at / name, out)
        values = {} if name in CLOSED else {"loaded": jaxgpu.load(out).spec}
        try:
            done = run_form(name, WHOLE, values, out=out, resume=True)
        except (CheckpointError, ValueError) as error:
            return str(error)
    return difference(numbers(done), at / f"{name}.npz")


def _run_code(code: str, hashes: str) -> dict[str, str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": hashes}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        return dict.fromkeys(BASE, done.stderr[-300:])
    return json.loads(done.stdout.splitlines()[-1])


def numbers(done: Any) -> dict[str, np.ndarray]:
    """Return the state and the history of a run as plain arrays."""
    leaves = jax.tree.leaves((done.state, done.history))
    plain = [jax.random.key_data(leaf) if arguments.is_key(leaf) else leaf for leaf in leaves]
    return {str(i): np.asarray(leaf) for i, leaf in enumerate(plain)}


def difference(got: dict[str, np.ndarray], file: Path) -> str:
    """Return why arrays are not bitwise identical to a file's, or ""."""
    with np.load(file) as want:
        if list(want) != list(got):
            return f"{len(got)} arrays, not {len(list(want))}"
        pairs = [(want[i], got[i]) for i in got]
    kind = lambda a: (a.dtype, a.shape, a.tobytes())
    count = sum(kind(a) != kind(b) for a, b in pairs)
    return f"{count} of {len(pairs)} arrays have other bits" if count else ""


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
