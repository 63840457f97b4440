"""Distributions against SciPy, and networks of the right shapes and precision."""

import conformance
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats

from jaxgpu.rl import Box, Discrete
from jaxgpu.rl.learners.networks import (
    ActorCritic,
    Categorical,
    Normal,
    Squashed,
    feasible,
    noise,
    stretched,
)


def test_normal(x64):
    mean, log_std = np.array([0.3, -1.0]), np.array([-0.5, 0.8])
    choice, x = Normal(jnp.array(mean), jnp.array(log_std)), np.array([0.7, 2.0])
    exact = scipy.stats.norm(mean, np.exp(log_std))
    np.testing.assert_allclose(choice.log_prob(jnp.array(x)), exact.logpdf(x).sum(), rtol=1e-14)
    np.testing.assert_allclose(choice.entropy(), exact.entropy().sum(), rtol=1e-14)
    draws = jax.vmap(choice.sample)(jax.random.split(jax.random.key(0), 4000))
    np.testing.assert_allclose(draws.std(0), np.exp(log_std), rtol=0.06)  # 5 sigma of 1/sqrt(2n)
    np.testing.assert_array_equal(choice.mode(), mean)


def test_noise_makes_the_actions_that_are_as_likely_as_they_should_be():
    """5 sigma of 4000 draws: normal numbers of real actions, Gumbel's of whole ones."""
    key = jax.random.key(0)
    real = noise(Box(-1.0, 1.0, (3,)), key, 4000)
    assert real.shape == (4000, 3)
    np.testing.assert_allclose(real.mean(0), 0, atol=5 / 4000**0.5)
    np.testing.assert_allclose(real.std(0), 1, atol=5 / 8000**0.5)
    p = np.array([0.2, 0.5, 0.3])
    choice = Categorical(jnp.broadcast_to(jnp.log(jnp.array(p)), (4000, 3)))
    taken = choice.from_noise(noise(Discrete(3), key, 4000))
    np.testing.assert_allclose(np.bincount(taken, minlength=3) / 4000, p, atol=0.04)


def test_squashed_normal(x64):
    """Its density integrates, over any stretch of actions, to the normal's share of it."""
    choice = Squashed(jnp.array([0.7]), jnp.array([-0.4]))
    density = jax.jit(lambda u: jnp.exp(choice.log_prob(u[None])))
    for low, high in ((-0.999, 0.2), (0.5, 0.99)):
        share, error = scipy.integrate.quad(lambda a: float(density(np.arctanh(a))), low, high)
        exact = np.diff(scipy.stats.norm(0.7, np.exp(-0.4)).cdf(np.arctanh([low, high])))
        np.testing.assert_allclose(share, exact[0], atol=1e-9 + error)
    far = Squashed(jnp.array([40.0]), jnp.array([0.0])).log_prob(jnp.array([40.0]))
    np.testing.assert_allclose(far, -0.5 * np.log(2 * np.pi) + 80 - 2 * np.log(2), rtol=1e-14)
    action, likely = choice.from_noise(jax.random.normal(jax.random.key(0), (1,)))
    np.testing.assert_allclose(likely, choice.log_prob(jnp.arctanh(action)), rtol=1e-10)
    np.testing.assert_allclose(choice.mode(), np.tanh(0.7))
    assert stretched(Box(-2.0, 4.0, (3,)), jnp.array([-1.0, 0.0, 1.0])).tolist() == [-2, 1, 4]


def test_categorical(x64):
    p = np.array([0.2, 0.5, 0.3])
    choice = Categorical(jnp.log(jnp.array(p)) + 3)
    log_p = [choice.log_prob(jnp.int32(i)) for i in range(3)]
    np.testing.assert_allclose(log_p, np.log(p), rtol=1e-14)
    np.testing.assert_allclose(choice.entropy(), scipy.stats.entropy(p), rtol=1e-14)
    assert choice.mode() == 1
    draws = jax.vmap(choice.sample)(jax.random.split(jax.random.key(0), 4000))
    np.testing.assert_allclose(np.bincount(draws, minlength=3) / 4000, p, atol=0.04)


def test_choices_against_scipy(x64):
    """Logarithms, entropies and slopes; one has logits whose exponentials overflow."""
    logits = 3 * jax.random.normal(jax.random.key(0), (3, 5)) + jnp.array([[0.0], [0.0], [800.0]])
    p = scipy.special.softmax(np.asarray(logits), -1)
    action, choice = jnp.array([1, 0, 4]), Categorical(logits)
    likely = scipy.special.log_softmax(np.asarray(logits), -1)[range(3), action]
    np.testing.assert_allclose(choice.log_prob(action), likely, rtol=1e-12)
    np.testing.assert_allclose(choice.entropy(), scipy.stats.entropy(p, axis=-1), rtol=1e-11)
    slope = jax.grad(lambda x: jnp.sum(Categorical(x).log_prob(action)))(logits)
    np.testing.assert_allclose(slope, np.eye(5)[action] - p, rtol=1e-11, atol=1e-13)


@pytest.mark.slow
def test_actor_and_critic_share_nothing_and_state_their_precision():
    network, x = ActorCritic(Box(-1.0, 1.0, (2,)), (8,)), jnp.ones((3, 5))
    params = network.init(jax.random.key(0), x)
    assert set(params["params"]) == {"actor", "critic", "spread"}
    choice, value = network.apply(params, x)
    assert choice.mean.shape == choice.log_std.shape == (3, 2) and value.shape == (3,)
    assert np.abs(choice.mean).max() < 0.1  # nearly the middle before learning
    conformance.check(jax.jit(network.apply), params, x, differentiable=(0, 1), batched=(1,))


def test_a_choice_has_no_spread_and_real_actions_are_clipped():
    network = ActorCritic(Discrete(4), (8,))
    params = network.init(jax.random.key(0), jnp.ones(5))
    assert set(params["params"]) == {"actor", "critic"}
    choice = network.apply(params, jnp.ones(5), method=ActorCritic.act)
    # before learning all are nearly alike: weights of 0.01 on 8 units of at most 1
    assert 0 < np.abs(choice.logits).max() <= 0.01 * 8**0.5
    assert feasible(Box(-1.0, 1.0, (2,)), jnp.array([3.0, 0.5])).tolist() == [1, 0.5]
    assert feasible(Discrete(4), jnp.int32(3)) == 3
