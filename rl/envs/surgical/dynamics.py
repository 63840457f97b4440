"""Surgical arms with mass, as mechanisms of `jaxgpu.physics.rigid`.

STAR has the links of the KUKA LBR iiwa 14 of google-deepmind/mujoco_menagerie (masses, centers and
inertias, here in the frames of `arms`) and its servos, 2000 N m/rad and 200 N m s/rad; its tool is
massless. Masses of PSM and ECM are unpublished, so these are our estimates: a carriage of 0.5 kg
outside the patient, a thin shaft of 0.1 and 0.6 kg, 5 g per wrist link, and 0.1 kg m^2 of actuators
and counterweight on yaw and pitch. Their servos are Surgical Gym's, 10,000 N m/rad and 1,000 N m
s/rad, and 1,000 N/m and 10 N s/m for the insertion. Gravity is compensated, as on the real arms.
"""

from dataclasses import replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu.inputs.fields import number, pytree
from jaxgpu.physics import rigid

from .arms import ECM, PSM, Arm


@pytree
class ArmDynamics:
    """Masses of the links and gains of the servos, which are leaves for `vmap` and `grad`.

    >>> isinstance(PSM_DYNAMICS, ArmDynamics), PSM_DYNAMICS.mass.shape
    (True, (6,))
    """

    mass: Any = number(least=0, unit="kg")  # [J] of each link, kg
    com: Any = number(unit="m")  # [J, 3] its center of mass in its frame, m
    inertia: Any = number(least=0, unit="kg m^2")  # [J, 3] about it, in the frame's axes, kg m^2
    armature: Any = number(least=0)  # [J] inertia of the actuators, kg m^2 or kg
    stiffness: Any = number(least=0)  # [J] of the servos, N m/rad or N/m
    damping: Any = number(least=0)  # [J] N m s/rad or N s/m


def _shaft_link(mass: float, length: float) -> tuple[float, ...]:
    """Return mass, inertia and center of a rod that ends in the origin of its frame."""
    across = mass * length**2 / 12
    return (mass, across, across, 1e-5, 0.0, 0.0, -length / 2)


# One row per link: mass, kg; inertia along x, y and z, kg m^2; center of mass, m.
_CARRIAGE = np.array([[0.0] * 7, [0.0] * 7, [0.5, *[0.0] * 6]])
_WRIST = (0.005, 1e-7, 1e-7, 1e-7, 0.0, 0.0045, 0.0)
_PSM = np.array([*_CARRIAGE, _shaft_link(0.1, 0.4162), _WRIST, _WRIST])
_ECM = np.array([*_CARRIAGE, _shaft_link(0.6, 0.3829)])
_STAR = np.array(
    [
        (5.76, 0.0333, 0.033, 0.0123, 0.0, -0.03, -0.0825),
        (6.35, 0.0305, 0.0304, 0.011, -0.0003, -0.059, 0.042),
        (3.5, 0.025, 0.0238, 0.0076, 0.0, 0.03, -0.0855),
        (3.5, 0.017, 0.0164, 0.006, 0.0, 0.067, 0.034),
        (3.5, 0.01, 0.0087, 0.00449, -0.0001, -0.021, -0.1395),
        (1.8, 0.0049, 0.0047, 0.0036, 0.0, -0.0006, 0.0004),
        (1.2, 0.001, 0.001, 0.001, 0.0, 0.0, -0.025),
    ]
)
_DVRK_ARMATURE = np.array([0.1, 0.1, 0.0, 1e-4, 1e-4, 1e-4])


def _make_dynamics(links: np.ndarray, armature: Any, stiffness: Any, damping: Any) -> ArmDynamics:
    return ArmDynamics(
        mass=links[:, 0],
        com=links[:, 4:],
        inertia=links[:, 1:4],
        armature=armature,
        stiffness=stiffness,
        damping=damping,
    )


def _dvrk_dynamics(arm: Arm, links: np.ndarray) -> ArmDynamics:
    """Return an arm with the servos of Surgical Gym, softer for sliding joints."""
    slides = np.array(arm.prismatic)
    stiffness, damping = np.where(slides, 1e3, 1e4), np.where(slides, 10.0, 1e3)
    return _make_dynamics(links, _DVRK_ARMATURE[: arm.joints], stiffness, damping)


