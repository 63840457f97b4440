"""Invalid numbers, times and boxes raise errors, and the selected time step is stable."""

import dataclasses
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from continuum_run import forward, positions
from invalid_scenes import BODY, GRID, assert_refused, change_body

from jaxgpu.physics.continuum import Body, Grid, NeoHookean, Scene, count_lost, fill_box, simulate


@pytest.mark.slow
def test_whole_numbers_lists_and_arrays_are_taken_for_what_they_say():
    grid, law = Grid(1.0, (10, 10)), NeoHookean(1e4)
    x = [[4, 4], [5, 5], [4, 5]]
    forms = (jnp.asarray(x, jnp.float32), jnp.asarray(x), np.asarray(x), x)
    pulls = ((0.0, -9.81), [0.0, -9.81], np.array([0.0, -9.81]), jnp.array([0.0, -9.81]))
    ends = []
    for place, pull in zip(forms, pulls):
        scene = Scene([Body(place, law, 1.0)], grid, gravity=pull)
        ends.append(positions(simulate(scene, 0.1).state.bodies[0]))
    for end in ends[1:]:
        np.testing.assert_array_equal(end, ends[0])


def test_a_number_of_frames_or_a_time_that_is_none_is_refused():
    for t, frames, words in (
        (-1.0, 1, "simulate: t=-1; it must be a finite number above 0, in s"),
        (jnp.inf, 1, "simulate: t=inf; it must be"),
        (jnp.nan, 1, "simulate: t=nan; it must be"),
        (1.0, 2.5, "simulate: frames=2.5 of type float64; it must be a whole number"),
        (1.0, 0, "simulate: frames=0; it must be a whole number of at least 1"),
    ):
        with pytest.raises((ValueError, TypeError), match=re.escape(words)):
            simulate(change_body(), t, frames=frames)


@pytest.mark.parametrize(
    "lower, upper, spacing, words",
    [
        ((0.0, 0.0), (1.0, 1.0), 0.0, "fill_box: spacing=0; it must be a finite number above 0"),
        ((0.0, 0.0), (1.0, 1.0), jnp.nan, "fill_box: spacing=nan; it must be"),
        ((1.0, 1.0), (0.0, 0.0), 0.1, "they must be the lower and the upper corner"),
        ((0.0, 0.0), (1.0, 1.0, 1.0), 0.1, "they must be the lower and the upper corner"),
        ((0.0, jnp.nan), (1.0, 1.0), 0.1, "fill_box: lower=nan at [1]; it must be"),
    ],
)
def test_a_lattice_of_no_box_is_refused(lower, upper, spacing, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        fill_box(lower, upper, spacing)


@pytest.mark.parametrize(
    "fields, words",
    [
        ({"dx": jnp.inf}, "Grid.dx=inf; it must be a finite number above 0, in m"),
        ({"dx": 0.0}, "Grid.dx=0; it must be"),
        ({"cells": (10.5, 10)}, "2 or 3 whole numbers, each of at least 3"),
        ({"cells": 10}, "it must be 2 or 3 whole numbers"),
        ({"lower": (0.0, jnp.nan)}, "Grid.lower=nan at [1]; it must be"),
    ],
)
def test_a_box_that_is_none_is_refused(fields, words):
    with pytest.raises((ValueError, TypeError), match=re.escape(words.replace("Grid.", "Grid: "))):
        Grid(**{"dx": 0.1, "cells": (10, 10)} | fields)
    assert hash(Grid(np.float32(0.5), [4, 4])) == hash(Grid(0.5, (4, 4)))


def test_what_needs_values_says_so_inside_jit():
    with pytest.raises(TypeError, match="prepare: the bodies hold traced values"):
        jax.jit(lambda x: change_body(x=x).prepare().dt)(BODY.x)
    with pytest.raises(ValueError, match="step: the scene has no dt; use scene.prepare()"):
        jax.jit(lambda s: change_body().step(s))(change_body().init())


def test_an_unstable_step_is_refused_with_the_figure():
    limit = 0.8 * 0.1 / float(BODY.material.sound_speed(1000.0))
    scene = Scene((BODY,), GRID, dt=1.01 * limit)
    assert_refused(scene, f"it must lie in (0, {limit:.3g}]")
    assert dataclasses.replace(scene, dt=0.99 * limit).prepare().dt == 0.99 * limit


@pytest.mark.slow
def test_the_limit_is_where_motion_blows_up():
    limit = 0.8 * 0.1 / float(BODY.material.sound_speed(1000.0))
    rng = np.random.default_rng(0)
    v = jnp.asarray(0.05 * rng.normal(size=BODY.x.shape), jnp.float32)
    for factor, stable in ((0.99, True), (2.0, False)):
        scene = Scene((dataclasses.replace(BODY, v=v),), GRID, dt=factor * limit)
        speed = np.max(np.abs(forward(scene, scene.init(), 300).bodies[0].v))
        assert bool(speed < 0.5) == stable  # nan does not count as a small speed


def test_lost_counts_what_is_outside_or_no_number():
    scene = change_body()
    state = scene.init()
    body = state.bodies[0]
    far = body.x.at[0, 0].set(9.0).at[1, 0].set(jnp.nan).at[2, 0].set(-0.05)
    body = body.replace(x=far)
    assert int(count_lost(scene, dataclasses.replace(state, bodies=(body,)))) == 2
    assert int(count_lost(scene, state)) == 0
