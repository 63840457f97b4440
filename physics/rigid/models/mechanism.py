"""Parameters of a mechanism: bodies, joints, geoms, actuators, as in MuJoCo's compiled model.

Numbers are pytree leaves, so that `vmap` and `grad` reach masses, sizes, friction and gains. The
structure is in `Layout`, which is static in a program. Units are m, kg, s and rad.
"""

import dataclasses
from typing import Any

from jax import Array

from jaxgpu.inputs.fields import number, pytree, static

from .layout import Layout


@pytree
class Bodies:
    """Parameters of B bodies, of which the first is the world."""

    pos: Array = number(unit="m")  # [B, 3] in the frame of the parent
    quat: Array = number()  # [B, 4] in the frame of the parent, unit quaternions
    mass: Array = number(least=0, unit="kg")  # [B]
    inertia: Array = number(least=0, unit="kg m^2")  # [B, 3] principal moments about `ipos`
    ipos: Array = number(unit="m")  # [B, 3] centre of mass, in the body's frame
    iquat: Array = number()  # [B, 4] principal axes, in the body's frame
    invweight: Array = number(least=0)  # [B, 2] for translation and rotation at qpos0
    gravcomp: Array = number()  # [B] fraction of the weight that is compensated


@pytree
class Joints:
    """Parameters of J joints."""

    pos: Array = number(unit="m")  # [J, 3] anchor, in the body's frame
    axis: Array = number()  # [J, 3] in the body's frame, of length one
    stiffness: Array = number(least=0)  # [J] N m/rad or N/m
    range: Array = number()  # [J, 2] rad or m
    margin: Array = number()  # [J] rad or m, at which a limit becomes active
    solref: Array = number()  # [J, 2] of the limits
    solimp: Array = number()  # [J, 5] of the limits


@pytree
class Dofs:
    """Parameters of V dofs, as in MuJoCo's `dof_` arrays."""

    armature: Array = number(least=0)  # [V] kg m^2 or kg
    damping: Array = number(least=0)  # [V] N m s/rad or N s/m
    frictionloss: Array = number(least=0)  # [V] N m or N
    invweight: Array = number(least=0)  # [V] at qpos0
    solref: Array = number()  # [V, 2] of the friction loss
    solimp: Array = number()  # [V, 5] of the friction loss


@pytree
class Geoms:
    """Parameters of G geoms."""

    pos: Array = number(unit="m")  # [G, 3] in the frame of the body
    quat: Array = number()  # [G, 4] in the frame of the body
    size: Array = number(least=0, unit="m")  # [G, 3] by type, as in MuJoCo
    friction: Array = number(least=0)  # [G, 3] sliding, spinning, rolling
    solref: Array = number()  # [G, 2] of its contacts
    solimp: Array = number()  # [G, 5] of its contacts
    solmix: Array = number(least=0)  # [G] weight in the combination of parameters
    margin: Array = number(unit="m")  # [G] at which contacts become active
    hulls: Array = number(unit="m")  # [M, N, 3] hull vertices of meshes, padded with the first
    fields: tuple[Any, ...]  # shapes that collide by their signed distance
    heights: tuple[Any, ...]  # height fields: z [R, C] over a grid, half, base
    fluid: Array = number(least=0)  # [W, 12] ellipsoid coefficients, MuJoCo's geom_fluid


@pytree
class Pairs:
    """Contact parameters of P pairs that a file names as `<pair>`."""

    friction: Array = number(least=0)  # [P, 5]
    solref: Array = number()  # [P, 2]
    solreffriction: Array = number()  # [P, 2]
    solimp: Array = number()  # [P, 5]
    margin: Array = number(unit="m")  # [P]


@pytree
class Sites:
    """Parameters of S sites."""

    pos: Array = number(unit="m")  # [S, 3] in the frame of the body
    quat: Array = number()  # [S, 4] in the frame of the body
    size: Array = number(least=0, unit="m")  # [S, 3]


@pytree
class Tendons:
    """Parameters of T fixed tendons, whose length is a weighted sum of coordinates."""

    weight: Array = number()  # [T, V] of the coordinates
    stiffness: Array = number(least=0)  # [T] N/m
    damping: Array = number(least=0)  # [T] N s/m
    lengthspring: Array = number()  # [T, 2] lengths between which the spring is slack
    frictionloss: Array = number(least=0)  # [T] N
    range: Array = number()  # [T, 2]
    margin: Array = number()  # [T]
    length0: Array = number()  # [T] length at qpos0
    invweight: Array = number(least=0)  # [T] at qpos0
    solref_limit: Array = number()  # [T, 2]
    solimp_limit: Array = number()  # [T, 5]
    solref_friction: Array = number()  # [T, 2]
    solimp_friction: Array = number()  # [T, 5]


@pytree
class Equalities:
    """Parameters of E equality constraints between bodies, joints or tendons."""

    data: Array = number()  # [E, 11] anchors, pose or polynomial, as in MuJoCo
    solref: Array = number()  # [E, 2]
    solimp: Array = number()  # [E, 5]


@pytree
class Actuators:
    """Parameters of U actuators: force = gear (gain u + bias), u a control or an activation."""

    gear: Array = number()  # [U] joint force per actuator force
    gainprm: Array = number()  # [U, 3] constant, by length, by velocity
    biasprm: Array = number()  # [U, 3] constant, by length, by velocity
    dynprm: Array = number()  # [U] time constant of a filter, s
    ctrlrange: Array = number()  # [U, 2]
    forcerange: Array = number(infinite=True)  # [U, 2] N or N m
    actrange: Array = number(infinite=True)  # [U, 2]


@pytree
class Option:
    """Physical options of the world, and the time step."""

    timestep: Array = number(above=0, unit="s")  # []
    gravity: Array = number(unit="m/s^2")  # [3]
    wind: Array = number(unit="m/s")  # [3] of the fluid
    density: Array = number(least=0, unit="kg/m^3")  # [] of the fluid
    viscosity: Array = number(least=0, unit="Pa s")  # [] of the fluid
    impratio: Array = number(above=0)  # [] ratio of frictional to normal impedance


@pytree
class Mechanism:
    """All parameters of a mechanism, as they are read from a file."""

    layout: Layout = static()
    option: Option = dataclasses.field()
    bodies: Bodies = dataclasses.field()
    joints: Joints = dataclasses.field()
    freedoms: Dofs = dataclasses.field()
    geoms: Geoms = dataclasses.field()
    pairs: Pairs = dataclasses.field()
    sites: Sites = dataclasses.field()
    tendons: Tendons = dataclasses.field()
    equalities: Equalities = dataclasses.field()
    actuators: Actuators = dataclasses.field()
    qpos0: Array = number()  # [Q] coordinates of the reference pose
    qpos_spring: Array = number()  # [Q] coordinates at which springs are slack
    keyframes: dict[str, Array] = dataclasses.field()  # coordinates [Q] by name
