"""The study `pour`: its report, and the benefit of planning."""

from types import SimpleNamespace

import numpy as np
import pytest

from jaxgpu import report
from jaxgpu.runs.loop import Timing
from jaxgpu.studies import pour

ONCE = Timing(1.0, 1.0, 1)


@pytest.mark.slow
def test_a_report_tells_how_plans_pour(monkeypatch, tmp_path):
    """The planners are replaced: Adam returns the first guess, CEM holds still."""

    def give_plans(env, states, chosen, discount, options, out, resume):
        guess = env.initial_actions()[None]
        plans = dict(zip(chosen, (guess, 0 * guess)))
        history = {"best": np.array([[0.0], [-0.2], [-0.3]])}
        best = lambda plan: SimpleNamespace(best=SimpleNamespace(actions=plan))
        return {name: pour.Plan(best(plan), history, ONCE) for name, plan in plans.items()}

    monkeypatch.setattr(pour, "compare", give_plans)
    options = pour.Options(calls=8, seeds=1, planners=2)
    told = pour.study(options, tmp_path, False)
    scores = {row[0]: row[1] for row in told.tables[0].rows}
    assert abs(scores["holding still"]) < 0.02 < scores["first guess"]
    assert scores["Adam"] == scores["first guess"] and scores["CEM"] == scores["holding still"]
    report.save(tmp_path, "pour", options, told)
    page = report.write(tmp_path).read_text()
    assert "video/mp4" in page and "image/svg+xml" in page


@pytest.mark.slow
@pytest.mark.release
def test_the_study_reports_and_gradients_improve_on_the_guess(tmp_path):
    options = pour.Options(calls=8, seeds=1, planners=2)
    found = pour.study(options, tmp_path, False)
    scores = {row[0]: row[1] for row in found.tables[0].rows}
    assert list(scores) == ["holding still", "random", "first guess", "Adam", "CEM"]
    assert abs(scores["holding still"]) < 0.02 < scores["first guess"] < scores["Adam"] - 0.1
