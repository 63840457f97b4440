"""Volume correction of liquids towards the grid's density: how much volume they keep."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from continuum_run import jit_unoptimized
from scipy.interpolate import BSpline
from scipy.ndimage import minimum_filter

from jaxgpu.geometry import sdf
from jaxgpu.physics.continuum import Body, Collider, Grid, Scene, fill_box, simulate
from jaxgpu.physics.continuum.grid.transfer import p2g
from jaxgpu.physics.continuum.grid.volume import volume_excess
from jaxgpu.physics.continuum.materials import HerschelBulkley, Liquid

G = 9.81


def height(s):
    """Return twice the mean height of the first body in m."""
    return 2 * jnp.sum(s.bodies[0].m * s.bodies[0].x[:, 1]) / jnp.sum(s.bodies[0].m)


def depth(scene, t):
    """Return twice the mean height of the first body in m, over the last quarter of t."""
    return simulate(scene, t, frames=80, measure=height).history[-20:].mean()


def dam_depth(held, t=12.0, jitter=0.5, viscosity=3.0):
    """Return the relative depth of a column of 5 x 14 cells that broke in a box of 10."""
    dx = 1 / 16
    x = np.asarray(fill_box((0.0, 0.0), (5 * dx, 14 * dx), dx / 2))
    x = x + np.random.default_rng(0).uniform(-jitter, jitter, x.shape) * dx / 2
    x = jnp.asarray(np.clip(x, 0.02 * dx, None), jnp.float32)
    water = Liquid(1000 * 100 * 2 * G * 14 * dx, viscosity, volume_correction=held)
    scene = Scene((Body(x, water, (dx / 2) ** 2),), Grid(dx, (10, 18)), (0.0, -G))
    return depth(scene, t) / (7 * dx)


@pytest.mark.slow
def test_a_thin_liquid_that_broke_keeps_its_volume():
    assert dam_depth(None) < 0.95
    assert abs(dam_depth(0.01) - 1) < 0.01


def pour_depth(held, t):
    """Return the relative depth of the liquid poured by a rotating glass of 13 x 12 cells."""
    dx = 0.006
    radius, half, middle = 6.5 * dx, 7 * dx, (16 * dx, 34 * dx)
    outer = sdf.Moved(sdf.Box((radius + 3 * dx, half + 1.5 * dx)), (0.0, -1.5 * dx))
    inner = sdf.Moved(sdf.Box((radius, half + 3 * dx)), (0.0, 3 * dx))
    glass = Collider(sdf.Intersection((outer, sdf.Complement(inner))), middle, spin=-3.0)
    low = middle[0] - radius, middle[1] - half
    x = fill_box(low, (low[0] + 13 * dx, low[1] + 12 * dx), dx / 2)
    oil = Liquid(1000 * 8.0**2, 0.5, exponent=1.0, volume_correction=held)
    body = Body(x, oil, (dx / 2) ** 2)
    scene = Scene((body,), Grid(dx, (32, 52)), (0.0, -G), (glass,))
    return depth(scene, t) / (len(x) / 4 * dx / 32)


@pytest.mark.slow
@pytest.mark.release
def test_liquid_poured_from_a_glass_keeps_its_volume():
    assert abs(pour_depth(None, 5.0) - 1) > 0.03
    assert abs(pour_depth(0.01, 10.0) - 1) < 0.01


def pour_depth_3d(held, t, sharp=None):
    """Return depth and filling of the lower four cells, after a rotating glass of 11 x 12.5 cells.

    Both are relative to the exact values. Only the depth includes the surface's roughness.
    """
    dx, cells = 0.006, (16, 34, 12)
    radius, half, middle = 5.5 * dx, 6.25 * dx, (8 * dx, 24 * dx, 6 * dx)
    outer = sdf.Moved(sdf.Cylinder(half + 1.5 * dx, radius + 3 * dx, axis=1), (0.0, -1.5 * dx, 0.0))
    inner = sdf.Moved(sdf.Cylinder(half + 3 * dx, radius, axis=1), (0.0, 3 * dx, 0.0))
    glass = sdf.Intersection((outer, sdf.Complement(inner)))
    round_ = sdf.Moved(sdf.Cylinder(1.0, radius, axis=1), (middle[0], 0.0, middle[2]))
    lower = middle[0] - radius, middle[1] - half, middle[2] - radius
    upper = tuple(a + b for a, b in zip(lower, (2 * radius, 10.5 * dx, 2 * radius)))
    x = fill_box(lower, upper, dx / 2, round_)
    body = Body(x, Liquid(1000 * 8.0**2, 0.5, exponent=1.0, volume_correction=held), (dx / 2) ** 3)
    tool = Collider(glass, middle, spin=(0.0, 0.0, -3.0))
    scene = Scene((body,), Grid(dx, cells), (0.0, -G, 0.0), (tool,), sharp=sharp)
    count_low = lambda s: jnp.sum((s.bodies[0].m > 0) & (s.bodies[0].x[:, 1] < 4 * dx))
    run = simulate(scene, t, frames=80, measure=lambda s: (height(s), count_low(s)))
    depth, filled = (a[-20:].mean() for a in run.history)
    return depth / (len(x) / 8 * dx / (16 * 12)), filled / (8 * 4 * 16 * 12)


@pytest.mark.slow
@pytest.mark.release
def test_liquid_poured_in_space_keeps_its_volume():
    assert abs(pour_depth_3d(None, 6.0, sharp=False)[0] - 1) > 0.03
    depth, filled = pour_depth_3d(0.01, 4.0, sharp=False)
    assert abs(depth - 1) < 0.01 and abs(filled - 1) < 0.01
    # Sharp transfers flatten a surface at the liquid's rate: it is 0.07 of a cell higher and rough.
    depth, filled = pour_depth_3d(0.01, 4.0)
    assert abs(depth - 1) < 0.015 and abs(filled - 1) < 0.01


def test_a_plane_that_cuts_a_spline_asks_for_nothing():
    share = BSpline.basis_element([-1.5, -0.5, 0.5, 1.5]).antiderivative()
    share_below = lambda s: share(np.clip(s, -1.5, 1.5))  # of a spline whose node is s within
    s = np.linspace(-3, 3, 2001)
    assert (1 - share_below(s) <= (1 - share_below(s - 1)) ** 4 + 1e-12).all()


def test_a_void_and_a_crowd_are_seen_where_the_box_is_full(x64):
    grid = Grid(0.1, (8, 8))
    x = np.asarray(fill_box((0.0, 0.0), (0.8, 0.8), 0.05), float)

    @jit_unoptimized
    def excess_at(x, shares):
        at = [grid.coordinate(x[:, i], i)[None] for i in range(2)]
        zero = jnp.zeros_like(at[0])
        field = p2g(at, [zero, zero, zero + 0.05**2, *[zero] * 4], grid.shape)[:, 2]
        return jax.vmap(lambda share: volume_excess(share * field, grid))(shares)

    shares = np.array([0.9, 1.0, 1.2])
    for share, e in zip(shares, np.asarray(excess_at(x, shares))):
        exact = share - 1 if share > 1 else share - 1 + (1 - share) ** 4
        # The lattice points are float32 values.
        np.testing.assert_allclose(e.reshape(grid.shape)[1:-1, 1:-1], exact, atol=1e-6)


def test_the_emptiest_neighbour_is_looked_for_along_every_axis(x64):
    """Compare with SciPy's filter, where no face is near."""
    grid, inside = Grid(0.5, (12, 13, 14)), (slice(7, -7),) * 3
    phi = np.random.default_rng(0).uniform(0.6, 1.1, grid.shape)
    e = jit_unoptimized(lambda a: volume_excess(a, grid))(phi.ravel() * 0.5**3).reshape(grid.shape)
    gap = np.maximum(1 - minimum_filter(phi, 3), 0)
    want = np.maximum(phi - 1, 0) + np.minimum(phi - 1 + gap**4, 0)
    np.testing.assert_allclose(e[inside], want[inside], atol=1e-12)


