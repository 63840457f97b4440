"""The measured results, `results.jsonl`: one line per entry; the newest line of a name counts."""

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("results.jsonl")


def rows(file: Path = FILE) -> dict[str, dict[str, Any]]:
    """Return the newest row of each entry, in the order in which entries first appear.

    If a name states operations, its part after the colon is ignored: it changes with programs.
    """
    lines = sorted(map(json.loads, file.read_text().splitlines()), key=lambda row: row["date"])
    return {
        row["name"].partition(": ")[0] if _states_operations(row) else row["name"]: row
        for row in lines
    }


def _states_operations(row: dict[str, Any]) -> bool:
    return "operations" in row["name"]


def matching(found: dict[str, dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """Return the rows of a name; a name that ends in * matches all names with that prefix.

    Raises:
        KeyError: no row matches.
    """
    if name.endswith("*"):
        chosen = [row for key, row in found.items() if key.startswith(name[:-1])]
    else:
        chosen = [found[name]] if name in found else []
    if not chosen:
        raise KeyError(f"{name}: {FILE.name} has no row for it; run python -m benchmarks")
    return chosen


def ratio(row: dict[str, Any], other: dict[str, Any]) -> float:
    """Return a program's seconds over jaxgpu's: CPU time if this process did the work."""
    ours = row["results"][0]
    return other["cpu"] / ours["cpu"] if is_cpu_time(row) else other["wall"][1] / ours["wall"][1]


def is_cpu_time(row: dict[str, Any]) -> bool:
    """Return whether all programs ran in this process, so that CPU time is the better figure."""
    here = "cpu" in row["environment"]["device"]
    return here and all(one["cpu"] > 0.02 * one["wall"][1] for one in row["results"])


def provenance(row: dict[str, Any]) -> str:
    """Return the date, commit and machine of a row's measurement."""
    about = row["environment"]
    commit = row.get("commit", "not recorded")
    where = row.get("processor", about["machine"])
    where += f", {row['cores']} cores" if "cores" in row else ""
    device = "" if "cpu" in about["device"] else f", {about['device']}"
    return f"{row['date'][:10]}, commit {commit}, {where}{device}, jax {about['jax']}"
