"""Invalid scenes, materials and tools raise errors with one clear sentence."""

import dataclasses
import re

import jax.numpy as jnp
import numpy as np
import pytest
from invalid_scenes import BODY, GRID, assert_refused, change_body

from jaxgpu.geometry import sdf
from jaxgpu.physics.continuum import Body, Collider, Grid, Scene, SoftContact, checks, fill_box
from jaxgpu.physics.continuum.materials import Corotated, HerschelBulkley, Liquid, NeoHookean
from jaxgpu.physics.continuum.materials.plastic import DruckerPrager, Snow, VonMises


def with_tool(shape=None, x=(0.5, 0.5), **fields):
    return Scene((BODY,), GRID, colliders=(Collider(shape or sdf.Ball(0.1), x, **fields),))


def test_scenes_that_cannot_run_are_refused():
    assert_refused(Scene((), GRID), "the scene has no bodies")
    assert_refused(change_body(x=jnp.zeros((0, 2))), "bodies[0].x has shape [0, 2]")
    assert_refused(change_body(x=jnp.zeros((4, 3))), "must be [N, 2]")
    assert_refused(change_body(x=BODY.x.at[3].set(2.0)), "1 of 64 particles are outside the box")
    assert_refused(
        change_body(x=BODY.x.at[5, 0].set(jnp.nan)), "1 of 64 particles are outside the box"
    )
    assert_refused(
        change_body(x=BODY.x.astype(jnp.float16)), "x is float16; it must be float32 or float64"
    )
    assert_refused(
        change_body(v=(jnp.nan, 0.0)), "bodies[0]: Body.v=nan at [0]; it must be a finite number"
    )
    assert_refused(
        change_body(v=jnp.zeros(3)), "bodies[0].v has shape [3]; it must be [] or [2] or [64, 2]"
    )
    assert_refused(
        change_body(volume=0.0), "Body.volume=0; it must be a finite number above 0, in m^3"
    )
    assert_refused(change_body(volume=jnp.ones(63)), "volume has shape [63]; it must be [] or [64]")
    assert_refused(change_body(density=-1.0), "Body.density=-1; it must be")
    assert_refused(
        change_body(density=jnp.ones(65)), "density has shape [65]; it must be [] or [64]"
    )
    assert_refused(
        change_body(capacity=-1), "Body.capacity=-1; it must be a whole number of at least 0"
    )
    assert_refused(change_body(material=3.0), "material is a float; it must have a method `rest`")
    with pytest.raises(ValueError, match="face 'open'"):
        Grid(0.1, (10, 10), faces=("slip", "open"))
    with pytest.raises(ValueError, match="no point of spacing"):
        fill_box((0.0, 0.0), (1.0, 1.0), 0.5, sdf.Ball(0.1))
    with pytest.raises(ValueError, match="the scene has no dt"):
        change_body().step(change_body().init())


# Invalid parameters of materials and their messages; each once led to a result, some to nan.
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
    assert_refused(change_body(material=material), words)
    with pytest.raises((ValueError, TypeError), match=re.escape(words)):
        change_body(material=material).init()