@pytest.mark.parametrize(
    "law", [Liquid(volume_correction=0.01), HerschelBulkley(volume_correction=0.01)]
)
def test_the_volume_ratio_comes_to_that_of_the_grid_at_its_rate(x64, law):
    start, e = np.array([1.0, 1.2, 0.99, 0.99]), np.array([0.05, -0.2, 0.0, 0.005])

    @jit_unoptimized
    def relax_volume(cells, steps):
        relax_once = lambda _, J: law.correct_volume(J, e, cells)
        return jax.lax.fori_loop(0, steps, relax_once, jnp.asarray(start))

    np.testing.assert_allclose(
        relax_volume(0.4, 100), relax_volume(0.1, 400), rtol=1e-4
    )  # for any dt
    np.testing.assert_allclose(relax_volume(40.0, 100)[:2], 1 / (1 + e[:2]), rtol=1e-6)
    np.testing.assert_allclose(
        relax_volume(40.0, 100)[2:], 0.99
    )  # between rest and its own pressure

    away = np.array([1.0, 1.2, 0.97, 0.98]), np.array([0.06, -0.1, 0.1, -0.05])
    way = np.array([0.3, -0.7, 0.5, 0.2]), np.array([-0.4, 0.6, 0.1, 0.8])

    @jit_unoptimized
    def line_slopes(h):
        """Return the value and its first and second derivatives along a line, by both modes."""
        line = lambda h: law.correct_volume(*(a + h * b for a, b in zip(away, way)), 30.0)
        tangent = lambda f: lambda h: jax.jvp(f, (h,), (1.0,))[1]
        back = jax.grad(lambda h: jnp.sum(line(h)))
        return line(h), tangent(line)(h), tangent(tangent(line))(h), (back(h), tangent(back)(h))

    h = 1e-5
    (behind, slope_behind, *_), (ahead, slope_ahead, *_) = line_slopes(-h), line_slopes(h)
    _, slope, curvature, sums = line_slopes(0.0)
    np.testing.assert_allclose(slope, (ahead - behind) / (2 * h), rtol=1e-5)
    np.testing.assert_allclose(curvature, (slope_ahead - slope_behind) / (2 * h), rtol=1e-5)
    np.testing.assert_allclose(sums, [slope.sum(), curvature.sum()], rtol=1e-10)


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
