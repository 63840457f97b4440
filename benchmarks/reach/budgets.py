"""Figures of one program on one chip, what they are held to, and the page that shows them.

Budgets lie in `benchmarks/reach.json`, by version of jax and by chip. They only go down: a smaller
figure replaces a larger one when the gate is run with `--write`, a larger one only by hand.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jaxgpu.files import replacing

FILE = Path(__file__).parents[1] / "reach.json"
PAGE = Path(__file__).parents[2] / "docs" / "reach.md"
SLACK = 1.02  # of temporaries, whose layout may move by a little
NAMES = {"h100": "H100", "v5e": "TPU v5e"}


@dataclass(frozen=True)
class Figures:
    """What a compiled program costs, apart from time."""

    launches: int  # with loops of known length multiplied out
    loops: int  # of a length that only the device knows
    turns: int  # of loops of known length, one after the other
    temporaries: float  # over the bytes of arguments and results
    wide: int  # values of 64 bits in a program of 32
    vanished: int  # constants that are 0 or infinite on the chip


def breaches(name: str, found: Figures, budget: Mapping[str, Any] | None) -> list[str]:
    """A sentence for each figure that is over its budget, or for a budget that is missing.

    >>> breaches("f", Figures(3, 0, 0, 0.5, 0, 0), asdict(Figures(2, 0, 0, 0.5, 0, 0)))
    ['f: launches 3; the budget is 2']
    """
    if budget is None:
        return [f"{name}: no budget; run make reach WRITE=--write"]
    return [
        f"{name}: {key} {value:g}; the budget is {budget[key]:g}"
        for key, value in asdict(found).items()
        if value > budget[key] * (SLACK if key == "temporaries" else 1)
    ]


def read() -> dict[str, dict[str, dict[str, Any]]]:
    """All budgets, by "jax version, chip" and program."""
    return json.loads(FILE.read_text()) if FILE.exists() else {}


def lowered(budget: Mapping[str, Any] | None, found: Figures) -> dict[str, Any]:
    """The budget after a measurement: the smaller of both in each figure."""
    new = asdict(found)
    return new if budget is None else {key: min(new[key], budget[key]) for key in new}


def write(budgets: Mapping[str, Any], version: str) -> None:
    """Keep the budgets, one program a line, and write the page of this version of jax."""
    sections = []
    for title, programs in sorted(budgets.items()):
        rows = [f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in programs.items()]
        sections.append(f" {json.dumps(title)}: {{\n" + ",\n".join(rows) + "\n }")
    with replacing(FILE) as file:
        file.write("{\n" + ",\n".join(sections) + "\n}\n")
    with replacing(PAGE) as file:
        file.write(page(budgets, version))


_HEAD = """# What the programs become on a GPU and on a TPU

Nobody has run this package on an accelerator yet. This page shows what the compilers of an NVIDIA
H100 and of a TPU v5e make of its programs, on a machine that has neither: `make reach` compiles
them all and fails where a figure grows. It is written from `benchmarks/reach.json` (jax {version}).
The sizes are small and named in `benchmarks/reach/programs.py`.

- **launches**: kernels of one call (on a TPU: operations), loops of known length multiplied out. A
  launch takes a GPU some 2.5 microseconds, however little it does.
- **loops**: loops whose length only the device knows. On a GPU the host reads their predicate in
  every turn, unless the program is one graph, as that of a cluster's blocks is when it is run
  (`jaxgpu.precision.options`).
- **turns**: turns of loops of known length, one after the other.
- **temporaries**: bytes of intermediate values over those of arguments and results.
- **64-bit**: values of 64 bits in a program of 32 bits.
- **lost**: constants that a TPU, whose float64 is a pair of float32, takes for 0 or infinity.

Where a program has no row, the chip's compiler ends on it; `benchmarks/reach/programs.py` says how.
A sort counts as some 15 kernels on the H100: the library that needs one launch for it cannot be
chosen without a card.

"""


def page(budgets: Mapping[str, Any], version: str) -> str:
    """The page of the documents, from the budgets of one version of jax."""
    parts = [_HEAD.format(version=version)]
    for chip, title in NAMES.items():
        parts.append(f"## {title}\n\n")
        parts.append("| program | launches | loops | turns | temporaries | 64-bit | lost |\n")
        parts.append("|---|---:|---:|---:|---:|---:|---:|\n")
        for name, row in budgets.get(section(version, chip), {}).items():
            kept = Figures(**row)
            parts.append(
                f"| {name} | {kept.launches:,} | {kept.loops} | {kept.turns:,} "
                f"| {kept.temporaries:.2g} | {kept.wide} | {kept.vanished} |\n"
            )
        parts.append("\n")
    return "".join(parts).rstrip("\n") + "\n"


def section(version: str, chip: str) -> str:
    """Where the budgets of a chip stand in the file."""
    return f"jax {version}, {chip}"
