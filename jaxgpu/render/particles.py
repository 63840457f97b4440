"""Pictures of a whole scene: particles, solids of glass, and a floor."""

from collections.abc import Sequence
from typing import Any

from jax import Array

from jaxgpu import ranges

from . import ground, shade
from .camera import Camera, centres, held
from .shade import Look
from .trace import trace


def picture(
    camera: Camera,
    x: Array,
    colour: Array,
    look: Look,
    *,
    solids: Sequence[tuple[Any, Array, Array]] = (),
    floor: float | None = None,
    far: float = 10.0,
) -> Array:
    """An image [H, W, 3] of particles, solids of glass and a floor, red, green and blue in 0 ... 1.

    Args:
        camera: where it is seen from.
        x: [N, 3] particles, m.
        colour: [N, 3] theirs, in 0 ... 1.
        look: how the particles are drawn.
        solids: shapes in 3-D, each with its place [3], m, and its orientation [4], a quaternion.
        floor: height of the floor, m; none by default.
        far: solids further ahead are not seen, m.
    Pure and without a display; `jit` it, and `vmap` it over frames.

    >>> import jax.numpy as jnp
    >>> camera = Camera((0.0, 0.0, 2.0), (0.0, 0.0, 0.0), width=8, height=6)
    >>> look = Look(0.1, reach=1, smoothing=0)
    >>> picture(camera, jnp.zeros((1, 3)), jnp.ones((1, 3)), look).shape
    (6, 8, 3)
    """
    held("picture", camera)
    ranges.check("picture", look)
    x = centres("picture: x", x)
    colour = centres("picture: colour", colour, x.shape[0], least=0, most=1)
    ranges.numbers("picture: far", far, (), above=0, unit="m")
    if floor is not None:
        ranges.numbers("picture: floor", floor, (), unit="m")
    image, depth = shade.particles(camera, x, colour, look)
    if floor is not None:
        image, depth = ground.laid(camera, image, depth, x, look.radius, floor)
    for shape, place, turn in solids:
        front, normal = trace(camera, shape, place, turn, far=far)
        image = shade.glass(image, depth, front, normal, camera)
    return image
