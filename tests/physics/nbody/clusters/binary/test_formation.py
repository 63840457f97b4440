"""Forming and dissolving a pair moves no star."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from nbody_inputs import halves

from jaxgpu.physics.nbody.clusters import Hermite, Pairing
from jaxgpu.physics.nbody.clusters.binary import formation, ks_pairs, members

RUN_ONCE = {"xla_backend_optimization_level": 0}
init, points = (jax.jit(f, compiler_options=RUN_ONCE) for f in (Hermite.init, Hermite.points))
M = np.array([0.3, 0.2, 0.5])


def stars(a=0.01, far=0.5):
    x = np.zeros((6, 3))
    x[:, 1] = [0, a, 0, np.sqrt(0.5 / a), 0, 0]
    x[:, 2] = [0, far, -far / 2, 0, 0, 20]
    return x


@partial(jax.jit, compiler_options=RUN_ONCE)
def dissolve(spec, state):
    """Return the stars and the pairs after the pair in the first slot was dissolved."""
    leave = replace(state.pairs.batch, dissolving=jnp.array([True, False]))
    leaving = replace(state.pairs, columns=ks_pairs.pack_pairs(leave))
    now = jnp.ones(())
    apart = members.relative_states(spec, leaving, now, jnp.ones(2, bool))
    return formation.dissolve(spec, state.stars, leaving, apart, now)


def init_pairs(x, close=0.02):
    spec = Hermite(pairing=Pairing(close=close, slots=2))
    return spec, init(spec, *halves(jnp.asarray(x)), jnp.asarray(M))


def init_single(x):
    """Return the state in which no stars may form a pair."""
    return init(Hermite(), *halves(jnp.asarray(x)), jnp.asarray(M))


@pytest.mark.slow
def test_moves_no_star(x64):
    x = stars()
    spec, state = init_pairs(x)
    assert sorted([int(state.pairs.first[0]), int(state.pairs.batch.second[0])]) == [0, 1]
    np.testing.assert_allclose(points(spec, state), x, atol=1e-14)
    alone, empty = dissolve(spec, state)
    np.testing.assert_allclose(alone.x, x, atol=1e-14)
    np.testing.assert_array_equal(empty.weights, M)
    assert (empty.first == 3).all() and np.isfinite(alone.dt).all()
    np.testing.assert_allclose(alone.a[:, :2], init_single(x).stars.a[:, :2], atol=1e-6)


@pytest.mark.parametrize(
    "x, close",
    [
        (stars(a=0.03), 0.02),  # too wide
        (stars(far=0.03), 0.02),  # too disturbed
    ],
)
def test_pairs_no_stars_that_do_not_fit(x64, x, close):
    assert (init_pairs(x, close)[1].pairs.first == 3).all()


@pytest.mark.parametrize("a, formed", [(0.0149, True), (0.0151, False)])
def test_how_wide_a_pair_may_be_goes_as_its_mass(x64, a, formed):
    """The pair has mass 1/2, two mean stars have 2/3."""
    assert (init_pairs(stars(a))[1].pairs.first != 3).any() == formed


def test_neither_star_of_a_pair_is_single(x64):
    spec, state = init_pairs(stars())
    single, dt, _ = formation._candidate_stars(spec, state.stars, state.pairs, state.stars.t[2])
    np.testing.assert_array_equal(single, [False, False, True])
    np.testing.assert_array_equal(np.isfinite(dt), single)


def test_centre_of_mass_carries_the_momentum(x64):
    x = stars()
    spec, state = init_pairs(x)
    one = int(state.pairs.first[0])
    np.testing.assert_allclose(state.stars.x[:, one], x[:, :2] @ M[:2] / 0.5, atol=1e-15)
    weighs = np.array([0.5 * (one == 0), 0.5 * (one == 1), 0.5])
    np.testing.assert_array_equal(state.pairs.weights, weighs)
    mean = np.asarray(init_single(x).stars.a)[:, :2] @ M[:2] / 0.5
    # The mutual force of two stars of a pair is 1e4 times as large, and cancels.
    np.testing.assert_allclose(state.stars.a[:, one], mean, atol=1e-9)
