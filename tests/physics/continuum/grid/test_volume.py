"""Liquids whose volume is led to the density of the grid: how much volume they keep."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from scipy.interpolate import BSpline
from scipy.ndimage import minimum_filter

from jaxgpu.geometry import sdf
from jaxgpu.physics.continuum import (
    Body,
    Collider,
    Grid,
    HerschelBulkley,
    Liquid,
    Scene,
    fill_box,
    simulate,
)
from jaxgpu.physics.continuum.grid.transfer import spread
from jaxgpu.physics.continuum.grid.volume import excess

G = 9.81


def depth(scene, t):
    """Twice the mean height of the first body, m, over the last quarter of t."""
    height = lambda s: 2 * jnp.sum(s.bodies[0].m * s.bodies[0].x[:, 1]) / jnp.sum(s.bodies[0].m)
    return simulate(scene, t, frames=80, measure=height).history[-20:].mean()


def broken(jitter, held, viscosity, t):
    """Depth of a column of 12 x 16 cells that broke in a box of 32, over what it should be."""
    dx = 1 / 32
    x = np.asarray(fill_box((0.0, 0.0), (12 * dx, 16 * dx), dx / 2))
    x = x + np.random.default_rng(0).uniform(-jitter, jitter, x.shape) * dx / 2
    x = jnp.asarray(np.clip(x, 0.02 * dx, None), jnp.float32)
    water = Liquid(1000 * 100 * 2 * G * 16 * dx, viscosity, volume_correction=held)
    scene = Scene((Body(x, water, (dx / 2) ** 2),), Grid(dx, (32, 24)), (0.0, -G))
    return depth(scene, t) / (6 * dx)


@pytest.mark.slow
def test_a_broken_dam_keeps_its_volume():
    assert broken(0.5, None, 30.0, 8.0) < 0.98
    assert abs(broken(0.5, 0.01, 30.0, 8.0) - 1) < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("jitter", [0.0, 0.5, 0.9])
def test_a_thin_liquid_that_broke_keeps_its_volume(jitter):
    assert broken(jitter, None, 3.0, 15.0) < 0.95
    assert abs(broken(jitter, 0.01, 3.0, 30.0) - 1) < 0.01


def poured(held, t):
    """Depth of what a turning glass of 13 x 12 cells poured, over what it should be."""
    dx = 0.006
    radius, half, middle = 6.5 * dx, 7 * dx, (16 * dx, 34 * dx)
    outer = sdf.Moved(sdf.Box((radius + 3 * dx, half + 1.5 * dx)), (0.0, -1.5 * dx))
    inner = sdf.Moved(sdf.Box((radius, half + 3 * dx)), (0.0, 3 * dx))
    glass = Collider(sdf.Intersection((outer, sdf.Outside(inner))), middle, spin=-3.0)
    low = middle[0] - radius, middle[1] - half
    x = fill_box(low, (low[0] + 13 * dx, low[1] + 12 * dx), dx / 2)
    oil = Liquid(1000 * 8.0**2, 0.5, exponent=1.0, volume_correction=held)
    body = Body(x, oil, (dx / 2) ** 2)
    scene = Scene((body,), Grid(dx, (32, 52)), (0.0, -G), (glass,))
    return depth(scene, t) / (len(x) / 4 * dx / 32)


@pytest.mark.slow
def test_liquid_poured_from_a_glass_keeps_its_volume():
    assert abs(poured(None, 5.0) - 1) > 0.03
    assert abs(poured(0.01, 10.0) - 1) < 0.01


def poured_in_space(held, t, sharp=None):
    """What a turning glass of 11 x 12.5 cells poured: depth, and filling of its lower four cells.

    Both over what they should be; the first counts how rough the surface is, the second does not.
    """
    dx, cells = 0.006, (16, 34, 12)
    radius, half, middle = 5.5 * dx, 6.25 * dx, (8 * dx, 24 * dx, 6 * dx)
    outer = sdf.Moved(sdf.Cylinder(half + 1.5 * dx, radius + 3 * dx, axis=1), (0.0, -1.5 * dx, 0.0))
    inner = sdf.Moved(sdf.Cylinder(half + 3 * dx, radius, axis=1), (0.0, 3 * dx, 0.0))
    glass = sdf.Intersection((outer, sdf.Outside(inner)))
    round_ = sdf.Moved(sdf.Cylinder(1.0, radius, axis=1), (middle[0], 0.0, middle[2]))
    lower = middle[0] - radius, middle[1] - half, middle[2] - radius
    upper = tuple(a + b for a, b in zip(lower, (2 * radius, 10.5 * dx, 2 * radius)))
    x = fill_box(lower, upper, dx / 2, round_)
    body = Body(x, Liquid(1000 * 8.0**2, 0.5, exponent=1.0, volume_correction=held), (dx / 2) ** 3)
    tool = Collider(glass, middle, spin=(0.0, 0.0, -3.0))
    scene = Scene((body,), Grid(dx, cells), (0.0, -G, 0.0), (tool,), sharp=sharp)
    height = lambda s: 2 * jnp.sum(s.bodies[0].m * s.bodies[0].x[:, 1]) / jnp.sum(s.bodies[0].m)
    low = lambda s: jnp.sum((s.bodies[0].m > 0) & (s.bodies[0].x[:, 1] < 4 * dx))
    run = simulate(scene, t, frames=80, measure=lambda s: (height(s), low(s)))
    depth, filled = (a[-20:].mean() for a in run.history)
    return depth / (len(x) / 8 * dx / (16 * 12)), filled / (8 * 4 * 16 * 12)


@pytest.mark.slow
@pytest.mark.release
def test_liquid_poured_in_space_keeps_its_volume():
    assert abs(poured_in_space(None, 6.0, sharp=False)[0] - 1) > 0.03
    depth, filled = poured_in_space(0.01, 4.0, sharp=False)
    assert abs(depth - 1) < 0.01 and abs(filled - 1) < 0.01


@pytest.mark.slow
@pytest.mark.release
def test_liquid_poured_in_space_by_sharp_transfers_has_a_rough_surface_alone():
    """They flatten it at the liquid's own rate: it is 0.07 of a cell higher, as full below."""
    depth, filled = poured_in_space(0.01, 4.0)
    assert abs(depth - 1) < 0.015 and abs(filled - 1) < 0.01


