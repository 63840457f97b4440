"""Memory forecasts of every study's main program, and of rollout gradients, against their peaks.

Each program is compiled and run in a separate process, whose peak memory is measured. The forecast,
which can reject a launch in advance, must be within 10 % of it. Each program takes at least 10 MB,
so that the memory of the process itself is small. Holes that compilation left in the heap are
filled first, because arrays in them would not be returned to the system. Linux only.
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from jaxgpu.studies import studies

KEPT = Path(__file__).with_name("forecasts.jsonl")  # until all programs are measured
PEAK = Path(__file__).parents[1] / "helpers" / "peak.py"
ROLLOUTS = ["planets", "matter", "ant", "arm", "pendulum"]
BAND, LATE = 0.1, 1800  # relative to the peak; seconds after which a process counts as hung
# sizes at which the main program of a study is large; other studies run with their defaults
OPTIONS = {
    "classic-control": "--seeds 1000 --share 0.1 --only 'cartpole, PPO'",
    "cluster-tracers": "--stars 40 --tracers 200000 --seeds 1",
    "directions": "--images 5000 --components 300",
    "double-pendulum": "--pendulums 2000000",
    "escapers": "--stars 32 --tracers 200000 --seeds 1 --radii 3.0",
    "five-ways": "--seeds 40",
    "galaxy-from-stream": "--model 16384 --mocks 2",
    "locomotion": "--seeds 24",
    "mobile-pick": "--seeds 8",
    "nozzle-shapes": "--pop-size 48",
    "pareto-fronts": "--seeds 1000",
    "peg-by-touch": "--seeds 24",
    "peg-insertion": "--seeds 24",
    "robot-front": "--members 4096",
    "solar-system": "--tracers 1000000",
    "surgical-grasp": "--seeds 24",
    "surgical-reach": "--seeds 200",
}


def measure() -> dict[str, Any]:
    """Return forecasts and peaks in bytes, as results to record.

    Accurate results of an earlier, interrupted call are not measured again.
    """
    began = time.perf_counter()
    cases = {study.name: ["run", study.name] for study in studies()}
    cases = {name: case + shlex.split(OPTIONS.get(name, "")) for name, case in cases.items()}
    cases |= {f"gradient, {name}": ["gradient", name] for name in ROLLOUTS}
    rows = load_kept(cases)
    for name, case in cases.items():
        if name not in rows:
            rows[name] = measure_case(case)
            print(name, rows[name], flush=True)
            lines = [json.dumps({"program": name} | row) + "\n" for name, row in rows.items()]
            KEPT.write_text("".join(lines))
    ratios = {name: row["forecast"] / row["took"] for name, row in rows.items() if row["took"]}
    inside = sum(map(is_near, rows.values()))
    counts = {
        "programs": len(cases),
        "within a tenth": inside,
        "least forecast over peak": round(min(ratios.values()), 3),
        "largest": round(max(ratios.values()), 3),
    }
    if inside == len(cases):
        KEPT.unlink()  # the next call starts from scratch
    failed, spent = len(cases) - inside, round(time.perf_counter() - began)
    return {"counts": counts, "programs": rows, "failed": failed, "seconds": spent}


def load_kept(cases: dict[str, list[str]]) -> dict[str, dict[str, Any]]:
    """Return the accurate results of an earlier call with the same options."""
    lines = KEPT.read_text().splitlines() if KEPT.exists() else []
    rows = {line.pop("program"): line for line in map(json.loads, lines)}
    return {
        name: row
        for name, row in rows.items()
        if name in cases and row["options"] == " ".join(cases[name][2:]) and is_near(row)
    }


def is_near(row: dict[str, Any]) -> bool:
    """Return whether a forecast is within 10 % of the peak."""
    return abs(row["forecast"] - row["took"]) <= BAND * row["took"] and row["took"] > 0


def measure_case(case: list[str]) -> dict[str, Any]:
    """Return forecast and peak of a program in bytes, or the error."""
    command = [sys.executable, str(PEAK), *case]
    own = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_ARENA_MAX": "1"}
    with tempfile.TemporaryDirectory() as scratch:  # files left when it ends early
        own["TMPDIR"] = scratch
        done = subprocess.run(command, capture_output=True, text=True, timeout=LATE, env=own)
    options = " ".join(case[2:])
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            return {"options": options} | json.loads(line)
    last = (done.stderr.strip() or "it said nothing").splitlines()[-1]
    return {"options": options, "forecast": 0, "took": 0, "fault": last[-300:]}
