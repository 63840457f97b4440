"""Replay buffer on the device: a ring buffer in which new rows overwrite the oldest.

Adding writes only the new rows, and sampling reads only the sampled rows.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import pytree

from .. import collectives


@pytree
class Replay:
    """Replay buffer of up to C rows; leaves of `rows` are [C, ...]."""

    rows: Any  # tree of arrays [capacity, ...]: the transitions
    position: Array  # [] index at which the next row is written
    size: Array  # [] number of stored rows


def init(row: Any, buffer_size: int) -> Replay:
    """Return an empty buffer for `buffer_size` rows like `row`.

    Raises:
        ValueError: if `buffer_size` is less than 1.
    """
    if buffer_size < 1:
        raise ValueError(f"replay: buffer_size={buffer_size}; give at least 1")
    room = jax.tree.map(lambda x: jnp.zeros((buffer_size, *jnp.shape(x)), jnp.result_type(x)), row)
    return Replay(room, jnp.int32(0), jnp.int32(0))


def add(replay: Replay, rows: Any, broken: Array | None = None) -> Replay:
    """Append B `rows`, leaves [B, ...]; when the buffer is full they overwrite the oldest.

    Rows in the mask `broken` [B] are skipped.

    >>> replay = add(init(jnp.float32(0), 3), jnp.array([1.0, 2.0]))
    >>> add(replay, jnp.array([3.0, 4.0])).rows.tolist()
    [4.0, 2.0, 3.0]
    """
    buffer_size, count = (jax.tree.leaves(x)[0].shape[0] for x in (replay.rows, rows))
    if count > buffer_size:
        raise ValueError(f"replay: {count} rows at once; buffer_size={buffer_size}; increase it")
    whole = jnp.ones(count, jnp.int32) if broken is None else (~broken).astype(jnp.int32)
    places = (replay.position + jnp.cumsum(whole, dtype=jnp.int32) - whole) % buffer_size
    places = jnp.where(whole == 1, places, buffer_size)  # out of range, so that nothing is written
    write = lambda old, new: old.at[places].set(new, mode="drop")
    held, taken = jax.tree.map(write, replay.rows, rows), jnp.sum(whole, dtype=jnp.int32)
    size = jnp.minimum(replay.size + taken, buffer_size)
    return Replay(held, (replay.position + taken) % buffer_size, size)


def add_rollout(
    replay: Replay, played: dict[str, Any], axis: str | None = None
) -> tuple[Replay, Any]:
    """Add a rollout `played`, leaves [T, B, ...], except its rows `broken` [T, B]; return both.

    With the `axis` of a mesh, the rollouts of all devices are gathered, added and returned.
    """
    played = jax.tree.map(lambda x: collectives.all_gather(x, axis, at=1), played)
    rows = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), played)
    return add(replay, rows, rows.pop("broken")), played


def check_capacity(name: str, buffer_size: int, rows: int) -> None:
    """Raise if the buffer is smaller than a rollout of `rows` rows; `name` is the learner's.

    Raises:
        ValueError: in that case.
    """
    if buffer_size < rows:
        raise ValueError(
            f"{name}: buffer_size={buffer_size}; an update has {rows} steps; give at least as many"
        )


def sample(replay: Replay, key: Array, count: int, axis: str | None = None) -> Any:
    """Sample rows [count, ...] uniformly with replacement.

    With the `axis` of a mesh, return this device's rows; the buffer is replicated.
    """
    pick = jax.random.randint(key, (count,), 0, jnp.maximum(replay.size, 1))
    pick = collectives.local_rows(pick, axis)
    return jax.tree.map(lambda x: x[pick], replay.rows)
