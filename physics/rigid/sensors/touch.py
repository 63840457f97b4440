"""Touch sensors: the normal forces of contacts whose ray meets the volume of a site."""

import jax.numpy as jnp
import numpy as np
from jax import Array

from ..forward import Dynamics
from ..models.mechanism import Mechanism
from ..motion.poses import rotate
from .frames import Frames, conjugate


def touch_readings(model: Mechanism, site: Frames, which: np.ndarray, d: Dynamics) -> Array:
    """Return the readings [N] of touch sensors: sums over the contacts of each site's body, N.

    A contact counts if the ray from it along its normal, out of the site's body, meets the site's
    volume.
    """
    total = jnp.zeros(len(which), d.qacc.dtype)
    body = jnp.asarray(np.array(model.layout.geom_body, np.int32))
    for c, push in zip(d.contacts, d.pushes):
        pressed = push[:, 0]
        for side, sign in enumerate((1, -1)):
            of = body[c.geoms[:, side]]
            for n, i in enumerate(which):
                turn = conjugate(site.quat[:, n : n + 1])
                begin = rotate(turn, c.pos.T - site.pos[:, n : n + 1])
                along = rotate(turn, sign * c.frame[:, 0].T)
                met = _is_site_hit(model.layout.site_kind[i], model.sites.size[i], begin, along)
                own = (of == int(site.body[n])) & met
                total = total.at[n].add(jnp.sum(jnp.where(own, pressed, 0)))
    return total


def _is_site_hit(kind: str, size: Array, begin: Array, along: Array) -> Array:
    """Return a mask [C] of rays [3, C] that meet a site's shape at the origin."""
    if kind in ("sphere", "ellipsoid"):
        radii = size[:, None] if kind == "ellipsoid" else size[0]
        return _is_ball_hit(begin / radii, along / radii)
    if kind == "box":
        return _is_ahead(*_slab_crossings(begin, along, size[:, None]))
    lower, upper = _slab_crossings(begin[2:], along[2:], size[1])
    wide = begin[:2] / size[0], along[:2] / size[0]
    near, far, meets = _ball_crossings(*wide)
    body = meets & _is_ahead(jnp.maximum(lower, near), jnp.minimum(upper, far))
    if kind == "cylinder":
        return body
    ends = [
        _is_ball_hit(begin.at[2].add(-sign * size[1]) / size[0], along / size[0])
        for sign in (1, -1)
    ]
    return body | ends[0] | ends[1]


def _is_ball_hit(begin: Array, along: Array) -> Array:
    """Return whether rays [k, C] from `begin` along `along` meet the unit ball."""
    near, far, meets = _ball_crossings(begin, along)
    return meets & _is_ahead(near, far)


def _ball_crossings(begin: Array, along: Array) -> tuple[Array, Array, Array]:
    """Return where rays [k, C] enter and leave the unit ball, and a mask of rays that meet it."""
    a, b = jnp.sum(along * along, 0), jnp.sum(along * begin, 0)
    c = jnp.sum(begin * begin, 0) - 1
    square = b * b - a * c
    tilted = a > 1e-30
    root, safe = jnp.sqrt(jnp.maximum(square, 0)), jnp.where(tilted, a, 1)
    near = jnp.where(tilted, (-b - root) / safe, -jnp.inf)
    far = jnp.where(tilted, (-b + root) / safe, jnp.inf)
    return near, far, jnp.where(tilted, square >= 0, c <= 0)


def _slab_crossings(begin: Array, along: Array, half: Array) -> tuple[Array, Array]:
    """Return where rays [k, C] enter and leave the intersection of k slabs."""
    tilted = jnp.abs(along) > 1e-15
    safe = jnp.where(tilted, along, 1)
    ends = (-half - begin) / safe, (half - begin) / safe
    inside = jnp.abs(begin) <= half
    enter = jnp.where(tilted, jnp.minimum(*ends), jnp.where(inside, -jnp.inf, jnp.inf))
    leave = jnp.where(tilted, jnp.maximum(*ends), jnp.where(inside, jnp.inf, -jnp.inf))
    return jnp.max(enter, 0), jnp.min(leave, 0)


def _is_ahead(near: Array, far: Array) -> Array:
    return (far >= jnp.maximum(near, 0)) & (far >= 0)
