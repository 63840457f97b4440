"""Trainings of many seeds in one program: each its own, measured as often as asked, resumable."""

import conformance
import jax
import numpy as np
import pytest

from jaxgpu import rl
from jaxgpu.rl.sweep import sweep


@pytest.mark.slow
def test_seeds_differ_are_measured_and_resume_to_the_bit(tmp_path):
    """What each did to the spread of its actions, every second update."""
    small = rl.PPO(copies=2, horizon=4, epochs=1, minibatches=1, hidden=(4,))
    env, keys = rl.make("pendulum"), jax.random.split(jax.random.key(0), 3)
    measure = lambda state: {"done": state.update, "spread": state.params["params"]["spread"]}
    go = lambda resume: sweep(env, small, keys, 3, 2, measure, tmp_path, resume)
    whole = go(False)
    np.testing.assert_array_equal(whole.history["done"], np.outer([2, 4, 6], np.ones(3)))
    moves = np.abs(np.diff(whole.history["spread"], axis=0)).max(0)
    assert len(np.unique(moves)) == 3 and (moves > 0).all()
    conformance.same(go(True).state, whole.state)
