"""Ray casting: the first solid that each ray of a camera meets, exact and fast on any platform.

On a CPU boxes are processed near to far, a few at a time, until no remaining box can be nearer than
the farthest pixel: visible solids end the search, and nothing is left out. Views of a batch are
then processed one after the other, since each ends at a different box. An accelerator takes the
minimum over all boxes and stores nothing of the size boxes x pixels, at about 40 operations per box
and pixel. A TPU does this in one reduction. A GPU takes a few boxes per launch: for one reduction,
XLA tries so many ways to compile it on the card that it finds none within minutes.

Derivatives follow the one solid that was found, whose distance is computed again.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.custom_batching import sequential_vmap

from jaxgpu.geometry import rays
from jaxgpu.geometry.rays import FAR
from jaxgpu.geometry.solids import Boxes, Planes, Rods, Solids, to_box_frame, to_world_frame
from jaxgpu.geometry.vectors import Vec, dot, length
from jaxgpu.inputs.fields import pytree

BATCH_SIZE = 4  # boxes between two checks of the farthest pixel
LAUNCH_SIZE = (
    24  # boxes per launch on a GPU: fewer than 32 are a loop in one kernel, not a reduction
)


@pytree
class CameraRays:
    """Rays of a camera: unit vectors (a, b, 1) / length in the camera's axes."""

    at: Array  # [3] position, m
    frame: Array  # [3, 3] unit vectors to the right, down and ahead
    a: Array  # [P] slopes to the right
    b: Array  # [P] slopes down
    spread: Array  # [2] slopes of the edges of the image, to the right and down

    def depth_ratio(self) -> Array:
        """Return the depth per metre along each ray: [P]."""
        return 1 / jnp.sqrt(self.a * self.a + self.b * self.b + 1)

    def directions(self) -> Vec:
        """Return unit vectors along the rays, in space: 3 x [P]."""
        right, down, ahead = self.frame
        share = self.depth_ratio()
        return tuple(share * (self.a * right[i] + self.b * down[i] + ahead[i]) for i in range(3))

    def origin(self) -> Vec:
        """Return the origin of the rays: 3 x []."""
        return tuple(self.at[i] for i in range(3))


@jax.custom_jvp
def first_distance(solids: Solids, eye: CameraRays) -> Array:
    """Return the distance [P] to the first solid along each ray, m, `FAR` if there is none."""
    forms = {"cpu": _cast_near_to_far, "cuda": cast_blocks, "rocm": cast_blocks}
    return lax.platform_dependent(solids, eye, **forms, default=cast_all)


@first_distance.defjvp
def _first_distance_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    solids, eye = primals
    index = first_index(solids, eye)
    recompute = lambda solids, eye: surface_at_hit(solids, eye, index)[0]
    return jax.jvp(recompute, (solids, eye), tangents)


def first_index(solids: Solids, eye: CameraRays) -> Array:
    """Return the index [P] of the first solid along each ray, -1 if there is none."""
    solids, eye = lax.stop_gradient((solids, eye))
    forms = {"cpu": _cast_near_to_far_index, "cuda": cast_blocks_index, "rocm": cast_blocks_index}
    return lax.platform_dependent(solids, eye, **forms, default=cast_all_index)


