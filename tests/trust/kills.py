"""100 kills at moments of chance, over every study and every one-call form.

Each is first run undisturbed, and then killed a few times, resumed each time, and run to its end:
half of the signals are SIGKILL and half SIGTERM. What it returns, its last checkpoints and its
report must have the bits of the undisturbed run.
"""

import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from forked import forked
from killed import assert_same_bits, ended_at_random, finished, newest

from jaxgpu.cli import main
from jaxgpu.studies import studies
from tests.trust import forms

KILLS, SEED = 100, 1
# as small as they may be; a study without a line here runs with the options that it has by default
OPTIONS = {
    "classic-control": "--seeds 3 --share 0.01 --only cartpole",
    "cluster-tracers": "--stars 40 --tracers 100 --seeds 1 --time 6",
    "directions": "--images 200 --components 12 --compare False",
    "double-pendulum": "--pendulums 50 --seconds 10",
    "escapers": "--stars 32 --tracers 64 --seeds 1 --time 4 --radii 0.1",
    "five-ways": "--episodes 32 --longer 1 --seeds 2 --plans 2",
    "galaxy-from-stream": "--mocks 4 --stars 50 --model 256 --simulations 16 --turns 1 --steps 100",
    "latte-art": "--calls 8 --planners 2 --size small",
    "nozzle-shapes": "--seeds 2 --pop-size 4 --generations 20 --frames 4",
    "pareto-fronts": "--generations 50 --seeds 3",
    "pour": "--calls 8 --seeds 1 --planners 2",
    "solar-system": "--years 10 --tracers 500",
    "surgical-reach": "--steps 100000 --seeds 3",
}


def measure(only: str = "") -> dict:
    """End all of them, in turn, at moments of chance; what the record keeps."""
    began, pick = time.perf_counter(), random.Random(SEED)
    commands = {name: partial(form, name) for name in forms.FORMS}
    commands |= {study.name: partial(command, study.name) for study in studies()}
    commands = {name: start for name, start in commands.items() if only in name}
    share = [KILLS // len(commands) + (i < KILLS % len(commands)) for i in range(len(commands))]
    rows, failed = {}, {}
    for kills, (name, start) in zip(share, commands.items()):
        with tempfile.TemporaryDirectory() as at:
            try:
                rows[name] = tried(start, Path(at), kills, pick)
            except AssertionError as error:
                failed[name] = str(error)[:500]
        print(name, rows.get(name, failed.get(name)), flush=True)
    total = sum(map(Counter, rows.values()), Counter())
    counts = {"runs": len(commands), **total, "of other bits": len(failed)}
    seconds = round(time.perf_counter() - began)
    return {"counts": counts, "runs": rows, "failures": failed, "failed": len(failed)} | {
        "seconds": seconds
    }


def form(name: str, out: Path, cache: Path):
    """The process of a one-call form."""
    return forked(cache, forms.resumed, name, out)


def command(name: str, out: Path, cache: Path):
    """The process of a study."""
    return forked(
        cache, main, ["run", name, *OPTIONS.get(name, "").split(), "--out", str(out), "--resume"]
    )


def tried(start: Callable, at: Path, kills: int, pick: random.Random) -> dict[str, int]:
    """End a run so many times, and hold what comes of it to the undisturbed run."""
    whole, killed, cache = at / "whole", at / "killed", at / "cache"
    finished(start(whole, cache), 600)
    shutil.rmtree(whole)
    began = time.perf_counter()
    finished(start(whole, cache))  # with every program compiled
    longest = time.perf_counter() - began
    found: Counter[str] = Counter()
    for _ in range(20 * kills):
        if found["SIGKILL"] + found["SIGTERM"] == kills:
            break
        how = pick.choice([signal.SIGKILL, signal.SIGTERM])
        saved = pick.random() < 0.5 and killed.exists()
        ended = partial(ended_at_random, start(killed, cache), killed, how=how)
        if ended(longest=pick.uniform(0, longest / 4 if saved else longest), saved=saved):
            found[how.name] += 1
            found["with a checkpoint"] += newest(killed) is not None
        else:  # it got to its end: begin anew
            same(killed, whole)
            shutil.rmtree(killed)
    finished(start(killed, cache))
    same(killed, whole)
    return dict(found)


def same(killed: Path, whole: Path) -> None:
    """Hold a run that was ended to the undisturbed one."""
    if (whole / "report.json").exists():
        assert_same_bits(killed, whole)
        return
    want, got = (dict(np.load(at.with_suffix(".npz"))) for at in (whole, killed))
    assert want.keys() == got.keys()
    for name in want:
        np.testing.assert_array_equal(want[name], got[name], strict=True)
    killed.with_suffix(".npz").unlink()
