"""Schedules: their length is that of the loop that runs them, which is given once.

`test_training.py` tests the rates of every learner.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest
from rl_learners import LEARNERS

from jaxgpu import rl
from jaxgpu.inputs.fields import pytree


@pytree
class Clock:
    """A learner that only counts updates and stores the length that its loop passes."""

    steps_per_update = 8

    def init(self, env, key, num_updates=None):
        """Return the state before a training of `num_updates` updates."""
        return Count(jnp.int32(0), jnp.float32(num_updates), {})

    def update(self, env, state, key):
        """Count one more update."""
        return replace(state, update=state.update + 1)


@pytree
class Count:
    """The number of updates."""

    update: jax.Array
    num_updates: jax.Array
    report: dict


def test_the_loops_say_the_length_and_a_resumed_one_keeps_it(tmp_path):
    """Test `learn`, `train` and `sweep` alike, for a learner of any class."""
    learner, key = Clock(), jax.random.key(0)
    assert rl.learn(None, learner, key, 7)[0].num_updates == 7
    one, many = tmp_path / "one", tmp_path / "many"
    train = lambda updates, **more: rl.train(None, learner, key, 8 * updates, **more).state
    measure = lambda state: state.update
    sweep_parts = lambda parts, **more: (
        rl.sweep(None, learner, key[None], parts, 2, measure=measure, **more).state
    )
    assert train(2, out=one).num_updates == 2 and sweep_parts(2, out=many).num_updates[0] == 4
    with pytest.raises(ValueError, match=r"one was started with schedule=16, now it is 24; resume"):
        train(3, out=one, resume=True)
    with pytest.raises(ValueError, match=r"many was started with schedule=4, now it is 6; resume"):
        sweep_parts(3, out=many, resume=True)
    longer = train(3, out=one, resume=True, schedule=16)
    assert (longer.update, longer.num_updates) == (3, 2)
    assert sweep_parts(3, out=many, resume=True, schedule=4).num_updates[0] == 4
    assert train(2, schedule=80).num_updates == 10


def test_an_update_without_a_length_is_refused():
    """No default stands for "never"."""
    (name, learner), key = LEARNERS["PPO"], jax.random.key(0)
    env = rl.make(name)
    state = jax.eval_shape(lambda key: learner.init(env, key), key)
    with pytest.raises(ValueError, match=r"PPO: the state has no number of updates"):
        jax.eval_shape(lambda state: learner.update(env, state, key), state)
    with pytest.raises(
        ValueError, match="PPO: num_updates=0; it must be a whole number of at least 1"
    ):
        learner.init(env, key, 0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'num_updates'"):
        rl.PPO(num_updates=10.0)
