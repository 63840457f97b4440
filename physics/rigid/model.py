"""Mechanisms from MuJoCo's files, and what they do: `load`, and the steps of a `Model`."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs.arguments import shown
from jaxgpu.inputs.calls import when_known
from jaxgpu.inputs.doors import explained, on_host
from jaxgpu.inputs.fields import pytree
from jaxgpu.inputs.ranges import check, numbers

from . import forward, integrators
from .forward import Dynamics, State
from .models.model import Mechanism
from .models.read import parts
from .models.refusals import refuse, refuse_pairs
from .models.source import compiled
from .motion import poses
from .motion.poses import Poses
from .sensors.read import read


@pytree
class Model(Mechanism):
    """A mechanism as a simulator: its bodies, joints, shapes, motors and contacts.

    Fields are those of MuJoCo's compiled model, sorted by what they are of; every number is a leaf.
    `dataclasses.replace` makes the changed copy. `invweight`, which scales how soft constraints
    are, is of the file's masses and does not follow changed ones, as in MuJoCo.

    >>> import dataclasses
    >>> robot = load(BALL)
    >>> light = dataclasses.replace(robot.bodies, mass=robot.bodies.mass / 2)
    >>> round(float(dataclasses.replace(robot, bodies=light).bodies.mass[1]), 3)
    2.094
    """

    def init(self, qpos: Any = None, qvel: Any = None, key: str | None = None) -> State:
        """A state at the coordinates `qpos` [Q], the rest pose of the file if not given.

        Args:
            qpos: coordinates [Q], m and rad; quaternions of balls and free joints, of any length.
            qvel: velocities [V], m/s and rad/s; zero if not given.
            key: the name of a keyframe of the file, in place of `qpos`.

        Raises:
            ValueError: numbers of another shape or not finite, a quaternion of length zero, both
                `qpos` and `key`, or no keyframe of this name.
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
        """The state a step of `option.timestep` later.

        Args:
            state: where it is.
            ctrl: of the motors [U], in their units; zero if not given.
            force: further forces [V] on the degrees of freedom, N and N m, held over the step.

        Differentiable in everything but sizes, by the implicit function of the contact problem;
        where the set of acting contacts changes, the derivative has a jump.
        """
        state = self.checked("Model.step", state)
        ctrl, force = self._given("Model.step", ctrl, force)
        return integrators.step(self, state, ctrl, force)

    def forward(self, state: State, ctrl: Any = None, force: Any = None) -> Dynamics:
        """What acts at a state: poses, contacts, forces and accelerations.

        Arguments are those of `step`.
        """
        state = self.checked("Model.forward", state)
        ctrl, force = self._given("Model.forward", ctrl, force)
        return forward.dynamics(self, state, ctrl, force)

    def sensors(self, state: State, ctrl: Any = None, force: Any = None) -> Array:
        """What the sensors of the file read at a state [S], in its order: MuJoCo's `sensordata`.

        Arguments are those of `step`. `sensor` says where the numbers of one sensor stand.

        Raises:
            ValueError: the file has a sensor that is not read here, such as a camera's.

        >>> gyro = BALL.replace("</body>", '<site name="in"/></body>').replace(
        ...     "</worldbody>", '</worldbody><sensor><gyro name="turn" site="in"/></sensor>')
        >>> robot = load(gyro)
        >>> state = robot.init(qvel=[0, 0, 0, 0, 0, 2.0])
        >>> robot.sensors(state)[robot.sensor("turn")].tolist()
        [0.0, 0.0, 2.0]
        """
        state = self.checked("Model.sensors", state)
        ctrl, force = self._given("Model.sensors", ctrl, force)
        return read(self, state, forward.dynamics(self, state, ctrl, force))

    @on_host
    def sensor(self, name: str) -> slice:
        """Where the numbers of the sensor of this name stand among those of `sensors`.

        Raises:
            ValueError: there is none; the sentence says which there are.
        """
        which = self.index("sensor", name)
        widths = [sensor.width for sensor in self.layout.sensors]
        return slice(sum(widths[:which]), sum(widths[: which + 1]))

    def poses(self, state: State) -> Poses:
        """Where bodies, their centres of mass and joints are."""
        state = self.checked("Model.poses", state)
        return poses.poses(self, state.qpos, (state.mocap_pos, state.mocap_quat))

    def index(self, kind: str, name: str) -> int:
        """The place of a body, joint, geom, site, tendon, actuator or sensor of this name.

        Raises:
            ValueError: there is none; the sentence says which there are.

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
        """What `jaxgpu.show` shows at a state or many: ends [..., 2 (B - 1), 3] of the bodies, m.

        A body goes from the origin of the one it hangs on to its own, and on to its centre of mass.
        """

        def ends(qpos: Array, pos: Array, quat: Array) -> tuple[Array, Array]:
            where = poses.poses(self, qpos, (pos, quat))
            origin, above = where.pos.T, np.array(self.layout.body_parent)[1:]
            start = jnp.concatenate([origin[above], origin[1:]])
            return start, jnp.concatenate([origin[1:], where.centre.T[1:]])

        for _ in range(state.qpos.ndim - 1):
            ends = jax.vmap(ends)
        return {"links": ends(state.qpos, state.mocap_pos, state.mocap_quat)}

    def checked(self, name: str, state: State) -> State:
        """The state, looked at: shapes always, values outside of programs.

        Raises:
            ValueError: numbers of the model out of their range, or of the state of another shape or
                not finite; the sentence begins with `name`.
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

    def _given(self, name: str, ctrl: Any, force: Any) -> tuple[Array, Array]:
        """Controls [U] and forces [V], zero where not given."""
        layout, dtype = self.layout, self.qpos0.dtype
        given = []
        for word, x, width in (("ctrl", ctrl, layout.nu), ("force", force, layout.nv)):
            x = np.zeros(width) if x is None else numbers(f"{name}: {word}", x, (width,))
            given.append(jnp.asarray(x, dtype))
        return given[0], given[1]


