"""Images of a scene's particles and tools, rendered by `jaxgpu.render`."""

from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxgpu import render

from .particles import State
from .scene import Scene


def points(state: State) -> Array:
    """Return positions [N, 3] of all bodies' slots, one body after the other, m; z = 0 in 2-D."""
    bodies = []
    for b in state.bodies:
        axes = list(b.x.T)
        bodies.append(jnp.stack([*axes, *[jnp.zeros_like(axes[0])] * (3 - len(axes))], -1))
    return jnp.concatenate(bodies)


def picture(
    scene: Scene, state: State, camera: render.Camera, colours: Any, **options: Any
) -> Array:
    """Render an image [H, W, 3] of a 3-D scene, each body in its colour and tools as glass.

    Args:
        scene: the spec, whose colliders are drawn.
        state: positions of particles and tools; slots without mass are hidden.
        camera: the viewpoint.
        colours: [B, 3] of the bodies, red, green and blue in 0 ... 1.
        options: `floor`, its height, m, and `far`, the depth beyond which tools are not drawn, m,
            of `render.picture`.
    """
    filled = jnp.concatenate([b.m.ravel() > 0 for b in state.bodies])
    sizes = [b.m.size for b in state.bodies]
    ink = jnp.asarray(colours, state.bodies[0].x.dtype)
    paint = jnp.repeat(ink, jnp.asarray(sizes), 0, total_repeat_length=sum(sizes))
    look = render.ParticleStyle(jnp.where(filled, 0.575 * scene.grid.dx, 0.0))
    solids = [(c.shape, t.x, t.turn) for c, t in zip(scene.colliders, state.tools)]
    return render.picture(camera, points(state), paint, look, solids=solids, **options)
