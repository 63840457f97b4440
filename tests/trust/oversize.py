"""200 requests for more memory than there is, at random, in processes that may take 1 GB.

Each of them, of a study by the command line or of a function, must end in a sentence: one that is
killed or aborted, is still running after two minutes of a processor, or runs, is a failure.
"""

import json
import time
from pathlib import Path
from typing import Any

from tests.helpers.oversize import answered, requests

COUNT, SEED = 200, 0
KEPT = Path(__file__).parents[2] / "out" / "trust" / "oversize.jsonl"  # while it is not at its end


def measure() -> dict[str, Any]:
    """What became of the requests; what the record keeps of it.

    Those that an earlier call, which was stopped, saw refused are not asked again.
    """
    began = time.perf_counter()
    asked = [" ".join(request) for request in requests(COUNT, SEED)]
    rows = {request: row for request, row in kept().items() if request in asked}
    before, done = sum(row["seconds"] for row in rows.values()), began
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    for request, what in answered([r for r in requests(COUNT, SEED) if " ".join(r) not in rows]):
        now = time.perf_counter()
        rows[" ".join(request)] = {"what": what[:200], "seconds": now - done}
        done = now
        lines = [json.dumps({"request": name} | row) + "\n" for name, row in rows.items()]
        KEPT.write_text("".join(lines))
    bad = {request: row["what"] for request, row in rows.items() if not _is_said(row["what"])}
    if not bad:
        KEPT.unlink()  # the next call begins anew
    counts = {"requests": len(asked), "sentences": sum(request not in bad for request in asked)}
    seconds = round(before + time.perf_counter() - began)
    return {"counts": counts, "faults": bad, "failed": len(bad), "seconds": seconds}


def kept() -> dict[str, dict[str, Any]]:
    """The sentences that an earlier call saw, by their requests."""
    lines = KEPT.read_text().splitlines() if KEPT.exists() else []
    rows = {line.pop("request"): line for line in map(json.loads, lines)}
    return {request: row for request, row in rows.items() if _is_said(row["what"])}


def _is_said(what: str) -> bool:
    return what.startswith("sentence")