PSM_DYNAMICS = _dvrk_dynamics(PSM, _PSM)
ECM_DYNAMICS = _dvrk_dynamics(ECM, _ECM)
STAR_DYNAMICS = _make_dynamics(_STAR, np.zeros(7), np.full(7, 2000.0), np.full(7, 200.0))


@lru_cache(maxsize=16)
def mjcf_text(arm: Arm) -> str:
    """Return the MJCF text of `arm`: links, joints and servos, with unit masses and gains."""
    opened, closed = [], []
    for i, ((alpha, a, theta, d), slides) in enumerate(zip(arm.dh, arm.prismatic)):
        half = np.array([alpha, theta]) / 2
        (ca, ct), (sa, st) = np.cos(half), np.sin(half)
        turn = (ca * ct, sa * ct, -sa * st, ca * st)  # about x by alpha, then about the new z
        place = (a, -np.sin(alpha) * d, np.cos(alpha) * d)
        opened.append(
            f"<body name='link{i}' pos='{_format_numbers(place)}' quat='{_format_numbers(turn)}'>"
            "<inertial pos='0 0 0' mass='1' diaginertia='1 1 1'/>"
            f"<joint name='joint{i}' type='{'slide' if slides else 'hinge'}' axis='0 0 1' "
            f"range='{arm.lower[i]:.17g} {arm.upper[i]:.17g}'/>"
        )
        closed.append("</body>")
    servos = "".join(f"<position joint='joint{i}' kp='1' kv='1'/>" for i in range(arm.joints))
    return (
        "<mujoco><compiler angle='radian' autolimits='true'/>"
        "<option gravity='0 0 0' integrator='implicitfast'/>"
        f"<worldbody>{''.join(opened + closed)}</worldbody>"
        f"<actuator>{servos}</actuator></mujoco>"
    )


def mechanism(arm: Arm, dynamics: ArmDynamics, dt: Any, dtype: Any = jnp.float32) -> rigid.Model:
    """Return the mechanism of `arm` with masses and servos, controlled by targets; `dt` in s.

    Raises:
            ValueError: the masses are for a different number of joints.

    >>> mechanism(PSM, PSM_DYNAMICS, 0.01).layout.nv
    6
    """
    if jnp.shape(dynamics.mass) != (arm.joints,):
        raise ValueError(
            f"mechanism: dynamics.mass has shape {list(jnp.shape(dynamics.mass))}; it must be "
            f"[{arm.joints}], one per joint; give the dynamics of this arm"
        )
    model = _load_model(arm, jnp.dtype(dtype).name)
    cast = lambda x: jnp.asarray(x, dtype)
    bodies = model.bodies
    none = jnp.zeros_like(cast(dynamics.stiffness))
    gains = jnp.stack([cast(dynamics.stiffness), none, none], 1)
    bias = jnp.stack([none, -cast(dynamics.stiffness), -cast(dynamics.damping)], 1)
    model = replace(
        model,
        option=replace(model.option, timestep=cast(dt)),
        bodies=replace(
            bodies,
            mass=bodies.mass.at[1:].set(cast(dynamics.mass)),
            ipos=bodies.ipos.at[1:].set(cast(dynamics.com)),
            inertia=bodies.inertia.at[1:].set(cast(dynamics.inertia)),
        ),
        freedoms=replace(model.freedoms, armature=cast(dynamics.armature)),
        actuators=replace(model.actuators, gainprm=gains, biasprm=bias),
    )
    return rigid.update_invweight(model)


@lru_cache(maxsize=16)
def _load_model(arm: Arm, dtype: str) -> rigid.Model:
    """Return the mechanism of the description, as constants even during tracing."""
    with jax.ensure_compile_time_eval():
        return rigid.load(mjcf_text(arm), dtype=dtype)


def _format_numbers(numbers: Any) -> str:
    return " ".join(f"{x:.17g}" for x in numbers)
