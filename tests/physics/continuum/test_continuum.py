"""The complete step: conservation, exactness, invariance, and the protocol."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import assert_deterministic, assert_exports, avals, check_program
from continuum_run import forward, jit_unoptimized, positions, velocities

from jaxgpu.geometry import sdf
from jaxgpu.physics.continuum import Body, Grid, Scene, engine, fill_box
from jaxgpu.physics.continuum.materials import Corotated, HerschelBulkley, Liquid, NeoHookean
from jaxgpu.physics.continuum.materials.plastic import DruckerPrager, VonMises

LIQUID = Liquid(2e4, 0.3)
HELD = Liquid(2e4, 0.3, volume_correction=0.1)
N = 12  # cells along the edge of a box of 1 m


def scene(material, d=2, dtype=jnp.float32, v=0.0, gravity=True, n=N, centre=0.5):
    """Make a ball of radius 0.22 m in a box of 1 m, with two particles per cell edge."""
    dx = 1 / n
    x = fill_box((0.0,) * d, (1.0,) * d, dx / 2, sdf.Moved(sdf.Ball(0.22), (centre,) * d))
    body = Body(x.astype(dtype), material, (dx / 2) ** d, v=v)
    down = (0.0, -9.81, 0.0)[:d] if gravity else ()
    return Scene((body,), Grid(dx, (n,) * d), down).prepare()


def mix_bodies(run, other, seed):
    """Return the scene with some particles of another material, all of unequal volumes."""
    rng, body = np.random.default_rng(seed), run.bodies[0]
    mine = rng.random(len(body.x)) < 0.6
    select = lambda a, which: a if np.ndim(a) < 2 else a[which]
    bodies = tuple(
        Body(
            body.x[which],
            material,
            jnp.asarray(body.volume * rng.uniform(0.4, 1.2, which.sum()), body.x.dtype),
            density,
            select(body.v, which),
        )
        for which, material, density in ((mine, body.material, 1400.0), (~mine, other, 600.0))
    )
    return dataclasses.replace(run, bodies=bodies, dt=run.dt / 2)


def with_flow(run, gradient, drift=(0.0, 0.0)):
    """Return the scene with velocities that are linear about its centre."""
    body = run.bodies[0]
    v = (np.asarray(body.x) - 0.5) @ np.asarray(gradient, body.x.dtype).T
    v = jnp.asarray(v + np.asarray(drift, v.dtype))
    return dataclasses.replace(run, bodies=(dataclasses.replace(body, v=v),))


def totals(state):
    """Return mass, momentum [D] and angular momentum about the origin, all in float64.

    Each particle's affine field adds a spin of m dx^2 / 4 (C_10 - C_01): eq. 24 of APIC.
    """
    mass, momentum, turning = 0.0, 0.0, 0.0
    for b in state.bodies:
        m, x, v, c = (np.asarray(a, float) for a in (b.m, b.x, b.v, b.C))
        mass, momentum = mass + m.sum(), momentum + m @ v
        spin = (c[:, 1, 0] - c[:, 0, 1]) / (4 * N**2)
        turning += (m * (x[:, 0] * v[:, 1] - x[:, 1] * v[:, 0] + spin)).sum()
    return mass, momentum, turning


@pytest.mark.parametrize(
    "material, d", [(LIQUID, 2), pytest.param(DruckerPrager(2e4), 3, marks=pytest.mark.slow)]
)
def test_falls_freely_and_loses_nothing(material, d):
    run = scene(material, d, centre=0.7)
    steps = int(0.05 / float(run.dt))
    end = forward(run, run.init(), steps)
    mass, p, _ = totals(end)
    t = steps * float(run.dt)
    # These are sums of a few hundred float32 terms over a few hundred steps.
    np.testing.assert_allclose(mass, totals(run.init())[0], rtol=0)
    np.testing.assert_allclose(p[1], -9.81 * mass * t, rtol=1e-5)
    np.testing.assert_allclose(np.delete(p, 1), 0, atol=1e-5 * abs(p[1]))
    np.testing.assert_allclose(velocities(end.bodies[0])[:, 1], -9.81 * t, rtol=1e-4)


@pytest.mark.slow
def test_momentum_and_angular_momentum_are_exact_in_float64(x64):
    """Use two materials in a disc that spins and drifts, with no face near."""
    run = scene(Corotated(2e4), 2, jnp.float64, gravity=False)
    run = with_flow(run, [[0, -2], [2, 0]], drift=(0.1, 0.05))
    run = mix_bodies(run, Liquid(2e4, 0.3, volume_correction=None), 1)
    start = forward(run, run.init(), 1)  # the affine part is only there after a step
    end = forward(run, start, 500)
    (_, p, before), (_, q, after) = totals(start), totals(end)
    assert before > 0.1
    np.testing.assert_allclose(q, p, rtol=1e-12)
    np.testing.assert_allclose(after, before, rtol=1e-12)


@pytest.mark.slow
def test_an_affine_flow_is_reproduced_exactly(x64, d=3):
    # A step without stress or gravity scatters velocities and gathers them unchanged, inside.
    run = scene(Liquid(1e-9), d, jnp.float64, gravity=False)
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(d, d)), rng.normal(size=d)
    start = run.init()
    p = start.bodies[0]
    v = np.asarray(p.x) @ a.T + b
    p = p.replace(v=v, C=a)
    step = jit_unoptimized(dataclasses.replace(run, dt=1e-12).step)
    end = step(dataclasses.replace(start, bodies=(p,)))
    full = np.asarray(p.active)
    np.testing.assert_allclose(end.bodies[0].v[full], v[full], rtol=1e-10)
    np.testing.assert_allclose(end.bodies[0].C[full], np.tile(a, (full.sum(), 1, 1)), rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    "material", [LIQUID, VonMises(2e4, yield_stress=50.0)], ids=lambda m: type(m).__name__
)
def test_does_not_depend_on_where_how_fast_and_in_which_unit(x64, material):
    """Check Galilean, translation, quarter-turn and scale invariance without a bounce."""
    stretch = np.array([[0.5, 0.8], [-0.3, -0.9]])
    run = scene(material, 2, jnp.float64, gravity=False)

    def outcome(shift=0.0, drift=(0.0, 0.0), turn=False, scale=1.0):
        body = run.bodies[0]
        away = np.asarray(body.x) - 0.5
        v = away @ stretch.T
        if turn:
            away, v = (np.stack([-w[:, 1], w[:, 0]], 1) for w in (away, v))
        x = (away + 0.5 + shift) * scale
        body = dataclasses.replace(
            body, x=jnp.asarray(x), v=jnp.asarray((v + drift) * scale),
            volume=body.volume * scale**2, density=1000 / scale**2,
        )  # fmt: skip
        grid = Grid(scale / 12, (12, 12))
        now = Scene((body,), grid, dt=jnp.asarray(2e-3))
        end = np.asarray(positions(forward(now, now.init(), 40).bodies[0])) / scale
        end = end - shift - 40 * 2e-3 * np.asarray(drift) - 0.5
        return np.stack([end[:, 1], -end[:, 0]], 1) if turn else end

    plain = outcome()
    cell = 1 / 12
    # Rounding grows by the flow's own sensitivity, by a few orders in forty steps.
    np.testing.assert_allclose(outcome(shift=2 * cell), plain, atol=1e-9)
    np.testing.assert_allclose(outcome(turn=True), plain, atol=1e-9)
    # Scaling lengths by 10 and density by 1/100 keeps stress over inertia, and so all motion.
    np.testing.assert_allclose(outcome(scale=10.0), plain, atol=1e-9)
    # A drift moves particles across cells: the motion is the same up to the grid's own error.
    drift = outcome(drift=(0.4, -0.2))
    assert np.abs(drift - plain).max() < 0.02 * np.abs(plain).max()


corrected = jax.jit(engine.step)  # by how many steps' worth


def test_a_wave_may_cross_four_fifths_of_a_cell_in_a_step():
    x, c = fill_box((0.2, 0.2), (0.6, 0.6), 0.05), np.sqrt(2e4 / 1000)
    still = Scene((Body(x, Liquid(2e4), 0.05**2),), Grid(0.1, (10, 10)))
    dataclasses.replace(still, dt=np.float32(0.799 * 0.1 / c)).prepare()
    with pytest.raises(ValueError, match="prepare: dt=0.0179 s; it must lie in"):
        dataclasses.replace(still, dt=np.float32(0.801 * 0.1 / c)).prepare()


def test_pressure_pushes_outwards_by_its_virial():
    """Check sum m (v x + dx^2 tr C / 4) = 2 dt sum V J p from rest; p = K (J^-7 - 1) / 7."""
    run = scene(HELD, gravity=False, n=8)
    state = run.init()
    body = state.bodies[0]
    squeezed = dataclasses.replace(state, bodies=(body.replace(internal=0.9 * body.internal),))
    after = corrected(run, squeezed, jnp.int32(0)).bodies[0]
    x, v, c, m = (np.asarray(a, float) for a in (body.x, after.v, after.C, body.m))
    moment = np.sum(m * (np.sum(x * v, 1) + (c[:, 0, 0] + c[:, 1, 1]) / 8**2 / 4))
    pressure = 2e4 / 7 * (0.9**-7 - 1)
    want = 2 * float(run.dt) * np.sum(m > 0) * (1 / 16) ** 2 * 0.9 * pressure
    np.testing.assert_allclose(moment, want, rtol=1e-3)


def test_liquid_is_led_to_the_density_of_the_grid_at_the_speed_of_sound():
    """Check that 1 / J - 1 is g (1 - exp(-correction n c dt / dx)); g is each particle's excess."""
    run = scene(HELD, gravity=False, n=8)
    crowded = dataclasses.replace(run.bodies[0], volume=1.3 * run.bodies[0].volume)
    run = dataclasses.replace(run, bodies=(crowded,))
    state, gaps = run.init(), []
    for n in (1, 4, 16):
        body = corrected(run, state, jnp.int32(n)).bodies[0]
        gaps.append(1 / np.asarray(body.internal, float)[np.asarray(body.active)] - 1)
    full = gaps[0] > 1e-3
    rate = 0.1 * np.sqrt(2e4 / 1000) * float(run.dt) * 8
    for n, gap in zip((4, 16), gaps[1:]):
        want = np.expm1(-rate * n) / np.expm1(-rate)
        np.testing.assert_allclose(gap[full] / gaps[0][full], want, rtol=1e-3)
    assert full.sum() > 20


