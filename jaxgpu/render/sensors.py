"""Cameras of robots that see simple solids: depth, normals, indices and colours.

All of it is pure and works under `jit`, `vmap` and `grad`: an environment may observe it. Depth is
exact, with derivatives in the poses of the camera and of the solids.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.geometry import rows
from jaxgpu.geometry.solids import Boxes, Planes, Rods, Solids
from jaxgpu.geometry.vectors import dot
from jaxgpu.inputs import ranges
from jaxgpu.inputs.explanations import explain_errors
from jaxgpu.inputs.fields import pytree, size

from . import casting
from .camera import Camera, check_camera
from .capsules import SKY, SUN


@pytree
class CameraImages:
    """Depth, normal and index images of a camera."""

    depth: Array  # [H, W] m; `far` where nothing is nearer
    normal: Array  # [H, W, 3] unit vectors, 0 where nothing is visible
    index: Array  # [H, W] index of the solid, -1 where nothing is visible
    count: int = size(least=1)  # number of solids K

    def pixel_values(self, values: Array, none: Array | float = -1) -> Array:
        """Return the value of each pixel's visible solid: of values [K, ...], [H, W, ...].

        Args:
            values: of each of the K solids: labels, colours.
            none: value where nothing is visible.
        Raises:
            ValueError: values do not have one row per solid.
        """
        values = jnp.asarray(ranges.numbers("CameraImages.pixel_values: values", values))
        ranges.numbers("CameraImages.pixel_values: none", none)
        if not values.ndim or values.shape[0] != self.count:
            raise ValueError(
                f"CameraImages.pixel_values: values has shape {list(values.shape)}; it must be "
                f"[{self.count}, ...], one row per solid"
            )
        seen = (self.index >= 0).reshape(self.index.shape + (1,) * (values.ndim - 1))
        return jnp.where(seen, values[jnp.maximum(self.index, 0)], none)

    def render(self, colour: Array) -> Array:
        """Render an image [H, W, 3] in 0 ... 1 of solids with colours [K, 3], under even light."""
        colour = jnp.asarray(ranges.numbers("CameraImages.render: colour", colour, (self.count, 3)))
        sky = jnp.asarray(SKY, self.depth.dtype)[None, None]
        normal = tuple(self.normal[..., i] for i in range(3))
        sun = rows.unit(jnp.asarray(SUN, self.depth.dtype))
        light = 0.75 + 0.10 * normal[2] + 0.20 * dot(normal, tuple(sun))
        light = jnp.where(self.index >= 0, light, 1)[..., None]
        return jnp.clip(self.pixel_values(colour, sky) * light, 0, 1)


@explain_errors
def depth_image(camera: Camera, solids: Solids, *, far: Array | float = 10.0) -> Array:
    """Return the depth [H, W], m, of each pixel's first solid, or `far` where none is nearer.

    A box that contains the camera is not visible. Derivatives in the poses of camera and solids
    follow the visible solid: they are those of depth except where an edge passes.

    Args:
        camera: the viewpoint.
        solids: the solids that it sees.
        far: depth of pixels that show nothing nearer, m, at most 1000.

    >>> box = Boxes(jnp.zeros((1, 3)), jnp.ones((1, 3)), jnp.zeros(1))
    >>> camera = Camera((4.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), width=3, height=3)
    >>> round(float(depth_image(camera, Solids(box))[1, 1]), 3)
    3.0
    """
    solids = _check_arguments("depth_image", camera, solids, far)
    return _depth_image(camera, solids, far)


@jax.jit
def _depth_image(camera: Camera, solids: Solids, far: Array | float) -> Array:
    eye = camera_rays(camera, solids)
    return _to_depth_image(camera, eye, casting.first_distance(solids, eye), far)


@explain_errors
def camera_images(camera: Camera, solids: Solids, *, far: Array | float = 10.0) -> CameraImages:
    """Return depth, normal and index of the solid that each pixel shows.

    Args:
        camera: the viewpoint.
        solids: the solids that it sees; boxes are numbered first, then capsules, then planes.
        far: depth of pixels that show nothing nearer, m, at most 1000.

    >>> box = Boxes(jnp.zeros((1, 3)), jnp.ones((1, 3)), jnp.zeros(1))
    >>> camera = Camera((4.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), width=3, height=3)
    >>> seen = camera_images(camera, Solids(box))
    >>> int(seen.index[1, 1]), seen.normal[1, 1].tolist()
    (0, [1.0, 0.0, 0.0])
    """
    solids = _check_arguments("camera_images", camera, solids, far)
    return _render_solids(camera, solids, far)


@jax.jit
def _render_solids(camera: Camera, solids: Solids, far: Array | float) -> CameraImages:
    eye = camera_rays(camera, solids)
    index = casting.first_index(solids, eye)
    away, normal = casting.surface_at_hit(solids, eye, index)
    depth = _to_depth_image(camera, eye, away, far)
    seen = (depth < far).ravel()
    shape = (camera.height, camera.width)
    return CameraImages(
        depth=depth,
        normal=jnp.stack([jnp.where(seen, n, 0).reshape(shape) for n in normal], -1),
        index=jnp.where(seen, index, -1).reshape(shape),
        count=sum(solids.counts),
    )


@pytree
class NearestBoxes:
    """Boxes closest to a camera among the boxes in its view."""

    boxes: Boxes  # K rows
    index: Array  # [K] their indices among all boxes; -1 in empty rows
    lost: Array  # [] boxes in view and nearer than `far` without a row; depth may be wrong unless 0


@explain_errors
def nearest_boxes(
    camera: Camera, boxes: Boxes, count: int, *, far: Array | float = 10.0
) -> NearestBoxes:
    """Return the `count` boxes in view that are closest to the camera, and the number left out.

    On an accelerator a short list is faster than all boxes. It is exact if `lost` is 0; a box
    that was left out may be hidden, so that `lost` is an upper bound.

    Args:
        camera: the viewpoint.
        boxes: all of them.
        count: rows of the list.
        far: distance beyond which boxes are not needed, m.

    >>> many = Boxes(jnp.array([[5.0, 0, 0], [3.0, 0, 0]]), jnp.ones((2, 3)), jnp.zeros(2))
    >>> camera = Camera((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0), width=3, height=3)
    >>> short = nearest_boxes(camera, many, 1)
    >>> short.index.tolist(), int(short.lost)
    ([1], 1)
    """
    boxes = _check_arguments("nearest_boxes", camera, Solids(boxes), far).boxes
    ranges.numbers("nearest_boxes: count", count, (), least=1, whole=True)
    return _find_nearest_boxes(camera, boxes, min(count, boxes.centre.shape[0]), far)


@partial(jax.jit, static_argnums=2)
def _find_nearest_boxes(
    camera: Camera, boxes: Boxes, count: int, far: Array | float
) -> NearestBoxes:
    """Return the `count` boxes in view that are nearest to the camera, within the depth `far`."""
    eye = camera_rays(camera, Solids(boxes))
    away = jnp.where(casting.is_in_view(boxes, eye), boxes.distance(eye.at), jnp.inf)
    wanted = away < far * jnp.sqrt(1 + jnp.sum(eye.spread * eye.spread))
    short, index = lax.top_k(-jnp.where(wanted, away, jnp.inf), count)
    here = short > -jnp.inf
    half = jnp.where(here[:, None], boxes.half[index], -1)
    return NearestBoxes(
        boxes=Boxes(boxes.centre[index], half, boxes.turn[index]),
        index=jnp.where(here, index.astype(jnp.int32), -1),
        lost=jnp.sum(wanted) - jnp.sum(here),
    )


def _to_depth_image(
    camera: Camera, eye: casting.CameraRays, away: Array, far: Array | float
) -> Array:
    depth = jnp.minimum(away * eye.depth_ratio(), jnp.asarray(far, away.dtype))
    return depth.reshape(camera.height, camera.width)


def camera_rays(camera: Camera, solids: Solids) -> casting.CameraRays:
    """Return the rays of a camera, in the precision of the solids."""
    dtype = solids.boxes.centre.dtype
    a, b = camera.rays(dtype)
    focal = camera.focal_length
    spread = jnp.stack([camera.width / 2 / focal, camera.height / 2 / focal]).astype(dtype)
    return casting.CameraRays(
        at=jnp.asarray(camera.eye, dtype),
        frame=camera.axes(dtype),
        a=a.ravel(),
        b=b.ravel(),
        spread=spread,
    )


def _check_arguments(name: str, camera: Camera, solids: Solids, far: Array | float) -> Solids:
    """Check the arguments and return the solids in floating point of one precision.

    Raise an error for a camera without a view direction, wrong shapes, and non-finite values.
    """
    check_camera(name, camera)
    ranges.numbers(f"{name}: far", far, (), above=0, most=casting.FAR, unit="m")
    boxes = _check_rows(name, solids.boxes, centre=("N", 3), half=("N", 3), turn=None)
    count = boxes.centre.shape[0]
    shape = (count,) if boxes.turn.ndim == 1 else (count, 4)
    ranges.numbers(f"{name}: Boxes.turn", boxes.turn, shape)
    if count == 0:
        raise ValueError(f"{name}: Boxes.centre has shape [0, 3]; give a box of half size -1")
    rods, planes = solids.rods, solids.planes
    if rods is not None:
        rods = _check_rows(name, rods, start=("N", 3), end=("N", 3), radius=("N",))
    if planes is not None:
        planes = _check_rows(name, planes, normal=("N", 3), height=("N",))
    solids = Solids(boxes, rods, planes)
    dtype = jnp.result_type(*jax.tree.leaves(solids))
    return jax.tree.map(lambda a: a.astype(dtype), solids)


def _check_rows[T: Boxes | Rods | Planes](name: str, held: T, **shapes: Any) -> T:
    """Return a copy with arrays in floating point, after checking their shapes and values."""
    arrays: dict[str, Array] = {}
    for field, shape in shapes.items():
        word = f"{name}: {type(held).__name__}.{field}"
        a = ranges.numbers(word, getattr(held, field), shape)
        a = jnp.asarray(a)
        arrays[field] = a if jnp.issubdtype(a.dtype, jnp.floating) else a.astype(float)
    counts = {field: len(a) for field, a in arrays.items()}
    if len(set(counts.values())) > 1:
        raise ValueError(
            f"{name}: {type(held).__name__} has {counts} rows; all fields must have the same number"
        )
    return replace(held, **arrays)
