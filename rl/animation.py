"""Videos of tasks, rendered on the device from environment states."""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.devices import memory, precision
from jaxgpu.inputs import arguments
from jaxgpu.render import Camera

_FRAMES = 4  # frames per call on a CPU, where each core runs one call


def render_frames(env: Any, states: Any, camera: Camera, **options: Any) -> np.ndarray:
    """Render states [T, ...] of an environment with a method `scene` as images [T, H, W, 3], uint8.

    Args:
        env: environment whose `env.scene(state)` returns a `jaxgpu.render.Scene`, an object whose
            method `picture(camera)` returns the image [H, W, 3] in 0 ... 1. Built-in tasks have it.
        states: consecutive states of an episode.
        camera: the camera.
        options: further arguments of `env.scene`, such as the `radius` of an arm's links, m.
    Raises:
        TypeError: if the environment has no method `scene`.
        ValueError: if the leaves of `states` have no common leading axis, or it is empty.
        MemoryError: if the images do not fit into memory.

    >>> from jaxgpu import rl
    >>> env = rl.make("pendulum")
    >>> states = jax.vmap(lambda key: env.reset(key)[0])(jax.random.split(jax.random.key(0), 2))
    >>> camera = Camera((0.0, -5.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), width=8, height=6)
    >>> render_frames(env, states, camera).shape
    (2, 6, 8, 3)
    """
    if not callable(getattr(env, "scene", None)):
        raise TypeError(
            f"render_frames: {type(env).__name__} has no method `scene`; write one that returns "
            "the render.Capsules of a state"
        )

    def draw(state: Any) -> Array:
        return jnp.round(255 * env.scene(state, **options).picture(camera)).astype(jnp.uint8)

    lengths = {jnp.shape(x)[:1] for x in jax.tree.leaves(states)}
    if len(lengths) != 1 or lengths & {(), (0,)}:
        found = " and ".join(str(list(n)) for n in sorted(lengths)) or "no arrays"
        raise ValueError(
            f"render_frames: states begins with {found}; all of its arrays must be [T, ...], T of "
            "1 or more; turn one state into a batch by x[None]"
        )
    ((count,),) = lengths
    size = min(count, _FRAMES) if precision.platform() == "cpu" else count
    rows = np.minimum(np.arange(-(-count // size) * size), count - 1).reshape(-1, size)
    held = jax.tree.map(lambda x: x if arguments.is_key(x) else np.asarray(x), states)
    parts = [jax.tree.map(lambda x, at=at: jnp.asarray(x[at]), held) for at in rows]
    drawn = jax.jit(lambda part: jax.lax.map(draw, part)).lower(parts[0]).compile()
    cores = min(os.cpu_count() or 1, len(parts))
    memory.check_size(
        "render_frames",
        cores * memory.estimate_peak(drawn) + 3 * count * camera.height * camera.width,
    )
    with ThreadPoolExecutor(cores) as threads:
        images = list(threads.map(lambda part: np.asarray(drawn(part)), parts))
    return np.concatenate(images)[:count]
