"""A floor for images of particles, with the particles' shadow."""

import jax.numpy as jnp
from jax import Array

from jaxgpu.geometry import rows

from .camera import Camera
from .shading import SKY, SUN
from .splat import nearest_ball

STONE = (0.83, 0.82, 0.80)  # colour of the floor
PIXELS = 128  # width and height of the sun's view


def draw_floor(
    camera: Camera,
    image: Array,
    depth: Array,
    x: Array,
    radius: Array | float,
    height: Array | float,
) -> tuple[Array, Array]:
    """Return image [H, W, 3] and depth [H, W] with a floor at y = `height`, m, behind all else.

    The shadow of the particles x [N, 3] falls on it. It fades into the background far from the
    camera's target, so that a video has a constant floor however the particles move.
    """
    start, end = camera.unproject(jnp.zeros_like(depth)), camera.unproject(jnp.ones_like(depth))
    fall = end[1] - start[1]
    down = fall < 0
    t = jnp.where(down, (height - start[1]) / jnp.where(down, fall, 1), jnp.inf)
    seen = down & (t > 0) & (t < depth)
    spot = jnp.stack(camera.unproject(jnp.where(seen, t, 0)), -1)
    centre, size = _extent(x, radius)
    size = size + 0.5 * jnp.abs(centre[1] - height)
    from_sun = Camera(
        eye=centre + 12 * size * _sun_direction(x.dtype),
        target=centre,
        up=(0.0, 0.0, 1.0),
        angle=0.25,
        width=PIXELS,
        height=PIXELS,
    )
    dark = 0.30 * _shadow(from_sun, x, radius, spot)
    target, eye = (jnp.asarray(a, x.dtype) for a in (camera.target, camera.eye))
    away = jnp.sqrt(sum((spot[..., i] - target[i]) ** 2 for i in (0, 2)))
    fade = jnp.clip(2.0 - 1.5 * away / jnp.sqrt(jnp.sum((eye - target) ** 2)), 0, 1)
    colour = [(1 - dark) * fade * a + (1 - fade) * b for a, b in zip(STONE, SKY)]
    return jnp.where(seen[..., None], jnp.stack(colour, -1), image), jnp.where(seen, t, depth)


def _shadow(from_sun: Camera, x: Array, radius: Array | float, spot: Array) -> Array:
    """Return the fraction of sunlight that particles block at each spot [..., 3], edges soft."""
    index, _ = nearest_ball(from_sun, x, radius, reach=3)
    cover = (index < x.shape[0]).astype(x.dtype)
    for axis in 3 * (0, 1):
        cover = (jnp.roll(cover, -1, axis) + cover + jnp.roll(cover, 1, axis)) / 3
    right, down, ahead = from_sun.to_camera_frame(spot)
    to_pixel = lambda a: PIXELS / 2 + from_sun.focal_length * a / jnp.where(ahead > 0, ahead, 1)
    row, column = to_pixel(down), to_pixel(right)
    inside = (row >= 0) & (row < PIXELS) & (column >= 0) & (column < PIXELS)
    to_pixel_index = lambda a: jnp.clip(a, 0, PIXELS - 1).astype(jnp.int32)
    return jnp.where(inside, cover[to_pixel_index(row), to_pixel_index(column)], 0)


def _extent(x: Array, radius: Array | float) -> tuple[Array, Array]:
    """Return the centre [3] and half-size [] of the visible particles, 0 and 1 if none are."""
    drawn = jnp.broadcast_to(jnp.asarray(radius, x.dtype), (x.shape[0],)) > 0
    low = jnp.min(jnp.where(drawn[:, None], x, jnp.inf), 0)
    high = jnp.max(jnp.where(drawn[:, None], x, -jnp.inf), 0)
    size = 0.75 * jnp.max(high - low) + jnp.max(jnp.asarray(radius, x.dtype))
    visible = jnp.any(drawn)
    return jnp.where(visible, (low + high) / 2, 0), jnp.where(visible, size, 1)


def _sun_direction(dtype) -> Array:
    return rows.unit(jnp.asarray(SUN, dtype))
