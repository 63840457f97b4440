"""The first solid that each ray of a camera meets: exact, and fast on either kind of machine.

On a processor boxes are taken near to far, a few at a time, until no box that is left can be
nearer than the farthest pixel: what is seen ends the search, and nothing is left out. Views of a
batch then go one after the other, since each ends at its own box. An accelerator takes the minimum
over all boxes, and keeps nothing of the size boxes x pixels: about 40 operations a box and pixel. A
TPU takes it at once. A GPU takes a few boxes a launch: as one reduction, XLA tries so many ways to
compile it on the card that none is found in minutes.

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
from jaxgpu.geometry.solids import Boxes, Planes, Rods, Solids, inside, outside
from jaxgpu.geometry.vectors import Vec, dot, length
from jaxgpu.inputs.fields import pytree

TOGETHER = 4  # boxes between two looks at the farthest pixel
LAUNCH = 24  # boxes of a launch on a GPU: fewer than 32 are one loop in a kernel, and no reduction


@pytree
class Eye:
    """A camera as its rays: unit vectors (a, b, 1) / length in its own axes."""

    at: Array  # [3] m
    frame: Array  # [3, 3] unit vectors to the right, down and ahead
    a: Array  # [P] slopes to the right
    b: Array  # [P] slopes down
    spread: Array  # [2] slopes of the edges of the image, to the right and down

    def ahead(self) -> Array:
        """Depth a metre along each ray: [P]."""
        return 1 / jnp.sqrt(self.a * self.a + self.b * self.b + 1)

    def ways(self) -> Vec:
        """Unit vectors along the rays, in space: 3 x [P]."""
        right, down, ahead = self.frame
        share = self.ahead()
        return tuple(share * (self.a * right[i] + self.b * down[i] + ahead[i]) for i in range(3))

    def place(self) -> Vec:
        """Where the rays begin: 3 x []."""
        return tuple(self.at[i] for i in range(3))


@jax.custom_jvp
def first_distance(solids: Solids, eye: Eye) -> Array:
    """How far each ray [P] goes, m, `FAR` where it meets nothing."""
    forms = {"cpu": _near_to_far, "cuda": in_turn, "rocm": in_turn}
    return lax.platform_dependent(solids, eye, **forms, default=at_once)


@first_distance.defjvp
def _along_what_was_found(primals: Any, tangents: Any) -> tuple[Array, Array]:
    solids, eye = primals
    index = first_index(solids, eye)
    again = lambda solids, eye: met(solids, eye, index)[0]
    return jax.jvp(again, (solids, eye), tangents)


def first_index(solids: Solids, eye: Eye) -> Array:
    """Which solid each ray [P] meets first; -1 where it meets nothing."""
    solids, eye = lax.stop_gradient((solids, eye))
    forms = {"cpu": _near_to_far_index, "cuda": in_turn_index, "rocm": in_turn_index}
    return lax.platform_dependent(solids, eye, **forms, default=at_once_index)


@sequential_vmap
def _near_to_far(solids: Solids, eye: Eye) -> Array:
    ways, start = eye.ways(), _apart_from_boxes(solids, eye)[0]
    table, near, _ = _sorted(solids.boxes, eye)
    wide = tuple(w[None] for w in ways)

    def body(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        k, far = carry
        rows = lax.dynamic_slice_in_dim(table, k, TOGETHER)
        hits = _hit(tuple(rows[:, i, None] for i in range(rows.shape[1])), wide, True)
        for hit in hits:
            far = rays.less(far, hit)
        return k + TOGETHER, far

    nearer = lambda carry: near[carry[0]] < _largest(carry[1])
    return lax.while_loop(nearer, body, (jnp.int32(0), start))[1]


@sequential_vmap
def _near_to_far_index(solids: Solids, eye: Eye) -> Array:
    ways, (start, index) = eye.ways(), _apart_from_boxes(solids, eye)
    table, near, order = _sorted(solids.boxes, eye)
    wide = tuple(w[None] for w in ways)

    def body(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        k, far, index = carry
        rows = lax.dynamic_slice_in_dim(table, k, TOGETHER)
        numbers = lax.dynamic_slice_in_dim(order, k, TOGETHER)
        hits = _hit(tuple(rows[:, i, None] for i in range(rows.shape[1])), wide, True)
        for hit, number in zip(hits, numbers):
            index = jnp.where(hit < far, number, index)
            far = rays.less(far, hit)
        return k + TOGETHER, far, index

    nearer = lambda carry: near[carry[0]] < _largest(carry[1])
    return lax.while_loop(nearer, body, (jnp.int32(0), start, index))[2]


def in_turn(solids: Solids, eye: Eye) -> Array:
    """Distances [P] as a GPU finds them; `_near_to_far` finds the same."""
    far, rows, wide = _launches(solids, eye)

    def body(far: Array, rows: Array) -> tuple[Array, None]:
        return jnp.minimum(far, jnp.min(_hit(tuple(rows[:, :, None]), wide), 0)), None

    return lax.scan(body, far[0], rows)[0]


def in_turn_index(solids: Solids, eye: Eye) -> Array:
    """Numbers [P] of the solids as a GPU finds them."""
    found, rows, wide = _launches(solids, eye)

    def body(found: tuple[Array, Array], more: tuple[Array, Array]) -> tuple[Any, None]:
        far, index = found
        hits, least = _hit(tuple(more[1][:, :, None]), wide), more[0] * LAUNCH
        nearer = jnp.min(hits, 0)
        index = jnp.where(nearer < far, least + jnp.argmin(hits, 0).astype(jnp.int32), index)
        return (jnp.minimum(far, nearer), index), None

    turns = jnp.arange(len(rows), dtype=jnp.int32)
    return lax.scan(body, found, (turns, rows))[0][1]


def _launches(solids: Solids, eye: Eye) -> tuple[tuple[Array, Array], Array, Vec]:
    """What there is but boxes, rows [L, C, `LAUNCH`] of `_columns`, and rays 3 x [1, P].

    The last box fills the last launch; met anew it is no nearer.
    """
    table = jnp.stack(_columns(solids.boxes, eye))
    table = jnp.pad(table, ((0, 0), (0, -table.shape[1] % LAUNCH)), mode="edge")
    rows = table.reshape(len(table), -1, LAUNCH).swapaxes(0, 1)
    return _apart_from_boxes(solids, eye), rows, tuple(w[None] for w in eye.ways())


def at_once(solids: Solids, eye: Eye) -> Array:
    """Distances [P] as a TPU finds them; `_near_to_far` finds the same."""
    start, hits = _apart_from_boxes(solids, eye)[0], _all_hits(solids.boxes, eye)
    return jnp.minimum(start, jnp.min(hits, 0))


def at_once_index(solids: Solids, eye: Eye) -> Array:
    """Numbers [P] of the solids as a TPU finds them."""
    (start, index), hits = _apart_from_boxes(solids, eye), _all_hits(solids.boxes, eye)
    return jnp.where(jnp.min(hits, 0) < start, jnp.argmin(hits, 0).astype(jnp.int32), index)


def _all_hits(boxes: Boxes, eye: Eye) -> Array:
    """Distances [N, P] to all boxes, which no program keeps: they go into a minimum."""
    # what is computed for a box or a ray alone is not to be done anew for each pair of them
    columns, ways = lax.optimization_barrier((_columns(boxes, eye), eye.ways()))
    return _hit(tuple(c[:, None] for c in columns), tuple(w[None] for w in ways))


def _hit(columns: tuple[Array, ...], ways: Vec, branches: bool = False) -> Array:
    """Distances [N, P] along rays 3 x [1, P] to boxes, of the columns [N, 1] of `_columns`."""
    low, high, axes = columns[:3], columns[3:6], columns[6:]
    turned = inside(axes, ways)
    # of upright boxes the last is that of the ray alone, which XLA takes out of the loop over boxes
    slope = tuple(1 / rays.away_from_zero(w) for w in turned)
    return rays.slabs(low, high, slope, branches)


def _columns(boxes: Boxes, eye: Eye) -> tuple[Array, ...]:
    """Of each box [N] the places of its faces less the eye, in its own frame, and its axes."""
    boxes = boxes.kept()
    axes = boxes.axes()
    off = inside(axes, tuple(boxes.centre[:, i] - eye.at[i] for i in range(3)))
    half = tuple(boxes.half[:, i] for i in range(3))
    low = tuple(o - h for o, h in zip(off, half))
    return (*low, *(o + h for o, h in zip(off, half)), *axes)


def _sorted(boxes: Boxes, eye: Eye) -> tuple[Array, Array, Array]:
    """Rows of `_columns` near to far, the distance of each from the eye, and its number.

    There are `TOGETHER` further rows, `FAR` away. A box that is out of view is as far. Distances
    are rounded down: they share a word with the number of the box, which is sorted as an integer,
    three times as fast as two arrays.
    """
    columns = _columns(boxes, eye)
    beyond = [jnp.maximum(jnp.maximum(columns[i], -columns[i + 3]), 0) for i in range(3)]
    near = jnp.where(in_view(boxes, eye), length(beyond), FAR)
    count = near.shape[0]
    low = (1 << (count - 1).bit_length()) - 1
    # no bit of the sign is set, so that words are in the order of the floats
    word = lax.bitcast_convert_type(near.astype(jnp.float32) * np.float32(1 - 1e-6), jnp.int32)
    word = lax.sort((word & ~low) | jnp.arange(count, dtype=jnp.int32))
    order = word & low
    near = lax.bitcast_convert_type(word & ~low, jnp.float32).astype(near.dtype)
    # the search ends before the last rows, or meets the last box anew
    more = (0, TOGETHER)
    table = jnp.pad(jnp.stack(columns, 1)[order], (more, (0, 0)), mode="edge")
    near = jnp.pad(near, more, constant_values=FAR)
    return table, near, jnp.pad(order, more, mode="edge")


def in_view(boxes: Boxes, eye: Eye) -> Array:
    """Whether the ball about each box [N] meets the pyramid of sight."""
    arm = tuple(boxes.centre[:, i] - eye.at[i] for i in range(3))
    right, down, ahead = (dot(arm, tuple(axis)) for axis in eye.frame)
    radius = length(tuple(boxes.half[:, i] for i in range(3)))
    seen = boxes.there & (ahead > -radius)
    for across, spread in zip((right, down), eye.spread):
        seen &= jnp.abs(across) - spread * ahead <= radius * jnp.sqrt(1 + spread * spread)
    return seen


def _apart_from_boxes(solids: Solids, eye: Eye) -> tuple[Array, Array]:
    """How far rays go to capsules and planes, at most `FAR`, and the number of the solid or -1."""
    ways, place = eye.ways(), eye.place()
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
    """Distances [M, P] to the capsules."""
    start, end = (tuple(x[:, i, None] for i in range(3)) for x in (rods.start, rods.end))
    radius = rods.radius[:, None]
    hits = rays.capsule(start, end, radius, place, ways)
    return jnp.where(radius >= 0, hits, FAR)


def _plane_hits(planes: Planes, place: Vec, ways: Vec) -> Array:
    """Distances [K, P] to the planes."""
    normal = tuple(planes.normal[:, i, None] for i in range(3))
    return rays.plane(normal, planes.height[:, None], place, ways)


def met(solids: Solids, eye: Eye, index: Array) -> tuple[Array, Vec]:
    """Distance [P] to the solids `index`, m, and unit normals 3 x [P] there; `FAR` and 0 for -1."""
    count, rods, _ = solids.counts
    ways, place = eye.ways(), eye.place()
    far, normal = _box_met(solids.boxes, eye, ways, jnp.clip(index, 0, count - 1))
    if solids.rods is not None:
        pick = jnp.clip(index - count, 0, rods - 1)
        start, end = (
            tuple(x[pick, i] for i in range(3)) for x in (solids.rods.start, solids.rods.end)
        )
        t = rays.capsule(start, end, solids.rods.radius[pick], place, ways)
        x = tuple(p + t * w for p, w in zip(place, ways))
        one = (index >= count) & (index < count + rods)
        far, normal = _either(one, (t, rays.capsule_normal(start, end, x)), (far, normal))
    if solids.planes is not None:
        pick = jnp.clip(index - count - rods, 0, None)
        up = tuple(solids.planes.normal[pick, i] for i in range(3))
        t = rays.plane(up, solids.planes.height[pick], place, ways)
        facing = -jnp.sign(dot(up, ways))
        one = index >= count + rods
        far, normal = _either(one, (t, tuple(facing * n for n in up)), (far, normal))
    none = index < 0
    return jnp.where(none, FAR, far), tuple(jnp.where(none, 0, n) for n in normal)


def _box_met(boxes: Boxes, eye: Eye, ways: Vec, pick: Array) -> tuple[Array, Vec]:
    # one gather of rows: a gather of each column costs eight times as much
    found = jnp.stack(_columns(boxes, eye), 1)[pick]
    low, high, axes = (
        tuple(found[:, i] for i in part)
        for part in (range(3), range(3, 6), range(6, found.shape[1]))
    )
    turned = inside(axes, ways)
    slope = tuple(1 / rays.away_from_zero(w) for w in turned)
    near = rays.entry(low, high, slope)
    first = jnp.maximum(jnp.maximum(near[0], near[1]), near[2])
    # of the face that was entered last; at an edge that of the first axis
    x = near[0] >= first
    y = ~x & (near[1] >= first)
    faces = (x, y, ~x & ~y)
    return first, outside(axes, tuple(jnp.where(f, -jnp.sign(w), 0) for f, w in zip(faces, turned)))


def _either(one: Array, a: tuple[Array, Vec], b: tuple[Array, Vec]) -> tuple[Array, Vec]:
    normal = tuple(jnp.where(one, p, q) for p, q in zip(a[1], b[1]))
    return jnp.where(one, a[0], b[0]), normal


def _largest(far: Array) -> Array:
    """The largest of distances [P], by halves: on a processor a third of the time of `jnp.max`."""
    while far.shape[0] > 16 and far.shape[0] % 2 == 0:
        half = far.shape[0] // 2
        far = rays.greater(far[:half], far[half:])
    return jnp.max(far)
