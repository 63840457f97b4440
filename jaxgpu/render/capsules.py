"""Images of mechanisms on the device: capsules above a floor, intersected in closed form by rays.

A capsule is the set of points within a radius of a segment; a segment of zero length is a sphere. A
ray costs about 60 operations per capsule, once for the eye and once for the sun's shadow.
"""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.devices import allocation
from jaxgpu.geometry import rays
from jaxgpu.geometry.vectors import Vec, dot, unit
from jaxgpu.inputs import ranges
from jaxgpu.inputs.fields import pytree

from .camera import Camera, check_camera

SUN = (0.35, -0.5, 0.79)  # direction towards it; up is +z
SKY, STEEL, BLUE = (0.93, 0.95, 0.97), (0.42, 0.47, 0.55), (0.16, 0.38, 0.70)
ORANGE, GREEN = (0.93, 0.50, 0.14), (0.20, 0.65, 0.32)
WHITE = (1.0, 1.0, 1.0)
INKS = (STEEL, BLUE, ORANGE, GREEN, SKY, WHITE)  # colours of videos, for `gif`
FAR = rays.FAR


@pytree
class Capsules:
    """N capsules and a floor; up is z."""

    start: Array  # [N, 3] one end, m
    end: Array  # [N, 3] other end, m
    radius: Array  # [N] m
    colour: Array  # [N, 3] red, green and blue in 0 ... 1
    floor: Array  # [] height, m
    tile: Array  # [] width of its tiles, m

    @allocation.limit_memory
    def picture(self, camera: Camera, fine: int = 2) -> Array:
        """Render an image [H, W, 3] in 0 ... 1, each pixel the mean of `fine` by `fine` rays.

        >>> one = jnp.ones((1, 3))
        >>> ball = Capsules(0 * one, 0 * one, one[0, :1], one, jnp.float32(-2), jnp.float32(1))
        >>> camera = Camera((4.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), width=8)
        >>> jax.jit(lambda: ball.picture(camera))().shape
        (240, 8, 3)
        """
        check_camera("Capsules.picture", camera)
        ranges.numbers("Capsules.picture: radius", self.radius, above=0)
        ranges.numbers("Capsules.picture: tile", self.tile, (), above=0)
        size = (camera.height, camera.width)
        camera = replace(camera, width=fine * size[1], height=fine * size[0])
        dtype = self.start.dtype
        eye, there = self._rays(camera)
        way = unit(tuple(a - b for a, b in zip(there, eye)))
        far, on_floor, which = self._cast_rays(eye, way)
        x = tuple(a + far * w for a, w in zip(eye, way))
        normal = _normal(self, x, which)
        normal = tuple(jnp.where(on_floor, up, n) for up, n in zip((0.0, 0.0, 1.0), normal))
        colour = jnp.where(on_floor[..., None], _tile_colors(self, x), self.colour[which])
        lit = colour * _brightness(self, x, normal)[..., None]
        haze = jnp.clip(far / (60 * self.tile), 0, 1)[..., None] ** 2
        sky = jnp.broadcast_to(jnp.array(SKY, dtype), lit.shape)
        image = lit * (1 - haze) + sky * haze
        return jnp.mean(image.reshape(size[0], fine, size[1], fine, 3), (1, 3))

    @allocation.limit_memory
    def depth(self, camera: Camera) -> Array:
        """Return the depth [H, W], m, at which each pixel's ray meets a capsule or the floor.

        Infinite where it meets neither. Pure, so that an environment may observe this depth camera.

        >>> one = jnp.ones((1, 3))
        >>> ball = Capsules(0 * one, 0 * one, one[0, :1], one, jnp.float32(-2), jnp.float32(1))
        >>> camera = Camera((4.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), width=3, height=3)
        >>> round(float(jax.jit(lambda: ball.depth(camera))()[1, 1]), 3)
        3.0
        """
        check_camera("Capsules.depth", camera)
        ranges.numbers("Capsules.depth: radius", self.radius, above=0)
        eye, there = self._rays(camera)
        along = tuple(a - b for a, b in zip(there, eye))
        far = self._cast_rays(eye, unit(along))[0]
        return jnp.where(far < FAR, far / jnp.sqrt(dot(along, along)), jnp.inf)

    def _rays(self, camera: Camera) -> tuple[Vec, Vec]:
        """Return the origin of the rays of all pixels, and their points one metre ahead."""
        dtype = self.start.dtype
        there = camera.unproject(jnp.ones((camera.height, camera.width), dtype))
        return tuple(jnp.asarray(camera.eye, dtype)), there

    def _cast_rays(self, eye: Vec, way: Vec) -> tuple[Array, Array, Array]:
        """Return lengths of rays, a mask of rays that end on the floor, and their first capsule."""
        body, which = first_hit(self, eye, way)
        down = way[2] < -1e-6
        ground = jnp.where(down, (self.floor - eye[2]) / jnp.where(down, way[2], 1.0), FAR)
        return jnp.minimum(body, ground), ground < body, which


