"""Bad input is refused with one clear sentence, and the chosen step is stable."""

import dataclasses
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from continuum_run import positions

from jaxgpu.geometry import sdf
from jaxgpu.physics.continuum import (
    Body,
    Collider,
    Corotated,
    DruckerPrager,
    Grid,
    HerschelBulkley,
    Liquid,
    NeoHookean,
    Scene,
    Snow,
    Soft,
    VonMises,
    count_lost,
    fill_box,
    simulate,
)

GRID = Grid(0.1, (10, 10))
BODY = Body(fill_box((0.3, 0.3), (0.7, 0.7), 0.05), NeoHookean(1e4), 0.05**2)


def refused(scene, words):
    """`prepare` refuses it, in one sentence that holds these words."""
    with pytest.raises((ValueError, TypeError), match=re.escape(words)) as caught:
        scene.prepare()
    assert "\n" not in str(caught.value) and "; " in str(caught.value)


def changed(**fields):
    return Scene((dataclasses.replace(BODY, **fields),), GRID)


def led(shape=None, x=(0.5, 0.5), **fields):
    return Scene((BODY,), GRID, colliders=(Collider(shape or sdf.Ball(0.1), x, **fields),))


def test_scenes_that_cannot_run_are_refused():
    refused(Scene((), GRID), "the scene has no bodies")
    refused(changed(x=jnp.zeros((0, 2))), "bodies[0].x has shape [0, 2]")
    refused(changed(x=jnp.zeros((4, 3))), "must be [N, 2]")
    refused(changed(x=BODY.x.at[3].set(2.0)), "1 of 64 particles are outside the box")
    refused(changed(x=BODY.x.at[5, 0].set(jnp.nan)), "1 of 64 particles are outside the box")
    refused(changed(x=BODY.x.astype(jnp.float16)), "x is float16; it must be float32 or float64")
    refused(changed(v=(jnp.nan, 0.0)), "bodies[0]: Body.v=nan at [0]; it must be a finite number")
    refused(changed(v=jnp.zeros(3)), "bodies[0].v has shape [3]; it must be [] or [2] or [64, 2]")
    refused(changed(volume=0.0), "Body.volume=0; it must be a finite number above 0, in m^3")
    refused(changed(volume=jnp.ones(63)), "volume has shape [63]; it must be [] or [64]")
    refused(changed(density=-1.0), "Body.density=-1; it must be")
    refused(changed(density=jnp.ones(65)), "density has shape [65]; it must be [] or [64]")
    refused(changed(capacity=-1), "Body.capacity=-1; it must be a whole number of at least 0")
    refused(changed(material=3.0), "material is a float; it must have a method `rest`")
    with pytest.raises(ValueError, match="face 'open'"):
        Grid(0.1, (10, 10), faces=("slip", "open"))
    with pytest.raises(ValueError, match="no point of spacing"):
        fill_box((0.0, 0.0), (1.0, 1.0), 0.5, sdf.Ball(0.1))
    with pytest.raises(ValueError, match="the scene has no dt"):
        changed().step(changed().init())


# what a material is given, and what is said of it; each was answered with a number, some with nan
MATERIALS = [
    (NeoHookean(1e4, 0.5), "poisson=0.5; it must be a finite number above -1 and below 0.5"),
    (NeoHookean(jnp.nan), "NeoHookean.young=nan; it must be a finite number above 0, in Pa"),
    (NeoHookean(jnp.full(64, 1e4)), "young=an array of shape [64]; it must be"),
    (Corotated(-1e4), "Corotated.young=-10000; it must be"),
    (Liquid(viscosity=-1.0), "viscosity=-1; it must be a finite number of at least 0, in Pa s"),
    (
        Liquid(volume_correction=-1.0),
        "volume_correction=-1; it must be a finite number of at least 0, or None",
    ),
    (Liquid(exponent=0.0), "exponent=0; it must be a finite number above 0"),
    (Liquid(tension=jnp.inf), "tension=inf; it must be"),
    (HerschelBulkley(index=-1.0), "index=-1; it must be a finite number above 0"),
    (HerschelBulkley(growth=0.0), "growth=0; it must be a finite number above 0, in s"),
    (VonMises(hardening=-1e9), "hardening=-1e+09; it must be a finite number of at least 0"),
    (VonMises(yield_stress=jnp.nan), "yield_stress=nan; it must be"),
    (DruckerPrager(friction_angle=30.0), "friction_angle=30; it must be a finite number of at "
     "least 0 and below 1.5708, in rad"),
    (DruckerPrager(grain=0.0), "grain=0; it must be a finite number above 0, in m, or None"),
    (DruckerPrager(friction_rise=-0.1), "friction_rise=-0.1; it must be"),
    (DruckerPrager(inertial_number=0.0), "inertial_number=0; it must be"),
    (Snow(compression=1.0), "compression=1; it must be a finite number of at least 0 and below 1"),
    (Snow(stretch=-0.1), "stretch=-0.1; it must be"),
    (Snow(hardening=-1.0), "hardening=-1; it must be"),
]  # fmt: skip


