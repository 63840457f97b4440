"""The simulator `Model`, and `load`, which reads MuJoCo's files."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs.arguments import format_value
from jaxgpu.inputs.calls import defer_check
from jaxgpu.inputs.explanations import explain_errors, on_host
from jaxgpu.inputs.fields import pytree
from jaxgpu.inputs.ranges import check, numbers

from . import forward, integrators
from .forward import Dynamics, State
from .models.conversion import convert_model
from .models.feature_checks import check_features, check_pairs
from .models.mechanism import Mechanism
from .models.source import compile_model
from .motion import poses
from .motion.poses import Poses
from .sensors.readings import read_sensors


@pytree
class Model(Mechanism):
    """A simulator of a MuJoCo model: its bodies, joints, geoms, actuators and contacts.

    Fields are those of MuJoCo's compiled model, grouped by element; every number is a pytree leaf.
    `dataclasses.replace` makes a changed copy. `invweight`, which scales the softness of
    constraints, belongs to the file's masses and does not follow changed ones, as in MuJoCo.

    >>> import dataclasses
    >>> robot = load(BALL)
    >>> light = dataclasses.replace(robot.bodies, mass=robot.bodies.mass / 2)
    >>> round(float(dataclasses.replace(robot, bodies=light).bodies.mass[1]), 3)
    2.094
    """

    def init(self, qpos: Any = None, qvel: Any = None, key: str | None = None) -> State:
        """Return a state at the coordinates `qpos` [Q], by default at qpos0 of the file.

        Args:
            qpos: coordinates [Q], m and rad; quaternions of balls and free joints, of any length.
            qvel: velocities [V], m/s and rad/s; zero if not given.
            key: the name of a keyframe of the file, instead of `qpos`.

        Raises:
            ValueError: values of the wrong shape or not finite, a quaternion of length zero, both
                `qpos` and `key`, or an unknown keyframe.
        """
        name, layout, dtype = "Model.init", self.layout, self.qpos0.dtype
        check(name, self)
        if key is not None:
            if qpos is not None:
                raise ValueError(f"{name}: both qpos and key={key!r}; give one of them")
            if key not in self.keyframes:
                raise ValueError(
                    f"{name}: key={key!r}; the file has {sorted(self.keyframes)}; name one of them"
                )
            qpos = self.keyframes[key]
        q = self.qpos0 if qpos is None else numbers(f"{name}: qpos", qpos, (layout.nq,))
        v = np.zeros(layout.nv) if qvel is None else numbers(f"{name}: qvel", qvel, (layout.nv,))
        q = jnp.asarray(q, dtype)
        _check_quaternions(name, layout, q)
        held = np.array([b for b, at in enumerate(layout.body_mocap) if at >= 0], int)
        return State(
            qpos=q,
            qvel=jnp.asarray(v, dtype),
            act=jnp.zeros(layout.na, dtype),
            time=jnp.zeros((), dtype),
            warm=jnp.zeros(layout.nv, dtype),
            mocap_pos=self.bodies.pos[held],
            mocap_quat=self.bodies.quat[held],
            overflow=jnp.zeros((), jnp.int32),
        )

    def step(self, state: State, ctrl: Any = None, force: Any = None) -> State:
        """Return the state after one step of `option.timestep`.

        Args:
            state: the state before the step.
            ctrl: controls [U] of the actuators, in their units; zero if not given.
            force: applied forces [V] on the dofs, N and N m, constant over the step.

        Differentiable in everything except sizes, by the implicit function theorem at the solution
        of the contact problem. The derivative jumps where the set of active contacts changes.
        """
        state = self.check_state("Model.step", state)
        ctrl, force = self._controls_and_forces("Model.step", ctrl, force)
        return integrators.step(self, state, ctrl, force)

    def forward(self, state: State, ctrl: Any = None, force: Any = None) -> Dynamics:
        """Return poses, contacts, forces and accelerations at a state.

        The arguments are those of `step`.
        """
        state = self.check_state("Model.forward", state)
        ctrl, force = self._controls_and_forces("Model.forward", ctrl, force)
        return forward.dynamics(self, state, ctrl, force)

    def sensors(self, state: State, ctrl: Any = None, force: Any = None) -> Array:
        """Return the sensor readings [S] at a state in file order, MuJoCo's `sensordata`.

        The arguments are those of `step`. `sensor` returns the slice of one sensor.

        Raises:
            ValueError: the file has a sensor that is not supported, such as a camera's.

        >>> gyro = BALL.replace("</body>", '<site name="in"/></body>').replace(
        ...     "</worldbody>", '</worldbody><sensor><gyro name="turn" site="in"/></sensor>')
        >>> robot = load(gyro)
        >>> state = robot.init(qvel=[0, 0, 0, 0, 0, 2.0])
        >>> robot.sensors(state)[robot.sensor("turn")].tolist()
        [0.0, 0.0, 2.0]
        """
        state = self.check_state("Model.sensors", state)
        ctrl, force = self._controls_and_forces("Model.sensors", ctrl, force)
        return read_sensors(self, state, forward.dynamics(self, state, ctrl, force))

    @on_host
    def sensor(self, name: str) -> slice:
        """Return the slice of the named sensor's values in the result of `sensors`.

        Raises:
            ValueError: no sensor has this name; the message lists the existing names.
        """
        which = self.index("sensor", name)
        widths = [sensor.width for sensor in self.layout.sensors]
        return slice(sum(widths[:which]), sum(widths[: which + 1]))

    def poses(self, state: State) -> Poses:
        """Return the world poses of bodies, their centres of mass and joints."""
        state = self.check_state("Model.poses", state)
        return poses.poses(self, state.qpos, (state.mocap_pos, state.mocap_quat))

    def index(self, kind: str, name: str) -> int:
        """Return the index of the body, joint, geom, site, tendon, actuator or sensor of a name.

        Raises:
            ValueError: no such element; the message lists the existing names.

        >>> load(BALL).index("body", "ball")
        1
        """
        known = dict(self.layout.names)
        if kind not in known:
            raise ValueError(f"Model.index: kind={kind!r}; it must be one of {sorted(known)}")
        if name not in known[kind]:
            there = [each for each in known[kind] if each]
            raise ValueError(f"Model.index: no {kind} {name!r}; there are {there}; name one")
        return known[kind].index(name)

    def view(self, state: State) -> dict[str, tuple[Array, Array]]:
        """Return the segments that `jaxgpu.show` draws, with ends [..., 2 (B - 1), 3], m.

        A body is drawn from its parent's origin to its own, and on to its centre of mass. The state
        may be a batch.
        """

        def segment_ends(qpos: Array, pos: Array, quat: Array) -> tuple[Array, Array]:
            where = poses.poses(self, qpos, (pos, quat))
            origin, above = where.pos.T, np.array(self.layout.body_parent)[1:]
            start = jnp.concatenate([origin[above], origin[1:]])
            return start, jnp.concatenate([origin[1:], where.centre.T[1:]])

        for _ in range(state.qpos.ndim - 1):
            segment_ends = jax.vmap(segment_ends)
        return {"links": segment_ends(state.qpos, state.mocap_pos, state.mocap_quat)}

    def check_state(self, name: str, state: State) -> State:
        """Check a state and return it: shapes always, values only outside traced programs.

        Raises:
            ValueError: a parameter of the model out of its range, or values of the state of the
                wrong shape or not finite; the message begins with `name`.
        """
        check(name, self)
        layout, seen = self.layout, {}
        for field, width in (("qpos", layout.nq), ("qvel", layout.nv), ("act", layout.na)):
            shape = np.shape(getattr(state, field))
            if shape != (width,):
                raise ValueError(
                    f"{name}: state.{field} has shape {list(shape)}; it must be [{width}]; for "
                    "many states use jax.vmap"
                )
            value = numbers(f"{name}: state.{field}", getattr(state, field), (width,))
            seen[field] = jnp.asarray(value, self.qpos0.dtype)
        return replace(state, **seen)

    def _controls_and_forces(self, name: str, ctrl: Any, force: Any) -> tuple[Array, Array]:
        """Return controls [U] and forces [V], zero where not given."""
        layout, dtype = self.layout, self.qpos0.dtype
        given = []
        for word, x, width in (("ctrl", ctrl, layout.nu), ("force", force, layout.nv)):
            x = np.zeros(width) if x is None else numbers(f"{name}: {word}", x, (width,))
            given.append(jnp.asarray(x, dtype))
        return given[0], given[1]


BALL = """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body name="ball" pos="0 0 1">
<freejoint/><geom size="0.1"/></body></worldbody></mujoco>"""


@explain_errors
@on_host
def load(
    source: Any,
    *,
    contacts: int = 32,
    iterations: int = 8,
    contact: str = "soft",
    sdf: Mapping[str, Any] | None = None,
    dtype: Any = None,
) -> Model:
    """Load a model from a file, an XML text, an `MjSpec` or an `MjModel` of MuJoCo.

    MuJoCo itself parses and compiles MJCF and URDF: defaults, includes, meshes, inertias, and the
    constants at qpos0. A feature that changes the motion and is not simulated raises an error.

    Args:
        source: the path of a file, its text, an `MjSpec` or an `MjModel`.
        contacts: the maximum number of simultaneous contacts for each condim; a state counts the
            dropped ones, the shallowest, in `overflow`.
        iterations: the number of Newton iterations for the constraint forces; a CPU stops earlier
            once it has found the minimum.
        contact: "soft", MuJoCo's contacts, or "compliant": springs and dampers at the end of the
            step, whose force begins and ends at zero, for gradients through contact.
        sdf: meshes that collide by their signed distance, including hollows and holes, instead of
            their convex hull: a dictionary from geom names to a grid spacing, m, or to a shape of
            `jaxgpu.geometry.sdf` in the axes of the mesh's file. Meshes must be closed.
        dtype: floating type of the model; the default precision if not given.

    Raises:
        ValueError: MuJoCo cannot read the source, it needs a feature that is not simulated here, or
            a mesh of `sdf` is not closed, thinner than two spacings, or does not match its shape.

    >>> robot = load(BALL)
    >>> state = jax.lax.fori_loop(0, 500, lambda _, s: robot.step(s), robot.init())
    >>> round(float(state.qpos[2]), 2)  # it has come to rest on the floor
    0.1
    """
    for word, x in (("contacts", contacts), ("iterations", iterations)):
        numbers(f"load: {word}", x, (), whole=True, least=1)
    compliant = contact == "compliant"
    if not (compliant or contact == "soft"):
        raise ValueError(f'load: contact={format_value(contact)}; it must be "soft" or "compliant"')
    m = compile_model(source)
    check_features(m)
    if compliant and m.opt.integrator == 1:
        raise ValueError(
            'load: contact="compliant" with RK4, whose stages are no ends of steps; choose Euler'
        )
    kind = jax.dtypes.canonicalize_dtype(dtype or float)
    if not jnp.issubdtype(kind, jnp.floating):
        raise ValueError(f"load: dtype={dtype}; it must be a floating type; give jnp.float32")
    sizes = dict(contacts=int(contacts), iterations=int(iterations), compliant=compliant)
    model = Model(**convert_model(m, sizes, sdf, kind))
    check_pairs(model.layout)
    return model


def _check_quaternions(name: str, layout: Any, qpos: Array) -> None:
    defer_check(partial(_check_nonzero, name, layout), qpos)


def _check_nonzero(name: str, layout: Any, qpos: Array) -> None:
    q = np.asarray(qpos)
    for joint, kind in enumerate(layout.joint_kind):
        if kind in ("ball", "free"):
            at = int(layout.qposadr[joint]) + 3 * (kind == "free")
            if not np.any(q[at : at + 4]):
                raise ValueError(f"{name}: qpos[{at}:{at + 4}] is 0; it must be a quaternion")