def test_a_plane_that_cuts_a_spline_asks_for_nothing():
    share = BSpline.basis_element([-1.5, -0.5, 0.5, 1.5]).antiderivative()
    below = lambda s: share(np.clip(s, -1.5, 1.5))  # of a spline whose node is s within
    s = np.linspace(-3, 3, 2001)
    assert (1 - below(s) <= (1 - below(s - 1)) ** 4 + 1e-12).all()


def test_a_void_and_a_crowd_are_seen_where_the_box_is_full(x64):
    grid = Grid(0.1, (8, 8))
    x = fill_box((0.0, 0.0), (0.8, 0.8), 0.05).astype(jnp.float64)
    at = [grid.coordinate(x[:, i], i)[None] for i in range(2)]
    zero = jnp.zeros_like(at[0])
    field = spread(at, [zero, zero, zero + 0.05**2, *[zero] * 4], grid.shape)[:, 2]
    for share in (0.9, 1.0, 1.2):
        e = np.asarray(excess(share * field, grid)).reshape(grid.shape)[1:-1, 1:-1]
        exact = share - 1 if share > 1 else share - 1 + (1 - share) ** 4
        np.testing.assert_allclose(e, exact, atol=1e-6)  # the lattice is float32's


def test_the_emptiest_neighbour_is_looked_for_along_every_axis(x64):
    """By SciPy's filter, where no face is near."""
    grid, inside = Grid(0.5, (12, 13, 14)), (slice(7, -7),) * 3
    phi = np.random.default_rng(0).uniform(0.6, 1.1, grid.shape)
    e = excess(jnp.asarray(phi.ravel() * 0.5**3), grid).reshape(grid.shape)
    gap = np.maximum(1 - minimum_filter(phi, 3), 0)
    want = np.maximum(phi - 1, 0) + np.minimum(phi - 1 + gap**4, 0)
    np.testing.assert_allclose(e[inside], want[inside], atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    "law", [Liquid(volume_correction=0.01), HerschelBulkley(volume_correction=0.01)]
)
def test_the_volume_ratio_comes_to_that_of_the_grid_at_its_rate(x64, law):
    start, e = jnp.asarray([1.0, 1.2, 0.99, 0.99]), jnp.asarray([0.05, -0.2, 0.0, 0.005])

    def after(cells, steps):
        J = start
        for _ in range(steps):
            J = law.correct_volume(J, e, cells)
        return J

    np.testing.assert_allclose(after(0.4, 100), after(0.1, 400), rtol=1e-4)  # whatever dt
    np.testing.assert_allclose(after(40.0, 100)[:2], 1 / (1 + e[:2]), rtol=1e-6)
    np.testing.assert_allclose(after(40.0, 100)[2:], 0.99)  # between rest and its own pressure
    away = jnp.asarray([1.0, 1.2, 0.97, 0.98]), jnp.asarray([0.06, -0.1, 0.1, -0.05])
    check_grads(lambda J, e: law.correct_volume(J, e, 30.0), away, order=2, rtol=1e-5)


def test_what_cannot_be_held_is_refused():
    x = fill_box((0.2, 0.2), (0.4, 0.4), 0.05)
    body = Body(x, Liquid(volume_correction=0.01), 0.05**2, density=jnp.full(len(x), 1000.0))
    scene = Scene((body,), Grid(0.1, (8, 8)))
    with pytest.raises(ValueError, match="must be one number"):
        scene.prepare()
    body = dataclasses.replace(body, density=1000.0, material=Liquid(volume_correction=-1.0))
    with pytest.raises(
        ValueError, match="volume_correction=-1; it must be a finite number of at least 0"
    ):
        dataclasses.replace(scene, bodies=(body,)).prepare()
