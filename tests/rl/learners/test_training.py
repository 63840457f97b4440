"""Properties of all learners: dtypes, rates, reproducibility, and numbers as leaves.

`tests/core/test_conformance.py` tests their updates by the rules for steps.
"""

from dataclasses import replace

import conformance
import jax
import numpy as np
import pytest
from rl_learners import LEARNERS
from rl_probe import Brittle, is_finite

from jaxgpu import rl

few = {"xla_backend_optimization_level": 0}  # programs that run a few times
begin = jax.jit(
    lambda learner, env, key: learner.init(env, key, 5), compiler_options=few
)  # a training of five updates
update = jax.jit(
    lambda learner, env, state, key: learner.update(env, state, key), compiler_options=few
)
KEY = jax.random.key(0)
# An update of plain PPO is that of the scaled one with less in it.
NAMES = [name for name in LEARNERS if name != "PPO"]


def longest_step(state, start):
    """Return the greatest change of a weight."""
    pairs = zip(jax.tree.leaves(state.params), jax.tree.leaves(start.params))
    return max(np.abs(np.asarray(a) - np.asarray(b)).max() for a, b in pairs)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_rates_fall_to_zero_and_an_environment_that_breaks_spoils_nothing(name):
    """One program tests all, since the numbers of learner and environment are operands.

    The first step of Adam is as long as its rate, at any update. Only `learn`, `train` and `sweep`
    give the number of updates. A learner with another source of the length would step as far at the
    last update as at the first. What is not finite is counted. One nan in one of many copies once
    turned all weights, and the normalization of observations, into nan for good.
    """
    task, learner = LEARNERS[name]
    if name != "ES":  # which has no rate
        env = Brittle(rl.make(task), 0.0, 0.0)
        start = begin(learner, env, KEY)
        update_at = lambda done: update(learner, env, replace(start, update=np.int32(done)), KEY)
        far = np.array([longest_step(update_at(done), start) for done in (0, 1, 2, 4, 5, 9)])
        np.testing.assert_allclose(far / far[0], [1, 0.8, 0.6, 0.2, 0, 0], atol=2e-3)

    env, count = Brittle(rl.make(task), 0.15, 0.1), 0
    state = begin(learner, env, KEY)
    for key in jax.random.split(jax.random.key(1), 12):
        state = update(learner, env, state, key)
        assert is_finite(state.report)
        count += float(state.report["broken"])
    learnt = state.search.mean if name == "ES" else (state.params, state.opt_state)
    assert is_finite(learnt) and is_finite(state.obs_stats)
    assert 0 < count < 12 * learner.steps_per_update


def test_hyper_parameters_are_leaves():
    """One of two learning rates is zero: with it, weights remain as they are initialized."""
    task, learner = LEARNERS["PPO, scaled"]
    env = Brittle(rl.make(task), 0.0, 0.0)
    start = begin(learner, env, KEY)
    steps = [
        longest_step(update(replace(learner, learning_rate=rate), env, start, KEY), start)
        for rate in (0.0, 0.1)
    ]
    assert steps[0] == 0 and steps[1] > 0.05  # one step of Adam is as long as its rate


@pytest.mark.slow
def test_resuming_gives_the_same_bits(tmp_path):
    """Four updates = two, stop, load, two: parameters, optimizer, environments and reports."""
    name, learner = LEARNERS["SAC"]
    env, steps = rl.make(name), learner.steps_per_update
    whole = rl.train(env, learner, KEY, 4 * steps)
    rl.train(env, learner, KEY, 2 * steps, out=tmp_path, schedule=4 * steps)
    resumed = rl.train(env, learner, KEY, 4 * steps, out=tmp_path, resume=True)
    conformance.assert_same(resumed.state, whole.state)
    conformance.assert_same(resumed.history, whole.history)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name != "KickstartedPPO"])
def test_weights_stay_32_bit_where_64_bit_numbers_are_enabled(x64, name):
    """Another package may need 64 bits in the same program; environments then use them."""
    task, learner = LEARNERS[name]
    env, key = rl.make(task), jax.random.key(0)
    with jax.numpy_dtype_promotion("standard"):
        start = jax.eval_shape(lambda key: learner.init(env, key, 2), key)
        state = jax.eval_shape(lambda state, key: learner.update(env, state, key), start, key)
    assert conformance.avals(state) == conformance.avals(start)
    learnt = state.search if name == "ES" else (state.params, state.report)
    floats = {str(x.dtype) for x in jax.tree.leaves(learnt) if x.dtype.kind == "f"}
    assert floats == {"float32"}


def test_minibatches_that_do_not_fit_are_refused_with_the_numbers_that_would():
    learner = rl.PPO(num_envs=4, num_steps=6)
    learner.check_minibatches(6, 2)
    for devices, said in ((1, "24"), (2, "12")):
        shared = ", sharded over 2 devices" if devices == 2 else ""
        want = f"5 minibatches of 4 environments times 6 steps{shared}; choose a divisor of {said}"
        with pytest.raises(ValueError, match=f"PPO: {want}"):
            learner.check_minibatches(5, devices)


def test_positional_numbers_come_before_the_sizes():
    """Sizes are keyword-only; the first numbers are the learning rate and the documented ones."""
    assert (rl.PPO(0.1, 0.2).learning_rate, rl.PPO(0.1, 0.2).gamma) == (0.1, 0.2)
    assert (rl.PQN(0.1, 0.2).gamma, rl.SAC(0.1, 0.2, 0.3).tau) == (0.2, 0.3)
    assert rl.SHAC(0.1, 0.2, 0.3).gamma == 0.3 and rl.PQN().num_envs == 32
    with pytest.raises(TypeError):
        rl.PPO(*np.ones(20))
