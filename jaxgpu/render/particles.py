"""Images of a complete scene: particles, solids of glass, and a floor."""

from collections.abc import Sequence
from typing import Any, Protocol

import jax.numpy as jnp
from jax import Array

from jaxgpu.devices import allocation
from jaxgpu.inputs import ranges
from jaxgpu.inputs.explanations import explain_errors
from jaxgpu.inputs.fields import number, pytree

from . import ground, shading
from .camera import Camera, check_camera, check_points
from .shading import ParticleStyle
from .sphere_tracing import trace


class Scene(Protocol):
    """Interface of a scene for a camera: `Capsules`, `Balls`, or a custom class."""

    @allocation.limit_memory
    def picture(self, camera: Camera) -> Array:
        """Render an image [H, W, 3] in 0 ... 1. Pure, to be mapped over frames."""
        ...


@pytree
class Balls:
    """Particles, solids of glass and a floor, rendered by `picture`.

    >>> from jaxgpu.render import Camera
    >>> import jax.numpy as jnp
    >>> camera = Camera((0.0, 0.0, 3.0), (0.0, 0.0, 0.0), width=8, height=6)
    >>> Balls(jnp.zeros((1, 3)), jnp.array([[1.0, 0, 0]]), ParticleStyle(0.5)).picture(camera).shape
    (6, 8, 3)
    """

    x: Array  # [N, 3] m
    colour: Array  # [N, 3] red, green and blue in 0 ... 1
    look: ParticleStyle
    solids: tuple[tuple[Any, Array, Array], ...] = ()  # shape, position [3], quaternion [4]
    floor: Array | float | None = number(default=None, none=True, unit="m")  # [] height
    far: Array | float = number(default=10.0, above=0, unit="m")  # [] solids beyond are not drawn

    @allocation.limit_memory
    def picture(self, camera: Camera) -> Array:
        """Render an image [H, W, 3] in 0 ... 1."""
        parts = {"solids": self.solids, "floor": self.floor, "far": self.far}
        return picture(camera, self.x, self.colour, self.look, **parts)

    @allocation.limit_memory
    def depth(self, camera: Camera) -> Array:
        """Return the depth [H, W], m, of each pixel's nearest surface, infinite without one."""
        parts = {"solids": self.solids, "floor": self.floor, "far": self.far}
        return _render_image_and_depth("depth", camera, self.x, self.colour, self.look, **parts)[1]


@explain_errors
def picture(
    camera: Camera,
    x: Array,
    colour: Array,
    look: ParticleStyle,
    *,
    solids: Sequence[tuple[Any, Array, Array]] = (),
    floor: Array | float | None = None,
    far: Array | float = 10.0,
) -> Array:
    """Render an image [H, W, 3], in 0 ... 1, of particles, solids of glass and a floor.

    Args:
        camera: the viewpoint.
        x: [N, 3] particles, m.
        colour: [N, 3] of the particles, red, green and blue in 0 ... 1.
        look: how the particles are drawn.
        solids: shapes in 3-D, each with its position [3], m, and orientation [4], a quaternion.
        floor: height of the floor, m; none by default.
        far: depth beyond which solids are not drawn, m.
    Pure and without a display; `jit` it, and `vmap` it over frames.

    >>> import jax.numpy as jnp
    >>> camera = Camera((0.0, 0.0, 2.0), (0.0, 0.0, 0.0), width=8, height=6)
    >>> look = ParticleStyle(0.1, reach=1, smoothing=0)
    >>> picture(camera, jnp.zeros((1, 3)), jnp.ones((1, 3)), look).shape
    (6, 8, 3)
    """
    return _render_image_and_depth("picture", camera, x, colour, look, solids, floor, far)[0]


def _render_image_and_depth(
    name: str,
    camera: Camera,
    x: Array,
    colour: Array,
    look: ParticleStyle,
    solids: Sequence[tuple[Any, Array, Array]],
    floor: Array | float | None,
    far: Array | float,
) -> tuple[Array, Array]:
    """Return the image [H, W, 3] and the depth of the nearest surface, [H, W] m."""
    check_camera(name, camera)
    ranges.check(name, look)
    x = check_points(f"{name}: x", x)
    colour = check_points(f"{name}: colour", colour, x.shape[0], least=0, most=1)
    ranges.numbers(f"{name}: far", far, (), above=0, unit="m")
    if floor is not None:
        ranges.numbers(f"{name}: floor", floor, (), unit="m")
    image, depth = shading.render_particles(camera, x, colour, look)
    if floor is not None:
        image, depth = ground.draw_floor(camera, image, depth, x, look.radius, floor)
    nearest = depth  # objects behind glass remain visible
    for shape, place, turn in solids:
        front, normal = trace(camera, shape, place, turn, far=far)
        image = shading.draw_glass(image, depth, front, normal, camera)
        nearest = jnp.minimum(nearest, front)
    return image, nearest
