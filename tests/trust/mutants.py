"""Mutation test: the fraction of small faults that the nearest tests detect, one fault at a time.

`python -m tests.trust mutants` puts faults into a copy of the tree. Three further commands:

- `python -m tests.trust.mutants again` tries the recorded survivors, after tests were added;
- `python -m tests.trust.mutants all` tries the whole record, for each fault first the test that
  detected it last, after tests were changed;
- `python -m tests.trust.mutants fresh 100 7` samples 100 faults with seed 7, on lines that no row
  of the record touches, over the whole package, and adds them to the record.
"""

import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tests.trust import mutations, nearest_tests
from tests.trust.mutations import Mutant
from tests.trust.sandbox import Sandbox

ROOT = Path(__file__).parents[2]
KEPT = Path(__file__).with_name("mutants.jsonl")
FOLDERS = "jaxgpu", "numerics", "physics", "rl"
COUNT, SEED, SECONDS = 300, 1, 240
TIERS = ("not slow", "slow and not release")  # tests of `make test` and of `make slow`
UNNOTICED = ("passed", "no test")


def measure() -> dict:
    """Try 300 mutants, and return the results to record.

    Mutants that an earlier, interrupted call has tried are not tried again. They are sampled once,
    and later found by the text of their lines in the current tree.
    """
    began = time.perf_counter()
    rows = load_rows() or [_row(mutant) for mutant in draw_mutants(COUNT, SEED)]
    _try_rows(rows, [number for number, row in enumerate(rows) if "killed" not in row])
    spent = sum(row["seconds"] for row in rows)
    return count_rows(rows, max(spent, time.perf_counter() - began))


def try_survivors() -> None:
    """Try the survivors of the record again, and record the outcomes."""
    rows = load_rows()
    is_survivor = lambda row: not row.get("killed", True) and not row.get("equivalent")
    _try_rows(rows, [number for number, row in enumerate(rows) if is_survivor(row)])


def try_all() -> None:
    """Try every mutant of the record except the equivalent ones."""
    rows = load_rows()
    _try_rows(rows, [number for number, row in enumerate(rows) if not row.get("equivalent")])


def try_fresh(count: str, seed: str) -> None:
    """Sample mutants on lines that were never tried, try them, and add them to the record."""
    rows = load_rows()
    known = {(row["file"], row["text"]) for row in rows}
    spare = [_row(mutant) for mutant in draw_mutants(2 * int(count), int(seed))]
    new = [row for row in spare if (row["file"], row["text"]) not in known][: int(count)]
    _try_rows(rows + new, range(len(rows), len(rows) + len(new)))


def _try_rows(rows: list[dict], numbers: Iterable[int]) -> None:
    """Try the numbered rows, record each outcome, and restore the tree."""
    with tempfile.TemporaryDirectory() as at:
        box = Sandbox(ROOT, Path(at))
        for stamp, number in enumerate(numbers):
            row = rows[number]
            row |= try_mutant(box, Mutant(**_mutant_fields(row)), stamp, row.get("by"))
            print(row["killed"], row["file"], row["line"], flush=True)
            write_rows(rows)


def load_rows() -> list[dict]:
    """Return the record with every mutant at its current line, without deleted lines."""
    if not KEPT.exists():
        return []
    rows = [json.loads(line) for line in KEPT.read_text().splitlines()]
    return [row | vars(found) for row in rows if (found := found_again(row))]


def found_again(row: dict) -> Mutant | None:
    """Find the mutant of a row in the current file: the same change of the same line."""
    source = (ROOT / row["file"]).read_bytes()
    is_same = lambda mutant: all(
        getattr(mutant, name) == row[name] for name in ("kind", "before", "after")
    )
    found = [mutant for mutant in mutations.mutants(row["file"], source) if is_same(mutant)]
    found = [mutant for mutant in found if _line_text(source, mutant.line) == row["text"]]
    return min(
        found, key=lambda m: (abs(m.line - row["line"]), abs(m.start - row["start"])), default=None
    )


