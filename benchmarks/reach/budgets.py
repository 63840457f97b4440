"""Figures of one program on one chip, their budgets, and the page that shows them.

Budgets are stored in `benchmarks/reach.json`, by version of jax and by chip. They only decrease: a
run with `--write` replaces a figure by a smaller one; a larger one must be written by hand.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import record
from benchmarks.reach.chips import CHIPS
from jaxgpu.runs.files import replace_file

FILE = Path(__file__).parents[1] / "reach.json"
PAGE = Path(__file__).parents[2] / "docs" / "reach.md"
SLACK = 1.02  # tolerance of figures that depend on layouts, which may vary slightly
_LOOSE = ("temporaries", "moved", "roofline")
NAMES = {"h100": "H100", "v5e": "TPU v5e"}
# variants of the programs: small, at full size, and sharded over eight devices
KINDS = ("small", "full", "spread")


@dataclass(frozen=True)
class Figures:
    """Costs of a compiled program other than its time."""

    launches: int  # loops of known length count with every iteration
    loops: int  # loops whose length only the device knows
    turns: int  # iterations of loops of known length, one after the other
    temporaries: float  # bytes of intermediate values over those of arguments and results
    wide: int  # values of 64 bits in a program of 32 bits
    vanished: int  # constants that are 0 or infinite on the chip
    moved: int  # bytes that launches read and write
    roofline: float  # minimum time of the bytes or of the operations, microseconds
    collectives: int = 0
    crossing: int = 0  # bytes that a device receives from collectives


def breaches(name: str, found: Figures, budget: Mapping[str, Any] | None) -> list[str]:
    """Return a message for each figure over its budget, or for a missing budget.

    >>> budget = asdict(Figures(2, 0, 0, 0.5, 0, 0, 800, 1.0))
    >>> breaches("f", Figures(3, 0, 0, 0.5, 0, 0, 801, 1.0), budget)
    ['f: launches 3; the budget is 2']
    """
    if budget is None or budget.keys() != asdict(found).keys():
        return [f"{name}: no budget; run make reach WRITE=--write"]
    return [
        f"{name}: {key} {value:g}; the budget is {budget[key]:g}"
        for key, value in asdict(found).items()
        if value > budget[key] * (SLACK if key in _LOOSE else 1)
    ]


def read() -> dict[str, dict[str, dict[str, Any]]]:
    """Return all budgets, by "jax version, chip" and program."""
    return json.loads(FILE.read_text()) if FILE.exists() else {}


def tighten(budget: Mapping[str, Any] | None, found: Figures) -> dict[str, Any]:
    """Return the budget after a measurement: the minimum of both for each figure."""
    new = asdict(found)
    return {key: min(new[key], (budget or new).get(key, new[key])) for key in new}


def write(budgets: Mapping[str, Any], version: str) -> None:
    """Store the budgets, one program per line, and write the page of this version of jax."""
    sections = []
    for title, programs in sorted(budgets.items()):
        rows = [f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in programs.items()]
        sections.append(f" {json.dumps(title)}: {{\n" + ",\n".join(rows) + "\n }")
    with replace_file(FILE) as file:
        file.write("{\n" + ",\n".join(sections) + "\n}\n")
    with replace_file(PAGE) as file:
        file.write(page(budgets, version))


_HEAD = """# What the programs become on a GPU and on a TPU

This page shows what the compilers of an NVIDIA H100 and of a TPU v5e make of the package's
programs, on a machine that has neither: `make reach` compiles them all and fails where a figure
grows. It is written from `benchmarks/reach.json` (jax {version}). What the programs are is in
`benchmarks/reach/programs.py`. Where an accelerator is at hand, `python -m benchmarks device` runs
them at full size; what one H100 took [stands below](#measured-on-an-h100). No TPU has run them.

- **launches**: kernels of one call (on a TPU: operations), loops of known length multiplied out. A
  launch is taken to cost a GPU 2.5 microseconds and a TPU 1, however little it does: assumptions.
- **loops**: loops whose length only the device knows; what is inside counts once. On a GPU the host
  reads their predicate in every turn, unless the program is one graph, as that of a cluster's
  blocks is when it is run (`jaxgpu.devices.precision.options`).
- **turns**: turns of loops of known length, one after the other.
- **temporaries**: bytes of intermediate values over those of arguments and results.
- **64-bit**: values of 64 bits in a program of 32 bits.
- **lost**: constants that a TPU, whose float64 is a pair of float32, takes for 0 or infinity.
- **moved**: bytes that the launches read and write, each operand and result once.
- **roofline**: time that these bytes take at the bandwidth of the memory, or the operations at the
  peak of the chip's vector units (H100: 3.35 TB/s, 67 and 33.5 TFLOP/s in float32 and float64;
  v5e: 0.82 TB/s, 6.1 TFLOP/s), if that is longer.
- **model**: the roofline, or the launches if they take longer. It ranks programs and is no promise:
  on the H100 most took one to three times as long, those with more arithmetic than bytes up to 35
  times, and those with loops of unknown length, of which it counts one turn, up to 120 times. Where
  launches are all there is (an arm, PPO, SHAC), one took 1.9 to 2.6 microseconds.
