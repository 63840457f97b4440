"""Taxels and the distances that they measure: against closed forms, motion and energy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from jaxgpu.geometry import sdf
from jaxgpu.physics import touch

TURN = Rotation.from_rotvec([0.4, -0.7, 0.3])
QUAT = np.roll(TURN.as_quat(), 1)


def test_taxels_lie_as_published():
    """A pad has 20 x 25 taxels, by rows, centred, at the closer of the two spacings."""
    points = np.asarray(touch.taxels(0.03, 0.022, 20, 25))
    spacing = min(0.024 / 26, 0.016 / 21)
    rows = points.reshape(20, 25, 3)
    np.testing.assert_allclose(np.diff(rows[..., 0], axis=1), spacing, rtol=1e-4)
    np.testing.assert_allclose(np.diff(rows[..., 1], axis=0), spacing, rtol=1e-4)
    np.testing.assert_allclose(points.mean(0), 0, atol=1e-9)
    with pytest.raises(ValueError, match="taxels: margin=0.01 on a pad of 0.03 by 0.02; it must"):
        touch.taxels(0.03, 0.02, 3, 3, margin=0.01)


def test_a_ball_is_seen_as_its_formula(x64):
    points, centre = np.random.default_rng(0).normal(size=(2, 9, 3))
    centre, v, spin = centre[0], np.array([0.3, -0.1, 0.2]), np.array([1.0, 2.0, -0.5])
    arm = points - centre
    far = np.linalg.norm(arm, axis=1)
    d, n, u = touch.probe(sdf.Ball(0.7), points, centre, QUAT, v, spin)
    np.testing.assert_allclose(d, far - 0.7, atol=1e-15)
    np.testing.assert_allclose(n, arm / far[:, None], atol=1e-14)
    np.testing.assert_allclose(u, v + np.cross(spin, arm), atol=1e-14)


def test_the_distance_shrinks_as_the_surface_moves(x64):
    """Check dd/dt = -n . v of a rotating, moving box, whose pose is from SciPy."""
    points = np.random.default_rng(1).uniform(-1, 1, (20, 3))
    pos, v, spin = (
        np.array([0.2, 0.1, -0.3]),
        np.array([0.5, -0.2, 0.1]),
        np.array([0.3, 1.1, -0.4]),
    )
    box, dt = sdf.Box((0.3, 0.5, 0.4)), 1e-6

    @jax.jit
    def probe_at(pos, quat):
        return touch.probe(box, points, pos, quat, v, spin)

    def probe_later(t):
        turn = (Rotation.from_rotvec(spin * t) * TURN).as_quat()
        return probe_at(pos + v * t, np.roll(turn, 1))

    _, n, u = probe_later(0.0)
    rate = (probe_later(dt)[0] - probe_later(-dt)[0]) / (2 * dt)
    np.testing.assert_allclose(rate, -np.sum(n * u, 1), atol=1e-8)  # 1e-16 / 1e-6, and dt^2


@pytest.mark.slow
def test_force_and_torque_are_slopes_of_the_energy_of_the_springs(x64):
    """Check -dE/dw, E = sum k h^2 / 2, of a pad that moves by w along z or rotates about x."""
    points = touch.taxels(0.02, 0.016, 6, 8)
    block = sdf.Rounded(sdf.Box((3e-3, 4e-3, 2e-3)), 1e-3)
    field = touch.ForceField(120.0, 60.0, 0.5)
    pos, still = np.array([1e-4, -3e-4, 3.5e-3]), jnp.zeros(3)
    d, n, v = touch.probe(block, points, pos, QUAT, still, still)
    force, moment = touch.wrench(points, field.force(field.init(48), d, n, v, 0.1)[0])

    @jax.jit
    def energy_at(at):
        d = touch.probe(block, at, pos, QUAT, still, still)[0]
        return 60.0 * jnp.sum(jnp.maximum(-d, 0) ** 2)

    def energy(shift, turn):
        at = np.asarray(points) @ Rotation.from_rotvec(turn).as_matrix().T + shift
        return float(energy_at(at))

    for i in range(3):
        e = np.eye(3)[i] * 1e-7
        zero = np.zeros(3)
        slope = (energy(e, zero) - energy(-e, zero)) / 2e-7
        np.testing.assert_allclose(force[i], -slope, atol=1e-8)
        slope = (energy(zero, e) - energy(zero, -e)) / 2e-7
        np.testing.assert_allclose(moment[i], -slope, atol=1e-10)


def test_rolling_without_slip_stretches_no_spring(x64):
    """The lowest point of a ball that rolls on the pad is at rest, and so is the taxel there."""
    field, ball = touch.ForceField(100.0, 80.0, 0.5), sdf.Ball(0.01)
    v, depth = np.array([0.02, 0.0, 0.0]), 1e-4
    centre, spin = np.array([0.0, 0.0, 0.01 - depth]), np.array([0.0, 0.02 / (0.01 - depth), 0.0])
    seen = touch.probe(ball, np.zeros((1, 3)), centre, QUAT, v, spin)
    force, anchors = field.force(field.init(1), *seen, 0.01)
    np.testing.assert_allclose(anchors, 0, atol=1e-18)
    np.testing.assert_allclose(force, [[0, 0, -100.0 * depth]], atol=1e-15)


def test_a_grid_of_distances_is_felt_as_what_it_was_sampled_from(x64):
    """A slab's distance is linear between grid points: trilinear values and slopes are exact."""
    axes = [np.arange(n) * 1e-3 - 5e-3 for n in (11, 9, 13)]  # its own count along each axis
    slab = sdf.HalfSpace((0.6, 0.0, 0.8), 1e-3)
    grid = jnp.meshgrid(*axes, indexing="ij")
    voxels = sdf.Voxels(slab.distance(tuple(grid)), (-5e-3,) * 3, 1e-3)
    points = touch.taxels(0.012, 0.012, 4, 4)
    pose = (np.array([1e-4, 2e-4, 3e-4]), QUAT, jnp.zeros(3), jnp.zeros(3))
    seen = jax.jit(lambda: [touch.probe(shape, points, *pose) for shape in (voxels, slab)])
    for got, want in zip(*seen()):
        np.testing.assert_allclose(got, want, atol=1e-12)