def _row(mutant: Mutant) -> dict:
    return vars(mutant) | {"text": _line_text((ROOT / mutant.file).read_bytes(), mutant.line)}


def _line_text(source: bytes, line: int) -> str:
    return source.splitlines()[line - 1].strip().decode()


def _mutant_fields(row: dict) -> dict:
    return {name: row[name] for name in Mutant.__annotations__}


def draw_mutants(count: int, seed: int) -> list[Mutant]:
    """Return mutants spread evenly over the lines of all files, in random order."""
    pick, lines = random.Random(seed), []
    for file in files():
        found: dict[int, list[Mutant]] = {}
        for mutant in mutations.mutants(file, (ROOT / file).read_bytes()):
            found.setdefault(mutant.line, []).append(mutant)
        lines += [found[line] for line in sorted(found)]
    width = len(lines) / count
    chosen = [pick.choice(lines[int(width * (i + pick.random()))]) for i in range(count)]
    pick.shuffle(chosen)
    return chosen


def files() -> list[str]:
    """Return the modules of the package."""
    listed = subprocess.run(["git", "ls-files", *FOLDERS], cwd=ROOT, capture_output=True, text=True)
    return [name for name in listed.stdout.splitlines() if name.endswith(".py")]


def try_mutant(box: Sandbox, mutant: Mutant, number: int, by: str | None = None) -> dict:
    """Put one fault into the copy, run the nearest tests, and remove it again.

    The test that detected it last, `by`, runs first.
    """
    source = (ROOT / mutant.file).read_bytes()
    tests = nearest_tests.tests_of(mutant.file, ROOT)
    example = f"test_examples_in_docstrings[{nearest_tests.module_of(mutant.file)}]"
    chosen = [f"tests/core/test_docs.py::{example}", *tests]
    walk, entries = (
        ["tests/core/test_conformance.py"],
        nearest_tests.entry_patterns(mutant.file, ROOT),
    )
    turns = [(TIERS[0], chosen, None), (TIERS[0], walk, entries), (TIERS[1], chosen, None)]
    if by and "::" in by:
        turns.insert(0, (TIERS[0], [by], None))
    box.write(mutant.file, mutant.apply_to(source), 1_000_000_000 + number)
    spent = 0.0
    for marks, asked, only in turns:
        outcome = box.test(asked, SECONDS, marks, only)
        spent += outcome.seconds
        if outcome.how not in UNNOTICED:
            break
    box.write(mutant.file, source, 1_100_000_000 + number)
    killed = outcome.how not in UNNOTICED
    if killed and outcome.how != "ended by a signal":
        killed = box.passes([outcome.by] if outcome.by else asked, SECONDS, marks)
    found = {"how": outcome.how, "by": outcome.by, "tests": tests, "killed": killed}
    return found | {"tier": TIERS.index(marks), "seconds": round(spent, 1)}


def write_rows(rows: list[dict]) -> None:
    """Write all rows, one line per mutant."""
    KEPT.write_text("".join(json.dumps(row) + "\n" for row in rows))


def count_rows(rows: list[dict], seconds: float) -> dict:
    """Count the detected mutants, for each part of the package and in total."""
    part = lambda row: "/".join(Path(row["file"]).parts[:2]).replace(".py", "")
    of, noticed = Counter(map(part, rows)), Counter(part(row) for row in rows if row["killed"])
    same = sum(bool(row.get("equivalent")) for row in rows)  # the row says why
    return {
        "counts": {
            "mutants": len(rows),
            "killed": sum(row["killed"] for row in rows),
            "by make test": sum(row["killed"] and row["tier"] == 0 for row in rows),
            "by make slow": sum(row["killed"] and row["tier"] == 1 for row in rows),
            "of": len(rows),
            "equivalent": same,
        },
        "failed": int(10 * sum(row["killed"] for row in rows) < 9 * (len(rows) - same)),
        "parts": {name: [noticed[name], of[name]] for name in sorted(of)},
        "seconds": round(seconds),
    }


COMMANDS = {"again": try_survivors, "all": try_all, "fresh": try_fresh}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
