"""Arms of Surgical Gym with its drives: chains and joints from its scene files.

Schmidgall, Krieger & Eshraghian (2023), arXiv:2310.04676, github.com/SamuelSchmidgall/SurgicalGym
(MIT licence, as of 2025). Rows are the joints of `psm.usd` and `ecm.usd`, which model the
parallelograms of both as serial arms; scales, gains, limits and positions are those of the tasks.
STAR has no file there, so its arm is that of `arms`. Goals are in the frame of the arm's first row,
whose axes are those of the scene except for order and signs, which 1-norms ignore.
"""

from typing import Any

import numpy as np

from jaxgpu.inputs.fields import number, pytree, static

from .arms import STAR, Arm

_HALF = np.pi / 2


@pytree
class GymArm:
    """Arm with its drives, and I distal joints, which do not move the tip as measured there.

    Parameters of the drives are leaves for `vmap` and `grad`; the chain is static.

    >>> isinstance(GYM_PSM, GymArm), GYM_PSM.max_velocity.shape
    (True, (9,))
    """

    arm: Arm = static()
    goal_centre: Any = number(unit="m")  # [3] mean of the goals, m
    dt: Any = number(above=0, unit="s")  # [] per step, s
    scale: Any = number()  # [J + I] of the targets -1 ... 1, rad or m
    offset: Any = number()  # [J + I] rad or m
    rate: Any = number(least=0, unit="1/s")  # [J + I] stiffness over damping of each drive, 1/s
    lower: Any = number()  # [J + I] limits of the joints, rad or m
    upper: Any = number()  # [J + I] upper limits, rad or m
    max_velocity: Any = number(above=0, infinite=True)  # [J + I] rad/s or m/s
    initial_target: Any = number()  # [J + I] in -1 ... 1; times the scale it is the initial joints

    @property
    def joints(self) -> int:
        """Number of joints, J + I."""
        return np.shape(self.scale)[-1]


def _make_gym_arm(arm: Arm, **numbers: Any) -> GymArm:
    """Return the arm with its parameters as arrays."""
    return GymArm(arm=arm, **{name: np.array(value) for name, value in numbers.items()})


_TILT = float(np.arcsin(0.043 / 0.15))  # of the link behind the parallelogram
_PSM_LOWER = (-np.pi, -1.6050, -0.9356, -0.9425, -0.9356, 0.0)
_PSM_UPPER = (np.pi, 1.5994, 0.9425, 0.9356, 0.9425, 0.24)
GYM_PSM = _make_gym_arm(
    Arm(
        dh=(
            (0.0, 0.0, 0.0, 0.1524),
            (_HALF, 0.0, _HALF, 0.0296),
            (-_HALF, 0.0, -_TILT, 0.0),
            (0.0, 0.15, _HALF + _TILT, 0.0),
            (0.0, 0.516, 0.0, 0.0),
            (-_HALF, 0.043, 0.0, -0.28809),
        ),
        prismatic=(False,) * 5 + (True,),
        lower=_PSM_LOWER,
        upper=_PSM_UPPER,
        tip=(0.0, 0.0, 0.4162 + 0.025),
        working_lower=_PSM_LOWER,
        working_upper=_PSM_UPPER,
    ),
    goal_centre=(0.0, 0.5, 0.1),
    dt=0.0025,
    # The scales are one joint early, as published: meant for the insertion, they ignore the first
    # joint, that of the stand.
    scale=(1.0, 1.0, 1.0, 1.0, 0.127, 1.0, 1.0, 1.0, 1.0),
    offset=(0.0, 0.0, 0.0, 0.0, 0.127, 0.0, 0.0, 0.0, 0.0),
    rate=(100.0,) + (10.0,) * 8,
    lower=(*_PSM_LOWER, -np.pi, -_HALF, -_HALF),
    upper=(*_PSM_UPPER, np.pi, _HALF, _HALF),
    max_velocity=(10.0,) * 5 + (1.0,) + (10.0,) * 3,
    initial_target=(0.0,) * 9,
)

_LEAN, _LONG = float(np.arctan2(0.103, 0.286805)), float(np.hypot(0.103, 0.286805))
_LEVEL = float(np.arctan2(0.3404, 0.000136))
_ECM_LOWER = (-1.5952, -0.7837, -1.1577, -0.7837, 0.0)
_ECM_UPPER = (1.5817, 1.1577, 0.7837, 1.1577, 0.25419)
GYM_ECM = _make_gym_arm(
    Arm(
        dh=(
            (0.0, 0.10146, -0.00159, 0.2722),
            (_HALF, 0.0, -_LEAN, 0.0),
            (0.0, _LONG, _LEAN + _LEVEL, 0.0),
            (0.0, 0.3404, _HALF - _LEVEL, 0.0),
            (-_HALF, 0.042, 0.0, -0.086143),
        ),
        prismatic=(False,) * 4 + (True,),
        lower=_ECM_LOWER,
        upper=_ECM_UPPER,
        tip=(0.061, 0.0, 0.375),
        working_lower=_ECM_LOWER,
        working_upper=_ECM_UPPER,
    ),
    goal_centre=(1.5, 0.0, 0.8),
    dt=0.005,
    scale=(1.0, 1.0, 1.0, 1.0, 0.127, 1.0),
    offset=(0.0, 0.0, 0.0, 0.0, 0.127, 0.0),
    rate=(10.0,) * 6,
    lower=(*_ECM_LOWER, -1.5527),
    upper=(*_ECM_UPPER, 1.5667),
    max_velocity=(10.0,) * 4 + (100.0, 10.0),
    initial_target=(0.0,) * 6,
)

GYM_STAR = _make_gym_arm(
    STAR,
    goal_centre=(1.0, 0.0, 0.3),
    dt=0.0025,
    scale=(2.0,) * 7,
    offset=(0.0,) * 7,
    rate=(200 / 12,) * 7,
    lower=STAR.lower,
    upper=STAR.upper,
    max_velocity=(np.inf,) * 7,
    initial_target=(0.0, 0.3, 0.0, -0.3, 0.0, 0.5, 0.0),
)
