"""Partition of a scene over a row of devices: grid planes and initial particles of each device.

Cuts equalise the number of particles per device, as far as slabs have room for the planes about
the cuts.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .grid.device_grids import DRIFT, Cut
from .grid.grid import Grid
from .grid.stencil import base_node
from .materials.liquid import corrects_volume
from .particles import Chunks, chunk_shape
from .scene_fields import SceneFields

FACE_PLANES = 5  # planes at a face that affect one another, so that one device must have them all
MAX_WIDTH = 2  # maximum width of a slab relative to equal slabs


@dataclass(frozen=True)
class Partition:
    """Distribution of a scene's particles over a row of devices; hashable."""

    cut: Cut
    chunks: tuple[tuple[int, int], ...]  # per body: chunks of a device and slots per chunk
    whole: tuple[tuple[int, ...], ...]  # per body: [C, P] of the undistributed state


def min_slab_planes(reach: int, devices: int) -> list[int]:
    """Return the minimum number of planes per slab, for disjoint zones of cuts and faces."""
    return [FACE_PLANES + reach, *[2 * reach + 2] * (devices - 2), FACE_PLANES + reach + 2]


def cuts(counts: Array, cut: Cut, before: Array | None = None) -> Array:
    """Return the first plane of each slab and the end of the last one, [devices + 1] int32.

    The outer two are where the material ends, or the ends of the grid where it is close to a face.

    Args:
        counts: [planes] particles by the first plane that they touch.
        cut: number of slabs and the planes that each can store.
        before: previous cuts; each inner cut moves by at most one plane from them, if it can.
    """
    n, planes, room = cut.devices, counts.shape[0], cut.planes - cut.zone
    narrow = min_slab_planes(cut.reach, n)
    filled = counts > 0
    lowest, highest = jnp.argmax(filled), planes - jnp.argmax(filled[::-1])
    made = [jnp.where(lowest < narrow[0], 0, lowest).astype(jnp.int32)]
    end = jnp.where(highest > planes - narrow[-1], planes, highest).astype(jnp.int32)
    sums = jnp.cumsum(counts.astype(jnp.float32))
    below = jnp.concatenate([jnp.zeros(1, jnp.float32), sums])
    for i in range(1, n):
        at = jnp.argmin(jnp.abs(below - sums[-1] * (i / n))).astype(jnp.int32)
        if before is not None:
            at = jnp.clip(at, before[i] - 1, before[i] + 1)
        # No slab may be too narrow, or wider than a device has room for.
        least = made[-1] + narrow[i - 1] if i > 1 else narrow[0]
        least = jnp.maximum(least, end - (n - i) * room)
        most = jnp.minimum(made[-1] + room, planes - sum(narrow[i:]))
        made.append(jnp.clip(at, least, most))
    return jnp.stack([*made, end])


def first_planes(grid: Grid, x: Array, axis: int) -> Array:
    """Return the index of the first plane that each particle touches, shaped as x, int32."""
    return base_node(grid.coordinate(x, axis), grid.shape[axis]).astype(jnp.int32)


def histogram(grid: Grid, chunks: Chunks, axis: int) -> Array:
    """Count particles by the first plane that they touch, [planes] int32."""
    planes = first_planes(grid, chunks.x[axis], axis).ravel()
    filled = (chunks.m > 0).ravel().astype(jnp.int32)
    return jnp.zeros(grid.shape[axis], jnp.int32).at[planes].add(filled)


_find_cuts = jax.jit(
    cuts, static_argnames="cut"
)  # without jit, the host would run many small programs
_count_by_plane = jax.jit(histogram, static_argnames=("grid", "axis"))
_first_planes = jax.jit(first_planes, static_argnames=("grid", "axis"))


def make_partition(
    scene: SceneFields, bodies: list[Chunks], devices: int
) -> tuple[Partition, Array] | None:
    """Return a partition of the particles and its first cuts, or None if none is possible."""
    grid, best = scene.grid, None
    if devices < 2:
        return None
    corrected = any(corrects_volume(body.material) for body in scene.bodies)
    reach = DRIFT + corrected  # the volume excess of a node depends on its neighbours
    pull = np.abs([float(np.asarray(g)) for g in scene.gravity or (0.0,) * len(grid.cells)])
    for axis, (planes, face) in enumerate(zip(grid.shape, grid.faces)):
        if face == "periodic" or planes < sum(min_slab_planes(reach, devices)):
            continue
        kept = min(planes, MAX_WIDTH * -(-planes // devices) + 2 * reach + 2)
        cut = Cut(axis, kept, reach, devices)
        counts = [np.asarray(_count_by_plane(grid, chunks, axis)) for chunks in bodies]
        made = _find_cuts(jnp.asarray(sum(counts)), cut)
        slabs = [np.split(n, np.asarray(made)[1:-1]) for n in counts]
        most = [max(part.sum() for part in parts) for parts in slabs]
        falls = bool(pull.any() and axis == np.argmax(pull))
        # One of several bodies may accumulate where the others are absent.
        spare = [n.max() + held // (2 if len(bodies) > 1 else 8) for n, held in zip(counts, most)]
        slots = [_round_up_slots(held + more) for held, more in zip(most, spare)]
        if best is None or (falls, sum(slots)) < best[0]:
            best = (falls, sum(slots)), cut, slots, made
    if best is None:
        return None
    _, cut, slots, made = best
    whole = tuple(chunks.m.shape for chunks in bodies)
    return Partition(cut, tuple(chunk_shape(n) for n in slots), whole), made


def _round_up_slots(slots: int) -> int:
    """Round up to four binary digits, so that similar scenes have the same program."""
    digit = 2 ** max(4, int(slots).bit_length() - 4)
    return digit * -(-int(slots) // digit)


def slot_ids(grid: Grid, chunks: Chunks, cuts: Array, axis: int, slots: int) -> Array:
    """Return particle ids, from 1, for the `slots` slots of each device, 0 in empty slots."""
    filled = np.flatnonzero(np.asarray(chunks.m).ravel() > 0)
    plane = np.asarray(_first_planes(grid, chunks.x[axis], axis)).ravel()[filled]
    home = np.searchsorted(np.asarray(cuts)[1:-1], plane, side="right")
    order = np.argsort(home, kind="stable")
    rank = np.arange(len(order)) - np.searchsorted(home[order], home[order])
    numbers = np.zeros((len(cuts) - 1, slots), np.int32)
    numbers[home[order], rank] = filled[order] + 1
    return jnp.asarray(numbers.ravel())
