"""Derivatives of complete rollouts: against differences, at rest, and their memory use."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from continuum_run import jit_unoptimized

from jaxgpu.geometry import sdf
from jaxgpu.physics.continuum import (
    Body,
    Collider,
    Corotated,
    Grid,
    Liquid,
    NeoHookean,
    Scene,
    VonMises,
    fill_box,
    rollout,
)
from jaxgpu.physics.continuum.trajectory import _nested_scan, choose_levels

DX = 1 / 8


def keep(scene, state, control):
    return scene, state


def outcome(material, contact):
    """Compute a scalar function of every continuous input, after fifty steps in float64.

    No two particles have the same volume.
    """
    x = np.asarray(fill_box((0.25, 0.25), (0.75, 0.5), DX / 2), float)
    volume = (DX / 2) ** 2 * np.random.default_rng(3).uniform(0.6, 1.4, len(x))
    stretch = 0.8 * np.sin(4 * x[:, ::-1]) + 0.1
    leaves, tree = jax.tree.flatten(material)
    start = {
        "x": x,
        "v": stretch,
        "material": [np.asarray(float(a)) for a in leaves],
        "gravity": np.array([0.5, -9.81]),
        "tool x": np.array([0.8, 0.45]),
        "tool v": np.array([-0.4, 0.1]),
        "radius": np.asarray(0.12),
        "friction": np.asarray(0.3),
    }
    weight = np.cos(1.3 * np.arange(float(x.shape[0])))

    def loss(p):
        law = jax.tree.unflatten(tree, p["material"])
        body = Body(p["x"], law, volume, v=p["v"])
        ball = Collider(sdf.Ball(p["radius"]), p["tool x"], v=p["tool v"], friction=p["friction"])
        tools = (ball,) if contact else ()
        scene = Scene((body,), Grid(DX, (8, 8)), tuple(p["gravity"]), tools, dt=1e-3)
        end, _ = rollout(scene, scene.init(), jnp.zeros(5), keep, substeps=10)
        b = end.bodies[0]
        moved = b.x[: x.shape[0]].T
        return jnp.sum(weight * moved[0]) + jnp.sum(weight[::-1] * moved[1] ** 2)

    return jit_unoptimized(jax.value_and_grad(loss)), start


@pytest.mark.slow
@pytest.mark.parametrize(
    "material",
    [Liquid(1e4, 1.0, volume_correction=0.1), VonMises(1e4, 0.3, 60.0)],
    ids=lambda m: type(m).__name__,
)
def test_every_input_against_differences(x64, material):
    """Cover a liquid and a plastic law; `test_sand_gradients.py` covers sand under pressure."""
    loss, p = outcome(material, contact=False)
    slope = loss(p)[1]
    rng = np.random.default_rng(0)
    for name in ("x", "v", "material", "gravity"):
        size = jax.tree.map(lambda a: np.maximum(np.max(np.abs(a)), 0.1), p[name])
        way = jax.tree.map(lambda a, s: s * rng.normal(size=a.shape), p[name], size)
        # Rounding 1e-16 / h competes with third derivatives h^2: take the best of five steps.
        errors = []
        for h in (1e-3, 1e-4, 1e-5, 1e-6, 1e-7):
            at = [p | {name: jax.tree.map(lambda a, b, s=s: a + s * b, p[name], way)}
                  for s in (h, -h)]  # fmt: skip
            errors.append((loss(at[0])[0] - loss(at[1])[0]) / (2 * h))
        exact = sum(
            np.sum(np.asarray(a) * b)
            for a, b in zip(jax.tree.leaves(slope[name]), jax.tree.leaves(way))
        )
        assert min(abs(e - exact) for e in errors) <= 1e-6 * abs(exact) + 1e-9, name


@pytest.mark.slow
def test_tools_through_contact(x64):
    loss, p = outcome(NeoHookean(1e4), contact=True)
    slope = loss(p)[1]
    for name in ("tool x", "tool v", "friction", "v"):
        way = np.cos(1 + np.arange(float(p[name].size))).reshape(p[name].shape)
        exact = np.sum(np.asarray(slope[name]) * way)
        assert abs(exact) > 1e-6, name  # it is felt
        # Contact starts node by node, so the loss has kinks: use small steps, to 1e-3.
        value = lambda h, name=name, way=way: loss(p | {name: p[name] + h * way})[0]
        central = [(value(h) - value(-h)) / (2 * h) for h in (1e-5, 1e-6, 1e-7)]
        assert min(abs(c - exact) for c in central) <= 1e-3 * abs(exact), name


@pytest.mark.slow
def test_checkpoints_change_memory_and_nothing_else(x64):
    x = np.asarray(fill_box((0.25, 0.25), (0.5, 0.5), DX / 2), float)
    body = Body(x, NeoHookean(1e4), (DX / 2) ** 2)
    scene = Scene((body,), Grid(DX, (8, 8)), dt=1e-3)

    def push(scene, state, force):
        return dataclasses.replace(scene, gravity=(force, -9.81)), state

    def loss(force, plan):
        end, _ = rollout(scene, scene.init(), force, push, substeps=3, checkpoint=plan)
        return jnp.sum(end.bodies[0].m * end.bodies[0].x[:, 0] ** 2)

    force = np.sin(np.arange(7.0))  # prime: no level divides it
    plans = [(0, 0), (1, 1), (2, 2)]
    slope = jit_unoptimized(jax.grad(loss), static_argnums=1)
    plain, *others = (slope(force, plan) for plan in plans)
    for other in others:
        np.testing.assert_allclose(other, plain, rtol=1e-12)


def forecast(particles, nodes, frames, substeps, budget=2**30):
    """Return the bytes that a gradient of a rollout needs, by the compiler, without running it."""
    dx = 1 / nodes
    side = round((particles / 8) ** (1 / 3))
    x = fill_box((2 * dx,) * 3, tuple(2 * dx + side * dx for _ in range(3)), dx / 2)
    body = Body(x, Liquid(1e4), (dx / 2) ** 3)
    scene = Scene((body,), Grid(dx, (nodes - 5,) * 3), gravity=(0.0, -9.81, 0.0)).prepare()

    def push(scene, state, force):
        return dataclasses.replace(scene, gravity=(force, -9.81, 0.0)), state

    def loss(force):
        start = scene.init()
        end, _ = rollout(scene, start, force, push, substeps=substeps, budget=budget)
        return jnp.sum(end.bodies[0].x[:, 0])

    program = jax.jit(jax.grad(loss)).lower(jnp.zeros(frames)).compile()
    return program.memory_analysis().temp_size_in_bytes, x.shape[0]


@pytest.mark.slow
def test_a_thousand_steps_of_eight_thousand_particles_in_50_mb():
    size, count = forecast(8192, 32, 100, 10, budget=2**25)
    assert count == 8000
    assert size <= 50e6


@pytest.mark.slow
@pytest.mark.release  # its program is long; the one above is of the same rollout
def test_36000_steps_of_90000_particles_in_4_gb():
    size, count = forecast(90_000, 64, 3600, 10)
    assert count >= 85_000
    assert size <= 4e9


def test_levels_are_the_fewest_that_fit():
    x = jnp.full((1000, 2), 0.5)
    scene = Scene((Body(x, Liquid(), 1e-4),), Grid(DX, (8, 8))).prepare()
    state = scene.init()
    plans = [choose_levels(scene, state, 400, 10, budget) for budget in (1e12, 3e7, 8e6, 1)]
    assert plans[0] == (0, 1) and plans[1] == (1, 1) and plans[2] == (2, 1)
    assert plans[3] == (3, 3)


def test_what_fits_a_gibibyte_is_kept_and_nothing_done_twice():
    """Frames are recomputed only if their states exceed the budget, 2^30 bytes by default.

    A million slots of 13 numbers are stored for 10 frames but not for 40.
    """
    x = jax.ShapeDtypeStruct((1_000_000, 2), jnp.float32)
    grid = Grid(DX, (8, 8))

    def again(frames, **how):
        def last_time(x):
            scene = Scene((Body(x, NeoHookean(1e4), 1e-4),), grid, dt=1e-3)
            return rollout(scene, scene.init(), frames, substeps=1, **how)[0].t

        return str(jax.make_jaxpr(last_time)(x)).count("remat")

    once, twice = (again(40, checkpoint=(outer, 1)) for outer in (0, 2))
    assert once < twice
    assert [again(10), again(40)] == [once, twice]


@pytest.mark.slow
def test_curvature_of_a_rollout_by_forward_over_reverse(x64):
    """Start at rest, with equal stretches; differentiate in velocity and stiffness at once."""
    x = np.asarray(fill_box((0.25, 0.25), (0.5, 0.5), DX / 2), float)
    speed = np.cos(5 * x)

    def loss(p):
        body = Body(x, Corotated(1e4 * p[1]), (DX / 2) ** 2, v=p[0] * speed)
        scene = Scene((body,), Grid(DX, (8, 8)), dt=1e-3)
        end, _ = rollout(scene, scene.init(), jnp.zeros(1), keep, substeps=5)
        return jnp.sum(end.bodies[0].x[:, 0] ** 2 * end.bodies[0].m)

    at, way = np.array([0.7, 1.1]), np.array([0.6, -0.3])
    both = jit_unoptimized(lambda p: jax.jvp(jax.grad(loss), (p,), (way,)))
    curvature, slope = both(at)[1], lambda h: both(at + h * way)[0]
    # Rounding 1e-16 / h competes with third derivatives h^2: take the best of three steps.
    central = [(slope(h) - slope(-h)) / (2 * h) for h in (1e-3, 1e-4, 1e-5)]
    size = np.max(np.abs(curvature))
    assert min(np.max(np.abs(c - curvature)) for c in central) <= 1e-6 * size


@pytest.mark.slow
def test_a_particle_at_the_rim_of_a_spline_moves_freely_and_so_does_its_derivative():
    """The particle puts 1e-28 kg on a node, where 1 / m^2 overflows; by itself it moves by dt v."""
    at = (3.5 + 1e-6) * DX  # halfway between nodes, where a spline ends
    scene = Scene((Body(jnp.full((1, 2), at), Liquid(1e3), 1e-6),), Grid(DX, (8, 8)), dt=1e-3)
    start = scene.init()

    def end(v):
        body = start.bodies[0].replace(v=v)
        return scene.step(dataclasses.replace(start, bodies=(body,))).bodies[0].x[0, 0]

    place, slope = jit_unoptimized(jax.value_and_grad(end))(jnp.float32(0.3))
    assert place == pytest.approx(at + 3e-4, rel=1e-6)
    assert slope == pytest.approx(1e-3, rel=1e-3)


@pytest.mark.parametrize(
    "depth, length", [(0, 7), (2, 1), *(pytest.param(d, 7, marks=pytest.mark.slow) for d in (1, 3))]
)
def test_nested_levels_go_through_all_entries_in_order(length, depth):
    """Entries have any shape and a count that no level divides: Horner's rule, in integers."""
    digits = np.random.default_rng(length).integers(0, 3, (length, 2, 3))
    horner = lambda state, digit: (3 * state + digit[0].sum(), state - digit[1])
    xs = jnp.asarray(digits, jnp.int32)
    end, rows = _nested_scan(horner, jnp.int32(0), xs, length, depth, keep_grid=False)
    state = 0
    for digit, row in zip(digits, rows, strict=True):
        np.testing.assert_array_equal(row, state - digit[1])
        state = 3 * state + digit[0].sum()
    assert end == state


def test_frames_that_are_done_again_keep_their_state_and_no_grid():
    """The reverse pass gets less, for 24 steps, than one of their grids of 1369 nodes."""
    grid, law, frames, slots = Grid(1 / 32, (32, 32)), NeoHookean(1e4), 6, 8

    def end(x):
        scene = Scene((Body(x, law, 1e-4),), grid, dt=1e-4)
        return rollout(scene, scene.init(), frames, substeps=4, checkpoint=(1, 1))[0]

    back = jax.eval_shape(lambda x: jax.vjp(end, x)[1], jnp.full((slots, 2), 0.5))
    kept = sum(a.size for a in jax.tree.leaves(back))
    assert frames * slots * 12 <= kept < np.prod(grid.shape)  # x, v, C and F in the plane
