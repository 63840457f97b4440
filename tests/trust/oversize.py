"""200 requests for more memory than there is, at random, in processes that may take 1 GB.

Each of them, of a study by the command line or of a function, must end in a sentence: one that is
killed or aborted, is still running after two minutes of a processor, or runs, is a failure.
"""

import time
from typing import Any

from tests.helpers.oversize import answered, requests

COUNT, SEED = 200, 0


def measure() -> dict[str, Any]:
    """What became of the requests; what the record keeps of it."""
    began = time.perf_counter()
    answers = answered(list(requests(COUNT, SEED)))
    bad = [[" ".join(request), what[:200]] for request, what in answers if not _is_said(what)]
    counts = {"requests": len(answers), "sentences": len(answers) - len(bad)}
    seconds = round(time.perf_counter() - began)
    return {"counts": counts, "faults": bad, "failed": len(bad), "seconds": seconds}


def _is_said(what: str) -> bool:
    return what.startswith("sentence")