def first_hit(scene: Capsules, eye: Vec, way: Vec) -> tuple[Array, Array]:
    """Return the distance [...] of the first capsule along rays, m, `FAR` if none, and its index.

    Args:
        scene: the capsules.
        eye: origin of the rays, outside of all capsules: three arrays [...] or numbers, m.
        way: directions, unit vectors: three arrays [...].
    """
    which = _find_nearest_capsule(scene, eye, way)[1]
    pick = lambda ends: tuple(jnp.moveaxis(ends[which], -1, 0))
    start, end, radius = pick(scene.start), pick(scene.end), scene.radius[which]
    return rays.capsule(start, end, radius, eye, way), which


def _find_nearest_capsule(scene: Capsules, eye: Vec, way: Vec) -> tuple[Array, Array]:
    """Return the results of `first_hit` without derivatives, with index 0 if there is none.

    A CPU processes capsules one after the other and keeps two numbers per ray, an accelerator takes
    the minimum over all.
    """
    scene, eye, way = lax.stop_gradient((scene, eye, way))
    return lax.platform_dependent(scene, eye, way, cpu=_scan_capsules, default=_reduce_capsules)


def _scan_capsules(scene: Capsules, eye: Vec, way: Vec) -> tuple[Array, Array]:
    def update_nearest(found: tuple[Array, Array], row: tuple[Array, ...]) -> tuple[Any, None]:
        (far, which), (start, end, radius, i) = found, row
        hit = rays.capsule(tuple(start), tuple(end), radius, eye, way)
        return (jnp.minimum(far, hit), jnp.where(hit < far, i, which)), None

    shape = jnp.broadcast_shapes(*(jnp.shape(a) for a in (*eye, *way)))
    found = jnp.full(shape, FAR, scene.radius.dtype), jnp.zeros(shape, jnp.int32)
    number = jnp.arange(len(scene.radius), dtype=jnp.int32)
    return lax.scan(update_nearest, found, (scene.start, scene.end, scene.radius, number))[0]


def _reduce_capsules(scene: Capsules, eye: Vec, way: Vec) -> tuple[Array, Array]:
    distance_to_capsule = lambda start, end, r: rays.capsule(tuple(start), tuple(end), r, eye, way)
    far = jax.vmap(distance_to_capsule)(scene.start, scene.end, scene.radius)  # [N, ...]
    return jnp.min(far, 0), jnp.argmin(far, 0).astype(jnp.int32)


def _normal(scene: Capsules, x: Vec, which: Array) -> Vec:
    """Return unit normals at the points `x` of the capsules `which`."""
    pick = lambda ends: tuple(jnp.moveaxis(ends[which], -1, 0))
    return rays.capsule_normal(pick(scene.start), pick(scene.end), x)


def _tile_colors(scene: Capsules, x: Vec) -> Array:
    dark = (jnp.floor(x[0] / scene.tile) + jnp.floor(x[1] / scene.tile)) % 2
    return jnp.stack([0.80 - 0.08 * dark] * 3, -1)


def _brightness(scene: Capsules, x: Vec, normal: Vec) -> Array:
    sun = unit(tuple(jnp.asarray(a, x[0].dtype) for a in SUN))
    direct = jnp.maximum(dot(normal, sun), 0)
    # start off the surface to avoid self-shadowing
    above = tuple(a + 1e-2 * scene.tile * n for a, n in zip(x, normal))
    blocked, _ = _find_nearest_capsule(scene, above, sun)
    return 0.42 + 0.13 * normal[2] + jnp.where(blocked < FAR, 0.0, 0.45 * direct)
