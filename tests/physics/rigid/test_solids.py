"""Masses and inertias against sums over random points."""

import numpy as np
import pytest

from jaxgpu.physics.rigid.solids import Solid, solid, weld

INSIDE = {
    "sphere": ((0.3,), lambda x, y, z: x**2 + y**2 + z**2 < 0.09),
    "box": ((0.3, 0.1, 0.4), lambda x, y, z: (abs(x) < 0.3) & (abs(y) < 0.1) & (abs(z) < 0.4)),
    "ellipsoid": (
        (0.3, 0.2, 0.4),
        lambda x, y, z: (x / 0.3) ** 2 + (y / 0.2) ** 2 + (z / 0.4) ** 2 < 1,
    ),
    "cylinder": ((0.2, 0.4), lambda x, y, z: (np.hypot(x, y) < 0.2) & (abs(z) < 0.4)),
    "capsule": (
        (0.2, 0.25),
        lambda x, y, z: np.hypot(np.hypot(x, y), np.maximum(abs(z) - 0.25, 0)) < 0.2,
    ),
}


@pytest.mark.parametrize("kind", INSIDE)
def test_a_solid_is_the_sum_of_its_points(kind):
    """A million points in a cube of side 1: the sums err by about a thousandth."""
    size, inside = INSIDE[kind]
    points = np.random.default_rng(1).uniform(-0.5, 0.5, (1_000_000, 3))
    points = points[inside(*points.T)]
    got = solid(kind, np.array(size), None, 500.0)
    np.testing.assert_allclose(got.mass, 500 * len(points) / 1e6, rtol=0.02)
    moments = np.sum(points**2) * np.eye(3) - points.T @ points
    want = got.mass * moments / len(points)
    np.testing.assert_allclose(got.inertia, want, atol=0.01 * want.max())


def test_two_halves_are_the_whole():
    whole = solid("box", np.array([0.4, 0.2, 0.1]), 3.0, 1.0)
    half = solid("box", np.array([0.2, 0.2, 0.1]), 1.5, 1.0)
    shift = np.array([0.2, 0, 0])
    welded = weld([half.moved(np.eye(3), shift), half.moved(np.eye(3), -shift)])
    np.testing.assert_allclose(welded["mass"], whole.mass)
    np.testing.assert_allclose(welded["com"], 0, atol=1e-16)
    np.testing.assert_allclose(welded["inertia"], whole.inertia, atol=1e-15)


def test_nothing_has_no_mass():
    assert weld([])["mass"] == 0 and weld([Solid(0.0, np.ones(3), np.eye(3))])["mass"] == 0


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="kind='cone'; use one of sphere"):
        solid("cone", np.ones(3), 1.0, 1.0)
    with pytest.raises(ValueError, match="2 sizes for a box; it needs 3"):
        solid("box", np.ones(2), 1.0, 1.0)
