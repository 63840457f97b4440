"""The one-call form: what it keeps, what it refuses, how it resumes."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.physics.nbody import cluster, hermite, models


def sphere(count, seed=0):
    with jax.enable_x64(True):
        return np.array(models.plummer(jax.random.key(seed), count))


M = np.full(32, 1 / 32)


def test_keeps_the_energy_whatever_the_global_precision():
    runs = []
    for wide in (False, True):
        with jax.enable_x64(wide):
            runs.append(cluster.evolve(sphere(32), M, 0.5, softening=0.01))
    total = runs[0].history["kinetic"] + runs[0].history["potential"]
    assert total.dtype == np.float64 and np.abs(total / total[0] - 1).max() < 1e-6
    np.testing.assert_array_equal(runs[0].state.stars.x, runs[1].state.stars.x)


def with_a_binary(count):
    """A sphere in which two stars are a hard binary of semi-major axis 1e-3, at e = 0.5."""
    x, m = sphere(count), 1 / count
    apart = np.array([1.5e-3, 0, 0, 0, np.sqrt(2 * m / 3e-3), 0])
    x[:, 1], x[:, 0] = x[:, 0] + apart / 2, x[:, 0] - apart / 2
    return x


@pytest.mark.slow
@pytest.mark.parametrize("softening", [0.01, 0.0])
def test_resumes_to_the_same_bits(tmp_path, softening):
    """Without softening with a pair, whose 1000 orbits cost no more than its centre, nor energy."""
    swarm, stars, how = sphere(20, 3), with_a_binary(32), {"softening": softening}
    swarm[:, 7] = [30, 0, 0, 5, 0, 0]  # beyond 20 virial radii, and off
    whole = cluster.evolve(stars, M, 0.5, tracers=swarm, **how)
    cluster.evolve(stars, M, 0.25, tracers=swarm, out=tmp_path, **how)
    again = cluster.evolve(stars, M, 0.5, tracers=swarm, out=tmp_path, resume=True, **how)
    jax.tree.map(np.testing.assert_array_equal, whole.cluster, again.cluster)
    np.testing.assert_array_equal(whole.history["kinetic"], again.history["kinetic"])
    assert (whole.history["pairs"] > 0).all() == (softening == 0)
    total = whole.history["kinetic"] + whole.history["potential"]
    assert np.abs(total / total[0] - 1).max() < 1e-6 and whole.state.blocks < 2000
    assert whole.stars.shape == (6, 32) and whole.history["gone"].tolist() == [1] * 4
    gone, steps = jax.tree.map(np.asarray, (whole.cluster.gone, whole.state.tracers.dt))
    assert np.flatnonzero(gone.gone).tolist() == [7] and gone.time[7] == 0.125
    # about the centre of mass; a unit mass at 30 slows it by 1.4e-4 in an interval
    speed = np.linalg.norm(np.array([5.0, 0, 0]) - stars[3:].mean(1))
    np.testing.assert_allclose(gone.speed[7], speed, atol=2e-4)
    np.testing.assert_allclose(gone.energy[7], speed**2 / 2 - 1 / 30.6, atol=2e-3)
    np.testing.assert_allclose(whole.swarm[:3, 7], [30.625, 0, 0], atol=1e-3)  # where it was seen
    assert np.isinf(steps[7])  # and never due again


@pytest.mark.parametrize(
    "count, sentence",
    [
        ("floored", "evolve: 3 steps should have been shorter than the floor; .*softening"),
        ("refused", "evolve: 3 times a close pair found none of 0 slots free; .*slots larger"),
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
        (sphere(32).T, M, {}, r"stars: shape \(32, 6\); must be \[6, N\]"),
        (sphere(32)[:, :1], M[:1], {}, "N of at least 2"),
        (sphere(32), M[:5], {}, r"m: shape \(5,\); must be one mass for each of 32 stars"),
        (sphere(32), -M, {}, "m: star 0 has -0.03125; must be positive"),
        (sphere(32), 0 * M, {}, "m: star 0 has 0.0; must be positive; or make it a tracer"),
        (changed((2, 7), np.nan), M, {}, "stars: body 7 is not finite"),
        (np.repeat(sphere(16), 2, axis=1), M, {}, "stars: star . is where another is"),
        (sphere(32), M, {"tracers": np.zeros((3, 4))}, r"tracers: shape \(3, 4\); must be"),
        (sphere(32), M, {"tracers": np.full((6, 4), np.inf)}, "tracers: body 0 is not finite"),
        (sphere(32), M, {"tracers": sphere(32)[:, 9:11]}, "tracers: body 0 is where a star is"),
        (sphere(32), M, {"eta": 0.0}, "eta: 0.0, softening: 0.0; must be positive"),
        (sphere(32), M, {"softening": np.nan}, "softening: nan; must be positive, and not"),
        (sphere(32), M, {"t": 0.3}, "t: 0.3; must be a multiple of 1/8"),
        (sphere(32), M, {"t": -1.0}, "t: -1.0; must be a multiple of 1/8, and not negative"),
    ],
)
def test_bad_input_gets_a_sentence(stars, m, more, sentence):
    with pytest.raises(ValueError, match=sentence):
        cluster.evolve(stars, m, **{"t": 0.125, **more})
