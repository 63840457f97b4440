"""Trainings of many seeds in one program: independent, measured as requested, resumable."""

import conformance
import jax
import numpy as np
import pytest

from jaxgpu import rl


@pytest.mark.slow
def test_seeds_differ_are_measured_and_resume_to_the_bit(tmp_path):
    """Measure the spread of each seed's actions at every second update."""
    small = rl.PPO(num_envs=2, num_steps=4, update_epochs=1, num_minibatches=1, hidden_sizes=(4,))
    env, keys = rl.make("pendulum"), jax.random.split(jax.random.key(0), 3)
    measure = lambda state: {"done": state.update, "spread": state.params["params"]["spread"]}
    go = lambda resume: rl.sweep(
        env, small, keys, 3, 2, measure=measure, out=tmp_path, resume=resume
    )
    whole = go(False)
    np.testing.assert_array_equal(whole.history["done"], np.outer([0, 2, 4, 6], np.ones(3)))
    moves = np.abs(np.diff(whole.history["spread"], axis=0)).max(0)
    assert len(np.unique(moves)) == 3 and (moves > 0).all()
    conformance.assert_same(go(True).state, whole.state)


@pytest.mark.parametrize(
    "keys, error, said",
    [
        (jax.random.key(0), ValueError, r"sweep: keys of shape \[\]; they must be \[S\]"),
        (jax.random.split(jax.random.key(0), 0), ValueError, r"sweep: keys of shape \[0\]"),
        (5, TypeError, r"sweep: keys=5; they must be keys \[S\]"),
        (np.arange(4), TypeError, r"sweep: keys=an array of shape \[4\]; they must be keys"),
    ],
)
def test_what_is_no_row_of_keys_is_named(keys, error, said):
    with pytest.raises(error, match=said):
        rl.sweep(rl.make("cartpole"), rl.PPO(), keys, 1, 1)
