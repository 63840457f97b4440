"""100 kills at random moments, over every study and every one-call form.

Each is first run undisturbed. It is then killed a few times, resumed each time, and run to its end:
half of the signals are SIGKILL and half SIGTERM. Its result, last checkpoints and report must be
bitwise identical to those of the undisturbed run.
"""

import json
import random
import shlex
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

from fork_server import fork_process
from kill_checks import assert_same_bits, join_process, kill_at_random, newest

from jaxgpu.cli import main
from jaxgpu.studies import studies
from tests.trust import record, run_forms

KEPT = Path(__file__).with_name("kills.jsonl")  # until all are killed
KILLS, SEED = 100, 1
LATE = 3600  # seconds after which a run counts as hung
# minimal options; other studies run with their defaults
OPTIONS = {
    "classic-control": "--seeds 3 --share 0.01 --only 'cartpole, PPO'",
    "cluster-tracers": "--stars 40 --tracers 100 --seeds 1 --time 4",
    "directions": "--images 200 --components 12 --no-compare",
    "double-pendulum": "--pendulums 50 --seconds 10",
    "escapers": "--stars 32 --tracers 400 --seeds 1 --time 6 --radii 3.0",
    "five-ways": "--episodes 32 --longer 1 --seeds 2 --plans 2",
    "galaxy-from-stream": "--mocks 4 --stars 50 --model 256 --simulations 16 --turns 1 --steps 100",
    "latte-art": "--calls 8 --planners 2 --size small",
    "locomotion": "--seeds 3 --share 0.01",
    "mobile-pick": "--steps 100000 --homes 4",
    "nozzle-shapes": "--seeds 2 --pop-size 4 --generations 20 --frames 4",
    "pareto-fronts": "--generations 50 --seeds 3",
    "peg-by-touch": "--steps 50000 --seeds 3 --episodes 4",
    "peg-insertion": "--steps 50000 --seeds 3 --episodes 4",
    "pour": "--calls 8 --seeds 1 --planners 2",
    "robot-front": "--members 8 --generations 24 --max-steps 8 --seeds 2",
    "solar-system": "--years 10 --tracers 500",
    "surgical-grasp": "--steps 20000 --seeds 3 --episodes 4",
    "surgical-reach": "--steps 100000 --seeds 3",
}


def measure() -> dict:
    """Kill all of them, in turn, at random moments, and return the results to record.

    Runs that an earlier, interrupted call has compared with success are not repeated.
    """
    began = time.perf_counter()
    commands = {study.name: partial(start_study, study.name) for study in studies()}
    commands |= {name: partial(start_form, name) for name in run_forms.FORMS}
    share = [KILLS // len(commands) + (i < KILLS % len(commands)) for i in range(len(commands))]
    rows = load_kept(dict(zip(commands, share)))
    before = sum(row["seconds"] for row in rows.values())
    for kills, (name, start) in zip(share, commands.items()):
        if name not in rows:
            given = {"kills": kills, "options": OPTIONS.get(name, "")}
            rows[name] = given | kill_run(name, start, kills)
            print(name, rows[name], flush=True)
            keep(rows)
    failed = {name: row["fault"] for name, row in rows.items() if row["fault"]}
    if not failed:
        KEPT.unlink()  # the next call starts from scratch
    total = sum((Counter(row["found"]) for row in rows.values()), Counter())
    counts = {"runs": len(commands), **total, "of other bits": len(failed)}
    spent = round(before + time.perf_counter() - began)
    return {"counts": counts, "runs": rows, "failed": len(failed), "seconds": spent}


def load_kept(share: dict[str, int]) -> dict[str, dict]:
    """Return an earlier call's results of unchanged runs with enough kills and no error."""
    lines = KEPT.read_text().splitlines() if KEPT.exists() else []
    rows = {line.pop("run"): line for line in map(json.loads, lines)}
    return {
        name: row
        for name, row in rows.items()
        if name in share
        and row["kills"] >= share[name]
        and (row["options"], row["fault"]) == (OPTIONS.get(name, ""), "")
    }


def keep(rows: dict[str, dict]) -> None:
    """Write the results, one line per run."""
    KEPT.write_text("".join(json.dumps({"run": name} | row) + "\n" for name, row in rows.items()))


def kill_run(name: str, start: Callable, kills: int) -> dict:
    """Return the outcomes of a run that is killed `kills` times, and the error if bits differ."""
    began, pick, found, fault = time.perf_counter(), random.Random(f"{SEED} {name}"), {}, ""
    with tempfile.TemporaryDirectory() as at:
        try:
            found = try_kills(start, Path(at), kills, pick)
        except (AssertionError, OSError, ValueError) as error:
            fault = f"{type(error).__name__}: {error}"[:500]
    spent = round(time.perf_counter() - began)
    return {"found": found, "fault": fault, "seconds": spent, "commit": record.commit()}


def start_form(name: str, out: Path, cache: Path):
    """Start the process of a one-call form."""
    return fork_process(cache, run_forms.resume_form, name, out)


def start_study(name: str, out: Path, cache: Path):
    """Start the process of a study."""
    return fork_process(
        cache,
        main,
        ["run", name, *shlex.split(OPTIONS.get(name, "")), "--out", str(out), "--resume"],
    )


def try_kills(start: Callable, at: Path, kills: int, pick: random.Random) -> dict[str, int]:
    """Kill a run `kills` times, and compare its result with the undisturbed run."""
    whole, killed, cache = at / "whole", at / "killed", at / "cache"
    join_process(start(whole, cache), LATE)
    shutil.rmtree(whole)
    began = time.perf_counter()
    join_process(start(whole, cache), LATE)  # now with every program in the cache
    longest = time.perf_counter() - began
    found: Counter[str] = Counter()
    for _ in range(20 * kills):
        if found["SIGKILL"] + found["SIGTERM"] == kills:
            break
        how = pick.choice([signal.SIGKILL, signal.SIGTERM])
        saved = pick.random() < 0.5 and killed.exists()
        seconds = pick.uniform(0, longest / 4 if saved else longest)
        if kill_at_random(start(killed, cache), killed, seconds, saved, how):
            found[how.name] += 1
            found["with a checkpoint"] += newest(killed) is not None
        else:  # it has finished: start again
            assert_same(killed, whole)
            shutil.rmtree(killed)
    join_process(start(killed, cache), LATE)
    assert_same(killed, whole)
    return dict(found)


def assert_same(killed: Path, whole: Path) -> None:
    """Compare a run that was killed with the undisturbed one."""
    if (whole / "report.json").exists():
        assert_same_bits(killed, whole)
        return
    want, got = (dict(np.load(at.with_suffix(".npz"))) for at in (whole, killed))
    assert want.keys() == got.keys()
    for name in want:
        np.testing.assert_array_equal(want[name], got[name], strict=True)
    killed.with_suffix(".npz").unlink()