FREE = {"mass": 1.0, "inertia": 0.1}
TOOLS = [
    (
        with_tool(mass=0.0, inertia=0.1),
        "Collider.mass=0; it must be a finite number above 0, in kg",
    ),
    (with_tool(mass=1.0), "has mass but no inertia"),
    (with_tool(inertia=1.0), "has inertia but no mass"),
    (
        with_tool(**FREE | {"inertia": (1.0, 1.0, 1.0)}),
        "inertia has shape [3]; it must be [] or [1]",
    ),
    (with_tool(**FREE, x=(2.0, 0.5)), "1 of 1 centres of free tools are outside the box"),
    (with_tool(friction=-0.5), "Collider.friction=-0.5; it must be a finite number of at least 0"),
    (with_tool(friction=jnp.nan), "Collider.friction=nan; it must be"),
    (
        with_tool(soft=SoftContact(0.0)),
        "SoftContact.length=0; it must be a finite number above 0, in m",
    ),
    (with_tool(soft=SoftContact(0.1, jnp.nan)), "SoftContact.rate=nan; it must be"),
    (with_tool(x=(0.5, 0.5, 0.5)), "colliders[0].x has shape [3]; it must be [2]"),
    (with_tool(x=(0.5, jnp.nan)), "Collider.x=nan at [1]; it must be"),
    (with_tool(v=(0.5, jnp.inf)), "Collider.v=inf at [1]; it must be"),
    (with_tool(v=(0.0, 0.0, 0.0)), "colliders[0].v has shape [3]; it must be [] or [2]"),
    (with_tool(spin=jnp.nan), "Collider.spin=nan; it must be"),
    (with_tool(spin=(1.0, 0.0, 0.0)), "colliders[0].spin has shape [3]; it must be [] or [1]"),
    (with_tool(turn=(1.0, 0.0, 0.0, 0.0)), "turn has shape [4]; it must be [1]"),
    (with_tool(sdf.Ball(-0.1)), "Ball.radius=-0.1; it must be a finite number above 0, in m"),
    (with_tool(sdf.Rounded(sdf.Ball(0.1), -1.0)), "Rounded.radius=-1; it must be"),
    (with_tool(sdf.Box((0.1, jnp.nan))), "Box.half=nan at [1]; it must be"),
    (with_tool(sdf.Box((0.1, 0.1, 0.1))), "shape.half has shape [3]; it must be [2]"),
    (
        with_tool(sdf.Union((sdf.Ball(0.1), sdf.Moved(sdf.Ball(0.1), (0.0, 0.0, 1.0))))),
        "offset has shape",
    ),
    (with_tool(sdf.HalfSpace((0.0, 0.0))), "normal has length 0"),
    (with_tool(sdf.Cylinder(0.1, 0.1)), "is a Cylinder in 2-D"),
    (with_tool(sdf.Union(())), "shapes is empty"),
    (with_tool(0.1), "shape is a float; it must have a method `distance`"),
]


@pytest.mark.parametrize("scene, words", TOOLS)
def test_tools_that_would_touch_nothing_or_move_wrongly_are_refused(scene, words):
    assert_refused(scene, words)


def test_turns_and_moments_of_tools_in_space_are_held():
    body = Body(jnp.full((1, 3), 0.5), NeoHookean(1e4), 1e-3)

    def tool(**fields):
        ball = Collider(sdf.Ball(0.1), (0.5, 0.5, 0.5), **fields)
        return Scene((body,), Grid(0.1, (10, 10, 10)), colliders=(ball,))

    assert_refused(
        tool(turn=(0.0, 0.0, 0.0, 0.0)), "turn=(0.0, 0.0, 0.0, 0.0); it must be a quaternion"
    )
    assert_refused(
        tool(mass=1.0, inertia=(1.0, 1.0, 3.0)), "no moment may exceed the sum of the other"
    )
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
    assert_refused(scene, words)


def test_bodies_of_several_dtypes_are_refused(x64):
    other = dataclasses.replace(BODY, x=BODY.x.astype(jnp.float64))
    assert_refused(Scene((BODY, other), GRID), "bodies[1].x is float64 and bodies[0].x is float32")


@pytest.mark.parametrize("form", [list, np.asarray, jnp.asarray], ids=["lists", "numpy", "jax"])
def test_places_that_are_whole_numbers_become_those_of_floating_point(form):
    places = [[0, 1], [1, 0]]
    body = dataclasses.replace(BODY, x=form(places))
    x = checks.check_scene("f", Scene((body,), GRID)).bodies[0].x
    assert jnp.issubdtype(x.dtype, jnp.floating)
    np.testing.assert_array_equal(x, places)
