"""200 random requests for more memory than available, in processes limited to 1 GB.

Each request, of a study by the command line or of a function, must end with a proper error message.
It fails if it is killed or aborted, still runs after two minutes of CPU time, or succeeds.
"""

import json
import time
from pathlib import Path
from typing import Any

from tests.helpers.large_requests import requests, run_requests

COUNT, SEED = 200, 0
KEPT = Path(__file__).parents[2] / "out" / "trust" / "oversize.jsonl"  # until all end


def measure() -> dict[str, Any]:
    """Run the requests, and return their outcomes to record.

    Requests that an earlier, interrupted call saw rejected are not repeated.
    """
    began = time.perf_counter()
    asked = [" ".join(request) for request in requests(COUNT, SEED)]
    rows = {request: row for request, row in load_kept().items() if request in asked}
    before, done = sum(row["seconds"] for row in rows.values()), began
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    for request, what in run_requests(
        [r for r in requests(COUNT, SEED) if " ".join(r) not in rows]
    ):
        now = time.perf_counter()
        rows[" ".join(request)] = {"what": what[:200], "seconds": now - done}
        done = now
        lines = [json.dumps({"request": name} | row) + "\n" for name, row in rows.items()]
        KEPT.write_text("".join(lines))
    bad = {request: row["what"] for request, row in rows.items() if not _is_message(row["what"])}
    if not bad:
        KEPT.unlink()  # the next call starts from scratch
    counts = {"requests": len(asked), "sentences": sum(request not in bad for request in asked)}
    seconds = round(before + time.perf_counter() - began)
    return {"counts": counts, "faults": bad, "failed": len(bad), "seconds": seconds}


def load_kept() -> dict[str, dict[str, Any]]:
    """Return the error messages that an earlier call saw, by request."""
    lines = KEPT.read_text().splitlines() if KEPT.exists() else []
    rows = {line.pop("request"): line for line in map(json.loads, lines)}
    return {request: row for request, row in rows.items() if _is_message(row["what"])}


def _is_message(what: str) -> bool:
    return what.startswith("sentence")
