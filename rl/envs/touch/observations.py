"""What is observed of a task: all of it, the hand alone, or the hand and what it feels or sees.

`observation` is "privileged", a vector [56]: the hand, and the state of part and forces; "reduced",
a dictionary of `hand` [25] and, for a critic, `privileged` [31]; or one of "force", "rgb" and
"depth", which adds `field` [rows, columns, 6], the forces on both pads; `gels` [H, W, 6], the
pictures of both pads' gels; or `wrist` [64, 64, 1], how far ahead a camera at the wrist sees
something (`cameras` has both). An actor that is to do without what only a simulation knows has
`actor_keys=("hand", "field")`, its critic all of them.

- `hand`: place from the fixture as observed, in 0.1 m, 3; its x and z axes, 6; velocity, in
  0.1 m/s, 3; spin, rad/s, 3; opening, cm, 1; the last action, 6; way from the goal of a tip in the
  middle of its range, near ones enlarged, 3
- `privileged`: way of the tip from its goal, in 0.1 m, 3, and enlarged where it is near, 3; the
  part's x and z axes, 6; its velocity, in 0.1 m/s, 3, and spin, rad/s, 3; error of the observed
  place, cm, 3; force of fixture and table on it, N, 3; forces on the two pads in the hand's frame,
  N, 6; d, in 0.1 m, 1
- `field`: across and along the finger, and into it, in 0.05 N; one pad after the other
"""

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.geometry import rotations
from jaxgpu.geometry.rows import length

from ...spaces import Box
from . import cameras

if TYPE_CHECKING:
    from .task import TouchTask

KINDS = ("privileged", "reduced", "force", "rgb", "depth")
HAND, PRIVILEGED = 25, 31
NEAR = 0.005  # m at which an enlarged way is half of its greatest
TOUCH = 0.05  # N, of the force on a taxel


def space(env: "TouchTask") -> Any:
    """The space of what is observed."""
    vector = lambda n: Box(-np.inf, np.inf, (n,))
    if env.observation == "privileged":
        return vector(HAND + PRIVILEGED)
    spaces = {"hand": vector(HAND), "privileged": vector(PRIVILEGED)}
    if env.observation == "force":
        rows, columns = env.grid
        spaces["field"] = Box(-np.inf, np.inf, (rows, columns, 6))
    elif env.observation == "rgb":
        spaces["gels"] = Box(0.0, 1.0, (*env.sensor.gel.shape, 6))
    elif env.observation == "depth":
        spaces["wrist"] = Box(0.0, 1.0, (cameras.PIXELS, cameras.PIXELS, 1))
    return spaces


def observe(env: "TouchTask", state: Any) -> Any:
    """What is observed at a state."""
    parts = {"hand": hand(env, state), "privileged": privileged(env, state)}
    if env.observation == "privileged":
        return jnp.concatenate([parts["hand"], parts["privileged"]])
    if env.observation == "force":
        parts["field"] = field(env, state)
    elif env.observation == "rgb":
        parts["gels"] = cameras.gels(env, state)
    elif env.observation == "depth":
        parts["wrist"] = cameras.wrist(env, state)
    return parts


def hand(env: "TouchTask", state: Any) -> Array:
    """What the hand knows of itself and of the fixture, [25]."""
    scene = state.grasp
    place = scene.hand - scene.fixture - state.error
    below = jnp.asarray(env.reach(), place.dtype)
    way = place.at[2].add(-below - env.grasp.fixture.goal)
    return jnp.concatenate(
        [
            10 * place,
            axes(scene.hand_quat),
            10 * scene.hand_velocity[:3],
            scene.hand_velocity[3:],
            100 * scene.opening[None],
            state.action,
            enlarged(way),
        ]
    )


def privileged(env: "TouchTask", state: Any) -> Array:
    """What only a simulation knows, [31]."""
    scene = state.grasp
    way = env.tip(state) - env.goal(state)
    pads = jnp.sum(scene.field, 1)
    return jnp.concatenate(
        [
            10 * way,
            enlarged(way),
            axes(scene.part_quat),
            10 * scene.part_velocity[:3],
            scene.part_velocity[3:],
            100 * state.error,
            scene.reaction,
            pads.ravel(),
            10 * env.distance(state)[None],
        ]
    )


def field(env: "TouchTask", state: Any) -> Array:
    """Forces on the pads, [rows, columns, 6]: across, along and into each."""
    force = state.grasp.field / TOUCH
    rows, columns = env.grid
    out = jnp.array([1, -1], force.dtype)[:, None]
    seen = jnp.stack([force[:, :, 0], force[:, :, 2], out * force[:, :, 1]], 2)
    return jnp.concatenate(list(seen.reshape(2, rows, columns, 3)), -1)


def axes(quat: Array) -> Array:
    """The x and z axes of a body in space, [6]."""
    turn = rotations.matrix(quat)
    return jnp.stack([row[i] for i in (0, 2) for row in turn])


def enlarged(way: Array) -> Array:
    """A way [3], m, as a vector shorter than one: half as long at `NEAR`."""
    return way / (length(way) + NEAR)
