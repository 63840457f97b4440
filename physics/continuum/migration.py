"""Migration of particles from device to device, as they or the cuts move.

Cuts follow the material by one plane at a time. A particle that is not on its home device is sent
to a neighbour, into one of its empty slots; without an empty slot it stays and is sent later. No
particle is ever lost: `Slab.holds` detects whether all are close enough to their slabs.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from .grid.device_grids import DRIFT, exchange_halos
from .particles import Chunks, empty_chunks
from .partition import Partition, cuts, first_planes, histogram

MAX_STEPS = 16  # maximum number of steps between two migrations
DRIFT_FRACTION = 0.75  # fraction of the allowed drift that a particle may use at its present speed
SEND_DIVISOR = 4  # a device sends at most 1 / SENT of its slots to each neighbour


def migrate(
    partition: Partition,
    scene: Any,
    bodies: Sequence[Chunks],
    ids: Sequence[Array],
    before: Array,
    name: str,
) -> tuple[list[Chunks], list[Array], Array, Array]:
    """Send each particle to, or towards, its home device; within `jax.shard_map`.

    Args:
        bodies, ids: of this device; an id is above zero where a slot is filled.
        before: previous cuts.
        name: of the mesh axis.
    Returns:
        bodies, ids, cuts, and the steps for which particles stay close enough at their speeds.
    """
    grid, axis = scene.grid, partition.cut.axis
    steps = jnp.stack([_num_safe_steps(chunks.v[axis], scene.dt, grid.dx) for chunks in bodies])
    counts = [histogram(grid, chunks, axis) for chunks in bodies]
    seen = lax.all_gather(jnp.concatenate([*counts, jnp.min(steps)[None]]), name)
    counts = seen[:, :-1].reshape(
        partition.cut.devices, len(bodies), -1
    )  # [devices, bodies, planes]
    after = cuts(jnp.sum(counts, (0, 1), dtype=jnp.int32), partition.cut, before)
    moved = []
    for i, (body, chunks, numbers) in enumerate(zip(scene.bodies, bodies, ids)):
        plane = first_planes(grid, chunks.x[axis], axis).ravel()
        home = jnp.sum(plane[None] >= after[1:-1, None], 0, dtype=jnp.int32)
        granted = _grant_transfers(counts[:, i], after, chunks.m.size)
        blank = empty_chunks(body, grid, chunks.m.shape)
        moved.append(_exchange_particles(chunks, numbers, blank, home, granted, name))
    return [a for a, _ in moved], [b for _, b in moved], after, jnp.min(seen[:, -1])


def _grant_transfers(counts: Array, cuts: Array, slots: int) -> Array:
    """Return the numbers of particles that each device may send to the devices below and above.

    Args:
        counts: [devices, planes] particles of a body by the first plane that they touch.
        cuts: [devices + 1] of the slabs.
        slots: of a device.
    Returns:
        [2, devices] int32: all that are not at home, limited by the room of the receiver. If both
        neighbours have more than there is room for, each may fill at least half of it.
    """
    plane, none = jnp.arange(counts.shape[1], dtype=jnp.int32), jnp.zeros(1, jnp.int32)
    above = plane[None] >= cuts[1:-1, None]  # of the cut between device i and i + 1
    up = jnp.sum(jnp.where(above, counts[:-1], 0), 1, dtype=jnp.int32)
    down = jnp.sum(jnp.where(above, 0, counts[1:]), 1, dtype=jnp.int32)
    room = slots - jnp.sum(counts, 1, dtype=jnp.int32)
    limit_to_room = lambda room, wanted, other: jnp.minimum(
        wanted, jnp.maximum(room // 2, room - other)
    )
    from_below = limit_to_room(room[1:], up, jnp.concatenate([down[1:], none]))
    from_above = limit_to_room(room[:-1], down, jnp.concatenate([none, up[:-1]]))
    granted = [jnp.concatenate([none, from_above]), jnp.concatenate([from_below, none])]
    return jnp.minimum(jnp.stack(granted), slots // SEND_DIVISOR)


def _num_safe_steps(v: Array, dt: Any, dx: float) -> Array:
    """Return the steps in which no particle drifts too far along the axis, 1 to LONGEST, int32."""
    fastest = jnp.max(jnp.abs(jnp.where(jnp.isfinite(v), v, 0)))
    slowest = DRIFT_FRACTION * DRIFT * dx / MAX_STEPS  # m per step
    steps = MAX_STEPS * slowest / jnp.maximum(fastest * dt, slowest)
    return jnp.maximum(steps.astype(jnp.int32), 1)


def _exchange_particles(
    chunks: Chunks, ids: Array, blank: Chunks, home: Array, granted: Array, name: str
) -> tuple[Chunks, Array]:
    """Send particles one device closer to home, as far as there is room; return chunks and ids.

    Args:
        blank: as many empty slots.
        home: [slots] index of the home device.
        granted: [2, devices] how many may go to the device below and above.
        name: of the mesh axis.
    """
    me, slots = lax.axis_index(name), home.size
    most, filled, kept = slots // SEND_DIVISOR, ids.ravel() > 0, ids.ravel() > 0
    held, made = _pack_rows((chunks, ids))
    sent = []
    for goes, count in ((home < me, granted[0, me]), (home > me, granted[1, me])):
        goes = filled & goes
        goes = goes & (jnp.cumsum(goes, dtype=jnp.int32) <= count)
        kept = kept & ~goes
        at = _true_indices(goes, most)
        sent.append([a.at[:, at].get(mode="fill", fill_value=0) for a in held])
    below, above = exchange_halos(sent[0], sent[1], name)
    arrived = [jnp.concatenate(pair, 1) for pair in zip(below, above)]
    # The arrivals fill the first empty slots in order.
    there = arrived[-1][0] > 0
    free, rank = _true_indices(~kept, 2 * most), jnp.cumsum(there, dtype=jnp.int32) - 1
    at = jnp.where(there, free[jnp.maximum(rank, 0)], slots)
    empties, _ = _pack_rows((blank, jnp.zeros_like(ids)))
    held = [jnp.where(kept[None], a, b) for a, b in zip(held, empties)]
    return made([a.at[:, at].set(b, mode="drop") for a, b in zip(held, arrived)])


def _true_indices(which: Array, size: int) -> Array:
    """Return indices [size] int32 of the first true entries, padded with the number of slots."""
    rank = jnp.where(which, jnp.cumsum(which, dtype=jnp.int32) - 1, size)
    number = jnp.arange(which.size, dtype=jnp.int32)
    return jnp.full(size, which.size, jnp.int32).at[rank].set(number, mode="drop")


def _pack_rows(tree: Any) -> tuple[list[Array], Any]:
    """Return leaves as rows [n, slots] per dtype, the last leaf last, and the inverse function."""
    leaves, structure = jax.tree.flatten(tree)
    dtypes = sorted({a.dtype.name for a in leaves[:-1]})
    groups = [[i for i, a in enumerate(leaves[:-1]) if a.dtype.name == name] for name in dtypes]
    groups.append([len(leaves) - 1])

    def unpack(rows: list[Array]) -> Any:
        parts = {i: row for group, part in zip(groups, rows) for i, row in zip(group, part)}
        shaped = [parts[i].reshape(a.shape) for i, a in enumerate(leaves)]
        return jax.tree.unflatten(structure, shaped)

    return [jnp.stack([leaves[i].ravel() for i in group]) for group in groups], unpack
