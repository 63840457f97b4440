"""The one-call form: what it keeps, what it refuses, how it resumes."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.physics.nbody import layout
from jaxgpu.physics.nbody.clusters import cluster, hermite
from jaxgpu.physics.nbody.measure import diagnostics
from jaxgpu.physics.nbody.models import models


def sphere(count, seed=0):
    with jax.enable_x64(True):
        return np.array(models.plummer(jax.random.key(seed), count))


M = np.random.default_rng(32).uniform(0.2, 1.8, 32)
M /= M.sum()


def test_keeps_the_energy_whatever_the_global_precision():
    runs = []
    for wide in (False, True):
        with jax.enable_x64(wide):
            runs.append(cluster.evolve(sphere(32), M, 0.5, softening=0.01))
    total = runs[0].history["kinetic"] + runs[0].history["potential"]
    assert total.shape == (5,)
    with jax.enable_x64(True):  # the first is that of the start
        start = np.sum(jax.jit(diagnostics.energy)(sphere(32), M, 0.01))
    np.testing.assert_allclose(total[0], start, rtol=1e-13)
    assert total.dtype == np.float64 and np.abs(total / total[0] - 1).max() < 1e-6
    np.testing.assert_array_equal(runs[0].state.stars.x, runs[1].state.stars.x)


def with_a_binary(count):
    """A sphere in which two stars are a hard binary of semi-major axis 1e-3, at e = 0.5."""
    x, m = sphere(count), M[0] + M[1]
    apart = np.array([1.5e-3, 0, 0, 0, np.sqrt(m / 3e-3), 0])
    x[:, 1], x[:, 0] = x[:, 0] + apart * M[0] / m, x[:, 0] - apart * M[1] / m
    return x


@pytest.mark.slow
@pytest.mark.parametrize("softening", [0.01, 0.0])
def test_resumes_to_the_same_bits(tmp_path, softening):
    """Without softening with a pair, whose 1000 orbits cost no more than its centre, nor energy."""
    stars = sphere(32) if softening else with_a_binary(32)
    swarm, how = sphere(20, 3), {"softening": softening}
    swarm[:, 7] = [30, 0, 0, 5, 0, 0]  # beyond 20 virial radii, and off
    whole = cluster.evolve(stars, M, 0.5, tracers=swarm, **how)
    cluster.evolve(stars, M, 0.25, tracers=swarm, out=tmp_path, **how)
    again = cluster.evolve(stars, M, 0.5, tracers=swarm, out=tmp_path, resume=True, **how)
    jax.tree.map(np.testing.assert_array_equal, whole.cluster, again.cluster)
    np.testing.assert_array_equal(whole.history["kinetic"], again.history["kinetic"])
    assert (whole.history["pairs"] > 0).all() == (softening == 0)
    total = whole.history["kinetic"] + whole.history["potential"]
    assert np.abs(total / total[0] - 1).max() < 1e-6 and whole.state.blocks < 2000
    assert whole.stars.shape == (6, 32) and whole.history["gone"].tolist() == [0] + [1] * 4
    gone, steps = jax.tree.map(np.asarray, (whole.cluster.gone, whole.state.tracers.dt))
    assert np.flatnonzero(gone.gone).tolist() == [7] and gone.time[7] == 0.125
    # about the centre of mass; a unit mass at 30 slows it by 1.4e-4 in an interval
    speed = np.linalg.norm(np.array([5.0, 0, 0]) - stars[3:] @ M)
    np.testing.assert_allclose(gone.speed[7], speed, atol=2e-4)
    np.testing.assert_allclose(gone.energy[7], speed**2 / 2 - 1 / 30.6, atol=2e-3)
    np.testing.assert_allclose(whole.swarm[:3, 7], [30.625, 0, 0], atol=1e-3)  # where it was seen
    assert np.isinf(steps[7])  # and never due again


@pytest.mark.parametrize(
    "count, sentence",
    [
        ("floored", "evolve: 3 steps should have been shorter than the floor; .*softening"),
        (
            "refused",
            "evolve: 3 times a close pair found none of 0 slots free; make slots larger, 64",
        ),
    ],
)
def test_what_went_wrong_on_the_way_is_not_silent(monkeypatch, count, sentence):
    wrong = lambda spec, state: replace(state, **{count: jnp.int32(3)})
    monkeypatch.setattr(hermite, "step", wrong)
    with pytest.raises(RuntimeError, match=sentence):
        cluster.evolve(sphere(32), M, 0.125, softening=0.01)


def test_lost_places_are_not_silent(monkeypatch):
    wrong = lambda spec, state: replace(
        state, stars=replace(state.stars, x=state.stars.x * jnp.nan)
    )
    monkeypatch.setattr(hermite, "step", wrong)
    with pytest.raises(RuntimeError, match="evolve: the stars' places are not finite any more, .*"):
        cluster.evolve(sphere(32), M, 0.125, softening=0.01)


def changed(index, value):
    x = sphere(32)
    x[index] = value
    return x


@pytest.mark.parametrize(
    "stars, m, more, sentence",
    [
        (sphere(32).T, M, {}, r"evolve: stars has shape \[32, 6\]; it must be \[6, N\]"),
        (sphere(32)[:, :1], M[:1], {}, "evolve: stars: 1 of them; must be .*, N at least 2"),
        (sphere(32), M[:5], {}, r"evolve: m has shape \[5\]; it must be \[32\]"),
        (sphere(32), -M, {}, "m: star .* has -0.0.*; must be positive"),
        (sphere(32), 0 * M, {}, "m: star 0 has 0.0; must be positive; or make it a tracer"),
        (
            changed((2, 7), np.nan),
            M,
            {},
            r"evolve: stars=nan at \[2, 7\]; it must be a finite number",
        ),
        (np.repeat(sphere(16), 2, axis=1), M, {}, "stars: star . is where another is"),
        (
            sphere(32),
            M,
            {"tracers": np.zeros((3, 4))},
            r"evolve: tracers has shape \[3, 4\]; it must be",
        ),
        (
            sphere(32),
            M,
            {"tracers": np.full((6, 4), np.inf)},
            r"evolve: tracers=inf at \[0, 0\]; it must be a finite number",
        ),
        (sphere(32), M, {"tracers": sphere(32)[:, 9:11]}, "tracers: body 0 is where a star is"),
        (sphere(32), M, {"eta": 0.0}, "evolve: eta=0; it must be a finite number above 0"),
        (
            sphere(32),
            M,
            {"softening": np.nan},
            "evolve: softening=nan; it must be a finite number of at least 0",
        ),
        (
            sphere(6),
            M[:6],
            {},
            r"stars has shape \[6, 6\], which can be read both ways; say layout",
        ),
        (sphere(32), M, {"tracers": sphere(6)}, r"tracers has shape \[6, 6\], which can be read"),
        (sphere(32), M, {"slots": -1}, "evolve: slots=-1; it must be a whole number of at least 0"),
        (
            sphere(32),
            M,
            {"tolerance": 0.0},
            "evolve: tolerance=0; it must be a number or inf.* above 0",
        ),
        (sphere(32), M, {"t": 0.3}, "evolve: t=0.3; it must be a multiple of the interval, 0.125"),
        (sphere(32), M, {"t": -1.0}, "evolve: t=-1; it must be a finite number of at least 0"),
    ],
)
def test_bad_input_gets_a_sentence(stars, m, more, sentence):
    with pytest.raises(ValueError, match=sentence):
        cluster.evolve(stars, m, **{"t": 0.125, **more})


def test_six_stars_lie_as_it_is_said(monkeypatch):
    """Rows and columns of the same six stars, [6, 6] both, are the same start."""
    monkeypatch.setattr(hermite, "step", lambda spec, state: state)
    x = sphere(6)
    ways = layout.Columns(x), layout.Rows(x.T)
    first, second = (cluster.evolve(way, M[:6], 0.125, softening=0.01) for way in ways)
    np.testing.assert_array_equal(first.stars, x)
    np.testing.assert_array_equal(second.stars, x)


def cold_eight():
    rng = np.random.default_rng(8)
    x = np.concatenate([rng.normal(size=(3, 8)), np.zeros((3, 8))])
    return x, rng.uniform(0.5, 1.5, 8) / 8


def test_a_run_whose_energy_is_lost_says_so_where_it_was(monkeypatch):
    """Heated by a thousandth in each interval."""
    wrong = lambda spec, state: replace(
        state,
        stars=replace(state.stars, x=state.stars.x * jnp.array([1] * 3 + [1.001] * 3)[:, None]),
    )
    monkeypatch.setattr(hermite, "step", wrong)
    sentence = r"evolve: the energy is off by 0.00\d+ of M\^2 / 4 R_v at t = 0.125, more than toler"
    with pytest.raises(RuntimeError, match=sentence):
        cluster.evolve(sphere(32), M, 1.0, softening=0.01)
    done = cluster.evolve(sphere(32), M, 1.0, softening=0.01, tolerance=np.inf)
    assert done.history["kinetic"].shape == (9,)


@pytest.mark.slow
def test_eight_cold_stars_are_held_to_their_tolerance():
    """Their collapse is beyond steps of this length; it says so, and when."""
    x, m = cold_eight()
    with pytest.raises(RuntimeError, match="evolve: the energy is off by .* at t = [123].*eta sm"):
        cluster.evolve(x, m, 4.0, tolerance=1e-6)
    done = cluster.evolve(x, m, 4.0, eta=0.002, tolerance=1e-6)
    total = done.history["kinetic"] + done.history["potential"]
    assert len(total) == 33 and abs(total / total[0] - 1).max() < 1e-6
