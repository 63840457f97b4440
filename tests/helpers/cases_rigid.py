"""API cases of `jaxgpu.physics.rigid`."""

import dataclasses

import numpy as np
from api_cases import ApiCase

from jaxgpu.physics import rigid
from jaxgpu.physics.rigid.sensors import contact_forces

# an arm on a slide whose end touches a floor, with an actuator, a joint limit and joint friction
TEXT = """<mujoco><worldbody><geom type="plane" size="2 2 .1"/>
<body name="cart" pos="0 0 .5">
<joint name="rail" type="slide" axis="1 0 0" range="-1 1" damping="1"/>
<geom type="box" size=".1 .1 .05" mass="1"/>
<body name="arm"><joint name="pivot" axis="0 1 0" frictionloss=".1" stiffness="1"/>
<geom type="capsule" size=".05" fromto="0 0 0 0 0 -.46" mass=".5"/></body></body></worldbody>
<actuator><motor joint="rail" gear="5" ctrlrange="-1 1"/></actuator></mujoco>"""
MODEL = rigid.load(TEXT, contacts=4, iterations=4)
Q, V, F = (np.array(x, np.float32) for x in ([0.1, 0.2], [0.3, -0.5], [1.0, 0.2]))
CTRL = np.array([0.4], np.float32)
ANY = tuple(
    f"{x}: {kind}"
    for x in ("qpos", "qvel", "force", "qacc", "ctrl")
    for kind in ("zero", "negative")
)


def _unchecked_state(model, qpos, qvel):
    """Return a state that bypasses the checks of `init`."""
    return dataclasses.replace(model.init(), qpos=qpos, qvel=qvel)


CASES = [
    ApiCase(
        "physics.rigid.Model.init",
        lambda model, qpos, qvel: model.init(qpos, qvel),
        {"model": MODEL, "qpos": Q, "qvel": V},
        right=(*ANY, "qpos: None", "qvel: None"),
        free=("model",),
    ),
    ApiCase(
        "physics.rigid.Model.step",
        lambda model, qpos, qvel, ctrl, force: model.step(
            _unchecked_state(model, qpos, qvel), ctrl, force
        ),
        {"model": MODEL, "qpos": Q, "qvel": V, "ctrl": CTRL, "force": F},
        right=(*ANY, "ctrl: None", "force: None"),
        free=("model",),
    ),
    ApiCase(
        "physics.rigid.Model.sensors",
        lambda model, qpos, ctrl: model.sensors(_unchecked_state(model, qpos, V), ctrl),
        {"model": MODEL, "qpos": Q, "ctrl": CTRL},
        right=(*ANY, "ctrl: None"),
        free=("model",),
    ),
    ApiCase(
        "physics.rigid.sensors.contact_forces",
        lambda model, qpos: contact_forces(model, model.forward(_unchecked_state(model, qpos, V))),
        {"model": MODEL, "qpos": Q},
        right=ANY,
        free=("model",),
    ),
    ApiCase(
        "physics.rigid.mass_matrix",
        lambda model, qpos: rigid.mass_matrix(model, _unchecked_state(model, qpos, V)),
        {"model": MODEL, "qpos": Q},
        right=ANY,
        free=("model",),
    ),
    ApiCase(
        "physics.rigid.inverse_dynamics",
        lambda model, qpos, qacc: rigid.inverse_dynamics(
            model, _unchecked_state(model, qpos, V), qacc
        ),
        {"model": MODEL, "qpos": Q, "qacc": F},
        right=ANY,
        free=("model",),
    ),
    ApiCase(
        "physics.rigid.jacobian",
        lambda model, point: rigid.jacobian(model, _unchecked_state(model, Q, V), 2, point)[0],
        {"model": MODEL, "point": np.array([0.1, 0.2, 0.3], np.float32)},
        right=("point: zero", "point: negative"),
        free=("model",),
    ),
]
