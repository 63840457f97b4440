"""The one-call form of Hermite-6: what it keeps, alone and in a galaxy, resumed, and refuses."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.physics.nbody.clusters import hermite6, precise
from jaxgpu.physics.nbody.forces import potentials, tide
from jaxgpu.physics.nbody.models import models

M = np.random.default_rng(6).uniform(0.2, 1.8, 32)
M /= M.sum()


def sphere(count, seed=0):
    with jax.enable_x64(True):
        return np.array(models.plummer(jax.random.key(seed), count))


with jax.enable_x64(True):
    STARS = np.array(models.virial(sphere(32), M))
SPEC = hermite6.Hermite6(M, eta=0.2, softening=0.01)


def test_keeps_the_energy_to_ten_digits():
    done = precise.evolve(replace(SPEC, eta=0.1), STARS, 0.5, tracers=sphere(20, 3))
    total = done.history["kinetic"] + done.history["potential"]
    assert total.shape == (5,) and total.dtype == np.float64
    assert np.abs(total / total[0] - 1).max() < 1e-10


@pytest.mark.slow
def test_resumes_to_the_same_bits(tmp_path):
    whole = precise.evolve(SPEC, STARS, 0.5)
    precise.evolve(SPEC, STARS, 0.25, out=tmp_path)
    again = precise.evolve(SPEC, STARS, 0.5, out=tmp_path, resume=True)
    jax.tree.map(np.testing.assert_array_equal, whole.state, again.state)


@pytest.mark.slow
def test_stars_in_a_galaxy_keep_their_energy():
    """That of all their motion in the galaxy, of which the origin's is no part."""
    mass, far = 1e6, 100.0
    turn = np.sqrt(mass / far**3)
    field = tide.Tide(potentials.PointMass(mass))
    origin = tide.Origin(jnp.array([far, 0, 0]), jnp.array([0, turn * far, 0]))
    spec = replace(SPEC, tide=field, interval=1 / 64)
    x = STARS.copy()
    done = precise.evolve(spec, x, 0.5, origin=origin)

    def energy(x, origin):
        m = M
        place = np.concatenate([origin.x, origin.v])[:, None] + x
        own = np.linalg.norm(x[:3, :, None] - x[:3, None], axis=0)
        own = np.sqrt(own**2 + 0.01**2) + np.diag(np.full(32, np.inf))
        inner = -(m[:, None] * m / own).sum() / 2
        outer = -(m * mass / np.linalg.norm(place[:3], axis=0)).sum()
        return (m * (place[3:] ** 2).sum(0)).sum() / 2 + inner + outer

    before, after = energy(x, origin), energy(np.asarray(done.state.stars.x), done.state.origin)
    # of the cluster's own energy, a quarter; the galaxy's is 4e4 times that, and is rounded
    assert abs(after - before) < 1e-8


@pytest.mark.parametrize(
    "more, sentence",
    [
        (
            {"spec": replace(SPEC, m=-SPEC.m)},
            r"evolve: Hermite6.m=-0.0.* at \[0\]; it must be a finite number above 0",
        ),
        (
            {"spec": replace(SPEC, eta=0.0)},
            "evolve: Hermite6.eta=0; it must be a finite number above 0",
        ),
        (
            {"spec": replace(SPEC, interval=0.0)},
            "evolve: Hermite6.interval=0; it must be a finite number above 0",
        ),
        ({"stars": np.repeat(STARS[:, :16], 2, axis=1)}, "stars: star .* is where another is"),
        (
            {"tracers": np.full((6, 4), np.nan)},
            r"evolve: tracers=nan at \[0, 0\]; it must be a finite",
        ),
        ({"t": 0.3}, "t=0.3; it must be a multiple of the interval, 0.125"),
        ({"t": -0.25}, "evolve: t=-0.25; it must be a finite number of at least 0"),
        ({"origin": tide.Origin.nowhere(jnp.zeros(1))}, "a field and a place in it; no spec.tide"),
        (
            {"spec": replace(SPEC, tide=tide.Tide(potentials.PointMass(1.0)))},
            "a galaxy has a field and a place in it; no origin; give both",
        ),
    ],
)
def test_bad_input_gets_a_sentence(more, sentence):
    with pytest.raises(ValueError, match=sentence):
        precise.evolve(**{"spec": SPEC, "stars": STARS, "t": 0.25, **more})


def test_a_step_below_the_floor_is_not_silent(monkeypatch):
    wrong = lambda spec, state: replace(state, floored=jnp.int32(3))
    monkeypatch.setattr(hermite6, "step", wrong)
    with pytest.raises(RuntimeError, match=r"evolve: 3 steps .* shorter than interval / 2\^40"):
        precise.evolve(SPEC, STARS, 0.125)


def test_a_run_whose_energy_is_lost_says_so(monkeypatch):
    """In a galaxy, which works on it, no tolerance can be given."""
    hot = lambda x: x * jnp.array([1] * 3 + [1.01] * 3)[:, None]
    wrong = lambda spec, state: replace(state, stars=replace(state.stars, x=hot(state.stars.x)))
    monkeypatch.setattr(hermite6, "step", wrong)
    with pytest.raises(RuntimeError, match=r"evolve: the energy is off by .* of M\^2 / 4 R_v at t"):
        precise.evolve(SPEC, STARS, 0.25)
    field = tide.Tide(potentials.PointMass(1.0))
    origin = tide.Origin(jnp.array([9.0, 0, 0]), jnp.zeros(3))
    with pytest.raises(ValueError, match="evolve: tolerance=0.1; a galaxy works on the cluster"):
        spec = replace(SPEC, tide=field)
        precise.evolve(spec, STARS, 0.25, origin=origin, tolerance=0.1)
