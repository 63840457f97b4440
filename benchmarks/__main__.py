"""`python -m benchmarks [name ...]`: measure, print a table and append it to results.jsonl.

A benchmark is a file of this folder with a function `entries() -> list[Entry]`.
"""

import importlib
from pathlib import Path
from typing import Annotated

import tyro

from benchmarks import harness

_NAMES = sorted(
    file.stem
    for file in Path(__file__).parent.glob("*.py")
    if "\ndef entries()" in file.read_text()
)


def main(
    names: tyro.conf.Positional[Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME")]] = (),
):
    """Measure the named benchmarks, or all."""
    unknown = set(names) - set(_NAMES)
    if unknown:
        raise SystemExit(
            f"benchmarks: no {', '.join(sorted(unknown))}; there are {', '.join(_NAMES)}"
        )
    for name in names or _NAMES:
        for entry in importlib.import_module(f"benchmarks.{name}").entries():
            measured = harness.measure(entry)
            print(harness.table(entry, measured), end="\n\n", flush=True)
            harness.record(entry, measured)


if __name__ == "__main__":
    tyro.cli(main, prog="python -m benchmarks")
