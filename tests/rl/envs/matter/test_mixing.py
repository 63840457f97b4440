"""Mixing: the distance of pairs by definition, and strokes that spread the milk."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matter_checks import places

from jaxgpu import rl
from jaxgpu.rl.envs.matter.mixing import mean_pair_distance
from jaxgpu.rl.plan import trajectory


def pairs(x):
    """Mean 1-norm between any two of the points [D, N]."""
    n = x.shape[1]
    return np.abs(x[:, :, None] - x[:, None]).sum() / (n * (n - 1))


@pytest.mark.slow
def test_the_distance_of_pairs_is_that_of_its_definition(x64):
    rng = np.random.default_rng(0)
    x, m = rng.normal(size=(3, 40)), rng.uniform(size=40) > 0.3
    body = SimpleNamespace(x=jnp.asarray(x.T), m=jnp.asarray(m * 1.0))
    np.testing.assert_allclose(mean_pair_distance((body,)), pairs(x[:, m]), rtol=1e-12)
    both = np.concatenate([x[:, m]] * 2, 1)
    np.testing.assert_allclose(mean_pair_distance((body, body)), pairs(both), rtol=1e-12)
    # d/dx_k = sum over the others of sign(x_k - x) / pairs
    place = lambda a: SimpleNamespace(x=body.x.at[:, 0].set(a), m=body.m)
    slope = jax.grad(lambda a: mean_pair_distance((place(a),)))(body.x[:, 0])
    own = np.sign(x[0][:, None] - x[0][None])[:, m].sum(1) * m / (m.sum() * (m.sum() - 1) / 2)
    np.testing.assert_allclose(slope, own, atol=1e-12)


@pytest.mark.slow
def test_strokes_through_the_milk_spread_it_from_every_seed():
    env = rl.make("matter/mixing")
    reset, whole = (
        jax.jit(env.reset),
        jax.jit(lambda state, actions: trajectory(env, state, actions)),
    )
    for seed in range(3):
        state, _ = reset(jax.random.key(seed))
        noise = jax.random.uniform(
            jax.random.key(seed), env.initial_actions().shape, minval=-1, maxval=1
        )
        played = [whole(state, actions) for actions in (env.initial_actions(), 0 * noise, noise)]
        strokes, still, random = (float(jnp.sum(seen["reward"])) for _, seen in played)
        assert abs(still) < 0.01 and max(random, 0.1) < strokes - 0.1
        every = np.concatenate([places(b)[0][:, places(b)[1]] for b in state.matter.bodies], 1)
        states, seen = played[0]
        begun = pairs(every) - pairs(places(state.matter.bodies[0])[0][:, :240])
        for i in (0, 20, 49):
            x, full = places(jax.tree.map(lambda a, i=i: a[i], states).matter.bodies[0])
            loss = pairs(every) - pairs(x[:, full])
            np.testing.assert_allclose(seen["loss"][i], loss, rtol=1e-4)
            np.testing.assert_allclose(seen["reward"][i], (1 - loss / begun) / 50, atol=1e-5)
