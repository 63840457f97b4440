"""The study `classic-control`: its rows at a hundredth of their steps, and its table."""

import numpy as np
import pytest

from jaxgpu import report
from jaxgpu.studies import classic_control
from jaxgpu.studies.classic_control import ROWS, Options
from jaxgpu.studies.classic_control.scores import PARTS, select_rows, table


@pytest.mark.slow
@pytest.mark.release
def test_a_row_is_trained_drawn_and_held_to_its_bar(tmp_path):
    """CartPole by PPO at a third of its steps, where it balances for a while."""
    options = Options(seeds=3, share=0.3, only="cartpole, PPO")
    found = classic_control.study(options, tmp_path, False)
    (row,) = found.tables[0].rows
    assert row[0] == "cartpole, PPO" and 2e4 < row[1] < 4e4 and row[2] > 100
    assert found.lead.endswith("1 of 1 rows reach their target return.") == (row[8] == "yes")
    report.save(tmp_path, "classic-control", options, found)
    assert report.write(tmp_path).read_text().count("<img") == 1


def test_the_table_says_what_was_met():
    rows = select_rows(ROWS, "pendulum")
    ends = {row.name: row.asked + np.array([-9.0, 0.0, 1.0, 2.0]) for row in rows}
    ends[rows[0].name] -= 1.5
    met = [line[8] for line in table(rows, ends, Options()).rows]
    assert met == ["no", "yes", "yes"]
    worst = [line[6] for line in table(rows, ends, Options()).rows]
    assert worst == [rows[0].asked - 10.5, rows[1].asked - 9, rows[2].asked - 9]


def test_every_row_gets_its_steps():
    for row in ROWS:
        steps = PARTS * row.interval(1.0) * row.learner.steps_per_update
        assert abs(steps - row.steps) < 0.1 * row.steps, row.name
