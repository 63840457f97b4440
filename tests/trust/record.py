"""Results of `make trust`: one line per part in `results.jsonl`; the newest of a part counts."""

import datetime
import importlib
import json
import subprocess
from pathlib import Path
from typing import Any

from jaxgpu import report

ROOT = Path(__file__).parents[2]
ORDER = [
    "licences",
    "wheel",
    "disk",
    "oversize",
    "identity",
    "flips",
    "forged",
    "kills",
    "forecasts",
    "fuzz",
    "mutants",
]
FILE = Path(__file__).with_name("results.jsonl")


def prove(part: str) -> None:
    """Measure a part in this process, record its results, and exit with 1 if it failed."""
    found = importlib.import_module(f"tests.trust.{part}").measure()
    append(part, found)
    print(f"{part}: {json.dumps(found['counts'])}, {found['seconds']} s", flush=True)
    raise SystemExit(int(bool(found["failed"])))


def append(part: str, found: dict[str, Any], file: Path = FILE) -> None:
    """Append the results of a part, with the commit and the versions of the measurement."""
    about = report.environment()
    row = {
        "part": part,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "versions": {name: about[name] for name in ("jaxgpu", "jax", "numpy", "python")},
        "processor": about["processor"],
        **found,
    }
    with file.open("a") as lines:
        lines.write(json.dumps(row) + "\n")


def rows(file: Path = FILE) -> dict[str, dict[str, Any]]:
    """Return the newest row of each part."""
    found = map(json.loads, file.read_text().splitlines()) if file.exists() else ()
    return {row["part"]: row for row in sorted(found, key=lambda row: row["date"])}


def place(part: str) -> int:
    """Return the position of a part in the order, fast ones first."""
    return ORDER.index(part) if part in ORDER else len(ORDER)


def commit() -> str:
    """Return the checked-out commit, with a + if a source of the package differs from it."""
    git = lambda *args: subprocess.run(
        ["git", *args], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    ours = ("jaxgpu", "physics", "numerics", "rl")
    return git("rev-parse", "--short=10", "HEAD") + (
        "+" if git("status", "-s", "--", *ours) else ""
    )
