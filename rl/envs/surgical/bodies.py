"""Surgical arms with mass, as mechanisms of `jaxgpu.physics.rigid`.

STAR has the links of the KUKA LBR iiwa 14 of google-deepmind/mujoco_menagerie (masses, centres and
inertias, here in the frames of `arms`) and its servos, 2000 N m/rad and 200 N m s/rad; its tool
has no mass. Of PSM and ECM no masses are published: a carriage of 0.5 kg outside the patient, a
thin shaft of 0.1 and 0.6 kg, 5 g a wrist link, and 0.1 kg m^2 of motors and counterweight on yaw
and pitch are ours; their servos are Surgical Gym's, 10,000 N m/rad and 1,000 N m s/rad, and
1,000 N/m and 10 N s/m for the insertion. Gravity is compensated, as on the machines.
"""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxgpu.physics import rigid

from .arms import ECM, PSM, STAR, Arm


@dataclass(frozen=True)
class _Mass:
    """Of one link, in its frame."""

    mass: float = 0.0  # kg
    com: tuple[float, float, float] = (0.0, 0.0, 0.0)  # m
    inertia: tuple[float, float, float] = (0.0, 0.0, 0.0)  # diagonal, kg m^2
    armature: float = 0.0  # kg m^2 or kg


def _shaft(mass: float, length: float) -> _Mass:
    """A rod that ends in the link's origin."""
    across = mass * length**2 / 12
    return _Mass(mass, (0.0, 0.0, -length / 2), (across, across, 1e-5), 1e-4)


_OUTSIDE = (_Mass(armature=0.1), _Mass(armature=0.1), _Mass(0.5))
_WRIST = _Mass(0.005, (0.0, 0.0045, 0.0), (1e-7, 1e-7, 1e-7), 1e-4)
MASSES = {
    PSM: (*_OUTSIDE, _shaft(0.1, 0.4162), _WRIST, _WRIST),
    ECM: (*_OUTSIDE, _shaft(0.6, 0.3829)),
    STAR: (
        _Mass(5.76, (0.0, -0.03, -0.0825), (0.0333, 0.033, 0.0123)),
        _Mass(6.35, (-0.0003, -0.059, 0.042), (0.0305, 0.0304, 0.011)),
        _Mass(3.5, (0.0, 0.03, -0.0855), (0.025, 0.0238, 0.0076)),
        _Mass(3.5, (0.0, 0.067, 0.034), (0.017, 0.0164, 0.006)),
        _Mass(3.5, (-0.0001, -0.021, -0.1395), (0.01, 0.0087, 0.00449)),
        _Mass(1.8, (0.0, -0.0006, 0.0004), (0.0049, 0.0047, 0.0036)),
        _Mass(1.2, (0.0, 0.0, -0.025), (0.001, 0.001, 0.001)),
    ),
}


def simulation(arm: Arm, dt: Any, dtype: Any = jnp.float32) -> rigid.Simulation:
    """The mechanism of `arm`, its servos, and steps of `dt` s.

    >>> simulation(PSM, 0.01).tree.nv
    6
    """
    links = []
    for i, (row, slides, body) in enumerate(zip(arm.rows, arm.sliding, MASSES[arm])):
        alpha, a, theta, d = row
        ca, sa, c, s = np.cos(alpha), np.sin(alpha), np.cos(theta), np.sin(theta)
        links.append(
            rigid.Link(
                i - 1,
                "prismatic" if slides else "revolute",
                position=(a, -sa * d, ca * d),
                rotation=((c, -s, 0.0), (s * ca, c * ca, -sa), (s * sa, c * sa, ca)),
                mass=body.mass,
                com=body.com,
                inertia=np.diag(body.inertia),
                armature=body.armature,
                lower=arm.lower[i],
                upper=arm.upper[i],
            )
        )
    slides = np.array(arm.sliding)
    gains = ((2000.0, 200.0),) * 2 if arm is STAR else ((1e4, 1e3), (1e3, 10.0))
    drive = (jnp.asarray(np.where(slides, *pair), dtype) for pair in zip(gains[1], gains[0]))
    tree = rigid.assemble(links, gravity=(0.0, 0.0, 0.0), dtype=dtype)
    return rigid.Simulation(tree, rigid.Drive(*drive), dt)
