"""`python -m benchmarks [name ...]`: measure, print a table and append it to results.jsonl.

A benchmark is a module of this folder with a function `entries() -> list[Entry]`, named in `NAMES`.
Scores beside published ones are scripts of their own: `python -m benchmarks.coco`, `.fronts`,
`.large_fronts`, `.matter_tasks`.
"""

import importlib
from typing import Annotated

import tyro

from benchmarks import harness

NAMES = (
    "bessel",
    "continuum",
    "directions",
    "evolution",
    "pair_kernel",
    "precise_cluster",
    "rigid",
    "rl",
    "scaling",
    "scatterings",
    "solar_system",
    "star_cluster",
    "tracers",
)


def main(
    names: tyro.conf.Positional[Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME")]] = (),
):
    """Measure the named benchmarks, or all."""
    unknown = set(names) - set(NAMES)
    if unknown:
        raise SystemExit(
            f"benchmarks: no {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}"
        )
    for name in names or NAMES:
        for entry in importlib.import_module(f"benchmarks.{name}").entries():
            measured = harness.measure(entry)
            print(harness.table(entry, measured), end="\n\n", flush=True)
            harness.record(entry, measured)


if __name__ == "__main__":
    tyro.cli(main, prog="python -m benchmarks")
