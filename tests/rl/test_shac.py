"""SHAC: its gradient, what it learns in 0.2 M steps, and what it refuses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu import rl

REACH = rl.SHAC(discount=0.8, horizon=8, updates=390.0)  # 199,680 steps


def successes(env, learner, updates, seeds, limit):
    def one(key):
        state, _ = rl.learn(env, learner, key, updates)
        test_key = jax.random.fold_in(key, 1)
        return rl.evaluate(env, learner.policy(env, state), test_key, 128, limit)

    return jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(1), seeds))


@pytest.mark.slow
def test_psm_reach_is_solved_in_200k_steps():
    """128 goals to 5 mm; the learner was chosen on other seeds than these eight."""
    scores = successes(rl.make("surgical/psm-reach"), REACH, 390, 8, 100)
    rate = np.asarray(scores.success).mean(1)
    assert np.median(rate) >= 0.98, rate


def test_the_actor_climbs_the_derivative_of_the_window():
    """Against central differences, through dynamics, noise, resets and the critic at the end."""
    env = rl.make("pendulum", horizon=2)  # one reset inside the window
    learner = rl.SHAC(copies=2, horizon=3, passes=1, hidden=(4,))
    state = learner.init(env, jax.random.key(0))
    loss = jax.jit(lambda params: learner._window(params, env, state, jax.random.key(1))[0])
    slope = jax.jit(jax.grad(loss))(state.params)
    way = jax.tree.map(lambda x: jnp.cos(jnp.arange(float(x.size))).reshape(x.shape), slope)
    pairs = zip(jax.tree.leaves(slope), jax.tree.leaves(way))
    exact = sum(jnp.sum(a * b) for a, b in pairs)
    ahead, behind = (
        loss(jax.tree.map(lambda x, t, h=h: x + h * t, state.params, way)) for h in (5e-3, -5e-3)
    )
    # rounding of the loss, 6e-8 of it, over the step; the third derivative times its square
    np.testing.assert_allclose((ahead - behind) / 1e-2, exact, rtol=5e-3, atol=1e-4)
    assert abs(exact) > 0.05


def test_what_has_no_derivative_is_refused():
    with pytest.raises(ValueError, match="CartPole is not differentiable; learn it by PPO"):
        rl.SHAC().init(rl.make("cartpole"), jax.random.key(0))
