"""Distributions against SciPy, and networks with the right shapes and precision."""

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
    TanhNormal,
    clip_action,
    rescale_action,
    sample_noise,
)


def test_normal(x64):
    mean, log_std = np.array([0.3, -1.0]), np.array([-0.5, 0.8])
    x, exact = np.array([0.7, 2.0]), scipy.stats.norm(mean, np.exp(log_std))

    @jax.jit
    def evaluate(key):
        choice = Normal(jnp.array(mean), jnp.array(log_std))
        draws = jax.vmap(choice.sample)(jax.random.split(key, 4000))
        return choice.log_prob(jnp.array(x)), choice.entropy(), draws, choice.mode()

    likely, entropy, draws, mode = evaluate(jax.random.key(0))
    np.testing.assert_allclose(likely, exact.logpdf(x).sum(), rtol=1e-14)
    np.testing.assert_allclose(entropy, exact.entropy().sum(), rtol=1e-14)
    np.testing.assert_allclose(np.std(draws, 0), np.exp(log_std), rtol=0.06)  # 5 / sqrt(2n)
    np.testing.assert_array_equal(mode, mean)


def test_noise_makes_the_actions_that_are_as_likely_as_they_should_be():
    """Test 5 sigma of 4000 samples: normal noise for continuous actions, Gumbel for discrete."""
    p = np.array([0.2, 0.5, 0.3])

    @jax.jit
    def evaluate(key):
        choice = Categorical(jnp.broadcast_to(jnp.log(jnp.float32(p)), (4000, 3)))
        taken = choice.from_noise(sample_noise(Discrete(3), key, 4000))
        return sample_noise(Box(-1.0, 1.0, (3,)), key, 4000), taken

    real, taken = map(np.asarray, evaluate(jax.random.key(0)))
    assert real.shape == (4000, 3)
    np.testing.assert_allclose(real.mean(0), 0, atol=5 / 4000**0.5)
    np.testing.assert_allclose(real.std(0), 1, atol=5 / 8000**0.5)
    np.testing.assert_allclose(np.bincount(taken, minlength=3) / 4000, p, atol=0.04)


def test_squashed_normal(x64):
    """The density integrates, over any range of actions, to the normal's probability of it."""
    choice = TanhNormal(jnp.array([0.7]), jnp.array([-0.4]))
    density = jax.jit(lambda u: jnp.exp(choice.log_prob(u[None])))
    for low, high in ((-0.999, 0.2), (0.5, 0.99)):
        share, error = scipy.integrate.quad(lambda a: float(density(np.arctanh(a))), low, high)
        exact = np.diff(scipy.stats.norm(0.7, np.exp(-0.4)).cdf(np.arctanh([low, high])))
        np.testing.assert_allclose(share, exact[0], atol=1e-9 + error)

    @jax.jit
    def evaluate(key):
        action, likely = choice.from_noise(jax.random.normal(key, (1,)))
        far = TanhNormal(jnp.array([40.0]), jnp.array([0.0])).log_prob(jnp.array([40.0]))
        middle = rescale_action(Box(-2.0, 4.0, (3,)), jnp.array([-1.0, 0.0, 1.0]))
        return far, likely, choice.log_prob(jnp.arctanh(action)), choice.mode(), middle

    far, likely, again, mode, middle = evaluate(jax.random.key(0))
    np.testing.assert_allclose(far, -0.5 * np.log(2 * np.pi) + 80 - 2 * np.log(2), rtol=1e-14)
    np.testing.assert_allclose(likely, again, rtol=1e-10)
    np.testing.assert_allclose(mode, np.tanh(0.7))
    assert middle.tolist() == [-2, 1, 4]


def test_categorical(x64):
    p = np.array([0.2, 0.5, 0.3])

    @jax.jit
    def evaluate(key):
        choice = Categorical(jnp.log(jnp.array(p)) + 3)
        draws = jax.vmap(choice.sample)(jax.random.split(key, 4000))
        log_p = jnp.stack([choice.log_prob(jnp.int32(i)) for i in range(3)])
        return log_p, choice.entropy(), choice.mode(), draws

    log_p, entropy, mode, draws = evaluate(jax.random.key(0))
    np.testing.assert_allclose(log_p, np.log(p), rtol=1e-14)
    np.testing.assert_allclose(entropy, scipy.stats.entropy(p), rtol=1e-14)
    assert mode == 1
    np.testing.assert_allclose(np.bincount(draws, minlength=3) / 4000, p, atol=0.04)


def test_choices_against_scipy(x64):
    """Compare logarithms, entropies and gradients; exponentials of one row of logits overflow."""
    logits = 3 * np.random.default_rng(0).normal(size=(3, 5)) + [[0.0], [0.0], [800.0]]
    action = np.array([1, 0, 4])

    def likely(logits):
        choice = Categorical(logits)
        return jnp.sum(choice.log_prob(jnp.asarray(action))), (
            choice.log_prob(jnp.asarray(action)),
            choice.entropy(),
        )

    found = jax.jit(jax.value_and_grad(likely, has_aux=True))
    (_, (log_p, entropy)), slope = found(jnp.asarray(logits))
    p = scipy.special.softmax(logits, -1)
    want = scipy.special.log_softmax(logits, -1)[range(3), action]
    np.testing.assert_allclose(log_p, want, rtol=1e-12)
    np.testing.assert_allclose(entropy, scipy.stats.entropy(p, axis=-1), rtol=1e-11)
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
    network, x = ActorCritic(Discrete(4), (8,)), np.ones(5, np.float32)

    @jax.jit
    def init_logits(key):
        params = network.init(key, x)
        return params, network.apply(params, x, method=ActorCritic.act).logits

    params, logits = init_logits(jax.random.key(0))
    assert set(params["params"]) == {"actor", "critic"}
    # Before training all logits are nearly equal: weights of 0.01 on 8 units of at most 1.
    assert 0 < np.abs(logits).max() <= 0.01 * 8**0.5
    assert clip_action(Box(-1.0, 1.0, (2,)), jnp.array([3.0, 0.5])).tolist() == [1, 0.5]
    assert clip_action(Discrete(4), jnp.int32(3)) == 3
