"""Sampled distances: exact where they are linear. Tools push alike for a distance of any slope."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu.geometry import sdf
from jaxgpu.physics.continuum import Collider
from jaxgpu.physics.continuum.tools.contact import apply_contact


def test_a_sampled_plane_is_the_plane_inside_and_no_nearer_outside(x64):
    rng = np.random.default_rng(0)
    n, lower, h = rng.normal(size=3), np.array([-0.4, 0.1, -1.0]), 0.13
    n /= np.linalg.norm(n)
    points = np.stack(np.meshgrid(*(a + h * np.arange(7) for a in lower), indexing="ij"), -1)
    made = sdf.Voxels(jnp.asarray(points @ n), lower, h)
    x = lower + 6 * h * rng.uniform(size=(200, 3))

    @jax.jit
    def value_slope(x):
        value, pull = jax.vjp(made.distance, x)
        return value, pull(jnp.ones_like(value))[0]

    value, slope = value_slope(tuple(jnp.asarray(x.T)))
    np.testing.assert_allclose(value, x @ n, atol=1e-14)
    np.testing.assert_allclose(np.stack(slope, 1), np.broadcast_to(n, (200, 3)), atol=1e-13)
    # Outside the grid, the result is the distance at its rim plus the distance to the rim.
    out = lower + 6 * h * rng.uniform(1.1, 2, size=(200, 3))
    rim = np.clip(out, lower, lower + 6 * h)
    far = value_slope(tuple(jnp.asarray(out.T)))[0]
    np.testing.assert_allclose(far, rim @ n + np.linalg.norm(out - rim, axis=1), atol=1e-13)


def test_a_distance_of_any_slope_pushes_along_its_unit_normal():
    class Half(sdf.HalfSpace):
        def distance(self, x):
            return 0.5 * super().distance(x)

    rng = np.random.default_rng(1)
    nodes, v = (tuple(jnp.asarray(rng.uniform(-1, 1, (2, 50)), jnp.float32)) for _ in range(2))
    outcomes = []
    for shape in (sdf.HalfSpace((0.3, 1.0)), Half((0.3, 1.0))):
        tool = Collider(shape, x=(0.1, 0.2), friction=0.4)
        outcomes.append(
            apply_contact(tool, tool.start(jnp.float32), nodes, v, jnp.ones(50), 0.0, 1e-3)
        )
    for a, b in zip(*(jax.tree.leaves(o) for o in outcomes)):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)
    assert float(jnp.linalg.norm(outcomes[0][1])) > 1
