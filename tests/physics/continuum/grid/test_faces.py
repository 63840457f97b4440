"""Faces of the grid: a GPU's lookup for each node equals a CPU's slices for each layer."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from continuum_run import jit_unoptimized

from jaxgpu.physics.continuum import Grid
from jaxgpu.physics.continuum.grid import faces

HALF = (jnp.array(True), jnp.array(False))  # as on a slab, which may have one of two faces


@pytest.mark.parametrize(
    "shape, there",
    [
        pytest.param((8, 11), (True, True), id="(8, 11)-box"),
        pytest.param((8, 11), HALF, id="(8, 11)-slab"),
        pytest.param((10, 9, 12), HALF, id="(10, 9, 12)-slab", marks=pytest.mark.slow),
    ],
)
def test_all_axes_at_once_are_one_after_another(x64, shape, there):
    """Compare values and gradients, with massless nodes; axis 1 sticks and the others slip."""
    d, random = len(shape), np.random.default_rng(1)
    v = jnp.asarray(random.normal(size=(*shape, d)))
    m = jnp.asarray(random.uniform(size=shape) * (random.uniform(size=shape) > 0.3))
    acting = [(i, range(d) if i == 1 else (i,), i != 1, there) for i in range(d)]

    def axis_by_axis(v, m):
        for acts in acting:
            v, m = faces.apply_faces(v, m, *acts), m
        return v, faces.mirror_mass(m, 1, there)

    def all_axes(v, m):
        table = jnp.concatenate([v, m[..., None]], -1)
        new = faces.apply_faces_fused(lambda columns: columns[:d], table, acting)
        return jnp.stack(new, -1), faces.mirror_mass_fused(m, acting[1:2])

    @jit_unoptimized
    def outcomes(v, m):
        def loss(v, m, form):
            found = form(v, m)
            return sum(jnp.sum(a * jnp.cos(a)) for a in found), found

        slope = jax.grad(loss, (0, 1), has_aux=True)
        return slope(v, m, axis_by_axis), slope(v, m, all_axes)

    for want, got in zip(*map(jax.tree.leaves, outcomes(v, m))):
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11)


def test_faces_that_stick_hold_all_of_a_velocity_and_those_that_slip_what_is_across():
    grid = Grid(0.1, (8, 9, 10), faces=("stick", "slip", "periodic"))
    acting = [(axis, list(held), slip) for axis, held, slip, _ in grid.acting_faces]
    assert acting == [(0, [0, 1, 2], False), (1, [1], True)]
