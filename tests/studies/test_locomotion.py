"""The study `locomotion`: a robot learns a little, its rows and its options."""

import pytest

from jaxgpu.studies import locomotion
from jaxgpu.studies.classic_control.scores import PARTS


@pytest.mark.slow
def test_a_half_cheetah_learns_to_move_in_a_tenth_of_the_steps(tmp_path):
    options = locomotion.Options(share=0.05)
    found = locomotion.study(options, tmp_path, False)
    (row,) = found.tables[0].rows
    assert row[0] == "half-cheetah, PPO" and 3e4 < row[1] < 7e4
    assert row[2] > 0  # at random it loses some 280


def test_every_robot_gets_its_steps():
    for row in locomotion.ROWS:
        steps = PARTS * row.every(1.0) * row.learner.steps_per_update
        assert abs(steps - row.steps) < 0.1 * row.steps, row.name


def test_options_that_cannot_be_met_are_refused():
    with pytest.raises(ValueError, match="only: no row has 'dog' in its name"):
        locomotion.Options(only="dog")