- **collectives**: sums, exchanges and gathers between devices, and the bytes that they give to each
  of them (`benchmarks/reach/sharded_programs.py`).

Both branches of a condition count: a step of a cluster whose stars may pair holds blocks of eight
kernels, for as long as no pair is held, and blocks of up to 191 that know of pairs.
A sort counts as some 15 kernels on the H100: the library that needs one launch for it cannot be
chosen without a card. The rows of full size are no budgets, and are renewed by
`python -m benchmarks.reach h100 --full --write` with the plugin on the path.
"""
_SMALL = (
    ("program", "launches", "loops", "turns", "temporaries", "64-bit", "lost", "moved", "roofline"),
    lambda chip, row: (
        f"{row.launches:,}",
        f"{row.loops}",
        f"{row.turns:,}",
        f"{row.temporaries:.2g}",
        f"{row.wide}",
        f"{row.vanished}",
        _format_bytes(row.moved),
        _format_time(row.roofline),
    ),
)
_FULL = (
    ("program", "launches", "loops", "temporaries", "moved", "roofline", "model"),
    lambda chip, row: (
        f"{row.launches:,}",
        f"{row.loops}",
        f"{row.temporaries:.2g}",
        _format_bytes(row.moved),
        _format_time(row.roofline),
        _format_time(1e6 * CHIPS[chip].model(row.launches, 1e-6 * row.roofline)),
    ),
)
_SPREAD = (
    ("program", "launches of a device", "collectives", "bytes received by a device"),
    lambda chip, row: (f"{row.launches:,}", f"{row.collectives:,}", _format_bytes(row.crossing)),
)


def page(budgets: Mapping[str, Any], version: str) -> str:
    """Return the documentation page of the budgets of one version of jax."""
    parts = [_HEAD.format(version=version)]
    for chip, title in NAMES.items():
        small, full, spread = (budgets.get(section(version, chip, k), {}) for k in KINDS)
        parts.append(_table(f"## {title}", chip, small, _SMALL))
        parts.append(_table(f"### {title}, full size", chip, full, _FULL))
        parts.append(_table(f"### Eight {title}s", chip, spread, _SPREAD))
        parts.append(_measured_section(title))
    return "\n".join(part for part in parts if part).rstrip("\n") + "\n"


def _table(title: str, chip: str, programs: Mapping[str, Any], form: Any) -> str:
    names, cells = form
    if not programs:
        return ""
    lines = [title, "", "| " + " | ".join(names) + " |", "|---|" + "---:|" * (len(names) - 1)]
    for name, row in programs.items():
        lines.append("| " + " | ".join((name, *cells(chip, Figures(**row)))) + " |")
    return "\n".join(lines) + "\n"


def _measured_section(title: str) -> str:
    """Return the section of measured times of these programs on such a device, or nothing."""
    rows = record.rows()
    found = [row for name, row in rows.items() if name.startswith(f"NVIDIA {title} ")]
    found = [row for row in found if "model s" in row["results"][0]["answer"]]
    if not found:
        return ""
    head = ("program", "size", "took", "over the model", "a second", "goal")
    lines = [f"### Measured on an {title}", "", "| " + " | ".join(head) + " |", "|---" * 6 + "|"]
    for row in found:
        (one,) = row["results"]
        took, said = one["wall"][1], one["answer"]
        size = int(row["work"].partition(" of size ")[2].partition(",")[0])
        goal = f"{row['amount'] / said['goal s']:.3g}" if "goal s" in said else ""
        speed = f"{row['amount'] / took:.3g} {row['unit']}"
        over = f"{took / said['model s']:.2g}"
        name = row["name"].partition(", ")[2]
        lines.append(
            f"| {name} | {size:,} | {_format_time(1e6 * took)} | {over} | {speed} | {goal} |"
        )
    sat = "; ".join(dict.fromkeys(map(record.provenance, found)))
    lines += ["", "Seconds of the wall, medians of five rounds, from"]
    return "\n".join([*lines[:-1], f"{lines[-1]} `benchmarks/results.jsonl` ({sat}).", ""])


def _format_bytes(count: float) -> str:
    """Return a number of bytes with its unit.

    >>> _format_bytes(0), _format_bytes(96), _format_bytes(4.19e6)
    ('0', '96 B', '4.19 MB')
    """
    return _with_unit(count, (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0)))


def _format_time(microseconds: float) -> str:
    """Return a time with its unit.

    >>> _format_time(0.25), _format_time(1520.0)
    ('0.25 µs', '1.52 ms')
    """
    return _with_unit(microseconds, (("s", 1e6), ("ms", 1e3), ("µs", 1.0)))


def _with_unit(value: float, units: tuple[tuple[str, float], ...]) -> str:
    if not value:
        return "0"
    unit, scale = next((one for one in units if value >= one[1]), units[-1])
    return f"{value / scale:.3g} {unit}"


def section(version: str, chip: str, kind: str = "small") -> str:
    """Return the key of a chip's budgets in the file, for one variant of the programs."""
    return f"jax {version}, {chip}" + ("" if kind == "small" else f", {kind}")
