"""Shading of particles, tools and a floor: colour, light and glass.

Liquids are drawn as one surface: the depth image of their balls is smoothed where neighbours are
within a few radii of one another and unchanged at edges, after Truong & Yuksel (2018),
doi:10.1145/3203201, here by repeated means over the four neighbours. Light is a sun and a sky.
"""

import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.geometry.vectors import Vec, cross, dot, unit
from jaxgpu.inputs.fields import number, pytree, size

from .camera import Camera
from .splat import nearest_ball

SUN = (0.45, 0.8, 0.4)  # direction towards it
SKY = (0.93, 0.95, 0.97)  # colour of the background
TINT = (0.42, 0.55, 0.62)  # colour of glass


@pytree
class ParticleStyle:
    """Rendering parameters of particles."""

    # of the balls that represent the particles
    radius: Array | float = number(least=0, unit="m")  # [] or [N]
    reach: int = size(default=4, least=0)  # pixels about its centre in which a ball is drawn
    smoothing: int = size(default=8, least=0)  # passes of smoothing; 0 shows every ball


def render_particles(
    camera: Camera, x: Array, colour: Array, look: ParticleStyle
) -> tuple[Array, Array]:
    """Render an image [H, W, 3] in 0 ... 1 of lit particles, and its depth [H, W], m.

    Args:
        x: [N, 3] centres, m; a radius of 0 hides one.
        colour: [N, 3] red, green and blue in 0 ... 1.
    """
    index, depth = nearest_ball(camera, x, look.radius, look.reach)
    edge = 2 * jnp.max(jnp.asarray(look.radius, x.dtype))
    depth = smooth_depth(depth, edge, look.smoothing)
    here = jnp.isfinite(depth)
    paint = colour[jnp.where(here, index, 0)]
    lit = apply_light(paint, normals(camera, depth), _view_directions(camera, x.dtype), gloss=0.35)
    sky = jnp.broadcast_to(jnp.asarray(SKY, x.dtype), lit.shape)
    return jnp.where(here[..., None], lit, sky), depth


def smooth_depth(depth: Array, edge: Array, passes: int) -> Array:
    """Smooth a depth image [H, W] by means over neighbours closer in depth than `edge`."""

    def smooth_pass(_: int, depth: Array) -> Array:
        total, count = depth, jnp.ones_like(depth)
        for axis, way in ((0, 1), (0, -1), (1, 1), (1, -1)):
            other = _shift_pixels(depth, axis, way)
            close = jnp.abs(other - depth) < edge  # false where either is infinite
            total = total + jnp.where(close, other, 0)
            count = count + jnp.where(close, 1.0, 0.0)
        return total / count

    return lax.fori_loop(0, passes, smooth_pass, depth)


def normals(camera: Camera, depth: Array) -> Vec:
    """Return unit normals in space, 3 x [H, W], from the flatter of the two slopes at each pixel.

    A pixel without a neighbour along one axis faces the eye.
    """
    here = sloped = jnp.isfinite(depth)
    places = camera.unproject(jnp.where(here, depth, 0))
    tangents = []
    for axis in (0, 1):
        steps = []
        for way in (1, -1):
            other = _shift_pixels(depth, axis, way)
            known = here & jnp.isfinite(other)
            there = tuple(_shift_pixels(p, axis, way) for p in places)
            rise = jnp.where(known, jnp.abs(other - depth), jnp.inf)
            steps.append((rise, tuple(way * (q - p) for p, q in zip(places, there))))
        (rise, one), (fall, two) = steps
        tangents.append(tuple(jnp.where(rise <= fall, p, q) for p, q in zip(one, two)))
        sloped = sloped & jnp.isfinite(jnp.minimum(rise, fall))
    n = cross(*tangents)
    known = sloped & (dot(n, n) > 0)
    towards = tuple(-a for a in _view_directions(camera, depth.dtype))
    n = tuple(jnp.where(known, a, t) for a, t in zip(unit(n), towards))
    facing = jnp.sign(dot(n, towards))
    return tuple(facing * a for a in n)


def apply_light(colour: Array, normal: Vec, sight: Vec, gloss: float) -> Array:
    """Return colours [H, W, 3] under sun and sky; `sight` are unit vectors away from the eye."""
    sun = unit(tuple(jnp.full_like(normal[0], a) for a in SUN))
    direct = jnp.maximum(dot(normal, sun), 0)
    sky = 0.5 + 0.5 * normal[1]
    half = unit(tuple(s - a for s, a in zip(sun, sight)))
    shine = gloss * jnp.maximum(dot(normal, half), 0) ** 60
    rim = 0.25 * (1 - jnp.abs(dot(normal, sight))) ** 3
    lit = colour * (0.30 + 0.45 * direct + 0.30 * sky)[..., None]
    return jnp.clip(lit + (shine + gloss * rim)[..., None], 0, 1)


def draw_glass(image: Array, depth: Array, front: Array, normal: Vec, camera: Camera) -> Array:
    """Draw a transparent shape with surface at depth `front` over an image [H, W, 3]."""
    sight = _view_directions(camera, depth.dtype)
    sun = unit(tuple(jnp.full_like(front, a) for a in SUN))
    half = unit(tuple(s - a for s, a in zip(sun, sight)))
    rim = (1 - jnp.abs(dot(normal, sight))) ** 2
    shine = jnp.maximum(dot(normal, half), 0) ** 40
    over = jnp.where(front < depth, 0.16 + 0.6 * rim, 0.0)[..., None]
    clear = (
        image * (1 - over) + jnp.broadcast_to(jnp.asarray(TINT, depth.dtype), image.shape) * over
    )
    return jnp.clip(clear + jnp.where(front < depth, 0.6 * shine, 0.0)[..., None], 0, 1)


def _view_directions(camera: Camera, dtype) -> Vec:
    """Return unit vectors along the rays of all pixels, in space."""
    one = jnp.ones((camera.height, camera.width), dtype)
    eye = jnp.asarray(camera.eye, dtype)
    return unit(tuple(p - eye[i] for i, p in enumerate(camera.unproject(one))))


def _shift_pixels(image: Array, axis: int, way: int) -> Array:
    """Return each pixel's neighbour along an axis, infinite at the border."""
    rolled = jnp.roll(image, -way, axis)
    index = jnp.arange(image.shape[axis])
    edge = index == (image.shape[axis] - 1 if way > 0 else 0)
    return jnp.where(edge[:, None] if axis == 0 else edge[None], jnp.inf, rolled)
