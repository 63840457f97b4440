"""What a mechanism is: bodies, joints, shapes, motors, in the terms of MuJoCo's compiled model.

Numbers are leaves, so that `vmap` and `grad` reach masses, sizes, friction and gains; what kind of
thing is where is the `Layout`, which is baked into a program. Units are m, kg, s and rad.
"""

import dataclasses
from typing import Any

from jax import Array

from jaxgpu.inputs.fields import number, pytree, static

from .layout import Layout


@pytree
class Bodies:
    """Of B bodies, of which the first is the world."""

    pos: Array = number(unit="m")  # [B, 3] in the frame of the parent
    quat: Array = number()  # [B, 4] in the frame of the parent, unit quaternions
    mass: Array = number(least=0, unit="kg")  # [B]
    inertia: Array = number(least=0, unit="kg m^2")  # [B, 3] principal moments about the centre
    ipos: Array = number(unit="m")  # [B, 3] centre of mass, in the body's frame
    iquat: Array = number()  # [B, 4] principal axes, in the body's frame
    invweight: Array = number(least=0)  # [B, 2] of translation and rotation at the rest pose
    gravcomp: Array = number()  # [B] share of the weight that is held


@pytree
class Joints:
    """Of J joints."""

    pos: Array = number(unit="m")  # [J, 3] anchor, in the body's frame
    axis: Array = number()  # [J, 3] in the body's frame, of length one
    stiffness: Array = number(least=0)  # [J] N m/rad or N/m
    range: Array = number()  # [J, 2] rad or m
    margin: Array = number()  # [J] rad or m, at which a limit begins to act
    solref: Array = number()  # [J, 2] of the limits
    solimp: Array = number()  # [J, 5] of the limits


@pytree
class Freedoms:
    """Of V degrees of freedom."""

    armature: Array = number(least=0)  # [V] kg m^2 or kg
    damping: Array = number(least=0)  # [V] N m s/rad or N s/m
    frictionloss: Array = number(least=0)  # [V] N m or N
    invweight: Array = number(least=0)  # [V] at the rest pose
    solref: Array = number()  # [V, 2] of the friction loss
    solimp: Array = number()  # [V, 5] of the friction loss


@pytree
class Geoms:
    """Of G shapes."""

    pos: Array = number(unit="m")  # [G, 3] in the frame of the body
    quat: Array = number()  # [G, 4] in the frame of the body
    size: Array = number(least=0, unit="m")  # [G, 3] by kind, as in MuJoCo
    friction: Array = number(least=0)  # [G, 3] sliding, spinning, rolling
    solref: Array = number()  # [G, 2] of its contacts
    solimp: Array = number()  # [G, 5] of its contacts
    solmix: Array = number(least=0)  # [G] weight when parameters are mixed
    margin: Array = number(unit="m")  # [G] at which contacts begin to act
    hulls: Array = number(unit="m")  # [M, N, 3] corners of meshes' hulls; the first fills up
    fields: tuple[Any, ...]  # of the shapes that touch by their signed distance
    heights: tuple[Any, ...]  # of the height fields: z [R, C] over a grid, half, base
    fluid: Array = number(least=0)  # [W, 12] of ellipsoids in a fluid: MuJoCo's geom_fluid


@pytree
class Pairs:
    """Of P pairs that a file names: their own parameters of contact."""

    friction: Array = number(least=0)  # [P, 5]
    solref: Array = number()  # [P, 2]
    solreffriction: Array = number()  # [P, 2]
    solimp: Array = number()  # [P, 5]
    margin: Array = number(unit="m")  # [P]


@pytree
class Sites:
    """Of S marked places."""

    pos: Array = number(unit="m")  # [S, 3] in the frame of the body
    quat: Array = number()  # [S, 4] in the frame of the body
    size: Array = number(least=0, unit="m")  # [S, 3]


@pytree
class Tendons:
    """Of T fixed tendons, whose length is a weighted sum of coordinates."""

    weight: Array = number()  # [T, V] of the coordinates
    stiffness: Array = number(least=0)  # [T] N/m
    damping: Array = number(least=0)  # [T] N s/m
    lengthspring: Array = number()  # [T, 2] between which the spring is slack
    frictionloss: Array = number(least=0)  # [T] N
    range: Array = number()  # [T, 2]
    margin: Array = number()  # [T]
    length0: Array = number()  # [T] at the rest pose
    invweight: Array = number(least=0)  # [T] at the rest pose
    solref_limit: Array = number()  # [T, 2]
    solimp_limit: Array = number()  # [T, 5]
    solref_friction: Array = number()  # [T, 2]
    solimp_friction: Array = number()  # [T, 5]


@pytree
class Equalities:
    """Of E constraints that hold bodies, joints or tendons together."""

    data: Array = number()  # [E, 11] anchors, pose or polynomial, as in MuJoCo
    solref: Array = number()  # [E, 2]
    solimp: Array = number()  # [E, 5]


@pytree
class Actuators:
    """Of U motors: force = gear (gain u + bias), u a control or an activation."""

    gear: Array = number()  # [U] joint's force a motor's force
    gainprm: Array = number()  # [U, 3] constant, by length, by velocity
    biasprm: Array = number()  # [U, 3] constant, by length, by velocity
    dynprm: Array = number()  # [U] time constant of a filter, s
    ctrlrange: Array = number()  # [U, 2]
    forcerange: Array = number(infinite=True)  # [U, 2] N or N m
    actrange: Array = number(infinite=True)  # [U, 2]


@pytree
class Option:
    """Of the world and its steps."""

    timestep: Array = number(above=0, unit="s")  # []
    gravity: Array = number(unit="m/s^2")  # [3]
    wind: Array = number(unit="m/s")  # [3] of the fluid
    density: Array = number(least=0, unit="kg/m^3")  # [] of the fluid
    viscosity: Array = number(least=0, unit="Pa s")  # [] of the fluid
    impratio: Array = number(above=0)  # [] of friction's impedance to the normal's


@pytree
class Mechanism:
    """All of a mechanism, as it is read from a file."""

    layout: Layout = static()
    option: Option = dataclasses.field()
    bodies: Bodies = dataclasses.field()
    joints: Joints = dataclasses.field()
    freedoms: Freedoms = dataclasses.field()
    geoms: Geoms = dataclasses.field()
    pairs: Pairs = dataclasses.field()
    sites: Sites = dataclasses.field()
    tendons: Tendons = dataclasses.field()
    equalities: Equalities = dataclasses.field()
    actuators: Actuators = dataclasses.field()
    qpos0: Array = number()  # [Q] coordinates of the rest pose
    qpos_spring: Array = number()  # [Q] where springs are slack
    keyframes: dict[str, Array] = dataclasses.field()  # coordinates [Q] by name