@sequential_vmap
def _cast_near_to_far(solids: Solids, eye: CameraRays) -> Array:
    ways, start = eye.directions(), _hit_other_solids(solids, eye)[0]
    table, near, _ = _sort_boxes(solids.boxes, eye)
    wide = tuple(w[None] for w in ways)

    def body(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        k, far = carry
        rows = lax.dynamic_slice_in_dim(table, k, BATCH_SIZE)
        hits = _box_hits(tuple(rows[:, i, None] for i in range(rows.shape[1])), wide, True)
        for hit in hits:
            far = rays.fast_min(far, hit)
        return k + BATCH_SIZE, far

    has_nearer_box = lambda carry: near[carry[0]] < _max_distance(carry[1])
    return lax.while_loop(has_nearer_box, body, (jnp.int32(0), start))[1]


@sequential_vmap
def _cast_near_to_far_index(solids: Solids, eye: CameraRays) -> Array:
    ways, (start, index) = eye.directions(), _hit_other_solids(solids, eye)
    table, near, order = _sort_boxes(solids.boxes, eye)
    wide = tuple(w[None] for w in ways)

    def body(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        k, far, index = carry
        rows = lax.dynamic_slice_in_dim(table, k, BATCH_SIZE)
        numbers = lax.dynamic_slice_in_dim(order, k, BATCH_SIZE)
        hits = _box_hits(tuple(rows[:, i, None] for i in range(rows.shape[1])), wide, True)
        for hit, number in zip(hits, numbers):
            index = jnp.where(hit < far, number, index)
            far = rays.fast_min(far, hit)
        return k + BATCH_SIZE, far, index

    has_nearer_box = lambda carry: near[carry[0]] < _max_distance(carry[1])
    return lax.while_loop(has_nearer_box, body, (jnp.int32(0), start, index))[2]


def cast_blocks(solids: Solids, eye: CameraRays) -> Array:
    """Return distances [P] by the algorithm for GPUs; `_cast_near_to_far` finds the same."""
    far, rows, wide = _launch_blocks(solids, eye)

    def body(far: Array, rows: Array) -> tuple[Array, None]:
        return jnp.minimum(far, jnp.min(_box_hits(tuple(rows[:, :, None]), wide), 0)), None

    return lax.scan(body, far[0], rows)[0]


def cast_blocks_index(solids: Solids, eye: CameraRays) -> Array:
    """Return the indices [P] of the first solids by the algorithm for GPUs."""
    found, rows, wide = _launch_blocks(solids, eye)

    def body(found: tuple[Array, Array], more: tuple[Array, Array]) -> tuple[Any, None]:
        far, index = found
        hits, least = _box_hits(tuple(more[1][:, :, None]), wide), more[0] * LAUNCH_SIZE
        nearer = jnp.min(hits, 0)
        index = jnp.where(nearer < far, least + jnp.argmin(hits, 0).astype(jnp.int32), index)
        return (jnp.minimum(far, nearer), index), None

    turns = jnp.arange(len(rows), dtype=jnp.int32)
    return lax.scan(body, found, (turns, rows))[0][1]


def _launch_blocks(solids: Solids, eye: CameraRays) -> tuple[tuple[Array, Array], Array, Vec]:
    """Return hits of other solids, `_box_columns` [L, C, `LAUNCH_SIZE`], and rays 3 x [1, P].

    The last box is repeated to fill the last launch, which changes no minimum.
    """
    table = jnp.stack(_box_columns(solids.boxes, eye))
    table = jnp.pad(table, ((0, 0), (0, -table.shape[1] % LAUNCH_SIZE)), mode="edge")
    rows = table.reshape(len(table), -1, LAUNCH_SIZE).swapaxes(0, 1)
    return _hit_other_solids(solids, eye), rows, tuple(w[None] for w in eye.directions())


def cast_all(solids: Solids, eye: CameraRays) -> Array:
    """Return distances [P] by the algorithm for TPUs; `_cast_near_to_far` finds the same."""
    start, hits = _hit_other_solids(solids, eye)[0], _all_box_hits(solids.boxes, eye)
    return jnp.minimum(start, jnp.min(hits, 0))


def cast_all_index(solids: Solids, eye: CameraRays) -> Array:
    """Return the indices [P] of the first solids by the algorithm for TPUs."""
    (start, index), hits = _hit_other_solids(solids, eye), _all_box_hits(solids.boxes, eye)
    return jnp.where(jnp.min(hits, 0) < start, jnp.argmin(hits, 0).astype(jnp.int32), index)


def _all_box_hits(boxes: Boxes, eye: CameraRays) -> Array:
    """Return distances [N, P] to all boxes, which are never stored but fused into a minimum."""
    # The barrier keeps values per box or per ray from being computed again for each pair.
    columns, ways = lax.optimization_barrier((_box_columns(boxes, eye), eye.directions()))
    return _box_hits(tuple(c[:, None] for c in columns), tuple(w[None] for w in ways))


def _box_hits(columns: tuple[Array, ...], ways: Vec, branches: bool = False) -> Array:
    """Return distances [N, P] along rays 3 x [1, P] to boxes with `_box_columns`, each [N, 1]."""
    low, high, axes = columns[:3], columns[3:6], columns[6:]
    turned = to_box_frame(axes, ways)
    # For upright boxes the last slope depends on the ray only: XLA hoists it out of the box loop.
    slope = tuple(1 / rays.avoid_zero(w) for w in turned)
    return rays.slabs(low, high, slope, branches)


def _box_columns(boxes: Boxes, eye: CameraRays) -> tuple[Array, ...]:
    """Return lower and upper faces of boxes [N] relative to the eye, 3 arrays each, and axes."""
    boxes = boxes.hide_absent()
    axes = boxes.axes()
    off = to_box_frame(axes, tuple(boxes.centre[:, i] - eye.at[i] for i in range(3)))
    half = tuple(boxes.half[:, i] for i in range(3))
    low = tuple(o - h for o, h in zip(off, half))
    return (*low, *(o + h for o, h in zip(off, half)), *axes)


def _sort_boxes(boxes: Boxes, eye: CameraRays) -> tuple[Array, Array, Array]:
    """Return rows of `_box_columns` near to far, the distance of each from the eye, and its index.

    There are `BATCH_SIZE` additional rows at distance `FAR`, and so is a box that is out of view.
    Distances are rounded down: they share a word with the index of the box. Sorting these words as
    integers is three times as fast as sorting two arrays.
    """
    columns = _box_columns(boxes, eye)
    beyond = [jnp.maximum(jnp.maximum(columns[i], -columns[i + 3]), 0) for i in range(3)]
    near = jnp.where(is_in_view(boxes, eye), length(beyond), FAR)
    count = near.shape[0]
    low = (1 << (count - 1).bit_length()) - 1
    # no sign bit is set, so that integer words sort like the floats
    word = lax.bitcast_convert_type(near.astype(jnp.float32) * np.float32(1 - 1e-6), jnp.int32)
    word = lax.sort((word & ~low) | jnp.arange(count, dtype=jnp.int32))
    order = word & low
    near = lax.bitcast_convert_type(word & ~low, jnp.float32).astype(near.dtype)
    # the search ends before the additional rows, or repeats the last box
    more = (0, BATCH_SIZE)
    table = jnp.pad(jnp.stack(columns, 1)[order], (more, (0, 0)), mode="edge")
    near = jnp.pad(near, more, constant_values=FAR)
    return table, near, jnp.pad(order, more, mode="edge")


def is_in_view(boxes: Boxes, eye: CameraRays) -> Array:
    """Return a mask [N] of boxes whose bounding ball meets the viewing pyramid."""
    arm = tuple(boxes.centre[:, i] - eye.at[i] for i in range(3))
    right, down, ahead = (dot(arm, tuple(axis)) for axis in eye.frame)
    radius = length(tuple(boxes.half[:, i] for i in range(3)))
    seen = boxes.is_present & (ahead > -radius)
    for across, spread in zip((right, down), eye.spread):
        seen &= jnp.abs(across) - spread * ahead <= radius * jnp.sqrt(1 + spread * spread)
    return seen


def _hit_other_solids(solids: Solids, eye: CameraRays) -> tuple[Array, Array]:
    """Return distances to capsules and planes, at most `FAR`, and the index of the solid or -1."""
    ways, place = eye.directions(), eye.origin()
    wide = tuple(w[None] for w in ways)
    far, index = jnp.full_like(ways[0], FAR), jnp.full(ways[0].shape, -1, jnp.int32)
    boxes, rods, _ = solids.counts
    found = []
    if solids.rods is not None:
        found.append((boxes, _rod_hits(solids.rods, place, wide)))
    if solids.planes is not None:
        found.append((boxes + rods, _plane_hits(solids.planes, place, wide)))
    for begin, hits in found:
        least = jnp.min(hits, 0)
        number = begin + jnp.argmin(hits, 0).astype(jnp.int32)
        index = jnp.where(least < far, number, index)
        far = jnp.minimum(far, least)
    return far, index


def _rod_hits(rods: Rods, place: Vec, ways: Vec) -> Array:
    """Return the distances [M, P] to the capsules."""
    start, end = (tuple(x[:, i, None] for i in range(3)) for x in (rods.start, rods.end))
    radius = rods.radius[:, None]
    hits = rays.capsule(start, end, radius, place, ways)
    return jnp.where(radius >= 0, hits, FAR)


def _plane_hits(planes: Planes, place: Vec, ways: Vec) -> Array:
    """Return the distances [K, P] to the planes."""
    normal = tuple(planes.normal[:, i, None] for i in range(3))
    return rays.plane(normal, planes.height[:, None], place, ways)


def surface_at_hit(solids: Solids, eye: CameraRays, index: Array) -> tuple[Array, Vec]:
    """Return distance [P] of the solids `index`, m, and normals 3 x [P]; `FAR` and 0 for -1."""
    count, rods, _ = solids.counts
    ways, place = eye.directions(), eye.origin()
    far, normal = _surface_at_box(solids.boxes, eye, ways, jnp.clip(index, 0, count - 1))
    if solids.rods is not None:
        pick = jnp.clip(index - count, 0, rods - 1)
        start, end = (
            tuple(x[pick, i] for i in range(3)) for x in (solids.rods.start, solids.rods.end)
        )
        t = rays.capsule(start, end, solids.rods.radius[pick], place, ways)
        x = tuple(p + t * w for p, w in zip(place, ways))
        one = (index >= count) & (index < count + rods)
        far, normal = _select_hit(one, (t, rays.capsule_normal(start, end, x)), (far, normal))
    if solids.planes is not None:
        pick = jnp.clip(index - count - rods, 0, None)
        up = tuple(solids.planes.normal[pick, i] for i in range(3))
        t = rays.plane(up, solids.planes.height[pick], place, ways)
        facing = -jnp.sign(dot(up, ways))
        one = index >= count + rods
        far, normal = _select_hit(one, (t, tuple(facing * n for n in up)), (far, normal))
    none = index < 0
    return jnp.where(none, FAR, far), tuple(jnp.where(none, 0, n) for n in normal)


def _surface_at_box(boxes: Boxes, eye: CameraRays, ways: Vec, pick: Array) -> tuple[Array, Vec]:
    # One gather of rows: a gather per column costs eight times as much.
    found = jnp.stack(_box_columns(boxes, eye), 1)[pick]
    low, high, axes = (
        tuple(found[:, i] for i in part)
        for part in (range(3), range(3, 6), range(6, found.shape[1]))
    )
    turned = to_box_frame(axes, ways)
    slope = tuple(1 / rays.avoid_zero(w) for w in turned)
    near = rays.slab_entries(low, high, slope)
    first = jnp.maximum(jnp.maximum(near[0], near[1]), near[2])
    # the normal of the face that was entered last, at an edge of the first axis
    x = near[0] >= first
    y = ~x & (near[1] >= first)
    faces = (x, y, ~x & ~y)
    return first, to_world_frame(
        axes, tuple(jnp.where(f, -jnp.sign(w), 0) for f, w in zip(faces, turned))
    )


def _select_hit(one: Array, a: tuple[Array, Vec], b: tuple[Array, Vec]) -> tuple[Array, Vec]:
    normal = tuple(jnp.where(one, p, q) for p, q in zip(a[1], b[1]))
    return jnp.where(one, a[0], b[0]), normal


def _max_distance(far: Array) -> Array:
    """Return the largest of distances [P] by halves: on a CPU a third of the time of `jnp.max`."""
    while far.shape[0] > 16 and far.shape[0] % 2 == 0:
        half = far.shape[0] // 2
        far = rays.fast_max(far[:half], far[half:])
    return jnp.max(far)
