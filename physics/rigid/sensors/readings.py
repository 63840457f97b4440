"""Readings of all sensors of a mechanism at a state, type by type."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.geometry import rotations

from ..forward import Dynamics, State
from ..models.mechanism import Mechanism
from ..models.sensors import Sensor
from ..motion import actuators, forces, inertia
from ..motion.inertia import HIGHEST
from ..motion.poses import cross
from .forces import joint_forces
from .frames import frame_readings, frames
from .touch import touch_readings

_ORIENTATIONS = frozenset("ballquat framequat framexaxis frameyaxis framezaxis".split())


def read_sensors(model: Mechanism, state: State, d: Dynamics) -> Array:
    """Return the sensor readings [S] in file order; `d` is of the same state.

    Raises:
        ValueError: the file has a sensor that is not supported.
    """
    sensors, kinds = model.layout.sensors, dict[str, list[int]]()
    for i, sensor in enumerate(sensors):
        if sensor.refused:
            named = model.layout.element_names("sensor")[i] or f"number {i}"
            raise ValueError(
                f"Model.sensors: {named} is {sensor.refused}, which is not supported; remove it "
                "from the file"
            )
        kinds.setdefault(sensor.kind, []).append(i)
    rows: dict[int, Array] = {}
    for kind, own in kinds.items():
        values = _read_type(model, state, d, kind, [sensors[i] for i in own])  # [width, n]
        rows |= {i: _clip_to_cutoff(sensors[i], value) for i, value in zip(own, values.T)}
    return jnp.concatenate([jnp.zeros(0, state.qpos.dtype), *(rows[i] for i in sorted(rows))])


def _clip_to_cutoff(sensor: Sensor, value: Array) -> Array:
    if not sensor.cutoff or sensor.kind in _ORIENTATIONS:
        return value
    return jnp.clip(value, None if sensor.positive else -sensor.cutoff, sensor.cutoff)


def _read_type(model: Mechanism, state: State, d: Dynamics, kind: str, own: list[Sensor]) -> Array:
    """Return the readings [width, n] of sensors of one type."""
    which = np.array([sensor.at for sensor in own], int)
    if kind in _PLAIN:
        return _PLAIN[kind](model, state, d, which)
    if kind.startswith("subtree"):
        return _subtree_readings(model, d)[kind][:, which]
    frame = frames(model, d, [sensor.of for sensor in own], which.tolist())
    if kind in ("framelinacc", "frameangacc"):
        return frame.acceleration(model, state.qvel, d)[kind == "framelinacc"]
    if kind.startswith("frame"):
        ref = frames(model, d, [sensor.ref for sensor in own], [sensor.ref_at for sensor in own])
        return frame_readings(frame, ref, d)[kind]
    if kind == "touch":
        return touch_readings(model, frame, which, d)[None]
    if kind == "accelerometer":
        return frame.from_world(frame.acceleration(model, state.qvel, d)[1])
    if kind in ("gyro", "velocimeter"):
        return frame.from_world(frame.velocity(d)[kind == "velocimeter"])
    held = joint_forces(model, state.qvel, d)[:, frame.body]
    arm = frame.pos - d.motion.origin[:, frame.body]
    return frame.from_world(held[3:] if kind == "force" else held[:3] - cross(arm, held[3:]))


def _subtree_readings(model: Mechanism, d: Dynamics) -> dict[str, Array]:
    """Return centre of mass, velocity and angular momentum [3, B] of each body's subtree."""
    below = model.layout.is_descendant | (np.arange(model.layout.nbody) == 0)[None]
    tree = jnp.asarray(below.T, d.qacc.dtype)
    total = lambda a: jnp.einsum("ij,kj->ki", tree, a, precision=HIGHEST)
    mass = model.bodies.mass[None]
    whole = jnp.maximum(total(mass), 1e-15)
    centre = total(mass * d.where.centre) / whole
    momenta = inertia.mul_inert_vec(d.motion.inertia, d.motion.velocity)
    shift = momenta[3:]
    turn = total(momenta[:3] + cross(d.motion.origin, shift)) - cross(centre, total(shift))
    return {
        "subtreecom": centre,
        "subtreelinvel": total(shift) / whole,
        "subtreeangmom": turn,
    }


def _make_dof_reader(
    values: Callable[[State, Dynamics], Array], width: int = 1
) -> Callable[..., Array]:
    """Make a reader of values at the dofs of joints."""

    def read_values(model: Mechanism, state: State, d: Dynamics, which: np.ndarray) -> Array:
        return values(state, d)[model.layout.dofadr[which] + np.arange(width)[:, None]]

    return read_values


def _joint_positions(model: Mechanism, state: State, d: Dynamics, which: np.ndarray) -> Array:
    return state.qpos[model.layout.qposadr[which]][None]


def _quaternions(model: Mechanism, state: State, d: Dynamics, which: np.ndarray) -> Array:
    return rotations.unit(state.qpos[model.layout.qposadr[which] + np.arange(4)[:, None]])


def _tendon_lengths(model: Mechanism, state: State, d: Dynamics, which: np.ndarray) -> Array:
    return forces.tendon_lengths(model, state.qpos)[which][None]


def _tendon_velocities(model: Mechanism, state: State, d: Dynamics, which: np.ndarray) -> Array:
    weight = model.tendons.weight[which]
    return jnp.einsum("tv,v->t", weight, state.qvel, precision=HIGHEST)[None]


def _actuator_lengths(model: Mechanism, state: State, d: Dynamics, which: np.ndarray) -> Array:
    return actuators.actuator_lengths(model, state.qpos)[which][None]


def _actuator_velocities(model: Mechanism, state: State, d: Dynamics, which: np.ndarray) -> Array:
    arms = actuators.moment_arms(model)[which]
    return jnp.einsum("uv,v->u", arms, state.qvel, precision=HIGHEST)[None]


_PLAIN: dict[str, Callable[..., Array]] = {
    "jointpos": _joint_positions,
    "jointvel": _make_dof_reader(lambda state, d: state.qvel),
    "jointactuatorfrc": _make_dof_reader(lambda state, d: d.actuator),
    "ballquat": _quaternions,
    "ballangvel": _make_dof_reader(lambda state, d: state.qvel, 3),
    "tendonpos": _tendon_lengths,
    "tendonvel": _tendon_velocities,
    "actuatorpos": _actuator_lengths,
    "actuatorvel": _actuator_velocities,
    "actuatorfrc": lambda model, state, d, which: d.motor[which][None],
    "clock": lambda model, state, d, which: jnp.full((1, len(which)), state.time),
}
