"""Surgical arms from published data: the da Vinci research kit's PSM and ECM, and STAR.

Modified Denavit-Hartenberg parameters (Craig's convention) and joint limits. PSM and ECM are from
jhu-dvrk/sawIntuitiveResearchKit: the classic patient-side manipulator with the large needle driver
400006, and the endoscope manipulator. Both rotate about a remote center, the origin, where the tool
enters the patient. STAR is a KUKA LBR Med 14 R820 (links of 0.36, 0.42, 0.40 and 0.126 m) on its
base at the origin. The dimensions of its sewing tool are unpublished; here it is straight and 0.30
m long. Lengths in m, angles in rad.
"""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs import ranges
from jaxgpu.inputs.explanations import explain_errors

_HALF = np.pi / 2


@dataclass(frozen=True)
class Arm:
    """Serial arm of rows (alpha, a, theta, d); the joint's value is added to theta, or to d.

    >>> import jax.numpy as jnp
    >>> isinstance(PSM, Arm), PSM.normalize(jnp.zeros(6)).shape
    (True, (6,))
    """

    dh: tuple[tuple[float, float, float, float], ...]  # [J] rows, rad and m
    prismatic: tuple[bool, ...]  # [J] whether the joint slides
    lower: tuple[float, ...]  # [J] limits of the joints, rad or m
    upper: tuple[float, ...]  # [J] upper limits, rad or m
    tip: tuple[float, float, float]  # in the last frame, m
    working_lower: tuple[float, ...]  # [J] range of the joints in the tasks, rad or m
    working_upper: tuple[float, ...]  # [J] upper limit of that range, rad or m

    @property
    def joints(self) -> int:
        """Number of joints, J."""
        return len(self.dh)

    def working_range(self, dtype: Any) -> tuple[Array, Array]:
        """Return lower and upper joint positions of the tasks, [J] each."""
        return jnp.asarray(self.working_lower, dtype), jnp.asarray(self.working_upper, dtype)

    @explain_errors
    def step_joints(self, q: Array, action: Array, speed: Array | float) -> Array:
        """Return joints [J] after an action in -1 ... 1; 1 means `speed` of the working range."""
        low, high = self.working_range(q.dtype)
        return jnp.clip(q + speed * (high - low) * jnp.clip(action, -1, 1), low, high)

    @explain_errors
    def normalize(self, q: Array) -> Array:
        """Scale joints [J] to -1 ... 1 over the working range."""
        ranges.check_finite("Arm.normalize", q=q)
        low, high = self.working_range(q.dtype)
        return (q - low) / (high - low) * 2 - 1


def _joint_ranges(
    lower: tuple[float, ...], upper: tuple[float, ...], insertion: int
) -> dict[str, tuple[float, ...]]:
    """Return limits, and their middle half as working range, or 50 to 200 mm of insertion."""
    low, high = ([x / 2 for x in limits] for limits in (lower, upper))
    low[insertion], high[insertion] = 0.05, 0.2
    working = {"working_lower": tuple(low), "working_upper": tuple(high)}
    return {"lower": lower, "upper": upper, **working}


PSM = Arm(
    dh=(
        (_HALF, 0.0, _HALF, 0.0),
        (-_HALF, 0.0, -_HALF, 0.0),
        (_HALF, 0.0, 0.0, -0.4318),
        (0.0, 0.0, 0.0, 0.4162),
        (-_HALF, 0.0, -_HALF, 0.0),
        (-_HALF, 0.0091, -_HALF, 0.0),
    ),
    prismatic=(False, False, True, False, False, False),
    tip=(0.0, 0.0102, 0.0),
    **_joint_ranges(
        lower=(-1.588, -0.925, 0.0, -4.538, -1.396, -1.396),
        upper=(1.588, 0.925, 0.24, 4.538, 1.396, 1.396),
        insertion=2,
    ),
)
ECM = Arm(
    dh=(
        (_HALF, 0.0, _HALF, 0.0),
        (-_HALF, 0.0, -_HALF, 0.0),
        (_HALF, 0.0, 0.0, -0.3822),
        (0.0, 0.0, 0.0, 0.3829),
    ),
    prismatic=(False, False, True, False),
    tip=(0.0, 0.0, 0.0),
    **_joint_ranges(
        lower=(-_HALF, -0.768, 0.0, -1.552),
        upper=(_HALF, 1.134, 0.255, 1.552),
        insertion=2,
    ),
)
_STAR_LIMITS = np.deg2rad([170.0, 120.0, 170.0, 120.0, 170.0, 120.0, 175.0])
_STAR_POSTURE = np.deg2rad([0.0, 30.0, 0.0, -90.0, 0.0, 60.0, 0.0])  # the tool points down
STAR = Arm(
    dh=(
        (0.0, 0.0, 0.0, 0.36),
        (-_HALF, 0.0, 0.0, 0.0),
        (_HALF, 0.0, 0.0, 0.42),
        (_HALF, 0.0, 0.0, 0.0),
        (-_HALF, 0.0, 0.0, 0.40),
        (-_HALF, 0.0, 0.0, 0.0),
        (_HALF, 0.0, 0.0, 0.126),
    ),
    prismatic=(False,) * 7,
    lower=tuple(-_STAR_LIMITS),
    upper=tuple(_STAR_LIMITS),
    tip=(0.0, 0.0, 0.30),
    working_lower=tuple(_STAR_POSTURE - 0.3),
    working_upper=tuple(_STAR_POSTURE + 0.3),
)
