"""Rendering of a robot of `jaxgpu.physics.rigid` as capsules along its links."""

import jax.numpy as jnp
import numpy as np

from jaxgpu.physics.rigid import Model, State
from jaxgpu.render import Capsules
from jaxgpu.render.capsules import BLUE, STEEL

LINK_RADIUS = 0.1  # radius of a link, relative to the longest link


def draw_links(model: Model, state: State) -> Capsules:
    """Return the links: steel from the parent body, blue to the center of mass.

    A body without a parent is a sphere. The floor is at height 0, or below all bodies.
    """
    start, end = model.view(state)["links"]
    count = len(start) // 2
    hangs = np.append(np.array(model.layout.body_parent)[1:] > 0, np.ones(count, bool))
    start, end = start[hangs], end[hangs]
    long = jnp.sqrt(jnp.max(jnp.sum((end - start) ** 2, -1)))
    thick = LINK_RADIUS * jnp.where(long > 0, long, 1.0)
    ink = np.where(np.arange(2 * count)[hangs, None] < count, STEEL, BLUE)
    lowest = jnp.min(jnp.minimum(start, end)[:, 2]) - thick
    return Capsules(
        start=start,
        end=end,
        radius=jnp.full(len(start), thick),
        colour=jnp.asarray(ink, start.dtype),
        floor=jnp.minimum(lowest, 0.0),
        tile=5 * thick,
    )