@pytest.mark.slow
def test_step_conforms():
    """`test_conformance.py` compares eager and jitted steps of every material."""
    run = with_flow(scene(HELD), [[0.9, 1.2], [-0.4, -1.0]])
    step, state = jax.jit(lambda s: run.step(s)), run.init()
    assert_deterministic(step, state)
    check_program(step, state)
    assert_exports(step, state)
    assert avals(jax.eval_shape(step, state)) == avals(state)


def test_step_in_space_exports():
    run = scene(DruckerPrager(2e4), 3)
    f = jax.jit(lambda s: run.step(s))
    jax.export.export(f, platforms=("cpu", "cuda", "tpu"))(run.init())


@pytest.mark.slow
def test_empty_slots_change_nothing():
    run = scene(LIQUID, centre=0.7)
    body = run.bodies[0]
    padded = dataclasses.replace(run, bodies=(dataclasses.replace(body, capacity=1000),))
    a, b = (forward(r, r.init(), 60).bodies[0] for r in (run, padded))
    np.testing.assert_allclose(positions(a), positions(b), atol=1e-6)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(b))


@pytest.mark.slow
def test_two_halves_are_one_whole():
    run = scene(HELD, v=(0.5, 0.2), centre=0.7)
    body = run.bodies[0]
    left = np.asarray(body.x)[:, 0] < 0.7
    halves = tuple(dataclasses.replace(body, x=body.x[keep]) for keep in (left, ~left))
    split = dataclasses.replace(run, bodies=halves)
    whole, parts = forward(run, run.init(), 80), forward(split, split.init(), 80)
    together = np.concatenate([positions(b) for b in parts.bodies])
    alone = np.concatenate([positions(whole.bodies[0])[left], positions(whole.bodies[0])[~left]])
    np.testing.assert_allclose(together, alone, atol=1e-5)


