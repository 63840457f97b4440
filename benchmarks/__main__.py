"""`python -m benchmarks [name ...]`: measure, print a table and append it to results.jsonl.

A benchmark is a module of this folder with a function `entries()`, which yields its entries, and is
listed in `NAMES`. Without a name all benchmarks are measured in one session. If a peer package is
not installed, its benchmark is reported at the end and the others are still measured. Comparisons
with published scores are separate scripts: `python -m benchmarks.coco`, `.fronts`, `.large_fronts`,
`.continuum_tasks`.
"""

import importlib
from pathlib import Path
from typing import Annotated

import jax
import tyro

from benchmarks import harness

NAMES = (
    "bessel",
    "calls",
    "continuum",
    "device",
    "directions",
    "evolution",
    "first_results",
    "pair_kernel",
    "precise_cluster",
    "rearrange",
    "rearrange_steps",
    "rigid",
    "rl",
    "scaling",
    "scatterings",
    "solar_system",
    "star_cluster",
    "touch",
    "tracers",
)


def main(
    names: tyro.conf.Positional[Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME")]] = (),
    like: str = "",
    out: Path = harness.RESULTS,
) -> None:
    """Measure the named benchmarks, or all.

    Args:
        names: benchmarks; `device` runs the programs that `make reach` compiles, at full size.
        like: measure only entries whose name contains this.
        out: the file to which rows are appended.
    """
    unknown = set(names) - set(NAMES)
    if unknown:
        raise SystemExit(
            f"benchmarks: no {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}"
        )
    failed = [line for name in names or NAMES for line in _measure_entries(name, like, out)]
    if failed:
        raise SystemExit("\n".join(failed))


def _measure_entries(name: str, like: str, out: Path) -> list[str]:
    """Measure the entries of a benchmark and return one line per failed measurement."""
    failed = []
    try:
        for entry in importlib.import_module(f"benchmarks.{name}").entries():
            if like not in entry.name:
                continue
            try:
                measured = harness.measure(entry)
            except jax.errors.JaxRuntimeError as error:  # the other entries may fit into memory
                failed.append(f"{entry.name}: {error}")
                continue
            print(harness.table(entry, measured), end="\n\n", flush=True)
            harness.record(entry, measured, out)
    except (ImportError, SystemExit) as missing:  # a missing peer; the others still run
        failed.append(f"{name}: {missing}")
    return failed


if __name__ == "__main__":
    tyro.cli(main, prog="python -m benchmarks")
