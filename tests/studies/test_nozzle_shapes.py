"""The study `nozzle-shapes`: gradients of shapes, the polish of a front, and its report."""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu import report
from jaxgpu.evolution import Box, Problem
from jaxgpu.physics.continuum.tools.contact import apply_contact
from jaxgpu.runs.loop import rollout
from jaxgpu.studies import nozzle_shapes
from jaxgpu.studies.nozzle_shapes.nozzle import DT, DX, Pour, Walls
from jaxgpu.studies.nozzle_shapes.polish import Polish, descent, measure
from jaxgpu.studies.nozzle_shapes.race import Race

WIDTHS = (0.071, 0.057, 0.043, 0.032)  # m


def test_the_gradient_of_a_shape_is_that_of_finite_differences():
    """The momentum that falling nodes lose to the walls depends smoothly on every half width."""
    with jax.enable_x64(True):
        nodes = tuple(jnp.asarray(a) for a in np.random.default_rng(0).uniform(0, 0.3, (2, 300)))
        v = jnp.zeros(300) + 0.3, jnp.zeros(300) - 1.0

        @jax.jit
        def impulse(widths):
            collider = Pour(spacing=0.02).scene(widths).colliders[0]
            tool = collider.start(widths.dtype)
            return apply_contact(collider, tool, nodes, v, jnp.ones(300), DX, DT)[1].sum()

        slopes, measured = slope_and_differences(impulse)
    assert (np.abs(slopes) > 1).all()
    np.testing.assert_allclose(slopes, measured, rtol=1e-5)


def slope_and_differences(function):
    """Return the gradient at WIDTHS, and central differences over a micrometre."""
    widths = jnp.array(WIDTHS)
    shifts = 1e-6 * np.eye(4)
    measured = [float(function(widths + e) - function(widths - e)) / 2e-6 for e in shifts]
    return np.asarray(jax.jacfwd(function)(widths)), measured


@pytest.mark.slow
def test_the_gradient_runs_through_a_step_of_the_oil():
    with jax.enable_x64(True):
        pour = Pour(spacing=0.02)
        place, fall = jnp.array([[0.0, -0.09]]), jnp.array([[0.0, -1.0]])

        @jax.jit
        def momentum(widths):
            scene = pour.scene(widths)
            state = scene.init()
            oil = state.bodies[0]
            oil = oil.replace(x=oil.x + place, v=oil.v + fall)
            oil = scene.step(replace(state, bodies=(oil,))).bodies[0]
            return jnp.sum(oil.m * oil.v[:, 1])

        slopes, measured = slope_and_differences(momentum)
    assert (np.abs(slopes[:3]) > 10).all() and slopes[3] != 0
    np.testing.assert_allclose(slopes, measured, rtol=1e-5, atol=1e-6)


def test_walls_are_as_far_as_the_nearest_of_their_points():
    walls = Walls((0.09, 0.05, 0.03), (0.30, 0.24, 0.18), 0.008)
    points = np.random.default_rng(0).uniform((-0.09, 0.0), (0.09, 0.4), (50, 2))
    share = np.linspace(0, 1, 2001)
    line = [np.interp(2 * share, [0, 1, 2], ends) for ends in ((0.09, 0.05, 0.03), walls.y)]
    away = np.hypot(*(np.abs(p)[:, None] - q[None] for p, q in zip(points.T, line))).min(1)
    found = walls.distance(tuple(jnp.asarray(points.T, jnp.float32)))
    np.testing.assert_allclose(found, away - 0.008, atol=2e-5)


def test_a_descent_makes_both_objectives_less_and_stays_in_the_box():
    random = np.random.default_rng(0)
    slopes = random.normal(size=(200, 2, 3)).astype(np.float32)
    slopes[0] = [[1, 2, 3], [-2, -4, -6]]  # opposed: nothing makes both less
    x = random.uniform(0.1, 0.9, (200, 3)).astype(np.float32)
    x[1:, 0] = 0
    down = np.asarray(jax.jit(descent)(jnp.asarray(x), jnp.asarray(slopes)))
    assert (down[0] == 0).all() and (down[:, 0] >= 0).all()
    slopes[1:, :, 0] = np.minimum(slopes[1:, :, 0], 0)  # what would lead out of the box is held
    assert np.sum(slopes * down[:, None], -1).max() < 1e-5
    np.testing.assert_allclose(np.sum(down[1:] ** 2, 1), 1, rtol=1e-5)


