"""Surgical arms from their published numbers: the da Vinci research kit's PSM and ECM.

Modified Denavit-Hartenberg rows (Craig's convention) and joint limits of
jhu-dvrk/sawIntuitiveResearchKit: the classic patient-side manipulator with the large needle driver
400006, and the endoscope manipulator. Both turn about a remote centre, the origin, where the tool
enters the patient; lengths in m, angles in rad.
"""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import Array

_HALF = np.pi / 2


@dataclass(frozen=True)
class Arm:
    """A serial arm; rows (alpha, a, theta, d), the joint's value added to theta, or to d."""

    rows: tuple[tuple[float, float, float, float], ...]
    sliding: tuple[bool, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    tip: tuple[float, float, float]  # in the last frame, m

    @property
    def joints(self) -> int:
        """How many."""
        return len(self.rows)


PSM = Arm(
    rows=(
        (_HALF, 0.0, _HALF, 0.0),
        (-_HALF, 0.0, -_HALF, 0.0),
        (_HALF, 0.0, 0.0, -0.4318),
        (0.0, 0.0, 0.0, 0.4162),
        (-_HALF, 0.0, -_HALF, 0.0),
        (-_HALF, 0.0091, -_HALF, 0.0),
    ),
    sliding=(False, False, True, False, False, False),
    lower=(-1.588, -0.925, 0.0, -4.538, -1.396, -1.396),
    upper=(1.588, 0.925, 0.24, 4.538, 1.396, 1.396),
    tip=(0.0, 0.0102, 0.0),
)
ECM = Arm(
    rows=(
        (_HALF, 0.0, _HALF, 0.0),
        (-_HALF, 0.0, -_HALF, 0.0),
        (_HALF, 0.0, 0.0, -0.3822),
        (0.0, 0.0, 0.0, 0.3829),
    ),
    sliding=(False, False, True, False),
    lower=(-_HALF, -0.768, 0.0, -1.552),
    upper=(_HALF, 1.134, 0.255, 1.552),
    tip=(0.0, 0.0, 0.0),
)


def place(arm: Arm, q: Array) -> tuple[Array, Array]:
    """Position [3] of the tip and rotation [3, 3] of the last frame at the joints `q` [J].

    Differentiable in `q`. About 60 multiplications a joint, on single numbers: under `vmap` every
    one of them is a contiguous row.

    >>> tip, _ = place(PSM, jnp.zeros(6).at[2].set(0.1))
    >>> round(float(tip[2]), 4)
    -0.1037
    """
    if q.shape != (arm.joints,):
        raise ValueError(f"place: q has shape {q.shape}; this arm has {arm.joints} joints")
    R = [[float(i == j) + 0 * q[0] for j in range(3)] for i in range(3)]
    p = [0 * q[0]] * 3
    for (alpha, a, theta, d), sliding, value in zip(arm.rows, arm.sliding, q):
        turn, shift = (theta, d + value) if sliding else (theta + value, d)
        step, offset = _row(alpha, a, turn, shift)
        p = [p[i] + sum(R[i][k] * offset[k] for k in range(3)) for i in range(3)]
        R = [[sum(R[i][k] * step[k][j] for k in range(3)) for j in range(3)] for i in range(3)]
    p = [p[i] + sum(R[i][k] * arm.tip[k] for k in range(3)) for i in range(3)]
    return jnp.stack(p), jnp.stack([jnp.stack(row) for row in R])


def _row(alpha: float, a: float, theta: Array | float, d: Array | float) -> tuple[list, list]:
    """Rotation and shift of one row: about and along x, then about and along z."""
    ca, sa = _exact(np.cos(alpha)), _exact(np.sin(alpha))
    c, s = jnp.cos(theta), jnp.sin(theta)
    return [[c, -s, 0.0], [s * ca, c * ca, -sa], [s * sa, c * sa, ca]], [a, -sa * d, ca * d]


def _exact(x: float) -> float:
    """Right angles have the cosine 0, not 6e-17."""
    return float(np.round(x, 15))
