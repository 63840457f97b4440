"""Pictures of a whole scene, and films of them: GIF through Pillow, MP4 through PyAV."""

import io
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu import ranges
from jaxgpu.extras import extra
from jaxgpu.physics.continuum.particles import State
from jaxgpu.physics.continuum.tools.collide import Tool

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
    tools: Sequence[tuple[Any, Tool]] = (),
    floor: float | None = None,
    far: float = 10.0,
) -> Array:
    """An image [H, W, 3] of particles, tools of glass and a floor, red, green and blue in 0 ... 1.

    Args:
        camera: where it is seen from.
        x: [N, 3] particles, m.
        colour: [N, 3] theirs, in 0 ... 1.
        look: how the particles are drawn.
        tools: shapes in 3-D with where they are.
        floor: height of the floor, m; none by default.
        far: tools further ahead are not seen, m.
    Pure and without a display; `jit` it, and `vmap` it over frames.

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
    for shape, tool in tools:
        front, normal = trace(camera, shape, tool, far=far)
        image = shade.glass(image, depth, front, normal, camera)
    return image


def points(state: State) -> Array:
    """Positions [N, 3] of all bodies' slots, one after the other, m; z = 0 in 2-D."""
    bodies = []
    for b in state.bodies:
        axes = list(b.x.T)
        bodies.append(jnp.stack([*axes, *[jnp.zeros_like(axes[0])] * (3 - len(axes))], -1))
    return jnp.concatenate(bodies)


def gif(images: Any, seconds: float = 0.05) -> bytes:
    """A film of images [T, H, W, 3] in 0 ... 1, or of 8-bit ones; repeats without end.

    >>> gif(np.zeros((2, 4, 4, 3)))[:6]
    b'GIF89a'
    """
    Image = extra("PIL.Image", "viz", "gif")
    images = _frames("gif", images, seconds)
    # one palette for all frames, of the colours of the first, a middle and the last one
    some = np.concatenate([images[0], images[len(images) // 2], images[-1]])
    palette = Image.fromarray(some).quantize(255, dither=Image.Dither.NONE)
    frames = [Image.fromarray(i).quantize(palette=palette) for i in images]
    file = io.BytesIO()
    duration = round(1000 * seconds)
    frames[0].save(
        file, format="GIF", save_all=True, append_images=frames[1:], duration=duration, loop=0
    )
    return file.getvalue()


def mp4(images: Any, seconds: float = 0.05) -> bytes:
    """A film of images [T, H, W, 3] in 0 ... 1, or of 8-bit ones, as H.264 that browsers play.

    Args:
        images: an odd height or width is cut by one pixel, for colours are kept at half the size.
        seconds: each image is shown.
    Raises:
        ValueError: images of another shape.
        ModuleNotFoundError: the extra `files` is not installed.
    """
    av = extra("av", "files", "mp4")
    images = _frames("mp4", images, seconds)
    height, width = (n // 2 * 2 for n in images.shape[1:3])
    if not height * width:
        raise ValueError(f"mp4: images have shape {list(images.shape)}; H and W must be 2 or more")
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        rate = Fraction(1 / seconds).limit_denominator(1000)
        stream = container.add_stream("libx264", rate=rate, options={"crf": "18"})
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for image in images[:, :height, :width]:
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(image), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return file.getvalue()


def _frames(name: str, images: Any, seconds: float) -> np.ndarray:
    """Images as 8-bit ones, [T, H, W, 3]."""
    ranges.numbers(f"{name}: seconds", seconds, (), above=0, unit="s")
    images = np.asarray(ranges.numbers(f"{name}: images", images))
    if images.ndim != 4 or images.shape[-1] != 3 or len(images) == 0:
        raise ValueError(
            f"{name}: images have shape {list(images.shape)}; they must be [T, H, W, 3], T >= 1"
        )
    if images.dtype != np.uint8:
        ranges.numbers(f"{name}: images", images, least=0, most=1)
        images = np.round(255 * images).astype(np.uint8)
    return images
