"""What was experienced, kept on the device: a ring in which the newest rows overwrite the oldest.

Adding moves the rows added and nothing else; a draw reads the rows drawn.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import pytree

from .. import shares


@pytree
class Replay:
    """Up to C rows; leaves of `rows` are [C, ...]."""

    rows: Any  # tree of arrays [capacity, ...]: what was played
    position: Array  # [] where the next row goes
    size: Array  # [] rows held


def init(row: Any, buffer_size: int) -> Replay:
    """Room for `buffer_size` rows like `row`, none held.

    Raises:
        ValueError: no room.
    """
    if buffer_size < 1:
        raise ValueError(f"replay: buffer_size={buffer_size}; give room for at least 1 row")
    room = jax.tree.map(lambda x: jnp.zeros((buffer_size, *jnp.shape(x)), jnp.result_type(x)), row)
    return Replay(room, jnp.int32(0), jnp.int32(0))


def add(replay: Replay, rows: Any, broken: Array | None = None) -> Replay:
    """Take in B `rows`, leaves [B, ...]; where there is no room they overwrite the oldest.

    Rows that are `broken` [B] are left out.

    >>> replay = add(init(jnp.float32(0), 3), jnp.array([1.0, 2.0]))
    >>> add(replay, jnp.array([3.0, 4.0])).rows.tolist()
    [4.0, 2.0, 3.0]
    """
    buffer_size, count = (jax.tree.leaves(x)[0].shape[0] for x in (replay.rows, rows))
    if count > buffer_size:
        raise ValueError(f"replay: {count} rows at once; buffer_size={buffer_size}; raise it")
    whole = jnp.ones(count, jnp.int32) if broken is None else (~broken).astype(jnp.int32)
    places = (replay.position + jnp.cumsum(whole, dtype=jnp.int32) - whole) % buffer_size
    places = jnp.where(whole == 1, places, buffer_size)  # outside, where nothing is written
    put = lambda old, new: old.at[places].set(new, mode="drop")
    held, taken = jax.tree.map(put, replay.rows, rows), jnp.sum(whole, dtype=jnp.int32)
    size = jnp.minimum(replay.size + taken, buffer_size)
    return Replay(held, (replay.position + taken) % buffer_size, size)


def collect(replay: Replay, played: dict[str, Any], axis: str | None = None) -> tuple[Replay, Any]:
    """Take in what was `played`, leaves [T, B, ...], but what is `broken` [T, B] there.

    With the `axis` of a mesh, what was played on all its devices; it comes back too, together.
    """
    played = jax.tree.map(lambda x: shares.joined(x, axis, at=1), played)
    rows = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), played)
    return add(replay, rows, rows.pop("broken")), played


def check_room(name: str, buffer_size: int, rows: int) -> None:
    """Raise where there is less room than a rollout of so many rows takes; `name` is the learner's.

    Raises:
        ValueError: as said.
    """
    if buffer_size < rows:
        raise ValueError(
            f"{name}: buffer_size={buffer_size}; an update has {rows} steps; give room for as many"
        )


def draw(replay: Replay, key: Array, count: int, axis: str | None = None) -> Any:
    """Rows [count, ...] drawn with replacement, all that are held alike likely.

    With the `axis` of a mesh, this device's share of them, of a replay that all have whole.
    """
    pick = jax.random.randint(key, (count,), 0, jnp.maximum(replay.size, 1))
    pick = shares.own(pick, axis)
    return jax.tree.map(lambda x: x[pick], replay.rows)
