"""Steps per second of jaxgpu, MJX and MuJoCo's C library: an arm, and robots in floor contact.

Needs MJX (the extra `bench`), and gymnasium for the model files of the robots.
"""

import copy
import dataclasses
from collections.abc import Callable
from importlib import import_module, resources
from importlib.metadata import version
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.harness import Contender, Entry
from jaxgpu.devices.precision import platform
from jaxgpu.physics import rigid

JOINTS, DT, STEPS, COPIES, GRADIENT_STEPS = 7, 0.005, 50, 1024, 10
# copies, the number of them that C steps on one core, steps, initial seconds from the rest pose
ROBOTS, ALONE, ROBOT_STEPS, FALL = 128 if platform() == "cpu" else 4096, 128, 10, 0.6
ITERATIONS, LINE = 6, 8  # of MJX: Newton iterations, and line search iterations


def _chain_mjcf() -> str:
    bodies = "".join(
        f'<body pos="0 0 0.15"><joint axis="{("0 0 1", "0 1 0")[i % 2]}" damping="1" '
        'armature="0.01"/><geom type="capsule" fromto="0 0 0 0 0 0.15" size="0.03" mass="1" '
        'contype="0" conaffinity="0"/>'
        for i in range(JOINTS)
    )
    option = f'<option timestep="{DT}"><flag constraint="disable"/></option>'
    return f"<mujoco>{option}<worldbody>{bodies}{'</body>' * JOINTS}</worldbody></mujoco>"


def _make_jaxgpu_rollout(steps: int) -> Callable[[Any, Any], Any]:
    model = rigid.load(_chain_mjcf())

    def rollout(q: Any, force: Any) -> Any:
        def advance(state: Any, _: Any) -> tuple[Any, None]:
            return model.step(state, force=force), None

        start = dataclasses.replace(model.init(), qpos=q)
        return jax.lax.scan(advance, start, length=steps)[0].qpos

    return jax.vmap(rollout)


def _make_mjx_rollout(steps: int) -> Callable[[Any, Any], Any]:
    mujoco, mjx = import_module("mujoco"), import_module("mujoco.mjx")
    model = mjx.put_model(mujoco.MjModel.from_xml_string(_chain_mjcf()))
    data = mjx.make_data(model)

    def rollout(q: Any, force: Any) -> Any:
        def advance(d: Any, _: Any) -> tuple[Any, None]:
            return mjx.step(model, d), None

        start = data.replace(qpos=q, qfrc_applied=force)
        return jax.lax.scan(advance, start, length=steps)[0].qpos

    return jax.vmap(rollout)


def _run_mujoco(q: Any) -> dict[str, float]:
    mujoco = import_module("mujoco")
    model = mujoco.MjModel.from_xml_string(_chain_mjcf())
    data, total = mujoco.MjData(model), 0.0
    for start in q:
        mujoco.mj_resetData(model, data)
        data.qpos[:] = start
        mujoco.mj_step(model, data, nstep=STEPS)
        total += float(np.sum(data.qpos))
    return {"sum of q": total}


def _forward_contender(name: str, make: Callable[[int], Any], q: Any) -> Contender:
    f = jax.jit(lambda q, force: jnp.sum(make(STEPS)(q, force)))
    return Contender(name, lambda: {"sum of q": f(q, jnp.zeros((COPIES, JOINTS)))})


def _gradient_contender(name: str, make: Callable[[int], Any], q: Any) -> Contender:
    loss = lambda q, force: jnp.sum(make(GRADIENT_STEPS)(q, force) ** 2)
    f = jax.jit(jax.grad(loss, 1))
    force = jnp.zeros((COPIES, JOINTS))
    return Contender(name, lambda: {"norm of gradient": jnp.linalg.norm(f(q, force))})


def _c_library_name() -> str:
    return f"C MuJoCo {import_module('mujoco').__version__}"


def _load_robot(name: str) -> Any:
    """Return MuJoCo's model of a robot of gymnasium."""
    file = resources.files("gymnasium") / "envs" / "mujoco" / "assets" / f"{name}.xml"
    return import_module("mujoco").MjModel.from_xml_path(str(file))