def test_what_is_no_direction_is_refused():
    field, d, v = touch.ForceField(100.0, 80.0, 0.5), jnp.full(1, -1e-3), jnp.zeros((1, 3))
    with pytest.raises(ValueError, match="ForceField.force: normal is of length 2; it must be"):
        field.force(field.init(1), d, jnp.array([[0.0, 0.0, 2.0]]), v, 0.1)
    with pytest.raises(ValueError, match=r"velocity has shape \[3\], distance \[1\]; they"):
        field.force(field.init(1), d, jnp.array([[0.0, 0.0, 1.0]]), jnp.zeros(3), 0.1)
    upright = jnp.array([2.0, 0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="probe: quat is of length 2; it must be of length 1"):
        touch.probe(sdf.Ball(1.0), jnp.zeros((1, 3)), jnp.zeros(3), upright, v[0], v[0])


@pytest.mark.slow
def test_heights_are_those_of_a_ball_and_of_a_leaning_peg(x64):
    """Test the lower half of a sphere, and a cylinder with a leaning axis, by the closed form."""
    along = np.linspace(-2.5e-3, 2.5e-3, 13)
    x, y = (a.ravel() for a in np.meshgrid(along, along[::2]))
    grid = np.stack([x, y, 0 * x], 1)
    pos = np.array([2e-4, -3e-4, 3.6e-3])
    ball = pos[2] - np.sqrt(17e-6 - (x - pos[0]) ** 2 - (y - pos[1]) ** 2)
    got = touch.heights(sdf.Ball(np.sqrt(17e-6)), grid, pos, QUAT)
    near = np.asarray(ball) < 2e-3
    np.testing.assert_allclose(np.asarray(got)[near], ball[near], atol=1e-12)
    # For a rod along x that leans by an angle about y, w is the coordinate across the axis.
    lean, radius = 0.1, 4e-3
    turn = Rotation.from_rotvec([0, lean, 0]) * Rotation.from_rotvec([0, np.pi / 2, 0])
    got = touch.heights(sdf.Cylinder(0.02, radius), grid, pos, np.roll(turn.as_quat(), 1))
    across = np.sqrt(radius**2 - (y - pos[1]) ** 2) / np.cos(lean)
    rod = pos[2] - (x - pos[0]) * np.tan(lean) - across
    np.testing.assert_allclose(got, rod, atol=1e-10)
    assert rod.min() < -4e-4  # some of it is pressed in


def test_heights_over_nothing_are_far_and_slopes_are_those_of_differences(x64):
    grid = np.array([[0.0, 0.0, 0.0], [1e-3, 2e-3, 0.0], [0.05, 0.0, 0.0]])
    box = sdf.Box((4e-3, 3e-3, 2e-3))

    def heights_at(pose):
        turn = jnp.concatenate([jnp.ones(1), pose[3:]])
        turn = turn / jnp.linalg.norm(turn)
        return touch.heights(box, grid, pose[:3], turn, far=0.01)

    pose = jnp.array([1e-4, 2e-4, 1.5e-3, 0.02, -0.03, 0.2])
    z, slopes = jax.jit(lambda p: (heights_at(p), jax.jacrev(heights_at)(p)))(pose)
    assert z[2] == 0.01 and np.all(slopes[2] == 0) and np.all(z[:2] < 0)
    ahead = jax.jit(jax.vmap(heights_at))(pose[None] + 1e-6 * np.eye(6))
    back = jax.jit(jax.vmap(heights_at))(pose[None] - 1e-6 * np.eye(6))
    np.testing.assert_allclose(slopes, np.asarray(ahead - back).T / 2e-6, atol=1e-8)
