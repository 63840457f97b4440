"""A gripper with two soft pads, the part that it holds, and a fixture that the part goes into.

The hand is a free rigid body under task-space impedance control as in TacSL
(doi:10.1109/TRO.2025.3547267): at each control step its target is its own pose, moved and rotated,

    F = K (target - pose) - D velocity,

so that it yields where the part touches the fixture. Two fingers open along the hand's y axis, each
by `opening` from the middle, and springs press them together. The taxels are on their faces; the
forces that they sense are the ones that move hand and part. Part and fixture touch at points by the
same law, with stiffer springs.

A control step is `substeps` steps of implicit Euler in the 13 velocities. The shapes are evaluated
once, at the start of a step, as planes. `iterations` of a secant method find the velocities for
which springs, friction, impedance and momenta balance at the end of the step. Momentum and, without
external forces, angular momentum are conserved to rounding, even before convergence. A step takes
about 90 operations per point for a shape, and 400 per iteration.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.geometry import rotations
from jaxgpu.inputs import ranges
from jaxgpu.inputs.explanations import on_host
from jaxgpu.inputs.fields import pytree

from .force_field import ForceField
from .gripper import GraspState, Gripper
from .implicit_step import substep
from .pad import check_unit
from .parts import Fixture, Part

PAD_WIDTH, PAD_LENGTH = 0.020, 0.026  # m, of the pads
FOUNDATION_MODULUS = 5e7  # N/m^3 of the pads, as 4 mm of gel with a modulus of 0.2 MPa
SHEAR_RATIO = 0.4  # tangential stiffness of springs, relative to normal stiffness
STIFFNESS = 5e4  # N/m of a point of metal
MAX_OPENING, BISECTIONS = 0.04, 16  # maximum opening, m; bisections of it, to a micrometre


@pytree
class Grasp(Gripper):
    """A gripper with part and fixture; `init` and `step` simulate it.

    >>> from jaxgpu.physics.touch import peg_and_socket
    >>> grasp = Grasp.from_parts(*peg_and_socket())
    >>> state = grasp.init(jnp.array([0.0, 0.0, 0.1]), jnp.array([0.0, 0.0, 0.09]))
    >>> state = jax.jit(grasp.step)(state, shift=jnp.array([0.0, 0.0, 0.01]))
    >>> float(state.part_velocity[2]) > 0.03  # lifted by friction
    True
    """

    @classmethod
    @on_host
    def from_parts(
        cls,
        part: Part,
        fixture: Fixture,
        taxels: tuple[int, int] = (25, 20),
        friction: float = 0.5,
        pad_friction: float = 2.0,
        **numbers: Any,
    ) -> "Grasp":
        """Return a gripper with pads 20 mm wide and 26 mm long.

        Args:
            part, fixture: the held part, and the fixture that it goes into.
            taxels: rows along each finger, and columns across it.
            friction: between part and fixture or table.
            pad_friction: between part and pads.
            numbers: other fields of `Grasp`.
        Raises:
            ValueError: a parameter out of its range.

        >>> from jaxgpu.physics.touch import peg_and_pad
        >>> Grasp.from_parts(*peg_and_pad(), taxels=(10, 8)).taxels.shape
        (80, 2)
        """
        for word, count in zip(("rows", "columns"), taxels, strict=True):
            ranges.refuse(
                f"Grasp.from_parts: {word} of taxels",
                count,
                ranges.Range(least=2, whole=True, one=True),
            )
        rows, across = (
            np.linspace(-0.5, 0.5, n) * w for n, w in zip(taxels, (PAD_LENGTH, PAD_WIDTH))
        )
        grid = np.meshgrid(across, rows)
        area = (PAD_WIDTH / (taxels[1] - 1)) * (PAD_LENGTH / (taxels[0] - 1))
        built = cls(
            part=part,
            fixture=fixture,
            pad=ForceField(
                area * FOUNDATION_MODULUS, area * SHEAR_RATIO * FOUNDATION_MODULUS, pad_friction
            ),
            contact=ForceField(STIFFNESS, SHEAR_RATIO * STIFFNESS, friction),
            taxels=np.stack([g.ravel() for g in grid], 1),
            **numbers,
        )
        ranges.check("Grasp.from_parts", built)
        ranges.check_finite("Grasp.from_parts", part=part, fixture=fixture)
        return built

    def init(
        self,
        hand: Array,
        part: Array,
        fixture: Array | None = None,
        part_quat: Array | None = None,
        hand_quat: Array | None = None,
        opening: Array | float | None = None,
    ) -> GraspState:
        """Return a state at rest, with no spring stretched.

        Args:
            hand: [3] midpoint of the pads, m.
            part: [3] the part's centre, m.
            fixture: [3] the centre of its underside, m; by default the origin.
            part_quat, hand_quat: [4] unit quaternions (w, x, y, z); by default upright.
            opening: of each finger from the middle, m; by default `closed_opening()`.
        Raises:
            ValueError: a wrong shape, or a number that is not finite.
        """
        ranges.check("Grasp.init", self)
        dtype = jnp.result_type(jnp.asarray(hand), jnp.float32)
        fixture = jnp.zeros(3) if fixture is None else fixture
        opening = self.closed_opening() if opening is None else opening
        places = {"hand": hand, "part": part, "fixture": fixture}
        held = {
            name: jnp.asarray(ranges.numbers(f"Grasp.init: {name}", x, (3,), unit="m"), dtype)
            for name, x in places.items()
        }
        upright = jnp.zeros(4, dtype).at[0].set(1)
        for name, x in (("part_quat", part_quat), ("hand_quat", hand_quat)):
            quat = upright if x is None else ranges.numbers(f"Grasp.init: {name}", x, (4,))
            check_unit(f"Grasp.init: {name}", quat)
            held[name] = rotations.unit(jnp.asarray(quat, dtype))
        opening = ranges.numbers(
            "Grasp.init: opening", opening, (), least=0, most=MAX_OPENING, unit="m"
        )
        taxels, points, edges = (
            len(x) for x in (self.taxels, self.part.points, self.fixture.points)
        )
        return GraspState(
            **held,
            hand_velocity=jnp.zeros(6, dtype),
            part_velocity=jnp.zeros(6, dtype),
            opening=jnp.asarray(opening, dtype),
            opening_rate=jnp.zeros((), dtype),
            pad_anchors=jnp.zeros((2 * taxels, 3), dtype),
            anchors=jnp.zeros((points + edges, 3), dtype),
            field=jnp.zeros((2, taxels, 3), dtype),
            reaction=jnp.zeros(3, dtype),
        )

    def closed_opening(self, below: Array | float = 0.0) -> Array:
        """Return the opening, m, at which an upright part balances the springs of the fingers.

        It is found by bisection, to a micrometre.

        Args:
            below: how far the part's centre is below the middle between the pads, m.
        Raises:
            ValueError: a number that is not finite.
        """
        below = ranges.numbers("Grasp.closed_opening: below", below, (), unit="m")
        x, z = jnp.asarray(self.taxels).T

        def bisect(_: int, between: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = between
            middle = 0.5 * (low + high)
            depth = jnp.maximum(-self.part.shape.distance((x, middle + 0 * x, z + below)), 0)
            wide = jnp.sum(self.pad.stiffness * depth) < self.grip_stiffness * middle
            return jnp.where(wide, low, middle), jnp.where(wide, middle, high)

        start = jnp.zeros((), x.dtype), jnp.full((), MAX_OPENING, x.dtype)
        low, high = jax.lax.fori_loop(0, BISECTIONS, bisect, start)
        return 0.5 * (low + high)

    def step(
        self,
        state: GraspState,
        shift: Array | None = None,
        turn: Array | None = None,
        opening: Array | float = 0.0,
    ) -> GraspState:
        """Return the state after a control step.

        Args:
            state: of `init` or of a previous step.
            shift: [3] translation from the hand to its target, m; by default zero.
            turn: [3] rotation to the target, a rotation vector in space, rad; by default zero.
            opening: target of the fingers, m; 0 closes them.
        Raises:
            ValueError: a wrong shape, or a number that is not finite.
        """
        dtype = state.hand.dtype
        zero = jnp.zeros(3, dtype)
        ranges.check("Grasp.step", self)
        shift = zero if shift is None else ranges.numbers("Grasp.step: shift", shift, (3,))
        turn = zero if turn is None else ranges.numbers("Grasp.step: turn", turn, (3,))
        turn = jnp.asarray(turn, dtype)
        place = state.hand + jnp.asarray(shift, dtype)
        quat = jnp.stack(rotations.product(rotations.from_rotvec(turn), state.hand_quat))
        opening = ranges.numbers(
            "Grasp.step: opening", opening, (), least=0, most=MAX_OPENING, unit="m"
        )
        opening = jnp.asarray(opening, dtype)
        scan_substep = lambda s, _: (substep(self, s, place, quat, opening), None)
        return jax.lax.scan(scan_substep, state, None, length=self.substeps)[0]
