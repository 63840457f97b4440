"""Tracers: against SciPy, through close encounters, single and in batches."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from field_shapes import check_shapes
from scipy.integrate import solve_ivp

from jaxgpu.physics.nbody.forces import pairs
from jaxgpu.physics.nbody.planets import tracers
from jaxgpu.physics.nbody.planets.tracers import Control
from jaxgpu.physics.nbody.steps import radau
from jaxgpu.physics.nbody.steps.dense_output import DenseOutput

GM = np.array([1.0, 1e-3])  # a star and a planet, which circle each other at distance 1
SPAN = 0.5


def bodies(t):
    """Return positions, velocities and accelerations [..., 2, 3] at times `t`."""
    w = np.sqrt(GM.sum())
    c, s = np.cos(w * np.asarray(t)), np.sin(w * np.asarray(t))
    r = np.array([-GM[1], GM[0]]) / GM.sum()
    ring = lambda c, s: np.stack([np.multiply.outer(q, r) for q in (c, s, 0 * c)], -1)
    return ring(c, s), ring(-w * s, w * c), ring(-w * w * c, -w * w * s)


def output(start, steps=4):
    dt = SPAN / steps
    begin = start + dt * np.arange(steps)
    x, v, _ = bodies(begin)
    a = bodies(np.add.outer(begin, dt * radau.NODES))[2]
    x, v, a, dt = (jnp.asarray(q) for q in (x, v, a, dt))
    return DenseOutput(x=x, v=v, a=a, dt=dt)


def force(bodies_x, bodies_v, x, v):
    return pairs.batched_pull(bodies_x, jnp.asarray(GM, x.dtype), x)


go = jax.jit(partial(tracers.advance, force))
begin = jax.jit(partial(tracers.init, force))  # traced, so that what is not finite gets through


def run_tracers(x, v, stretches, **control):
    state = begin(output(0.0), x, v)
    for i in range(stretches):
        state = go(Control(**control), output(i * SPAN), state)
    return state


def run_scipy(x, v, span):
    def rate(t, y):
        d = bodies(t)[0] - y[None, :3]
        r = np.sqrt((d * d).sum(1))
        return np.concatenate([y[3:], (GM / r**3) @ d])

    y = np.concatenate([x, v])
    return solve_ivp(rate, (0, span), y, method="DOP853", rtol=1e-13, atol=1e-15).y[:, -1]


def ring(count, seed=0, low=0.35, high=0.6):
    random = np.random.default_rng(seed)
    r, angle = random.uniform(low, high, count), random.uniform(0, 2 * np.pi, count)
    speed = random.uniform(0.9, 1.1, count) / np.sqrt(r)
    flat = np.zeros(count)
    x = np.array([r * np.cos(angle), r * np.sin(angle), random.normal(size=count) / 50])
    return x.T, np.array([-speed * np.sin(angle), speed * np.cos(angle), flat]).T


@pytest.mark.slow
def test_orbits_are_those_of_scipy(x64):
    x, v = ring(12)
    end = run_tracers(x, v, 8)
    for i in range(6):
        want = run_scipy(x[i], v[i], 8 * SPAN)
        got = np.concatenate([end.x[i], end.v[i]])
        np.testing.assert_allclose(got, want, atol=1e-10)
    assert end.coarse.sum() == 0


def start_passage(miss):
    """Return a state [6] a quarter before the body passes the planet at `miss`, from behind."""
    (px, pv), t = [part[1] for part in bodies(0.25)[:2]], 0.25
    kick = np.sqrt(0.3**2 + 2 * GM[1] / miss)  # meets the planet with 0.3 at infinity
    out, along = np.array([np.cos(t), np.sin(t), 0]), np.array([0, 0, 1.0])
    # Start at the closest point and run backwards to find the initial state.
    x0, v0 = px + miss * out, pv + kick * along
    return solve_ivp(
        lambda s, y: -np.concatenate([y[3:], pull(t - s, y[:3])]),
        (0, 0.25),
        np.concatenate([x0, v0]),
        method="DOP853",
        rtol=1e-13,
        atol=1e-15,
    ).y[:, -1]


@pytest.mark.slow
def test_close_encounters_are_followed(x64):
    """Encounters are at 1e-1 to 1e-3 of the distance from star to planet; others are quiet."""
    misses = (1e-1, 1e-2, 1e-3)
    x, v = ring(12)
    for k, miss in enumerate(misses):
        x[k], v[k] = np.split(start_passage(miss), 2)
    end = run_tracers(x, v, 1)
    for k, miss in enumerate(misses):
        want = run_scipy(x[k], v[k], SPAN)
        # An encounter at `miss` multiplies early errors by about 1 / miss.
        got = np.concatenate([end.x[k], end.v[k]])
        np.testing.assert_allclose(got, want, atol=1e-11 / miss)
        assert end.taken[k] > 3 and end.coarse[k] == 0


def pull(t, x):
    d = bodies(t)[0] - x[None]
    return (GM / ((d * d).sum(1)) ** 1.5) @ d


@pytest.mark.slow
def test_company_changes_nothing(x64):
    """Order, number and tiling of the tracers have no effect on a body, except for rounding."""
    x, v = ring(60, seed=3, high=0.97)  # some come near the planet and need short steps
    alone = run_tracers(x, v, 4)
    order = np.random.default_rng(1).permutation(60)
    mixed = run_tracers(x[order], v[order], 4, tile=7)
    few = run_tracers(x[:12], v[:12], 4)
    np.testing.assert_allclose(mixed.x, alone.x[order], atol=1e-10)
    np.testing.assert_allclose(few.x, alone.x[:12], atol=1e-10)
    np.testing.assert_array_equal(mixed.taken, alone.taken[order])


@pytest.mark.slow
def test_the_form_for_accelerators_follows_the_paths_of_the_form_for_cpus(x64):
    start = begin(output(0.0), *ring(60, seed=3, high=0.97))
    start = replace(start, x=start.x.at[7].set(jnp.nan))  # who is lost is lost at the same level
    given = force, Control(), output(0.0)
    tiles = jax.jit(partial(tracers.advance_tiles, *given, 16))(start)
    whole = jax.jit(partial(tracers.advance_all, *given))(start)
    np.testing.assert_allclose(whole.x, tiles.x, atol=1e-13)
    for name in ("taken", "level", "coarse"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(tiles, name))
    assert len(np.unique(tiles.level)) > 3


def test_up_to_a_wide_tile_no_loop_of_the_form_for_accelerators_is_over_tiles(x64):
    """Only levels, steps of a level, and iterations of a step are loops."""
    start = jax.eval_shape(partial(tracers.init, force), output(0.0), *ring(600))
    step = partial(tracers.advance_all, force, Control(), output(0.0))
    jaxpr = str(jax.make_jaxpr(step)(start))
    assert jaxpr.count("while[") + jaxpr.count("scan[") == 3
    assert "scatter" not in jaxpr


@pytest.mark.slow
def test_a_tighter_tolerance_costs_steps_and_buys_accuracy(x64):
    x, v = ring(12, seed=5)
    want = np.array([run_scipy(x[i], v[i], 8 * SPAN)[:3] for i in range(6)])
    miss, levels = [], []
    for tolerance in (1e1, 1e-3, 1e-7):
        end = run_tracers(x, v, 8, tolerance=tolerance, convergence=1e-3 * tolerance)
        miss.append(np.abs(end.x[:6] - want).max())
        levels.append(int(end.taken.sum()))
    assert miss[0] > miss[1] > miss[2] and levels[0] < levels[1] < levels[2], (miss, levels)


@pytest.mark.slow
def test_what_cannot_be_resolved_is_counted(x64):
    x, v = ring(12)
    x[1] = bodies(0.0)[0][1] + [1e-4, 0, 0]  # all but inside the planet
    x[2] = np.nan
    end = run_tracers(x, v, 1, deepest=5)
    assert end.coarse[0] == 0 and end.coarse[1] == 1 and end.coarse[2] == 1
    assert check_shapes(end)["M"] == 12
    assert np.isfinite(end.x[0]).all()


def test_no_bodies_at_all(x64):
    none = np.zeros((0, 3))
    assert run_tracers(none, none, 2).x.shape == (0, 3)


@pytest.mark.slow
def test_tangents_are_those_of_the_flow(x64):
    """Compare forward mode through the levels with central differences."""
    x, v = ring(4, seed=9)
    tangent, h = np.full_like(x, 0.5), 1e-5

    def end(x):
        start = tracers.init(force, output(0.0), x, v)
        return tracers.advance(force, Control(), output(0.0), start).x

    both = jax.jit(lambda x: jax.jvp(end, (x,), (tangent,)))
    slope = (both(x + h * tangent)[0] - both(x - h * tangent)[0]) / (2 * h)
    np.testing.assert_allclose(both(x)[1], slope, atol=1e-8)


@pytest.mark.slow
def test_quiet_bodies_take_longer_steps_as_soon_as_they_may(x64):
    """The guess carried over to a step of another length is accepted immediately."""
    x, v = ring(12, seed=4, low=2.0, high=3.0)
    np.testing.assert_array_equal(run_tracers(x, v, 8).taken, 0)  # from 3, one level a stretch


def test_more_bodies_than_a_wide_tile_go_in_tiles_on_accelerators(x64, monkeypatch):
    """Test exactly one tile of bodies, and one body more."""
    taken = []

    def note_form(name):
        def form(force, control, output, *given):
            taken.append(name if name == "at once" else given[0])
            return given[-1]

        return form

    monkeypatch.setattr(tracers, "advance_all", note_form("at once"))
    monkeypatch.setattr(tracers, "advance_tiles", note_form("in tiles"))
    for count in (tracers.TILE_SIZE, tracers.TILE_SIZE + 1):
        x = jax.ShapeDtypeStruct((count, 3), jnp.float64)
        start = jax.eval_shape(lambda x: tracers.init(force, output(0.0), x, x), x)
        jax.eval_shape(partial(tracers.advance, force, Control(), output(0.0)), start)
    narrow = Control().tile
    assert sorted(map(str, taken)) == sorted(
        map(str, [narrow, "at once", narrow, tracers.TILE_SIZE])
    )
