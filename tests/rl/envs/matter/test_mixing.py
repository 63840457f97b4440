"""Mixing: the pair distance by its definition, and strokes that mix the milk."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matter_checks import places

from jaxgpu import rl
from jaxgpu.rl.envs.matter.mixing import START, STROKES, mean_pair_distance
from jaxgpu.rl.plan import trajectory


def pair_distance(x):
    """Return the mean 1-norm between any two of the points [D, N]."""
    n = x.shape[1]
    return np.abs(x[:, :, None] - x[:, None]).sum() / (n * (n - 1))


def test_the_distance_of_three_points_is_the_mean_of_their_pairs():
    """The distances are 1, 2 and 3; an empty slot does not count, wherever it is."""
    x, m = jnp.array([[0.0, 0.0], [9.0, -7.0], [1.0, 0.0], [0.0, 2.0]]), jnp.array([1.0, 0, 1, 1])
    apart = SimpleNamespace(x=x[:2], m=m[:2]), SimpleNamespace(x=x[2:], m=m[2:])
    for bodies in ((SimpleNamespace(x=x, m=m),), apart):
        np.testing.assert_allclose(mean_pair_distance(bodies), 2, rtol=1e-6)


@pytest.mark.slow
def test_the_distance_of_pairs_is_that_of_its_definition(x64):
    rng = np.random.default_rng(0)
    x, m = rng.normal(size=(3, 40)), rng.uniform(size=40) > 0.3
    body = SimpleNamespace(x=jnp.asarray(x.T), m=jnp.asarray(m * 1.0))
    np.testing.assert_allclose(mean_pair_distance((body,)), pair_distance(x[:, m]), rtol=1e-12)
    both = np.concatenate([x[:, m]] * 2, 1)
    np.testing.assert_allclose(mean_pair_distance((body, body)), pair_distance(both), rtol=1e-12)
    # The derivative is d/dx_k = sum over the others of sign(x_k - x) / pairs.
    place = lambda a: SimpleNamespace(x=body.x.at[:, 0].set(a), m=body.m)
    slope = jax.grad(lambda a: mean_pair_distance((place(a),)))(body.x[:, 0])
    own = np.sign(x[0][:, None] - x[0][None])[:, m].sum(1) * m / (m.sum() * (m.sum() - 1) / 2)
    np.testing.assert_allclose(slope, own, atol=1e-12)


def test_the_strokes_go_where_they_were_drawn_and_stay_in_the_cup():
    """Corners are in mm from the axis; 150 mm/s for 40 ms is 6 mm per frame."""
    assert STROKES.shape == (50, 2) and np.abs(STROKES).max() == 1  # 2 s
    path = np.array(START) * 1e3 + np.cumsum(6.0 * STROKES.astype(float), 0)
    corners = [(24, 0), (24, -14.4), (-24, -14.4), (-24, 15.6), (24, 15.6), (24, -14.4)]
    corners += [(-24, -14.4), (-24, -14.4)]
    np.testing.assert_allclose(path[[7, 11, 19, 24, 32, 37, 45, 49]], corners, atol=1e-5)
    reach = 40 - 5 - 4  # radius of the cup less that of the stirrer and a gap
    assert np.linalg.norm(path, axis=1).max() < reach


def test_milk_is_a_disc_in_a_cup_that_is_full_but_for_the_stirrer():
    """Masses are per metre of depth at 1000 kg/m^3, up to the particles at the edge."""
    milk, coffee = (
        len(body.x) * float(body.volume * body.density)
        for body in rl.make("matter/mixing").simulation.bodies
    )
    np.testing.assert_allclose(milk, 1000 * np.pi * 0.013**2, rtol=0.03)
    np.testing.assert_allclose(milk + coffee, 1000 * np.pi * (0.04**2 - 0.005**2), rtol=0.03)


@pytest.mark.slow
def test_strokes_through_the_milk_spread_it():
    env = rl.make("matter/mixing")
    reset, whole = (
        jax.jit(env.reset),
        jax.jit(lambda state, actions: trajectory(env, state, actions)),
    )
    state, _ = reset(jax.random.key(0))
    noise = jax.random.uniform(jax.random.key(0), env.initial_actions().shape, minval=-1, maxval=1)
    played = [whole(state, actions) for actions in (env.initial_actions(), 0 * noise, noise)]
    strokes, still, random = (float(jnp.sum(seen["reward"])) for _, seen in played)
    assert abs(still) < 0.01 and max(random, 0.1) < strokes - 0.1
    every = np.concatenate([places(b)[0][:, places(b)[1]] for b in state.matter.bodies], 1)
    states, seen = played[0]
    begun = pair_distance(every) - pair_distance(places(state.matter.bodies[0])[0][:, :240])
    for i in (0, 20, 49):
        x, full = places(jax.tree.map(lambda a, i=i: a[i], states).matter.bodies[0])
        loss = pair_distance(every) - pair_distance(x[:, full])
        np.testing.assert_allclose(seen["loss"][i], loss, rtol=1e-4)
        np.testing.assert_allclose(seen["reward"][i], (1 - loss / begun) / 50, atol=1e-5)