@pytest.mark.parametrize("material, words", MATERIALS)
def test_materials_out_of_their_range_are_refused(material, words):
    refused(changed(material=material), words)
    with pytest.raises((ValueError, TypeError), match=re.escape(words)):
        changed(material=material).init()


FREE = {"mass": 1.0, "inertia": 0.1}
TOOLS = [
    (led(mass=0.0, inertia=0.1), "Collider.mass=0; it must be a finite number above 0, in kg"),
    (led(mass=1.0), "has mass but no inertia"),
    (led(inertia=1.0), "has inertia but no mass"),
    (led(**FREE | {"inertia": (1.0, 1.0, 1.0)}), "inertia has shape [3]; it must be [] or [1]"),
    (led(**FREE, x=(2.0, 0.5)), "1 of 1 centres of free tools are outside the box"),
    (led(friction=-0.5), "Collider.friction=-0.5; it must be a finite number of at least 0"),
    (led(friction=jnp.nan), "Collider.friction=nan; it must be"),
    (led(soft=Soft(0.0)), "Soft.length=0; it must be a finite number above 0, in m"),
    (led(soft=Soft(0.1, jnp.nan)), "Soft.rate=nan; it must be"),
    (led(x=(0.5, 0.5, 0.5)), "colliders[0].x has shape [3]; it must be [2]"),
    (led(x=(0.5, jnp.nan)), "Collider.x=nan at [1]; it must be"),
    (led(v=(0.5, jnp.inf)), "Collider.v=inf at [1]; it must be"),
    (led(v=(0.0, 0.0, 0.0)), "colliders[0].v has shape [3]; it must be [] or [2]"),
    (led(spin=jnp.nan), "Collider.spin=nan; it must be"),
    (led(turn=(1.0, 0.0, 0.0, 0.0)), "turn has shape [4]; it must be [1]"),
    (led(sdf.Ball(-0.1)), "Ball.radius=-0.1; it must be a finite number above 0, in m"),
    (led(sdf.Rounded(sdf.Ball(0.1), -1.0)), "Rounded.radius=-1; it must be"),
    (led(sdf.Box((0.1, jnp.nan))), "Box.half=nan at [1]; it must be"),
    (led(sdf.Box((0.1, 0.1, 0.1))), "shape.half has shape [3]; it must be [2]"),
    (
        led(sdf.Union((sdf.Ball(0.1), sdf.Moved(sdf.Ball(0.1), (0.0, 0.0, 1.0))))),
        "offset has shape",
    ),
    (led(sdf.HalfSpace((0.0, 0.0))), "normal has length 0"),
    (led(sdf.Cylinder(0.1, 0.1)), "is a Cylinder in 2-D"),
    (led(sdf.Union(())), "shapes is empty"),
    (led(0.1), "shape is a float; it must have a method `distance`"),
]


@pytest.mark.parametrize("scene, words", TOOLS)
def test_tools_that_would_touch_nothing_or_move_wrongly_are_refused(scene, words):
    refused(scene, words)


def test_turns_and_moments_of_tools_in_space_are_held():
    body = Body(jnp.full((1, 3), 0.5), NeoHookean(1e4), 1e-3)

    def tool(**fields):
        ball = Collider(sdf.Ball(0.1), (0.5, 0.5, 0.5), **fields)
        return Scene((body,), Grid(0.1, (10, 10, 10)), colliders=(ball,))

    refused(tool(turn=(0.0, 0.0, 0.0, 0.0)), "turn=(0.0, 0.0, 0.0, 0.0); it must be a quaternion")
    refused(tool(mass=1.0, inertia=(1.0, 1.0, 3.0)), "no moment may exceed the sum of the other")
    assert tool(mass=1.0, inertia=(1.0, 2.0, 3.0)).prepare().dt > 0  # a plate