def two_bowls(x):
    """Return squared distances from two points, whose front is the segment between them."""
    away = x[None] - jnp.array([[0.2, 0.5], [0.8, 0.5]])
    return jnp.sum(away**2, 1)


def test_a_polish_leads_members_to_the_front_and_makes_none_worse():
    x = jax.random.uniform(jax.random.key(2), (8, 2))
    spec = Polish(jnp.zeros(2), jnp.ones(2), two_bowls)
    end, seen = rollout(spec.step, spec.init(x, jax.vmap(two_bowls)(x)), 25, measure=measure)
    # The first step evaluates the members again, in its own program, and moves none.
    assert bool(jnp.all(seen["f"][2:] <= seen["f"][1:-1]))
    assert bool(jnp.all(end.f == seen["f"][-1])) and bool(jnp.all(seen["x"][1] == x))
    # On the front, the roots of the two objectives are distances that sum to that of the points.
    above = jnp.sum(jnp.sqrt(seen["f"]), -1) - 0.6
    assert bool(jnp.all(above[-1] > -1e-6)) and bool(jnp.all(above[-1] < 0.15 * above[0]))


@dataclass(frozen=True)
class Bowls:
    """A fake pour: squares of the weighted distances from two designs, in a box."""

    low = np.array([0.02, 0.03, 0.05], np.float32)
    high = np.array([0.08, 0.05, 0.25], np.float32)
    weight = np.array([3.0, 20.0, 1.0], np.float32)

    def problem(self):
        return Problem(Box(jnp.asarray(self.low), jnp.asarray(self.high)), self.objectives, 2)

    def objectives(self, x):
        away = x[None] - jnp.asarray(np.stack([self.low, self.high]))
        return jnp.sum((jnp.asarray(self.weight)[None] * away) ** 2, 1)


def test_slopes_in_shares_of_the_box_agree_with_differences_in_metres():
    """Central differences of squares are exact, so that a rotated gradient shows its angle."""
    bowls, random = Bowls(), np.random.default_rng(0)
    x = random.uniform(0.2, 0.8, (5, 3)).astype(np.float32)
    width = bowls.high - bowls.low
    away = np.stack([x, x - 1], 1) * width
    slopes = 2 * bowls.weight**2 * away  # [5, 2, 3], of metres
    aside = np.cross(slopes, random.normal(size=slopes.shape))
    aside *= (
        np.linalg.norm(slopes, axis=-1, keepdims=True) / np.linalg.norm(aside, axis=-1)[..., None]
    )
    angle = np.pi / 3 * np.arange(5)[:, None] * np.array([1.0, 0.5])
    turned = np.cos(angle)[..., None] * slopes + np.sin(angle)[..., None] * aside
    turned[-1, 0] = 0  # of which no angle can be told
    state = SimpleNamespace(x=x, slopes=(turned * width).astype(np.float32))
    race = Race(None, {4: SimpleNamespace(state=state)})
    want = np.cos(angle)
    want[-1, 0] = 0
    np.testing.assert_allclose(nozzle_shapes.checks(bowls, race, 4), want, atol=1e-3)


@pytest.mark.slow
@pytest.mark.release
def test_the_study_reports(tmp_path):
    options = nozzle_shapes.Options(seeds=2, pop_size=4, generations=20)
    found = nozzle_shapes.study(options, tmp_path, False)
    lines = found.tables[0].rows
    assert all(0.1 < line[3] < 1 for line in lines)
    assert all(line[5] <= line[4] <= line[6] for line in lines if line[2])
    whole, best, last = (np.array([line[3] for line in lines[i : i + 3]]) for i in (0, 3, 6))
    assert (last <= whole + 1e-6).all() and (best <= whole + 1e-6).all()
    report.save(tmp_path, "nozzle-shapes", options, found)
    assert "image/svg+xml" in report.write(tmp_path).read_text()