@pytest.mark.slow
def test_periodic_faces_have_no_seam(x64):
    """A wave that crosses the joined faces equals the shifted wave that does not."""
    dx = 1 / 16
    x = np.asarray(fill_box((0.0, 0.0), (1.0, 4 * dx), dx / 2), float)

    def outcome(shift):
        v = np.stack([0.3 * np.exp(-80 * (x[:, 0] - 0.5) ** 2), 0.1 * x[:, 0] * (1 - x[:, 0])], 1)
        at = np.stack([(x[:, 0] + shift) % 1, x[:, 1]], 1)
        body = Body(jnp.asarray(at), NeoHookean(2e4), (dx / 2) ** 2, v=v)
        run = Scene((body,), Grid(dx, (16, 4), faces=("periodic", "periodic"))).prepare()
        return positions(forward(run, run.init(), 50).bodies[0])

    plain, moved = outcome(0.0), outcome(0.5)
    gap = (np.asarray(moved - plain)[:, 0] - 0.5 + 0.5) % 1 - 0.5
    np.testing.assert_allclose(gap, 0, atol=1e-10)
    np.testing.assert_allclose(moved[:, 1], plain[:, 1], atol=1e-10)


def test_a_liquid_that_thins_is_spread_as_sharply_as_its_thinnest_flow_asks():
    """Damping that is invisible in the viscosity at rest is visible where the liquid is sheared."""
    x = fill_box((0.2, 0.2), (0.6, 0.6), 0.05)

    def sharp(law):
        return Scene((Body(x, law, 0.05**2),), Grid(0.1, (40, 40)), dt=1e-4).prepare().sharp

    thins = HerschelBulkley(1e4, yield_stress=0.0, consistency=1000.0, index=0.5, growth=1.0)
    at_rest, sheared = float(thins.viscosity(0.0)), float(thins.viscosity(1e3))
    assert at_rest == pytest.approx(1e4, rel=1e-3) and sheared == pytest.approx(31.6, rel=1e-2)
    assert [sharp(Liquid(1e4, nu)) for nu in (at_rest, sheared)] == [False, True]
    assert sharp(thins)
