"""Tools that move freely in space: conserved quantities, orientation, and detection of loss."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from continuum_run import forward, jit_unoptimized
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from jaxgpu.geometry import sdf
from jaxgpu.physics.continuum import Body, Collider, Grid, Scene, count_lost, fill_box, simulate
from jaxgpu.physics.continuum.materials import Liquid, NeoHookean
from jaxgpu.physics.continuum.tools.contact import advance_tool, apply_contact

PLATE = ((1.0, 2.0, 3.0), (1.0, 5.0, 2.0))  # moments, kg m^2, and spin, rad/s
FLIP = ((1.0, 2.0, 2.5), (0.01, 5.0, 0.01))  # about the middle axis: it turns over and over


def draw_bodies(count):
    """Sample moments of inertia of bodies of four point masses, rotations and spins."""
    rng = np.random.default_rng(7)
    cases = []
    for _ in range(count):
        x = rng.normal(size=(4, 3)) * rng.uniform(0.1, 1, 3)
        moments = np.linalg.eigvalsh(np.eye(3) * (x * x).sum() - x.T @ x)
        turn = rng.normal(size=4)
        cases.append((rng.permutation(moments), turn / np.linalg.norm(turn), rng.normal(size=3)))
    return tuple(np.array(a) for a in zip(*cases))


def tools(moments, turn, spin, dtype=jnp.float32):
    """Make a batch of free colliders and their tools."""
    moments, turn, spin = (np.asarray(a, dtype) for a in (moments, turn, spin))

    def begin(i, q, w):
        tool = Collider(sdf.Ball(1.0), jnp.zeros(3, dtype), q, 0.0, w, 0.0, False, 1.0, i)
        return tool, tool.start(dtype)

    return jax.jit(jax.vmap(begin))(moments, turn, spin)


@jax.jit
def advance_free(colliders, tools, dt, steps):
    """Return the tools after a number of steps without force or torque."""
    none = jnp.zeros_like(tools.x[0])
    one = jax.vmap(lambda c, t: advance_tool(c, t, none, none, none, dt))
    return jax.lax.fori_loop(0, steps, lambda _, t: one(colliders, t), tools)


def own_frame(tools):
    """Return rotation matrices [N, 3, 3] by SciPy, in float64."""
    return Rotation.from_quat(np.asarray(tools.turn, float)[:, [1, 2, 3, 0]]).as_matrix()


def invariants(moments, tools):
    """Return angular momentum [N, 3] and energy [N] from rotation and spin, by SciPy and NumPy."""
    r = own_frame(tools)
    own = np.einsum("nji,nj->ni", r, np.asarray(tools.spin, float))
    return np.einsum("nij,nj->ni", r, moments * own), 0.5 * np.sum(moments * own**2, -1)


@pytest.mark.slow
def test_a_free_tool_keeps_its_angular_momentum_and_energy():
    """Explicit steps gained 2.5 % of energy and 1 % of angular momentum in 5000 for the plate."""
    moments, turn, spin = draw_bodies(6)
    upright = np.array([1.0, 0.0, 0.0, 0.0])
    for (i, w), n in zip((PLATE, FLIP), range(2)):
        moments[n], turn[n], spin[n] = i, upright, w
    colliders, start = tools(moments, turn, spin)
    before, energy = invariants(moments, start)
    worst = 0.0
    for _ in range(10):
        start = advance_free(colliders, start, 1e-3, 1000)
        after, now = invariants(moments, start)
        off = np.linalg.norm(after - before, axis=1) / np.linalg.norm(before, axis=1)
        worst = np.maximum(worst, [off.max(), np.abs(now / energy - 1).max()])
    assert worst[0] < 2e-6  # rounding of turn and spin, from which it is taken here
    np.testing.assert_array_equal(start.momentum.L, tools(moments, turn, spin)[1].momentum.L)
    assert worst[1] < 1e-4


@pytest.mark.slow
def test_a_free_tool_turns_as_euler_says_to_second_order(x64):
    moments, turn, spin = (np.array(a, float) for a in draw_bodies(3))
    moments[0], turn[0], spin[0] = FLIP[0], (1, 0, 0, 0), FLIP[1]
    t = 4.0

    def slope(_, y, i):
        w, q = y[:3], y[3:]
        turning = Rotation.from_quat(q[[1, 2, 3, 0]]).apply(w)  # the body's own spin, in space
        dq = 0.5 * np.array([-turning @ q[1:], *(turning * q[0] + np.cross(turning, q[1:]))])
        return np.concatenate([np.cross(i * w, w) / i, dq])

    want = []
    for i, q, w in zip(moments, turn, spin):
        own = Rotation.from_quat(q[[1, 2, 3, 0]]).inv().apply(w)
        end = solve_ivp(
            slope, (0, t), [*own, *q], args=(i,), method="DOP853", rtol=1e-12, atol=1e-12
        )
        want.append(Rotation.from_quat(end.y[[4, 5, 6, 3], -1]).as_matrix())
    colliders, start = tools(moments, turn, spin, jnp.float64)
    errors = []
    for steps in (2000, 4000):
        end = advance_free(colliders, start, t / steps, steps)
        errors.append(np.abs(own_frame(end) - np.array(want)).max((1, 2)))
    assert errors[1].max() < 1e-4
    np.testing.assert_allclose(errors[0] / errors[1], 4, rtol=0.05)


def test_a_symmetric_top_precesses_exactly_at_any_step(x64):
    """Rates are L / I_1 about L, spin_3 (1 - I_3 / I_1) about its axis: Landau & Lifshitz I, 33."""
    ratios, spin = np.array([0.3, 1.0, 1.9]), np.random.default_rng(3).normal(size=(3, 3)) * 5
    moments = np.stack([np.full(3, 1.3), np.full(3, 1.3), 1.3 * ratios], 1)
    colliders, start = tools(moments, [[1.0, 0, 0, 0]] * 3, spin, jnp.float64)
    end = own_frame(advance_free(colliders, start, 0.4, 7))
    for got, i, w, ratio in zip(end, moments, spin, ratios):
        about = Rotation.from_rotvec(2.8 * i * w / i[0])
        own = Rotation.from_rotvec([0, 0, 2.8 * w[2] * (1 - ratio)])
        np.testing.assert_allclose(got, (about * own).as_matrix(), atol=1e-12)


def test_a_led_tool_and_one_in_the_plane_turn_as_they_did():
    push, torque, dt = jnp.array([0.3, -0.2]), jnp.array([0.7]), jnp.float32(1e-2)
    disc = Collider(sdf.Ball(0.1), (0.5, 0.4), v=(1.0, 0.0), spin=3.0, mass=2.0, inertia=0.3)
    now = disc.start(jnp.float32)
    end = advance_tool(disc, now, push, torque, jnp.zeros(2), dt)
    assert now.momentum is None and end.momentum is None
    np.testing.assert_array_equal(end.spin, now.spin + torque / jnp.float32(0.3))
    np.testing.assert_array_equal(end.turn, now.turn + dt * end.spin)
    ball = Collider(sdf.Ball(0.1), (0.5, 0.4, 0.5), spin=(0.0, 0.0, 3.0))
    led = advance_tool(ball, ball.start(jnp.float32), jnp.ones(3), jnp.ones(3), jnp.ones(3), dt)
    np.testing.assert_array_equal(led.spin, [0, 0, 3])
    np.testing.assert_allclose(led.turn, [np.cos(0.015), 0, 0, np.sin(0.015)], rtol=1e-6)


@pytest.mark.slow
def test_a_spin_that_is_set_is_the_one_that_acts_and_has_its_slope(x64):
    moments, turn, spin = (a[0] for a in draw_bodies(1))
    tool = Collider(sdf.Ball(0.1), jnp.zeros(3), turn, 0.0, spin, 0.0, False, 1.0, moments)
    none, other = np.zeros(3), np.array([0.4, -1.0, 0.7])
    begun = tool.start(jnp.float64)

    def run_free(tool_now):
        step_free = lambda t, _: (advance_tool(tool, t, none, none, none, 0.01), None)
        return jax.lax.scan(step_free, tool_now, length=40)[0]

    @jit_unoptimized
    def run_both(spin):
        afresh = dataclasses.replace(tool, spin=spin).start(jnp.float64)
        return run_free(afresh), run_free(dataclasses.replace(begun, spin=spin))

    afresh, reset = run_both(other)
    np.testing.assert_allclose(reset.turn, afresh.turn, rtol=1e-12)
    np.testing.assert_allclose(reset.spin, afresh.spin, rtol=1e-12)

    # Setting the spin to its current value must still give the slope in the value that is set.
    reach = lambda w: run_free(dataclasses.replace(begun, spin=w)).turn[1]
    slope = jit_unoptimized(jax.grad(reach))(spin)
    for axis in range(3):
        h = 1e-5 * np.eye(3)[axis]
        central = (run_both(spin + h)[1].turn[1] - run_both(spin - h)[1].turn[1]) / 2e-5
        np.testing.assert_allclose(slope[axis], central, rtol=1e-6)


def momenta(state, dx, mass):
    """Return momentum and angular momentum of particles and a free tool, about the origin.

    The affine part of the particles' motion is included (eq. 24 of APIC).
    """
    tool = state.tools[0]
    momentum, total = mass * np.asarray(tool.v), np.zeros(3)
    for b in state.bodies:
        m, x, v, c = (np.asarray(a) for a in (b.m, b.x, b.v, b.C))
        momentum = momentum + m @ v
        total += (m[:, None] * np.cross(x, v)).sum(0)
        swirl = [c[:, 2, 1] - c[:, 1, 2], c[:, 0, 2] - c[:, 2, 0], c[:, 1, 0] - c[:, 0, 1]]
        total += [(m * dx**2 / 4 * a).sum() for a in swirl]
    return momentum, total + mass * np.cross(tool.x, tool.v) + np.asarray(tool.momentum.L)


@pytest.mark.slow
@pytest.mark.parametrize("sharp", [False, True])
def test_matter_and_a_free_tool_in_space_keep_their_momenta(x64, sharp):
    """Particles of unequal volumes hit a rotated box, and both are left spinning."""
    dx, rng = 1 / 12, np.random.default_rng(5)
    x = fill_box((0.25, 0.35, 0.35), (0.42, 0.7, 0.6), dx / 2).astype(jnp.float64)
    volume = (dx / 2) ** 3 * rng.uniform(0.5, 1.0, len(x))
    liquid = Liquid(2e4, 1.0, tension=1e6, volume_correction=None)
    matter = Body(x, liquid if sharp else NeoHookean(2e4), volume, 700.0, v=(1.5, 0.2, -0.3))
    box = Collider(
        sdf.Box((0.06, 0.12, 0.08)),
        (0.56, 0.5, 0.5),
        turn=rng.normal(size=4),
        spin=rng.normal(size=3),
        friction=0.4,
        mass=0.8,
        inertia=(0.005, 0.003, 0.006),
    )
    scene = Scene((matter,), Grid(dx, (12, 12, 12)), colliders=(box,), sharp=sharp)
    scene = scene.prepare()
    # The affine part exists only after a step.
    start = forward(scene, scene.init(), 1)
    end = forward(scene, start, 60)
    (p, before), (q, after) = (momenta(s, dx, 0.8) for s in (start, end))
    given = np.linalg.norm(
        np.asarray(end.tools[0].momentum.L) - np.asarray(start.tools[0].momentum.L)
    )
    assert given > 1e-3
    np.testing.assert_allclose(after, before, atol=1e-12 * np.linalg.norm(before))
    np.testing.assert_allclose(q, p, atol=1e-12 * np.linalg.norm(p))


@pytest.mark.slow
def test_a_free_tool_that_leaves_the_box_is_an_error():
    """The tool once fell through the floor, which does not hold it, to y = -0.94 m."""
    body = Body(fill_box((0.1, 0.1), (0.3, 0.2), 0.05), NeoHookean(1e4), 0.05**2)
    ball = Collider(sdf.Ball(0.1), (0.7, 0.3), mass=1.0, inertia=0.01)
    grid = Grid(0.1, (10, 10))
    scene = Scene((body,), grid, gravity=(0.0, -9.81), colliders=(ball,))
    with pytest.raises(
        FloatingPointError, match=r"colliders\[0\] was outside the box.* at t=0.3 s"
    ):
        simulate(scene, 0.5, frames=5)
    state = scene.init()
    assert int(count_lost(scene, state)) == 0
    lost = jit_unoptimized(count_lost)
    for x, free, count in (
        ([0.7, -0.01], True, 1),
        ([0.7, -0.01], False, 0),  # a led tool may leave
        ([0.7, np.nan], True, 1),
        ([0.7, np.nan], False, 1),
    ):
        tool = dataclasses.replace(state.tools[0], x=np.float32(x))
        held = ball if free else Collider(sdf.Ball(0.1), (0.7, 0.3))
        here = dataclasses.replace(scene, colliders=(held,))
        assert int(lost(here, dataclasses.replace(state, tools=(tool,)))) == count


def test_friction_stops_a_slip_and_never_turns_it_round():
    """A node that hits a plane at 1 m/s loses mu of its slip, at most all of it (Coulomb)."""
    floor = Collider(sdf.HalfSpace((0.0, 1.0)), jnp.zeros(2), friction=0.5)
    fill_four = lambda value: np.full(4, value, np.float32)
    along, left = np.float32([0.2, 0.5, 0.8, -0.8]), np.float32([0.0, 0.0, 0.3, -0.3])
    meet = jit_unoptimized(
        lambda *a: apply_contact(floor, floor.start(jnp.float32), *a, 0.05, 0.001)
    )
    new, impulse, _ = meet(
        (fill_four(0.3), fill_four(0.01)), (along, fill_four(-1.0)), fill_four(2.0)
    )
    np.testing.assert_allclose(new, [left, fill_four(0.0)], atol=1e-6)
    np.testing.assert_allclose(impulse, [2 * (along - left).sum(), -8.0], atol=1e-5)
