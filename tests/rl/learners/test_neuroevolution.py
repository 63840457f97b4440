"""Policies as an objective: returns, statistics of observations, and failures."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from rl_cliff import Cliff
from rl_probe import Drift

from jaxgpu import rl
from jaxgpu.rl.learners import normalizer
from jaxgpu.rl.learners.evolved.neuroevolution import ObjectiveState, pool_stats

KEY = jax.random.key(3)


def experience(policies, rows):
    """Return the experience after these observations [K, O]."""
    state = policies.init()
    return ObjectiveState(normalizer.update(state.obs_stats, rows), state.report)


@pytest.mark.slow
def test_returns_are_those_of_each_candidate():
    """Compare with `evaluate` of each policy from equal starts, and with its network in NumPy."""
    env = rl.make("cartpole")
    policies = rl.PolicyObjective(env, (4,), episodes=3, max_steps=60, max_weight=3.0)
    state = experience(policies, jax.random.normal(jax.random.key(1), (60, 4)))
    x = jax.random.uniform(jax.random.key(2), (4, policies.weights), minval=-1)
    f, violation, seen = jax.jit(jax.vmap(policies.evaluate, (0, None, None)))(x, KEY, state)

    def evaluate_row(row):
        return rl.evaluate(env, policies.policy(row, state), KEY, 3, 60).episode_return

    total = jax.jit(jax.vmap(evaluate_row))(x)
    np.testing.assert_array_equal(seen["returns"], total)
    np.testing.assert_allclose(f, -total.mean(1), rtol=1e-6)
    assert violation is None and len(np.unique(total)) > 3 and not seen["success"].any()
    observation = np.array([0.3, -1.0, 0.2, 2.0])
    mean, square = (np.asarray(a, float) for a in (state.obs_stats.mean, state.obs_stats.square))
    inputs = (observation - mean) / np.sqrt(square / 60 + 1e-8)
    b1, w1, b2, w2 = (
        3 * np.asarray(x[0], float)[i:j] for i, j in ((0, 4), (4, 20), (20, 22), (22, 30))
    )
    out = np.tanh(inputs @ w1.reshape(4, 4) + b1) @ w2.reshape(4, 2) + b2
    assert policies.policy(x[0], state)(jnp.float32(observation)) == out.argmax()


def test_the_network_of_the_paper_has_its_number_of_weights():
    for name, count in (("half-cheetah", 390), ("swimmer", 178)):
        assert rl.PolicyObjective(rl.make(name)).weights == count


def test_what_is_seen_while_episodes_last_is_added_to_what_was_seen():
    """The path is 0.25 to 1.15 in three steps of 0.3, although five steps are taken."""
    policies = rl.PolicyObjective(Drift(rl.Discrete(2), 0.0), (2,), episodes=2, max_steps=5)
    rows = np.array([1.0, 4.0, -2.0, 0.5], np.float32)

    @partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
    def play_rows(key):
        state = experience(policies, jnp.asarray(rows)[:, None])
        x = jax.random.uniform(key, (4, policies.weights))
        return policies.problem(at_once=3).evaluate(x, key, state)

    f, _, after = play_rows(KEY)
    places = 0.25 + 0.3 * np.arange(1, 4)
    np.testing.assert_allclose(f, np.full((4, 1), -np.sum(1 - places**2)), rtol=1e-5)
    every = np.concatenate([rows, np.tile([0.25, 0.55, 0.85], 8)])
    seen, report = after.obs_stats, after.report
    assert seen.count == len(every) == 28 and report["episodes"] == 8 and report["success"] == 1
    np.testing.assert_allclose(seen.mean, [every.mean()], rtol=1e-5)
    np.testing.assert_allclose(seen.square, [28 * every.var()], rtol=1e-5)
    np.testing.assert_allclose(report["episode_return"], np.sum(1 - places**2), rtol=1e-5)


def test_moments_are_pooled_as_of_one_heap():
    """Compare with NumPy in float64, at a spread of a thousandth of the mean."""
    heaps = [
        50 + 0.05 * np.random.default_rng(i).normal(size=(n, 2)) for i, n in enumerate((9, 4, 7))
    ]
    moments_of = lambda a: (a.mean(0), ((a - a.mean(0)) ** 2).sum(0), float(len(a)))
    parts = [
        jnp.float32(np.stack(part)) for part in zip(*map(moments_of, [*heaps[1:], 0 * heaps[0]]))
    ]
    rows = normalizer.Normalizer(parts[0], parts[1], parts[2].at[2].set(0))
    first = normalizer.Normalizer(*(jnp.float32(a) for a in moments_of(heaps[0])))
    both, whole = pool_stats(first, rows), np.concatenate(heaps)
    assert both.count == 20
    np.testing.assert_allclose(both.mean, whole.mean(0), rtol=1e-6)
    np.testing.assert_allclose(both.square, 20 * whole.var(0), rtol=1e-3)


CLIFF = Cliff(lambda a: jnp.stack([-a, jnp.sqrt(a)]))  # the second is nan below 0


def test_failures_and_constraints_of_several_objectives():
    """Three candidates of one weight and a bias have the actions 0.5, -0.5 and 0.25."""
    limit = lambda step: -step.reward[0] - 0.3
    policies = rl.PolicyObjective(
        CLIFF, (), episodes=2, max_steps=4, max_weight=1.0, violation=limit
    )
    x = jnp.array([[0.5, 0.0], [-0.5, 0.0], [0.25, 0.0]])  # the bias and the slope, of inputs 1
    problem = policies.problem()
    assert problem.objectives == 2
    f, violation, state = jax.jit(problem.evaluate)(x, KEY, problem.init())
    np.testing.assert_allclose(f[0], [2, -4 * 0.5**0.5], rtol=1e-6)
    np.testing.assert_allclose(f[2], [1, -2], rtol=1e-6)
    np.testing.assert_allclose(violation[::2], [0.8, 0], atol=1e-6)
    assert np.isinf(f[1]).all() and state.obs_stats.count == 16  # of the two that did not fail
    assert state.report["broken"] == 2 and state.report["episodes"] == 4


def test_observations_settle():
    policies = rl.PolicyObjective(Drift(rl.Discrete(2), 0.0), (), max_steps=3, settled=10)
    problem = policies.problem()
    x, state, counts = jnp.zeros((4, policies.weights)), problem.init(), []
    evaluate = jax.jit(problem.evaluate)
    for _ in range(3):
        _, _, state = evaluate(x, KEY, state)
        counts.append(int(state.obs_stats.count))
    assert counts == [12, 12, 12]


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="max_weight"):
        rl.PolicyObjective(CLIFF, max_weight=-1.0).problem()
    with pytest.raises(ValueError, match="episodes"):
        rl.PolicyObjective(CLIFF, episodes=0).problem()
    assert ravel_pytree(rl.PolicyObjective(CLIFF).init().report["episode_return"])[0].shape == (2,)


def test_what_is_no_environment_and_no_tuple_of_widths_is_refused():
    with pytest.raises(TypeError, match="PolicyObjective: env is a str; it must be an environment"):
        rl.PolicyObjective("cartpole").problem()
    with pytest.raises(TypeError, match="PolicyObjective: hidden_sizes=16; it must be a tuple"):
        rl.PolicyObjective(rl.make("cartpole"), hidden_sizes=16).problem()
