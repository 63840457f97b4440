"""Surgical arms from their published numbers: the da Vinci research kit's PSM and ECM, and STAR.

Modified Denavit-Hartenberg rows (Craig's convention) and joint limits. PSM and ECM are those of
jhu-dvrk/sawIntuitiveResearchKit: the classic patient-side manipulator with the large needle driver
400006, and the endoscope manipulator. Both turn about a remote centre, the origin, where the tool
enters the patient. STAR is a KUKA LBR Med 14 R820 (links of 0.36, 0.42, 0.40 and 0.126 m) on its
base at the origin; of its sewing tool no measures are published, it is a straight one of 0.30 m.
Lengths in m, angles in rad.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

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
    low: tuple[float, ...]  # of the joints at work
    high: tuple[float, ...]

    @property
    def joints(self) -> int:
        """How many."""
        return len(self.rows)


def _middle(
    lower: tuple[float, ...], upper: tuple[float, ...], slides: int
) -> dict[str, tuple[float, ...]]:
    """Limits, and the middle half of them to work in; of the insertion, 50 to 200 mm."""
    low, high = ([x / 2 for x in limits] for limits in (lower, upper))
    low[slides], high[slides] = 0.05, 0.2
    return {"lower": lower, "upper": upper, "low": tuple(low), "high": tuple(high)}


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
    tip=(0.0, 0.0102, 0.0),
    **_middle(
        lower=(-1.588, -0.925, 0.0, -4.538, -1.396, -1.396),
        upper=(1.588, 0.925, 0.24, 4.538, 1.396, 1.396),
        slides=2,
    ),
)
ECM = Arm(
    rows=(
        (_HALF, 0.0, _HALF, 0.0),
        (-_HALF, 0.0, -_HALF, 0.0),
        (_HALF, 0.0, 0.0, -0.3822),
        (0.0, 0.0, 0.0, 0.3829),
    ),
    sliding=(False, False, True, False),
    tip=(0.0, 0.0, 0.0),
    **_middle(
        lower=(-_HALF, -0.768, 0.0, -1.552),
        upper=(_HALF, 1.134, 0.255, 1.552),
        slides=2,
    ),
)
_REACH = np.deg2rad([170.0, 120.0, 170.0, 120.0, 170.0, 120.0, 175.0])
_OVER = np.deg2rad([0.0, 30.0, 0.0, -90.0, 0.0, 60.0, 0.0])  # the tool points down
STAR = Arm(
    rows=(
        (0.0, 0.0, 0.0, 0.36),
        (-_HALF, 0.0, 0.0, 0.0),
        (_HALF, 0.0, 0.0, 0.42),
        (_HALF, 0.0, 0.0, 0.0),
        (-_HALF, 0.0, 0.0, 0.40),
        (-_HALF, 0.0, 0.0, 0.0),
        (_HALF, 0.0, 0.0, 0.126),
    ),
    sliding=(False,) * 7,
    lower=tuple(-_REACH),
    upper=tuple(_REACH),
    tip=(0.0, 0.0, 0.30),
    low=tuple(_OVER - 0.3),
    high=tuple(_OVER + 0.3),
)


def place(arm: Arm, q: Array) -> tuple[Array, Array]:
    """Position [3] of the tip and rotation [3, 3] of the last frame at the joints `q` [J].

    Differentiable in `q`. About 60 multiplications a joint, on single numbers: under `vmap` every
    one of them is a contiguous row.

    >>> tip, _ = place(PSM, jnp.zeros(6).at[2].set(0.1))
    >>> round(float(tip[2]), 4)
    -0.1037
    """
    *_, (p, R) = _frames(arm, q)
    p = [p[i] + sum(R[i][k] * arm.tip[k] for k in range(3)) for i in range(3)]
    return jnp.stack(p), jnp.stack([jnp.stack(row) for row in R])


def posture(arm: Arm, q: Array) -> Array:
    """The origins of all frames, then the tip, [J + 1, 3] at the joints `q` [J]: for a picture."""
    origins = [jnp.stack(p) for p, _ in _frames(arm, q)]
    return jnp.stack([*origins, place(arm, q)[0]])


def working(arm: Arm, dtype: Any) -> tuple[Array, Array]:
    """The least and greatest joints at work, [J] each."""
    return jnp.asarray(arm.low, dtype), jnp.asarray(arm.high, dtype)


def moved(arm: Arm, q: Array, action: Array, speed: Array | float) -> Array:
    """Joints [J] after a step of `action` in -1 ... 1, 1 for `speed` of the range at work."""
    low, high = working(arm, q.dtype)
    return jnp.clip(q + speed * (high - low) * jnp.clip(action, -1, 1), low, high)


def scaled(arm: Arm, q: Array) -> Array:
    """Joints as -1 ... 1 of the range at work."""
    low, high = working(arm, q.dtype)
    return (q - low) / (high - low) * 2 - 1


def _frames(arm: Arm, q: Array) -> Iterator[tuple[list, list]]:
    """Origin and rotation of one frame after the other."""
    if q.shape != (arm.joints,):
        raise ValueError(f"place: q has shape {q.shape}; this arm has {arm.joints} joints")
    R = [[float(i == j) + 0 * q[0] for j in range(3)] for i in range(3)]
    p = [0 * q[0]] * 3
    for (alpha, a, theta, d), sliding, value in zip(arm.rows, arm.sliding, q):
        turn, shift = (theta, d + value) if sliding else (theta + value, d)
        step, offset = _row(alpha, a, turn, shift)
        p = [p[i] + sum(R[i][k] * offset[k] for k in range(3)) for i in range(3)]
        R = [[sum(R[i][k] * step[k][j] for k in range(3)) for j in range(3)] for i in range(3)]
        yield p, R


def _row(alpha: float, a: float, theta: Array | float, d: Array | float) -> tuple[list, list]:
    """Rotation and shift of one row: about and along x, then about and along z."""
    ca, sa = _exact(np.cos(alpha)), _exact(np.sin(alpha))
    c, s = jnp.cos(theta), jnp.sin(theta)
    return [[c, -s, 0.0], [s * ca, c * ca, -sa], [s * sa, c * sa, ca]], [a, -sa * d, ca * d]


def _exact(x: float) -> float:
    """Right angles have the cosine 0, not 6e-17."""
    return float(np.round(x, 15))