def _fall_states(model: Any) -> tuple[Any, Any, Any]:
    """Return coordinates, velocities and controls of copies, with `ALONE` different falls."""
    mujoco, random = import_module("mujoco"), np.random.default_rng(0)
    low, high = model.actuator_ctrlrange.T
    ctrl = random.uniform(low, high, (ALONE, model.nu))
    data, starts = mujoco.MjData(model), []
    for own in ctrl:
        mujoco.mj_resetData(model, data)
        data.ctrl[:] = own
        mujoco.mj_step(model, data, nstep=round(FALL / model.opt.timestep))
        starts.append((data.qpos.copy(), data.qvel.copy()))
    qpos, qvel = (np.array(x) for x in zip(*starts))
    tile = lambda x: np.tile(x, (ROBOTS // ALONE, 1))
    return tile(qpos), tile(qvel), tile(ctrl)


def _make_jaxgpu_contact_rollout(model: Any) -> Callable[[Any, Any, Any], Any]:
    robot = rigid.load(model)

    def rollout(qpos: Any, qvel: Any, ctrl: Any) -> Any:
        start = dataclasses.replace(robot.init(), qpos=qpos, qvel=qvel)
        advance = lambda state, _: (robot.step(state, ctrl), None)
        return jax.lax.scan(advance, start, length=ROBOT_STEPS)[0].qvel

    return rollout


def _make_mjx_contact_rollout(model: Any) -> Callable[[Any, Any, Any], Any]:
    mjx = import_module("mujoco.mjx")
    quick = copy.copy(model)
    # MJX does not have PGS, which the humanoid's file requests
    quick.opt.solver = import_module("mujoco").mjtSolver.mjSOL_NEWTON
    quick.opt.iterations, quick.opt.ls_iterations = ITERATIONS, LINE
    there = mjx.put_model(quick)
    data = mjx.make_data(model)

    def rollout(qpos: Any, qvel: Any, ctrl: Any) -> Any:
        start = data.replace(qpos=qpos, qvel=qvel, ctrl=ctrl)
        advance = lambda d, _: (mjx.step(there, d), None)
        return jax.lax.scan(advance, start, length=ROBOT_STEPS)[0].qvel

    return rollout


def _run_mujoco_contacts(model: Any, qpos: Any, qvel: Any, ctrl: Any) -> dict[str, float]:
    mujoco = import_module("mujoco")
    data, square = mujoco.MjData(model), 0.0
    for start in zip(qpos[:ALONE], qvel, ctrl):
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:], data.ctrl[:] = start
        mujoco.mj_step(model, data, nstep=ROBOT_STEPS)
        square += float(np.sum(data.qvel**2))
    return {"rms of velocities": (square / qvel[:ALONE].size) ** 0.5}


def _contact_entry(name: str, peers: str) -> Entry:
    """Return an entry of copies of a robot of gymnasium that lie and roll on the floor."""
    model = _load_robot(name)
    start = _fall_states(model)

    def make_run(one: Callable[[Any, Any, Any], Any]) -> Callable[[], dict[str, Any]]:
        f = jax.jit(lambda *given: jnp.sqrt(jnp.mean(jax.vmap(one)(*given) ** 2)))
        given = [jnp.asarray(x, jnp.float32) for x in start]
        return lambda: {"rms of velocities": f(*given)}

    each = "," if ROBOTS == ALONE else f", {ALONE} starts over and over,"
    work = f"{ROBOTS} of gymnasium's {name} on the floor{each} {ROBOT_STEPS} steps of RK4"
    return Entry(
        f"rigid {name}",
        f"{work} of {model.opt.timestep:g} s, random controls",
        [
            Contender("jaxgpu", make_run(_make_jaxgpu_contact_rollout(model))),
            Contender(f"{peers}, {ITERATIONS} turns", make_run(_make_mjx_contact_rollout(model))),
            Contender(
                _c_library_name(), lambda: _run_mujoco_contacts(model, *start), ALONE / ROBOTS
            ),
        ],
        float(ROBOTS * ROBOT_STEPS),
        "steps",
        rounds=3,
    )


def entries() -> list[Entry]:
    """Return the motion of 1024 arms, its gradient in the forces, and robots in contact."""
    q = jax.random.normal(jax.random.key(0), (COPIES, JOINTS)) * 0.1
    peers = f"MJX {version('mujoco-mjx')}"
    forward = Entry(
        "rigid",
        f"{COPIES} arms of {JOINTS} joints, {STEPS} steps of {DT} s, damping, gravity, no contact",
        [
            _forward_contender("jaxgpu", _make_jaxgpu_rollout, q),
            _forward_contender(peers, _make_mjx_rollout, q),
            Contender(_c_library_name(), lambda: _run_mujoco(np.asarray(q, float))),
        ],
        float(COPIES * STEPS),
        "steps",
    )
    gradient = Entry(
        "rigid gradient",
        f"reverse-mode gradient of {COPIES} arms over {GRADIENT_STEPS} steps, else the same",
        [
            _gradient_contender("jaxgpu", _make_jaxgpu_rollout, q),
            _gradient_contender(peers, _make_mjx_rollout, q),
        ],
        float(COPIES * GRADIENT_STEPS),
        "steps",
    )
    touching = [_contact_entry(name, peers) for name in ("ant", "humanoid")]
    return [forward, dataclasses.replace(gradient, rounds=3), *touching]
