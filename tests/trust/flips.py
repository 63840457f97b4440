"""10,000 corruptions of run files: each is detected, or skipped, or changes nothing.

A run and a study are interrupted and their folders kept in memory. One file of the folder is then
corrupted: a bit is flipped, a part is cut off, zeroed or inserted, bytes are swapped, or the whole
file is replaced. A resume must end with the bits of the undisturbed run, or with an error message
that names a file: a CheckpointError, a BadInput or a ReportError. Other bits in the state of a run,
or another exception, are a failure.
"""

import contextlib
import io
import random
import shutil
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu import cli, report, studies
from jaxgpu.runs.checkpoint import CheckpointError
from jaxgpu.runs.loop import run

FLIPS, OF_COMMANDS, SEED = 10_000, 2000, 3
STEPS, STOP = 40, 24


@jax.jit
def _step(state, key):
    shift = jax.random.normal(key, state["x"].shape, state["x"].dtype)
    return {"x": state["x"] * 0.99 + shift, "count": state["count"] + 1}


def _run_steps(out: Path, steps: int, resume: bool):
    start = {"x": np.arange(12, dtype=np.float32), "count": np.int32(0)}
    key = jax.random.key(8)
    return run(
        _step, start, steps, key=key, chunk=8, measure=_mean_and_count, out=out, resume=resume
    )


def _mean_and_count(state):
    return {"mean": jnp.mean(state["x"]), "count": state["count"]}


def _to_bytes(done) -> list[bytes]:
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves((done.state, done.history))]


@dataclass(frozen=True)
class _Options:
    steps: int = STEPS
    seed: int = 8


def _run_study(options: _Options, out: Path, resume: bool) -> report.Report:
    """Run a study of one run, whose report contains the final values."""
    done = _run_steps(out / "walk", options.steps, resume)
    rows = [[i, float(x)] for i, x in enumerate(done.state["x"])]
    table = report.Table("Where the walks are.", ["walk", "place"], rows)
    return report.Report("Walks", "They drift.", tables=[table])


def measure() -> dict:
    """Corrupt a run's folder and a study's, one file at a time, and return the results."""
    began, pick = time.perf_counter(), random.Random(SEED)
    found: Counter[str] = Counter()
    memory = Path("/dev/shm")  # if present: no waiting for a disk
    place = memory if memory.is_dir() else None
    with tempfile.TemporaryDirectory(dir=place) as at, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # each warning names a skipped file
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            found += _corrupt_run(Path(at), pick, FLIPS - OF_COMMANDS)
            found += _corrupt_study(Path(at), pick, OF_COMMANDS)
    failed = sum(count for how, count in found.items() if how.startswith("!"))
    seconds = round(time.perf_counter() - began)
    return {"counts": {"faults": FLIPS, **found}, "failed": failed, "seconds": seconds}


def _corrupt_run(at: Path, pick: random.Random, count: int) -> Counter[str]:
    whole = _to_bytes(_run_steps(at / "whole", STEPS, False))
    _run_steps(at / "stopped", STOP, False)
    return faults(
        at / "stopped", pick, count, lambda out: _to_bytes(_run_steps(out, STEPS, True)) == whole
    )


def _corrupt_study(at: Path, pick: random.Random, count: int) -> Counter[str]:
    """Corrupt the folder of a study that ended, with its options and its report."""
    study = studies.Study("drift", "A walk.", _Options, _run_study)
    cli.run_study(study, _Options(), at / "study", False)
    whole = _read_report(at / "study")

    def has_same_bits(out: Path) -> bool:
        cli.run_study(study, _Options(), out, True)
        return _read_report(out) == whole

    return faults(at / "study", pick, count, has_same_bits)


def _read_report(out: Path) -> dict:
    told = report.read(out / "report.json")
    return {name: told[name] for name in ("study", "options", "report")}


def faults(
    folder: Path, pick: random.Random, count: int, same: Callable[[Path], bool]
) -> Counter[str]:
    """Count the outcomes of corrupted copies; `has_same_bits` resumes one and compares the bits."""
    kept = {file.relative_to(folder): file.read_bytes() for file in _files(folder)}
    found: Counter[str] = Counter()
    for _ in range(count):
        shutil.rmtree(folder, ignore_errors=True)
        for name, data in kept.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
        name = pick.choice(list(kept))
        kind, bad = spoilt(kept[name], pick)
        (folder / name).write_bytes(bad)
        found[_outcome(folder, same)] += 1
        found[kind] += 1
    return found


def _files(folder: Path) -> list[Path]:
    return sorted(
        file for file in folder.rglob("*") if file.is_file() and file.name != "report.html"
    )


def _outcome(folder: Path, same: Callable[[Path], bool]) -> str:
    try:
        return "same bits" if same(folder) else "! other bits"
    except (CheckpointError, studies.BadInput, report.ReportError):
        return "refused"
    except Exception as error:  # no user should see these
        return f"! {type(error).__name__}"


def spoilt(good: bytes, pick: random.Random) -> tuple[str, bytes]:
    """Corrupt a file at random, and return the kind of corruption and the bytes."""
    kinds = ["flipped", "cut", "zeroed", "inserted", "swapped", "replaced"]
    kind = pick.choices(kinds, [10, 3, 3, 2, 1, 1])[0]
    a, b = sorted(pick.randrange(len(good) + 1) for _ in range(2))
    bad = bytearray(good)
    if kind == "flipped":
        bit = pick.randrange(8 * len(bad))
        bad[bit // 8] ^= 1 << bit % 8
    elif kind == "cut":
        bad = bad[:a]
    elif kind == "zeroed":
        bad[a:b] = bytes(b - a)
    elif kind == "inserted":
        bad[a:a] = pick.randbytes(1 + pick.randrange(100))
    elif kind == "swapped":
        bad = bad[a:] + bad[:a]
    else:
        bad = bytearray(pick.randbytes(pick.randrange(200)))
    return kind, bytes(bad)
