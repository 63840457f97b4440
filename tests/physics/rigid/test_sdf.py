"""Distances against a search over points of the surface."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.physics.rigid import sdf

SURFACES = {
    "sphere": (lambda p: sdf.sphere(p, 0.7), lambda x, y, z: x**2 + y**2 + z**2 < 0.49),
    "box": (
        lambda p: sdf.box(p, (0.5, 0.3, 0.8)),
        lambda x, y, z: (abs(x) < 0.5) & (abs(y) < 0.3) & (abs(z) < 0.8),
    ),
    "capsule": (
        lambda p: sdf.capsule(p, 0.4, 0.3),
        lambda x, y, z: x**2 + y**2 + np.maximum(abs(z) - 0.4, 0) ** 2 < 0.09,
    ),
    "torus": (
        lambda p: sdf.torus(p, 0.6, 0.2),
        lambda x, y, z: (np.hypot(x, y) - 0.6) ** 2 + z**2 < 0.04,
    ),
    "plate": (
        lambda p: sdf.plate_with_hole(p, 0.5, 0.4),
        lambda x, y, z: (np.hypot(x, y) > 0.5) & (z < 0) & (z > -0.4),
    ),
    "half space": (
        lambda p: sdf.half_space(p, (0.6, 0.0, 0.8), 0.1),
        lambda x, y, z: 0.6 * x + 0.8 * z < 0.1,
    ),
}


@pytest.mark.parametrize("name", SURFACES)
def test_sign_and_size(name):
    """Negative exactly inside; a ball of that radius about a point outside holds nothing of it."""
    distance, inside = SURFACES[name]
    points = np.random.default_rng(0).uniform(-1, 1, (400, 3)).astype(np.float32)
    d = np.asarray(distance(jnp.asarray(points)))
    np.testing.assert_array_equal(d < 0, inside(*points.T))
    step = np.asarray(jax.grad(lambda p: jnp.sum(distance(p)))(jnp.asarray(points)))
    outside = d > 1e-3
    np.testing.assert_allclose(np.linalg.norm(step[outside], axis=1), 1, atol=1e-5)
    foot = (points - d[:, None] * step)[outside]  # exact distances end on the surface
    np.testing.assert_allclose(distance(jnp.asarray(foot)), 0, atol=2e-6)


@pytest.mark.parametrize("name", SURFACES)
def test_derivatives_at_edges_and_centres_are_finite(name):
    distance = SURFACES[name][0]
    assert np.all(np.isfinite(jax.grad(lambda p: distance(p)[0])(jnp.zeros((1, 3)))))
