"""A seven-joint arm: steps a second of ours, of MJX and of MuJoCo's C library, and gradients.

Needs the extra `robots`.
"""

import dataclasses
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.harness import Contender, Entry
from jaxgpu.physics import rigid

JOINTS, DT, STEPS, COPIES, GRADIENT_STEPS = 7, 0.005, 50, 1024, 10


def _chain() -> str:
    bodies = "".join(
        f'<body pos="0 0 0.15"><joint axis="{("0 0 1", "0 1 0")[i % 2]}" damping="1" '
        'armature="0.01"/><geom type="capsule" fromto="0 0 0 0 0 0.15" size="0.03" mass="1" '
        'contype="0" conaffinity="0"/>'
        for i in range(JOINTS)
    )
    option = f'<option timestep="{DT}"><flag constraint="disable"/></option>'
    return f"<mujoco>{option}<worldbody>{bodies}{'</body>' * JOINTS}</worldbody></mujoco>"


def _ours(steps: int) -> Callable[[Any, Any], Any]:
    tree = rigid.from_mjcf(_chain())
    spec = rigid.Simulation(tree, rigid.passive(tree), DT)

    def run(q: Any, force: Any) -> Any:
        def advance(state: Any, _: Any) -> tuple[Any, None]:
            return spec.step(state, None, force), None

        start = rigid.State(q, jnp.zeros_like(q))
        return jax.lax.scan(advance, start, length=steps)[0].q

    return run


def _mjx(steps: int) -> Callable[[Any, Any], Any]:
    mujoco, mjx = import_module("mujoco"), import_module("mujoco.mjx")
    model = mjx.put_model(mujoco.MjModel.from_xml_string(_chain()))
    data = mjx.make_data(model)

    def one(q: Any, force: Any) -> Any:
        def advance(d: Any, _: Any) -> tuple[Any, None]:
            return mjx.step(model, d), None

        start = data.replace(qpos=q, qfrc_applied=force)
        return jax.lax.scan(advance, start, length=steps)[0].qpos

    return jax.vmap(one)


def _mujoco(q: Any) -> dict[str, float]:
    mujoco = import_module("mujoco")
    model = mujoco.MjModel.from_xml_string(_chain())
    data, total = mujoco.MjData(model), 0.0
    for start in q:
        mujoco.mj_resetData(model, data)
        data.qpos[:] = start
        mujoco.mj_step(model, data, nstep=STEPS)
        total += float(np.sum(data.qpos))
    return {"sum of q": total}


def _forward(name: str, make: Callable[[int], Any], q: Any) -> Contender:
    f = jax.jit(lambda q, force: jnp.sum(make(STEPS)(q, force)))
    return Contender(name, lambda: {"sum of q": f(q, jnp.zeros((COPIES, JOINTS)))})


def _gradient(name: str, make: Callable[[int], Any], q: Any) -> Contender:
    loss = lambda q, force: jnp.sum(make(GRADIENT_STEPS)(q, force) ** 2)
    f = jax.jit(jax.grad(loss, 1))
    force = jnp.zeros((COPIES, JOINTS))
    return Contender(name, lambda: {"norm of gradient": jnp.linalg.norm(f(q, force))})


def entries() -> list[Entry]:
    """Motion of 1024 arms, then its gradient in the forces."""
    q = jax.random.normal(jax.random.key(0), (COPIES, JOINTS)) * 0.1
    peers = f"MJX {version('mujoco-mjx')}"
    forward = Entry(
        "rigid",
        f"{COPIES} arms of {JOINTS} joints, {STEPS} steps of {DT} s, damping, gravity, no contact",
        [
            _forward("jaxgpu", _ours, q),
            _forward(peers, _mjx, q),
            Contender(f"C MuJoCo {version('mujoco')}", lambda: _mujoco(np.asarray(q, float))),
        ],
        float(COPIES * STEPS),
        "steps",
    )
    gradient = Entry(
        "rigid gradient",
        f"reverse-mode gradient of {COPIES} arms over {GRADIENT_STEPS} steps, else the same",
        [_gradient("jaxgpu", _ours, q), _gradient(peers, _mjx, q)],
        float(COPIES * GRADIENT_STEPS),
        "steps",
    )
    return [forward, dataclasses.replace(gradient, rounds=3)]
