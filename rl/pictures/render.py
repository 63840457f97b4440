"""Pictures of arms and goals on the device: capsules over a floor, met by rays in closed form.

A capsule is all that lies within a radius of a segment; a segment of no length is a sphere. A ray
costs about 60 operations a capsule, once for the eye and once for the sun's shadow.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.geometry.vectors import Vec, dot
from jaxgpu.pytree import pytree
from jaxgpu.render import Camera

from ..envs.surgical.arms import Arm
from ..envs.surgical.kinematics import frame_origins

SUN = (0.35, -0.5, 0.79)  # towards it; up is +z
SKY, STEEL, BLUE = (0.93, 0.95, 0.97), (0.42, 0.47, 0.55), (0.16, 0.38, 0.70)
ORANGE, GREEN = (0.93, 0.50, 0.14), (0.20, 0.65, 0.32)
FAR = 1e3


@pytree
class Scene:
    """N capsules and a floor."""

    start: Array  # [N, 3] one end, m
    end: Array  # [N, 3] the other
    radius: Array  # [N] m
    colour: Array  # [N, 3] red, green and blue in 0 ... 1
    floor: Array  # [] its height, m
    tile: Array  # [] of its pattern, m


def meet(scene: Scene, eye: Vec, way: Vec) -> tuple[Array, Array]:
    """How far rays [...] go to the first capsule, m, `FAR` if to none, and its index.

    Args:
        scene: what is there.
        eye: where the rays begin, outside of all capsules: three arrays [...] or numbers, m.
        way: their directions, unit vectors: three arrays [...].
    """
    far = jax.vmap(_capsule, (0, 0, 0, None, None))(
        scene.start, scene.end, scene.radius, eye, way
    )  # [N, ...]
    return jnp.min(far, 0), jnp.argmin(far, 0)


def picture(scene: Scene, camera: Camera, fine: int = 2) -> Array:
    """An image [H, W, 3] in 0 ... 1, each pixel the mean of `fine` by `fine` rays.

    >>> one = jnp.ones((1, 3))
    >>> ball = Scene(0 * one, 0 * one, one[0, :1], one, jnp.float32(-2), jnp.float32(1))
    >>> picture(ball, Camera((4.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), width=8)).shape
    (240, 8, 3)
    """
    size = (camera.height, camera.width)
    camera = replace(camera, width=fine * size[1], height=fine * size[0])
    dtype = scene.start.dtype
    eye = tuple(jnp.asarray(camera.eye, dtype))
    there = camera.places(jnp.ones((camera.height, camera.width), dtype))
    way = _unit(tuple(a - b for a, b in zip(there, eye)))
    body, which = meet(scene, eye, way)
    down = way[2] < -1e-6
    ground = jnp.where(down, (scene.floor - eye[2]) / jnp.where(down, way[2], 1.0), FAR)
    far = jnp.minimum(body, ground)
    x = tuple(a + far * w for a, w in zip(eye, way))
    on_floor = ground < body
    normal = _normal(scene, x, which)
    normal = tuple(jnp.where(on_floor, up, n) for up, n in zip((0.0, 0.0, 1.0), normal))
    colour = jnp.where(on_floor[..., None], _tiles(scene, x), scene.colour[which])
    lit = colour * _light(scene, x, normal)[..., None]
    haze = jnp.clip(far / (60 * scene.tile), 0, 1)[..., None] ** 2
    sky = jnp.broadcast_to(jnp.array(SKY, dtype), lit.shape)
    image = lit * (1 - haze) + sky * haze
    return jnp.mean(image.reshape(size[0], fine, size[1], fine, 3), (1, 3))


def arm(arm: Arm, q: Array, goal: Array, near: Array, radius: Array | float) -> Scene:
    """An arm of capsules, its last link thinner, and a ball: orange, and green when `near`.

    Args:
        arm: its kinematics.
        q: joints, [J].
        goal: the ball's centre, [3] m.
        near: [] bool.
        radius: of the links, m.
    """
    points = frame_origins(arm, q)
    base = jnp.zeros((1, 3), q.dtype)
    start = jnp.concatenate([base, points[:-1], goal[None]])
    end = jnp.concatenate([points, goal[None]])
    links = jnp.full(len(points), radius, q.dtype).at[-1].set(0.6 * radius)
    steel = jnp.tile(jnp.array([STEEL], q.dtype), (len(points), 1))
    steel = steel.at[-1].set(jnp.array(BLUE, q.dtype))
    ball = jnp.where(near, jnp.array(GREEN), jnp.array(ORANGE))
    colour = jnp.concatenate([steel, ball.astype(q.dtype)[None]])
    width = jnp.append(links, jnp.asarray(1.3 * radius, q.dtype))
    floor, tile = jnp.asarray(-55 * radius, q.dtype), jnp.asarray(10 * radius, q.dtype)
    return Scene(start, end, width, colour, floor, tile)


def _capsule(start: Array, end: Array, r: Array, eye: Vec, way: Vec) -> Array:
    """Distance along rays to one capsule, or `FAR`."""
    a, b = tuple(start), tuple(end)
    along, off = _less(b, a), _less(eye, a)
    length, up, side = dot(along, along), dot(along, way), dot(along, off)
    ahead, square = dot(way, off), dot(off, off)
    A = length - up * up
    B = length * ahead - side * up
    C = length * square - side * side - r * r * length
    h = B * B - A * C
    crosses = (h > 0) & (A > 1e-6 * length)
    t = (-B - jnp.sqrt(jnp.where(crosses, h, 0.0))) / jnp.where(crosses, A, 1.0)
    place = side + t * up
    t = jnp.where(crosses & (t > 0) & (place > 0) & (place < length), t, FAR)
    return jnp.minimum(t, jnp.minimum(_sphere(off, r, way), _sphere(_less(eye, b), r, way)))


def _sphere(off: Vec, r: Array, way: Vec) -> Array:
    ahead = dot(way, off)
    # the square of the distance from the centre to the ray, without the loss of a difference
    side = tuple(o - ahead * w for o, w in zip(off, way))
    h = r * r - dot(side, side)
    t = -ahead - jnp.sqrt(jnp.maximum(h, 0.0))
    return jnp.where((h > 0) & (t > 0), t, FAR)


def _normal(scene: Scene, x: Vec, which: Array) -> Vec:
    """Unit normals at the points `x` of the capsules `which`."""
    pick = lambda ends: tuple(jnp.moveaxis(ends[which], -1, 0))
    a, along = pick(scene.start), pick(scene.end - scene.start)
    off, length = _less(x, a), dot(along, along)
    part = jnp.clip(dot(off, along) / jnp.where(length > 0, length, 1.0), 0, 1)
    return _unit(tuple(o - part * l for o, l in zip(off, along)))


def _tiles(scene: Scene, x: Vec) -> Array:
    dark = (jnp.floor(x[0] / scene.tile) + jnp.floor(x[1] / scene.tile)) % 2
    return jnp.stack([0.80 - 0.08 * dark] * 3, -1)


def _light(scene: Scene, x: Vec, normal: Vec) -> Array:
    sun = _unit(tuple(jnp.full_like(x[0], a) for a in SUN))
    direct = jnp.maximum(dot(normal, sun), 0)
    # off the surface, against shadows of itself
    above = tuple(a + 1e-2 * scene.tile * n for a, n in zip(x, normal))
    blocked, _ = meet(scene, above, sun)
    return 0.42 + 0.13 * normal[2] + jnp.where(blocked < FAR, 0.0, 0.45 * direct)


def _less(a: Vec, b: Vec) -> Vec:
    return tuple(p - q for p, q in zip(a, b))


def _unit(a: Vec) -> Vec:
    size = jnp.sqrt(jnp.maximum(dot(a, a), 1e-30))
    return tuple(b / size for b in a)
