"""What holds for every learner: its types, its program, its bits, and numbers as leaves."""

from dataclasses import replace

import conformance
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rl_learners import LEARNERS

from jaxgpu import rl

every = pytest.mark.parametrize("name, learner", LEARNERS.values(), ids=LEARNERS)


@every
def test_an_update_keeps_its_types_and_is_one_portable_program(name, learner):
    env = rl.make(name)
    state = jax.eval_shape(lambda key: learner.init(env, key, 10), jax.random.key(0))
    update = lambda state: learner.update(env, state, jax.random.key(1))
    assert conformance.avals(jax.eval_shape(update, state)) == conformance.avals(state)
    conformance.check_program(update, state)
    conformance.exports(update, state)


@pytest.mark.slow
@pytest.mark.parametrize("name, learner", [LEARNERS["PPO, scaled"], LEARNERS["SAC"]])
def test_resuming_gives_the_same_bits(tmp_path, name, learner):
    """Four updates = two, stop, load, two: parameters, optimiser, environments and reports."""
    env, key, steps = rl.make(name), jax.random.key(0), learner.steps_per_update
    whole = rl.train(env, learner, key, 4 * steps)
    rl.train(env, learner, key, 2 * steps, out=tmp_path, schedule=4 * steps)
    resumed = rl.train(env, learner, key, 4 * steps, out=tmp_path, resume=True)
    conformance.same(resumed.state, whole.state)
    conformance.same(resumed.history, whole.history)


@pytest.mark.slow
@every
def test_weights_stay_32_bit_where_64_bit_numbers_are_enabled(x64, name, learner):
    """Another pillar may ask for them in the same program; environments then use them."""
    training = lambda key: rl.learn(rl.make(name), learner, key, 2)
    with jax.numpy_dtype_promotion("standard"):
        state, reports = jax.eval_shape(training, jax.random.key(0))
    learnt = state.search if isinstance(learner, rl.ES) else (state.params, reports)
    floats = [x.dtype for x in jax.tree.leaves(learnt) if jnp.issubdtype(x.dtype, jnp.floating)]
    assert set(floats) == {jnp.dtype("float32")}


@pytest.mark.slow
def test_hyper_parameters_are_leaves():
    """Two learning rates in one program, one of them zero: the first weights stay, or go."""
    (name, learner), key = LEARNERS["PPO"], jax.random.key(0)
    env = rl.make(name)

    def moved(rate):
        state, _ = rl.learn(env, replace(learner, learning_rate=rate), key, 1)
        start = learner.init(env, jax.random.split(key)[0])
        pairs = zip(jax.tree.leaves(state.params), jax.tree.leaves(start.params))
        return jnp.max(jnp.stack([jnp.max(jnp.abs(a - b)) for a, b in pairs]))

    still, gone = jax.jit(jax.vmap(moved))(jnp.array([0.0, 0.1]))
    assert still < 1e-6 and gone > 0.05  # one step of Adam is as long as its rate


def test_minibatches_that_do_not_fit_are_refused_with_the_numbers_that_would():
    learner = rl.PPO(num_envs=4, num_steps=6)
    learner.check_minibatches(6, 2)
    for devices, said in ((1, "24"), (2, "12")):
        shared = ", shared out over 2 devices" if devices == 2 else ""
        want = f"5 minibatches of 4 environments times 6 steps{shared}; choose a divisor of {said}"
        with pytest.raises(ValueError, match=f"PPO: {want}"):
            learner.check_minibatches(5, devices)


def test_positional_numbers_come_before_the_sizes():
    """Sizes are named; the first numbers are the learning rate and what the page says."""
    assert (rl.PPO(0.1, 0.2).learning_rate, rl.PPO(0.1, 0.2).gamma) == (0.1, 0.2)
    assert (rl.PQN(0.1, 0.2).gamma, rl.SAC(0.1, 0.2, 0.3).tau) == (0.2, 0.3)
    assert rl.SHAC(0.1, 0.2, 0.3).gamma == 0.3 and rl.PQN().num_envs == 32
    with pytest.raises(TypeError):
        rl.PPO(*np.ones(20))
