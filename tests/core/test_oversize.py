"""Requests for more memory than a process may take: each raises, and none is killed."""

import pytest
from large_requests import requests, run_requests


@pytest.mark.slow
def test_what_does_not_fit_is_refused_in_a_sentence():
    # These calls raise before anything large is traced.
    calls = [request for request in requests(60, seed=1) if len(request) == 1]
    asked = [call for call in calls if not call[0].startswith(("rl.", "minimize"))][:4]
    asked.append(["run", "solar-system", "--years", "10", "--tracers", "1000000000"])
    bad = [
        (request, what) for request, what in run_requests(asked) if not what.startswith("sentence")
    ]
    assert not bad
