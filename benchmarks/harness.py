"""Time several contenders at the same work, in turn, and print one comparable table.

Each contender runs once to compile and warm up. The rounds then alternate A B C A B C ..., so that
a machine that slows down slows all contenders. The table reports medians with their quartiles, wall
and CPU seconds of this process, and ratios of medians. The answer that a contender returns is shown
next to its time, so that a fast but wrong program is visible as wrong.
"""

import datetime
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from benchmarks import conditions
from jaxgpu import report

RESULTS = Path(__file__).with_name("results.jsonl")


@dataclass(frozen=True)
class Contender:
    """A program to time: `run()` does the whole work and returns figures of merit of its answer."""

    name: str  # with its version
    run: Callable[[], dict[str, float]]
    part: float = 1.0  # fraction of the work that it does; its seconds are divided by this


@dataclass(frozen=True)
class Entry:
    """The same work for all contenders, of which the first is jaxgpu."""

    name: str
    work: str  # description of the work in one sentence
    contenders: list[Contender]
    amount: float = 1.0  # units of work in one run
    unit: str = "runs"
    limit: float | None = None  # maximum units per second of this machine
    rounds: int = 5


@dataclass(frozen=True)
class Measurement:
    """Seconds of one contender over all rounds."""

    name: str
    compile: float
    wall: tuple[float, float, float]  # lower quartile, median, upper quartile
    cpu: float  # median
    answer: dict[str, float]


def measure(entry: Entry) -> list[Measurement]:
    """Run all contenders of `entry` in turn."""
    first = [_time_run(contender) for contender in entry.contenders]
    rounds = [[_time_run(contender) for contender in entry.contenders] for _ in range(entry.rounds)]
    measured = []
    for i, contender in enumerate(entry.contenders):
        walls = [one[i][0] for one in rounds]
        low, middle, high = (float(q) for q in np.percentile(walls, [25, 50, 75]))
        cpu = float(np.median([one[i][1] for one in rounds]))
        compile_time = contender.part * max(0.0, first[i][0] - middle)
        measured.append(
            Measurement(contender.name, compile_time, (low, middle, high), cpu, rounds[-1][i][2])
        )
    return measured


def table(entry: Entry, measured: list[Measurement]) -> str:
    """Return the result as text, one line per contender."""
    answers = list(dict.fromkeys(name for m in measured for name in m.answer))
    columns = [
        "",
        "compile s",
        "median s",
        "quartiles",
        "CPU s",
        f"{entry.unit}/s",
        "ratio",
        "limit",
    ]
    rows = [[*columns, *answers]]
    ours = measured[0].wall[1]
    for m in measured:
        low, middle, high = m.wall
        speed = entry.amount / middle
        share = f"{100 * speed / entry.limit:.0f} %" if entry.limit else "-"
        cells = [m.name, f"{m.compile:.2f}", f"{middle:.4g}", f"{low:.3g}..{high:.3g}"]
        cells += [f"{m.cpu:.4g}", f"{speed:.3g}", f"{middle / ours:.2f}x", share]
        rows.append(cells + [f"{m.answer.get(name, float('nan')):.3g}" for name in answers])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(f"{cell:>{w}}" for cell, w in zip(row, widths)) for row in rows]
    about = report.environment()
    versions = ", ".join(f"{k} {about[k]}" for k in ("jaxgpu", "jax", "numpy", "python", "device"))
    return "\n".join([f"{entry.name}: {entry.work}", versions, *lines])


def entry_name(name: str, device: Any) -> str:
    """Return an entry's name in the results; on an accelerator the chip's name comes first.

    >>> entry_name("rigid ant", jax.devices("cpu")[0])
    'rigid ant'
    """
    return name if device.platform == "cpu" else f"{device.device_kind}, {name}"


def record(entry: Entry, measured: list[Measurement], file: Path = RESULTS) -> None:
    """Append the result of an entry to a file, as one line."""
    line = {
        "name": entry_name(entry.name, jax.devices()[0]),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "work": entry.work,
        "amount": entry.amount,
        "unit": entry.unit,
        "environment": report.environment(),
        **conditions.describe(),
        "results": [vars(m) for m in measured],
    }
    with file.open("a") as rows:
        rows.write(json.dumps(line) + "\n")


def _time_run(contender: Contender) -> tuple[float, float, dict[str, Any]]:
    wall, cpu = time.perf_counter(), time.process_time()
    answer = jax.block_until_ready(contender.run())
    cpu = time.process_time() - cpu
    wall = time.perf_counter() - wall
    return (
        wall / contender.part,
        cpu / contender.part,
        {name: float(x) for name, x in answer.items()},
    )