BALL = """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body name="ball" pos="0 0 1">
<freejoint/><geom size="0.1"/></body></worldbody></mujoco>"""


@explained
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
    """The mechanism of a file, a text, an `MjSpec` or an `MjModel` of MuJoCo.

    MuJoCo itself parses and compiles MJCF and URDF: defaults, includes, meshes, inertias, and the
    constants of the rest pose. What changes the motion and is not simulated is refused by name.

    Args:
        source: the path of a file, its text, or what MuJoCo has made of it.
        contacts: the most contacts that are kept at a time, of each dimension of friction; a state
            counts those beyond it, the shallowest, in `overflow`.
        iterations: turns of Newton's method for the constraint forces, a fixed number; a CPU ends
            sooner where the minimum is found.
        contact: "soft", MuJoCo's contacts, or "compliant": springs and dampers at the end of the
            step, whose force begins and ends at zero, for gradients through contact.
        sdf: meshes that touch by their signed distance, hollows and holes included, and not by
            their convex hull: for names of geoms the spacing of a grid, m, or a shape of
            `jaxgpu.geometry.sdf` in the axes of the mesh's file. Meshes must be closed.
        dtype: of the numbers; the default precision if not given.

    Raises:
        ValueError: MuJoCo cannot read it, it asks for what is not simulated here, or a mesh of
            `sdf` is not closed, thinner than two spacings, or not where its shape is.

    >>> robot = load(BALL)
    >>> state = jax.lax.fori_loop(0, 500, lambda _, s: robot.step(s), robot.init())
    >>> round(float(state.qpos[2]), 2)  # it has come to rest on the floor
    0.1
    """
    for word, x in (("contacts", contacts), ("iterations", iterations)):
        numbers(f"load: {word}", x, (), whole=True, least=1)
    compliant = contact == "compliant"
    if not (compliant or contact == "soft"):
        raise ValueError(f'load: contact={shown(contact)}; it must be "soft" or "compliant"')
    m = compiled(source)
    refuse(m)
    if compliant and m.opt.integrator == 1:
        raise ValueError(
            'load: contact="compliant" with RK4, whose stages are no ends of steps; choose Euler'
        )
    kind = jax.dtypes.canonicalize_dtype(dtype or float)
    if not jnp.issubdtype(kind, jnp.floating):
        raise ValueError(f"load: dtype={dtype}; it must be a floating type; give jnp.float32")
    sizes = dict(contacts=int(contacts), iterations=int(iterations), compliant=compliant)
    model = Model(**parts(m, sizes, sdf, kind))
    refuse_pairs(model.layout)
    return model


def _check_quaternions(name: str, layout: Any, qpos: Array) -> None:
    when_known(partial(_refuse_zeros, name, layout), qpos)


def _refuse_zeros(name: str, layout: Any, qpos: Array) -> None:
    q = np.asarray(qpos)
    for joint, kind in enumerate(layout.joint_kind):
        if kind in ("ball", "free"):
            at = int(layout.joint_q[joint]) + 3 * (kind == "free")
            if not np.any(q[at : at + 4]):
                raise ValueError(f"{name}: qpos[{at}:{at + 4}] is a quaternion of zeros; turn it")
