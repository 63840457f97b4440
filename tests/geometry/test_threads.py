"""Threads of ISO 68-1: published diameters, a screw motion, and dense points on the surface."""

import jax
import numpy as np
import pytest
from scipy.spatial import cKDTree

from jaxgpu.geometry.threads import Bolt, Nut, minor_diameter, pitch_diameter, thread_distance

# Columns of ISO 724 in mm: d, P, d2, d1.
PUBLISHED = [(8, 1.25, 7.188, 6.647), (12, 1.75, 10.863, 10.106), (16, 2.0, 14.701, 13.835)]
RNG = np.random.default_rng(5)


@pytest.mark.parametrize(("d", "pitch", "d2", "d1"), PUBLISHED)
def test_diameters_are_the_published_ones(d, pitch, d2, d1):
    assert pitch_diameter(d, pitch) == pytest.approx(d2, abs=5e-4)
    assert minor_diameter(d, pitch) == pytest.approx(d1, abs=5e-4)


@pytest.mark.parametrize(("d", "pitch", "d2", "d1"), PUBLISHED[::2])
def test_a_screw_motion_leaves_the_distance(d, pitch, d2, d1):
    """Rotate by an angle and shift by P angle / 2 pi; no other axial shift keeps distances."""
    x = RNG.uniform(-0.6 * d, 0.6 * d, (500, 3))
    angle = 2.1
    c, s = np.cos(angle), np.sin(angle)
    moved = np.stack([c * x[:, 0] - s * x[:, 1], s * x[:, 0] + c * x[:, 1], x[:, 2]], 1)
    moved[:, 2] += pitch * angle / (2 * np.pi)
    distance = jax.jit(lambda p: thread_distance(tuple(p.T), d, pitch))
    distances = lambda p: np.asarray(distance(p.astype(np.float32)))
    # The tolerance is 24 bits of positions of up to 0.6 d, at slope one.
    np.testing.assert_allclose(distances(moved), distances(x), atol=1e-5 * d)
    assert np.abs(distances(x + np.array([0, 0, pitch / 3])) - distances(x)).max() > 0.1 * pitch


@pytest.mark.parametrize(("d", "pitch", "d2", "d1"), PUBLISHED[::2])
def test_the_thread_is_as_far_as_its_surface(d, pitch, d2, d1):
    """Profiles are cut across the axis: errors are the lead angle's square, 3e-3, and spacing."""
    # The profile of ISO 68-1 consists of crest, flank and root.
    v = np.array([-1 / 2, -3 / 8, -1 / 16, 1 / 16, 3 / 8, 1 / 2]) * pitch
    radius = np.array([d1, d1, d, d, d1, d1]) / 2
    along = np.linspace(v[0], v[-1], 400)
    rho = np.interp(along, v, radius)
    angle = np.linspace(-0.25, 0.25, 500)
    grid = [
        np.broadcast_arrays(rho[:, None], angle, along[:, None] + k * pitch) for k in (-1, 0, 1)
    ]
    cloud = np.concatenate(
        [
            np.stack([r * np.cos(a), r * np.sin(a), z + pitch * a / (2 * np.pi)], -1).reshape(-1, 3)
            for r, a, z in grid
        ]
    )
    out = RNG.uniform(d1 / 2 - 0.3 * pitch, d / 2 + 0.3 * pitch, 1500)
    x = np.stack([out, 0 * out, RNG.uniform(-pitch / 2, pitch / 2, 1500)], 1)
    near, _ = cKDTree(cloud[np.abs(cloud[:, 2]) < pitch]).query(x)
    distance = jax.jit(lambda p: thread_distance(tuple(p.T), d, pitch))
    got = np.asarray(distance(x.astype(np.float32)))
    inside = out < np.interp(x[:, 2], v, radius)
    assert ((got < 0) == inside)[np.abs(got) > 1e-4].all()
    # The tolerance is half the spacing, 0.5 / 499 d / 4, plus 2e-3 of distances of up to 0.4 pitch.
    np.testing.assert_allclose(np.abs(got), near, atol=0.5 / 499 * d / 4 + 2e-3 * 0.4 * pitch)


def test_a_nut_runs_freely_on_its_bolt_and_in_step_alone():
    """Both are coaxial: the minimum gap is half the clearance; half a pitch off they overlap."""
    d, pitch, play = 0.016, 0.002, 4e-4
    nut, bolt = Nut(d + play, pitch, 0.0074, 0.012), Bolt(d, pitch, 0.02)
    r, t, z = RNG.uniform((0.0065, -np.pi, -0.006), (0.0085, np.pi, 0.006), (20000, 3)).T
    x = np.stack([r * np.cos(t), r * np.sin(t), z], 1)
    off = x + np.array([0, 0, pitch / 2])

    @jax.jit
    def distances(x, off):
        return nut.distance(tuple(x.T)), bolt.distance(tuple(x.T)), bolt.distance(tuple(off.T))

    of_nut, of_bolt, of_turned = map(
        np.asarray, distances(x.astype(np.float32), off.astype(np.float32))
    )
    # No point is inside both, and the two distances sum to at least the gap between them.
    assert (of_nut + of_bolt).min() > 0.45 * play * np.sin(np.pi / 6)
    assert ((of_nut < 0) & (of_turned < 0)).any()
