"""Fields of a gripper and its state, separate from the methods, which `grasp` adds."""

from typing import Any

from jax import Array

from jaxgpu.inputs.fields import number, pytree, size

from .force_field import ForceField
from .parts import Fixture, Part


@pytree
class Gripper:
    """A hand with two pads, the part that it holds, a fixture, and the parameters of a step."""

    part: Part
    fixture: Fixture
    pad: ForceField  # law of a taxel
    contact: ForceField  # law of a point of the part or of the fixture
    taxels: Any = number(unit="m")  # [T, 2] across and along the fingers, from the pad's centre
    hand_mass: Array | float = number(default=1.0, above=0, unit="kg", one=True)  # []
    hand_inertia: Array | float = number(default=0.01, above=0, unit="kg m^2", one=True)  # []
    finger_mass: Array | float = number(default=0.1, above=0, unit="kg", one=True)  # [] of each
    # [] of the impedance controller, as are the next three
    stiffness: Array | float = number(default=600.0, least=0, unit="N/m", one=True)
    damping: Array | float = number(default=50.0, least=0, unit="N s/m", one=True)  # []
    turn_stiffness: Array | float = number(default=50.0, least=0, unit="N m/rad", one=True)  # []
    turn_damping: Array | float = number(default=1.41, least=0, unit="N m s/rad", one=True)  # []
    # [] of each finger's spring, as is the next
    grip_stiffness: Array | float = number(default=400.0, least=0, unit="N/m", one=True)
    grip_damping: Array | float = number(default=2.0, least=0, unit="N s/m", one=True)  # []
    # [] on the part; the hand's weight is compensated
    gravity: Array | float = number(default=9.81, least=0, unit="m/s^2", one=True)
    dt: Array | float = number(default=1 / 60, above=0, unit="s", one=True)  # [] of a control step
    substeps: int = size(default=4, least=1)  # time steps in a control step
    iterations: int = size(default=3, least=1)  # of the secant method in each substep


@pytree
class GraspState:
    """State of hand and part, and the stretch of the springs between them."""

    hand: Array  # [3] midpoint of the pads, the hand's centre of mass, m
    hand_quat: Array  # [4] quaternion (w, x, y, z)
    hand_velocity: Array  # [6] velocity, m/s, and angular velocity, rad/s
    opening: Array  # [] of each finger from the middle, m
    opening_rate: Array  # [] m/s
    part: Array  # [3] centre of mass, m
    part_quat: Array  # [4]
    part_velocity: Array  # [6] velocity, m/s, and angular velocity, rad/s
    fixture: Array  # [3] the centre of its underside, m
    pad_anchors: Array  # [2 T, 3] of the taxels' springs, in the hand's frame, m
    # [R + S, 3] of the fixture's points on the part, and of the part's on fixture or table, m
    anchors: Array
    field: Array  # [2, T, 3] forces on the pads, in the hand's frame, N
    reaction: Array  # [3] force of fixture and table on the part, N
