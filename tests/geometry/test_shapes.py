"""Signed distances: their sign, and gradients that lead to the surface."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.geometry import sdf

SURFACES = {
    "sphere": (sdf.Ball(0.7), lambda x, y, z: x**2 + y**2 + z**2 < 0.49),
    "box": (
        sdf.Box((0.5, 0.3, 0.8)),
        lambda x, y, z: (abs(x) < 0.5) & (abs(y) < 0.3) & (abs(z) < 0.8),
    ),
    "capsule": (
        sdf.Capsule(0.4, 0.3),
        lambda x, y, z: x**2 + y**2 + np.maximum(abs(z) - 0.4, 0) ** 2 < 0.09,
    ),
    "cylinder": (
        sdf.Cylinder(0.4, 0.3),
        lambda x, y, z: (np.hypot(x, y) < 0.3) & (abs(z) < 0.4),
    ),
    "torus": (
        sdf.Torus(0.6, 0.2),
        lambda x, y, z: (np.hypot(x, y) - 0.6) ** 2 + z**2 < 0.04,
    ),
    "plate": (
        sdf.HoledPlate(0.5, 0.4),
        lambda x, y, z: (np.hypot(x, y) > 0.5) & (z < 0) & (z > -0.4),
    ),
    "half space": (
        sdf.HalfSpace((0.6, 0.0, 0.8), 0.1),
        lambda x, y, z: 0.6 * x + 0.8 * z < 0.1,
    ),
}


@pytest.mark.parametrize("name", SURFACES)
def test_sign_and_size(name):
    """Distances are negative exactly inside; outside, a step of that length ends on the surface."""
    shape, inside = SURFACES[name]

    @jax.jit
    def measure(points):
        """Return the distances, their gradients, and the distances of the nearest points."""
        distance = lambda p: shape.distance(tuple(p.T))
        d, pull = jax.vjp(distance, points)
        (step,) = pull(jnp.ones_like(d))
        return d, step, distance(points - d[:, None] * step)

    points = np.random.default_rng(0).uniform(-1, 1, (400, 3)).astype(np.float32)
    points[0] = 0  # a centre or an edge
    d, step, foot = map(np.asarray, measure(points))
    np.testing.assert_array_equal(d[1:] < 0, inside(*points.T)[1:])
    assert np.all(np.isfinite(step))
    outside = d > 1e-3
    outside[0] = False
    np.testing.assert_allclose(np.linalg.norm(step[outside], axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(foot[outside], 0, atol=2e-6)  # exact distances end on the surface


@pytest.mark.parametrize(
    "shape, turned",
    [
        (sdf.Capsule(0.4, 0.3), sdf.Capsule(0.4, 0.3, axis=1)),
        (sdf.Cylinder(0.4, 0.3), sdf.Cylinder(0.4, 0.3, axis=1)),
        (sdf.Torus(0.6, 0.2), sdf.Torus(0.6, 0.2, axis=1)),
        (sdf.HoledPlate(0.5, 0.4), sdf.HoledPlate(0.5, 0.4, axis=1)),
    ],
)
def test_the_axis_is_z_unless_another_is_named(shape, turned):
    x, y, z = np.random.default_rng(2).uniform(-1, 1, (3, 50)).astype(np.float32)
    three = jax.jit(
        lambda x, y, z: (
            turned.distance((x, z, y)),
            turned.distance((x, y, z)),
            shape.distance((x, y, z)),
        )
    )
    along, across, want = three(x, y, z)
    np.testing.assert_allclose(along, want, atol=1e-6)
    assert np.abs(across - want).max() > 0.1
