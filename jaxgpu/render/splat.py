"""Depth images of particles: each is a ball, drawn on the few pixels about its centre.

The ray (a, b, 1) t of a pixel meets the ball of radius r about c where |t d - c| = r,

    t = (d . c - sqrt(|d|^2 r^2 - |d x c|^2)) / |d|^2,

in a form whose rounding error does not grow with the distance. A ball is drawn on the
(2 reach + 1)^2 pixels about its centre, which cost 30 operations and a scatter each. `nearest`
keeps the first ball that a ray meets; `soft_depth` weights all by their proximity, so that it has
derivatives also where outlines move. Balls are given as centres [N, 3]; radius 0 hides a ball.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.geometry.vectors import Vec, dot
from jaxgpu.inputs import ranges
from jaxgpu.inputs.explanations import explain_errors

from .camera import Camera, check_camera, check_points, check_radii

TIE_RTOL = (
    1e-5  # relative depth: two passes with different rounding still agree on the nearest ball
)


@explain_errors
def nearest_ball(
    camera: Camera, x: Array, radius: Array | float, reach: int = 4
) -> tuple[Array, Array]:
    """Return the index of the ball that each pixel shows, and the depth of its surface.

    Args:
        camera: the viewpoint.
        x: [N, 3] centres, m.
        radius: [] or [N] of the balls, m; one of 0 is not drawn.
        reach: pixels about its centre on which a ball is drawn; a larger ball is clipped to them.
    Returns:
        index [H, W] int32, N where the pixel shows no ball; depth [H, W], m, infinite there.
    The depth is differentiable in camera, x and radius as long as each pixel shows the same ball.

    >>> camera = Camera((0.0, 0.0, 2.0), (0.0, 0.0, 0.0), width=3, height=3)
    >>> nearest_ball(camera, jnp.zeros((1, 3)), 0.25)[1][1, 1]  # 2 m, less the radius
    Array(1.75, dtype=float32)
    """
    check_camera("nearest_ball", camera)
    x = check_points("nearest_ball: x", x)
    check_radii("nearest_ball: radius", radius, x)
    ranges.numbers("nearest_ball: reach", reach, (), least=0, whole=True)
    n, c = x.shape[0], camera.to_camera_frame(lax.stop_gradient(x))
    r = jnp.broadcast_to(jnp.asarray(radius, x.dtype), (n,))
    flat = (camera.height * camera.width + 1,)

    def keep_min_depth(depth: Array, pixel: Array, t: Array) -> Array:
        return depth.at[pixel].min(t)

    depth = _rasterize(camera, c, r, reach, keep_min_depth, jnp.full(flat, jnp.inf, x.dtype))

    def keep_min_index(index: Array, pixel: Array, t: Array) -> Array:
        wins = jnp.isfinite(t) & (t <= depth[pixel] * (1 + TIE_RTOL))
        return index.at[pixel].min(jnp.where(wins, jnp.arange(n, dtype=jnp.int32), n))

    index = _rasterize(camera, c, r, reach, keep_min_index, jnp.full(flat, n, jnp.int32))
    index = index[:-1].reshape(camera.height, camera.width)
    return index, _visible_depth(camera, x, r, index)


@explain_errors
def soft_depth(
    camera: Camera,
    x: Array,
    radius: Array | float,
    *,
    far: Array | float,
    blur: Array | float,
    reach: int = 4,
) -> Array:
    """Return a depth image [H, W], m, that is smooth in the particles, outlines included.

    Every ball counts on a ray that passes its centre at a distance s < r with weight
    (1 - s^2 / r^2)^2 exp((t_0 - t) / blur), where t is its depth and t_0 the minimum over all
    balls; the background at `far` counts as a ball of weight 1/10. For blur towards 0 each pixel
    shows its nearest ball. Differentiable in camera, x, radius, far and blur.

    >>> from jaxgpu.render import Camera
    >>> camera = Camera((0.0, 0.0, 3.0), (0.0, 0.0, 0.0), width=9, height=9)
    >>> depth = soft_depth(camera, jnp.zeros((1, 3)), 0.5, far=9.0, blur=0.05)
    >>> bool(depth[4, 4] < 3.0)
    True
    """
    check_camera("soft_depth", camera)
    x = check_points("soft_depth: x", x)
    check_radii("soft_depth: radius", radius, x)
    for name, value in (("far", far), ("blur", blur)):
        ranges.numbers(f"soft_depth: {name}", value, (), above=0, unit="m")
    ranges.numbers("soft_depth: reach", reach, (), least=0, whole=True)
    c = camera.to_camera_frame(x)
    r = jnp.broadcast_to(jnp.asarray(radius, x.dtype), (x.shape[0],))
    flat = (camera.height * camera.width + 1,)
    still = tuple(lax.stop_gradient(a) for a in c)
    keep_min_depth = lambda depth, pixel, t: depth.at[pixel].min(t)
    first = _rasterize(
        camera, still, lax.stop_gradient(r), reach, keep_min_depth, jnp.full(flat, jnp.inf, x.dtype)
    )
    shift = jnp.where(jnp.isfinite(first), first, far)
    background = 0.1 * jnp.exp((shift - far) / blur)

    def add(sums: tuple[Array, Array], k: Array) -> tuple[tuple[Array, Array], None]:
        pixel, a, b = _pixels(camera, c, k, reach)
        miss = _squared_miss_distance(c, a, b)
        bump = jnp.maximum(1 - miss / jnp.where(r > 0, r * r, 1), 0) ** 2
        near = (r > 0) & (c[2] > 0)
        w = jnp.where(near, bump, 0) * jnp.exp(jnp.minimum((shift[pixel] - c[2]) / blur, 1))
        return (sums[0].at[pixel].add(w), sums[1].at[pixel].add(w * c[2])), None

    start = (background, background * far)
    (weight, total), _ = lax.scan(add, start, jnp.arange((2 * reach + 1) ** 2))
    return (total / weight)[:-1].reshape(camera.height, camera.width)


def _rasterize(camera: Camera, c: Vec, r: Array, reach: int, put: Callable, image: Array) -> Array:
    """Draw all balls into an image [H W + 1] by `put(image, pixel, depth)`, offset by offset."""

    def draw_offset(k: Array, image: Array) -> Array:
        pixel, a, b = _pixels(camera, c, k, reach)
        return put(image, pixel, _intersect_ball(c, r, a, b))

    return lax.fori_loop(0, (2 * reach + 1) ** 2, draw_offset, image)


def _pixels(camera: Camera, c: Vec, k: Array, reach: int) -> tuple[Array, Array, Array]:
    """Return the k-th pixel about each centre, flat, H W if outside, and the slopes of its ray."""
    k, side = k.astype(jnp.int32), 2 * reach + 1
    ahead = jnp.where(c[2] > 0, c[2], 1)
    f = jnp.asarray(camera.focal_length, c[0].dtype)
    limit = 1e6  # pixels; outside of any image, and within the whole numbers of float32
    place = lambda a, size: jnp.floor(jnp.clip(size / 2 + f * a / ahead, -limit, limit))
    column = place(c[0], camera.width).astype(jnp.int32) + k % side - reach
    row = place(c[1], camera.height).astype(jnp.int32) + k // side - reach
    inside = (column >= 0) & (column < camera.width) & (row >= 0) & (row < camera.height)
    pixel = jnp.where(
        inside & (c[2] > 0), row * camera.width + column, camera.height * camera.width
    )
    return pixel, *camera.slopes(row.astype(c[0].dtype), column.astype(c[0].dtype))


def _squared_miss_distance(c: Vec, a: Array, b: Array) -> Array:
    """Return the squared distance of the centre from the ray (a, b, 1), m^2."""
    p, q, z = c
    cross = (b * z - q, p - a * z, a * q - b * p)
    return dot(cross, cross) / (a * a + b * b + 1)


def _intersect_ball(c: Vec, r: Array, a: Array, b: Array) -> Array:
    """Return the depth at which the ray (a, b, 1) meets the ball, m, infinite if it does not."""
    square = a * a + b * b + 1
    left = r * r - _squared_miss_distance(c, a, b)
    hit = (left > 0) & (r > 0)
    half = jnp.sqrt(jnp.where(hit, left, 1) / square)
    t = (a * c[0] + b * c[1] + c[2]) / square - half
    return jnp.where(hit & (t > 0), t, jnp.inf)


def _visible_depth(camera: Camera, x: Array, r: Array, index: Array) -> Array:
    """Return the depth of the balls in an index image; differentiable."""
    here = index < x.shape[0]
    which = jnp.where(here, index, 0)
    c = tuple(a[which] for a in camera.to_camera_frame(x))
    t = _intersect_ball(c, r[which], *camera.rays(x.dtype))
    return jnp.where(here, t, jnp.inf)