SCENES = [
    (Scene(BODY, GRID), "bodies is a Body; it must be a tuple of Body"),
    (Scene((3.0,), GRID), "bodies[0] is a float; it must be a Body"),
    (Scene((BODY,), GRID, gravity=-9.81), "gravity has shape []; it must be 2 numbers"),
    (Scene((BODY,), GRID, gravity=(0.0, 0.0, -9.81)), "gravity has shape [3]; it must be 2 numb"),
    (Scene((BODY,), GRID, gravity=(0.0, jnp.nan)), "Scene.gravity=nan at [1]; it must be"),
    (Scene((BODY,), GRID, gravity=(0.0, -jnp.inf)), "Scene.gravity=-inf at [1]; it must be"),
    (Scene((BODY,), GRID, dt=jnp.nan), "Scene.dt=nan; it must be a finite number above 0, in s"),
    (Scene((BODY,), GRID, dt=-1.0), "Scene.dt=-1; it must be"),
]


@pytest.mark.parametrize("scene, words", SCENES)
def test_scenes_of_other_types_and_shapes_are_refused(scene, words):
    refused(scene, words)


def test_bodies_of_several_dtypes_are_refused(x64):
    other = dataclasses.replace(BODY, x=BODY.x.astype(jnp.float64))
    refused(Scene((BODY, other), GRID), "bodies[1].x is float64 and bodies[0].x is float32")


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
            simulate(changed(), t, frames=frames)


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
    with pytest.raises(TypeError, match="prepare: the bodies hold values that are being traced"):
        jax.jit(lambda x: changed(x=x).prepare().dt)(BODY.x)
    with pytest.raises(ValueError, match="step: the scene has no dt; use scene.prepare()"):
        jax.jit(lambda s: changed().step(s))(changed().init())


def test_an_unstable_step_is_refused_with_the_figure():
    limit = 0.8 * 0.1 / float(BODY.material.sound_speed(1000.0))
    scene = Scene((BODY,), GRID, dt=1.01 * limit)
    refused(scene, f"it must lie in (0, {limit:.3g}]")
    assert dataclasses.replace(scene, dt=0.99 * limit).prepare().dt == 0.99 * limit


@pytest.mark.slow
@pytest.mark.parametrize("factor, stable", [(0.99, True), (2.0, False)])
def test_the_limit_is_where_motion_blows_up(factor, stable):
    limit = 0.8 * 0.1 / float(BODY.material.sound_speed(1000.0))
    rng = np.random.default_rng(0)
    v = jnp.asarray(0.05 * rng.normal(size=BODY.x.shape), jnp.float32)
    scene = Scene((dataclasses.replace(BODY, v=v),), GRID, dt=factor * limit)
    run = jax.jit(lambda s: jax.lax.fori_loop(0, 300, lambda _, s: scene.step(s), s))
    speed = jnp.max(jnp.abs(run(scene.init()).bodies[0].v))
    assert bool(speed < 0.5) == stable  # nan is no small speed


def test_lost_counts_what_is_outside_or_no_number():
    scene = changed()
    state = scene.init()
    body = state.bodies[0]
    far = body.x.at[0, 0].set(9.0).at[1, 0].set(jnp.nan).at[2, 0].set(-0.05)
    body = body.updated(x=far)
    assert int(count_lost(scene, dataclasses.replace(state, bodies=(body,)))) == 2
    assert int(count_lost(scene, state)) == 0


@pytest.mark.slow
def test_a_resumed_run_has_the_bits_of_one_never_stopped(tmp_path):
    scene = Scene((BODY,), GRID, gravity=(0.0, -9.81))
    whole = simulate(scene, 0.1, frames=4)
    dt = 0.1 / 4
    simulate(scene, 2 * dt, frames=2, out=tmp_path)
    resumed = simulate(scene, 4 * dt, frames=4, out=tmp_path, resume=True)
    for a, b in zip(jax.tree.leaves(whole.state), jax.tree.leaves(resumed.state)):
        np.testing.assert_array_equal(a, b)
