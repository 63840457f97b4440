"""The active-particle scheduler: it finds the due bodies of a block and advances them.

Of N bodies with individual steps, a block advances only the *active* ones, whose steps end now
(Makino & Aarseth 1992, PASJ 44, 141). They are gathered into tiles of fixed size, whose number is
determined at run time. One program thus serves blocks of one body and of all, at the cost of the
active ones. Many bodies go into large tiles, which spend little on gathering; the remaining ones go
into small tiles, which waste few lanes.

Stars are few, and all are predicted in each block: `advance_group` finds the active ones among N
times. Tracers may be millions: a `Schedule` stores the end times of their steps in pages of 128
bodies, with the earliest of each page. A block reads these, and only those pages that contain a due
body. All data of a tracer are contiguous in a row, so that fetching it touches four cache lines and
not thirty; `Packing` defines the columns of each field.

On accelerators a kernel launch costs as much as thousands of bodies. There, up to some thousands of
bodies are all advanced in every block, and only the due ones keep the result
(`advance_whole_group`, `advance_all`; without regularised pairs a GPU needs no schedule at all, see
`full_blocks`).

Read downwards: `Packing`, `Schedule`, `advance` (a block of tracers), `advance_group` (a block of
stars), `scan_tiles` (the loop over tiles), `due_indices` (indices of the due bodies).
"""

import math
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.inputs.fields import pytree

_PAGE, _LOOKED_INTO = 128, 8  # bodies per page, pages searched at a time
_MANY = 16  # minimum number of large tiles; fewer bodies use only small tiles
_FEW, _ROW = 64, 128  # indices found at a time, and bits per row that are counted for them
# On accelerators, up to this number of bodies are all evaluated in each block: finding the due ones
# takes at least twenty launches, as long as 4096^2 pairs. Larger numbers use tiles of `_WIDE`. The
# limit is higher for tracers, whose pages take more launches.
MAX_FULL_BLOCK, _WIDE, _TRACERS_AT_ONCE = 4096, 256, 16384

# (indices [B] of bodies, the bodies) -> the advanced bodies, and a mask [B] of floored steps
type Move[T] = Callable[[Array, T], tuple[T, Array]]

# mask [B] of a tile's bodies that move again; the move, from their total number in all tiles
type SecondMove[T] = tuple[Callable[[T], Array], Callable[[Array], Move[T]]]


def evaluates_all(stars: int, tracers: int) -> bool:
    """Return whether an accelerator evaluates all bodies in each block, without a schedule."""
    return 0 < stars <= MAX_FULL_BLOCK and tracers <= _TRACERS_AT_ONCE


class Bodies(Protocol):
    """A flat dataclass of arrays [..., M] of bodies, each at its individual time."""

    @property
    def t(self) -> Array: ...

    @property
    def dt(self) -> Array: ...


class Packing[T: Bodies]:
    """Layout of the fields of a body in a row [C]; integers are stored as exact floats."""

    def __init__(self, group: T) -> None:
        self._type, self._dtype = type(group), group.t.dtype
        flat: Any = group  # a dataclass, which a protocol cannot express
        self.columns: dict[str, slice] = {}  # columns of each field, in the order of the class
        self._like: dict[str, Array] = {}
        width = 0
        for field in fields(flat):
            value = getattr(flat, field.name)
            start, width = width, width + math.prod(value.shape[:-1])
            self.columns[field.name], self._like[field.name] = slice(start, width), value

    def rows(self, group: T) -> Array:
        """Pack a group of [..., B] into rows [B, C]."""
        columns = [
            value.astype(self._dtype).reshape(math.prod(value.shape[:-1]), value.shape[-1])
            for value in (getattr(group, name) for name in self.columns)
        ]
        return jnp.concatenate(columns).T

    def group(self, rows: Array) -> T:
        """Unpack the group of [..., B] from rows [B, C]."""
        values = {}
        for name, columns in self.columns.items():
            like = self._like[name]
            part = rows.T[columns].reshape(*like.shape[:-1], len(rows))
            values[name] = part.astype(like.dtype)
        return self._type(**values)


@pytree
class Schedule:
    """The tracers between two blocks, with the end times of their steps.

    Invariants: `ends` are `t + dt` of the rows, `soonest` is the minimum of each page of `ends`.
    The lists are valid only within a block, and stored to avoid an allocation in each.
    """

    rows: Array  # [M, C] one body per row, in the layout of `Packing`
    ends: Array  # [R, 128] end times of their steps, infinite past the last body
    soonest: Array  # [R] earliest end time of each page
    active: Array  # [M + spare] int32: indices of the bodies due in the last block
    again: Array  # [M + spare] int32: indices of the bodies moved twice in it


def open_schedule[T: Bodies](packing: Packing[T], group: T, widths: tuple[int, int]) -> Schedule:
    """Return the schedule of a group of M bodies, to be advanced in tiles of `widths`."""
    count = group.t.shape[0]
    ends = group.t + group.dt
    ends = jnp.pad(ends, (0, -count % _PAGE), constant_values=jnp.inf).reshape(-1, _PAGE)
    # padding for a full tile, or for all pages of a search, that starts at the last body
    widest = max(_PAGE * _LOOKED_INTO, *widths, *_wide_tile_widths(count))
    unused = jnp.zeros(count + widest, jnp.int32)
    return Schedule(
        rows=packing.rows(group),
        ends=ends,
        soonest=jnp.min(ends, 1),
        active=unused,
        again=unused,
    )


def advance[T: Bodies](
    packing: Packing[T],
    schedule: Schedule,
    now: Array,
    move: Move[T],
    again: SecondMove[T] | None,
    widths: tuple[int, int],
) -> tuple[Schedule, Array, Array]:
    """Advance the due bodies of a schedule; also return the numbers of due and of floored ones.

    Args:
        packing: layout of the rows.
        schedule: the schedule before the block.
        now: time of the block.
        move: advances the bodies of a tile.
        again: mask of advanced bodies that move a second time, and their move; None for none. They
            are few, and gathered into separate tiles after all have moved once.
        widths: bodies in a small tile and in a large one, on a CPU.
    """
    count = schedule.rows.shape[0]
    if count == 0:
        return schedule, jnp.int32(0), jnp.int32(0)
    wide = advance_all if count <= _TRACERS_AT_ONCE else advance_wide_tiles
    return lax.platform_dependent(
        schedule,
        cpu=partial(advance_by_pages, packing, now, move, again, widths),
        default=partial(wide, packing, now, move, again),
    )


def advance_by_pages[T: Bodies](
    packing: Packing[T],
    now: Array,
    move: Move[T],
    again: SecondMove[T] | None,
    widths: tuple[int, int],
    schedule: Schedule,
) -> tuple[Schedule, Array, Array]:
    """Do as `advance`, reading only the pages that contain a due body."""
    if schedule.rows.shape[0] < _MANY * widths[1]:
        widths = widths[0], 0  # few are rarely due together; one loop halves the program
    pages, hits = due_indices(schedule.soonest == now, _LOOKED_INTO)
    looks = lax.div(hits + _LOOKED_INTO - 1, jnp.int32(_LOOKED_INTO))
    active, total = _find_active(schedule, pages, looks, now)
    schedule = replace(schedule, active=active)
    schedule, low = _move_active(packing, move, again, widths, schedule, total)
    # only pages that were searched have changed
    return replace(schedule, soonest=_update_soonest(schedule, pages, looks)), total, low


def advance_wide_tiles[T: Bodies](
    packing: Packing[T], now: Array, move: Move[T], again: SecondMove[T] | None, schedule: Schedule
) -> tuple[Schedule, Array, Array]:
    """Do as `advance`, testing all bodies in one launch and moving due ones in wide tiles."""
    active, total = _list_due(schedule.ends.ravel() == now, schedule.active)
    schedule = replace(schedule, active=active)
    widths = _wide_tile_widths(schedule.rows.shape[0])
    schedule, low = _move_active(packing, move, again, widths, schedule, total)
    return replace(schedule, soonest=jnp.min(schedule.ends, 1)), total, low


def advance_all[T: Bodies](
    packing: Packing[T], now: Array, move: Move[T], again: SecondMove[T] | None, schedule: Schedule
) -> tuple[Schedule, Array, Array]:
    """Do as `advance`, moving all bodies and keeping the result of the due ones."""
    count = schedule.rows.shape[0]
    due = schedule.ends.ravel()[:count] == now
    old = packing.group(schedule.rows)
    new, below = move(jnp.arange(count, dtype=jnp.int32), old)
    rows = jnp.where(due[:, None], packing.rows(new), schedule.rows)
    after = jnp.pad(jnp.where(due, new.t + new.dt, jnp.inf), (0, schedule.ends.size - count))
    ends = jnp.where(schedule.ends == now, after.reshape(schedule.ends.shape), schedule.ends)
    schedule = replace(schedule, rows=rows, ends=ends)
    low = jnp.sum(below & due, dtype=jnp.int32)
    if again is not None:
        listed, few = _list_due(again[0](new) & due, schedule.again)
        schedule = replace(schedule, again=listed)
        schedule, low = _move_again(packing, again[1](few), _WIDE, schedule, few, low)
    total = jnp.sum(due, dtype=jnp.int32)
    return replace(schedule, soonest=jnp.min(schedule.ends, 1)), total, low


def _wide_tile_widths(count: int) -> tuple[int, int]:
    """Return the sizes of small and large tiles on accelerators, for `count` bodies in all."""
    return _WIDE, _MANY * _WIDE if count > _TRACERS_AT_ONCE else 0


def _list_due(due: Array, room: Array) -> tuple[Array, Array]:
    """Write the indices of due bodies to the front of `room` [M + spare]; return their number."""
    rank = jnp.cumsum(due, dtype=jnp.int32) - 1
    index = jnp.arange(due.size, dtype=jnp.int32)
    return room.at[jnp.where(due, rank, room.size)].set(index, mode="drop"), rank[-1] + 1


def _move_active[T: Bodies](
    packing: Packing[T],
    move: Move[T],
    again: SecondMove[T] | None,
    widths: tuple[int, int],
    schedule: Schedule,
    total: Array,
) -> tuple[Schedule, Array]:
    """Move the first `total` of `active`; also return the number of floored steps."""
    count, none = schedule.rows.shape[0], jnp.int32(0)

    def move_tile(index: Array, carry: tuple) -> tuple:
        schedule, low, listed = carry
        schedule, new, low = _move_rows(packing, move, index, schedule, low)
        if again is None:
            return schedule, low, listed
        take = again[0](new) & (index < count)  # padding lanes have the index `count`
        rank = listed + cumsum(take.astype(jnp.int32)) - 1
        rank = jnp.where(take, rank, schedule.again.size)
        schedule = replace(schedule, again=schedule.again.at[rank].set(index, mode="drop"))
        return schedule, low, listed + jnp.sum(take, dtype=jnp.int32)

    start = schedule, none, none
    schedule, low, listed = scan_tiles(schedule.active, total, count, widths, move_tile, start)
    if again is None:
        return schedule, low
    return _move_again(packing, again[1](listed), widths[0], schedule, listed, low)


def _move_again[T: Bodies](
    packing: Packing[T],
    move: Move[T],
    width: int,
    schedule: Schedule,
    total: Array,
    low: Array,
) -> tuple[Schedule, Array]:
    """Move the first `total` of `again`; also return the number of floored steps so far."""

    def move_tile(index: Array, carry: tuple[Schedule, Array]) -> tuple[Schedule, Array]:
        schedule, _, low = _move_rows(packing, move, index, *carry)
        return schedule, low

    count, widths = schedule.rows.shape[0], (width, 0)
    return scan_tiles(schedule.again, total, count, widths, move_tile, (schedule, low))


def _find_active(schedule: Schedule, pages: Array, looks: Array, now: Array) -> tuple[Array, Array]:
    """Return a list that starts with the bodies whose steps end `now`, and their number."""

    def append_due(i: Array, carry: tuple) -> tuple:
        active, total = carry
        page = lax.dynamic_slice(pages, (i * _LOOKED_INTO,), (_LOOKED_INTO,))
        ends = jnp.take(schedule.ends, page, axis=0, mode="fill", fill_value=jnp.inf)
        place, more = due_indices((ends == now).reshape(-1), 0)
        index = jnp.take(page, place // _PAGE, mode="clip") * _PAGE + place % _PAGE
        # entries after the last index are overwritten by the next iteration, or are padding
        return lax.dynamic_update_slice(active, index, (total,)), total + more

    return lax.fori_loop(0, looks, append_due, (schedule.active, jnp.int32(0)))


def _move_rows[T: Bodies](
    packing: Packing[T], move: Move[T], index: Array, schedule: Schedule, low: Array
) -> tuple[Schedule, T, Array]:
    """Move the bodies of a tile; return the schedule, these bodies and the floored steps so far."""
    count = schedule.rows.shape[0]
    # padding lanes read the last body, write nothing; the barrier keeps the gather out of pair sums
    rows = lax.optimization_barrier(jnp.take(schedule.rows, index, axis=0, mode="clip"))
    new, below = move(index, packing.group(rows))
    rows = schedule.rows.at[index].set(packing.rows(new), mode="drop")
    page = jnp.where(index < count, index // _PAGE, schedule.soonest.size)
    ends = schedule.ends.at[page, index % _PAGE].set(new.t + new.dt, mode="drop")
    low = low + jnp.sum(below & (index < count), dtype=jnp.int32)
    return replace(schedule, rows=rows, ends=ends), new, low


def _update_soonest(schedule: Schedule, pages: Array, looks: Array) -> Array:
    """Return the earliest end time of each page [R] after an update of the searched pages."""

    def update_pages(i: Array, soonest: Array) -> Array:
        page = lax.dynamic_slice(pages, (i * _LOOKED_INTO,), (_LOOKED_INTO,))
        ends = jnp.take(schedule.ends, page, axis=0, mode="clip")
        return soonest.at[page].set(jnp.min(ends, 1), mode="drop")

    return lax.fori_loop(0, looks, update_pages, schedule.soonest)


def advance_group[T](
    group: T, due: Array, move: Move[T], tile: int, move_all: Move[T] | None = None
) -> tuple[T, Array]:
    """Move the bodies of `group` that are `due` [N]; also return the number of floored steps.

    Args:
        group: pytree of arrays [..., N].
        due: mask of the due bodies.
        move: moves the bodies of a tile; padding lanes hold the last body and are dropped.
        tile: bodies in a tile, on a CPU.
        move_all: the same for all bodies in the order of the group; `move` by default.
    """
    if due.shape[0] == 0:
        return group, jnp.int32(0)
    few = due.shape[0] <= MAX_FULL_BLOCK
    at_once = partial(advance_whole_group, move_all or move)
    wide = at_once if few else partial(advance_group_tiles, move, _WIDE)
    return lax.platform_dependent(
        group, due, cpu=partial(advance_group_tiles, move, tile), default=wide
    )


def advance_group_tiles[T](move: Move[T], tile: int, group: T, due: Array) -> tuple[T, Array]:
    """Do as `advance_group`, at the cost of the due bodies."""
    count = due.shape[0]
    tile = min(tile, count)
    index, total = due_indices(due, tile)

    def move_tile(index: Array, carry: tuple) -> tuple:
        group, floored = carry
        old = jax.tree.map(lambda q: jnp.take(q, index, axis=-1, mode="clip"), group)
        new, low = move(index, lax.optimization_barrier(old))
        put = lambda q, part: q.at[..., index].set(part, mode="drop")
        low = jnp.sum(low & (index < count), dtype=jnp.int32)
        return jax.tree.map(put, group, new), floored + low

    return scan_tiles(index, total, count, (tile, 0), move_tile, (group, jnp.int32(0)))


def advance_whole_group[T](move: Move[T], group: T, due: Array) -> tuple[T, Array]:
    """Do as `advance_group` in few launches: move all, and keep the result of the due bodies."""
    new, low = move(jnp.arange(due.shape[0], dtype=jnp.int32), group)
    moved = jax.tree.map(lambda new, old: jnp.where(due, new, old), new, group)
    return moved, jnp.sum(low & due, dtype=jnp.int32)


def scan_tiles[C](
    index: Array,
    total: Array,
    count: int,
    widths: tuple[int, int],
    each: Callable[[Array, C], C],
    carry: C,
) -> C:
    """Apply `move_tile` to all tiles in order and return the final carry.

    Args:
        index: indices of bodies; those after the first `total` are padding.
        total: number of bodies to move.
        count: total number of bodies, which is the index of padding lanes.
        widths: bodies in a small tile and in a large one, which may be 0 for none.
        each: (indices [B], carry) -> carry, with the bodies of a tile moved.
        carry: all bodies, and other values of the loop.
    """
    tile, bulk = widths

    def loop(first: Array, tiles: Array, width: int, carry: C) -> C:
        lane = jnp.arange(width, dtype=jnp.int32)

        def body(i: Array, carry: C) -> C:
            start = first + i * width
            part = lax.dynamic_slice(index, (start,), (width,))
            return each(jnp.where(start + lane < total, part, count), carry)

        return lax.fori_loop(0, tiles, body, carry)

    done = jnp.int32(0)
    if bulk:
        # a large tile that is at least three quarters full costs less than small ones
        tiles = lax.div(total + bulk // 4, jnp.int32(bulk))
        carry, done = loop(done, tiles, bulk, carry), tiles * bulk
    rest = jnp.maximum(total - done, 0)
    return loop(done, lax.div(rest + tile - 1, jnp.int32(tile)), tile, carry)


def due_indices(due: Array, spare: int) -> tuple[Array, Array]:
    """Return the indices of due bodies, padded to N + `spare` entries, and their number.

    Most blocks have few bodies: they are found by counting bits in vector registers, without a
    scatter.
    """
    count = due.shape[0]
    lanes = jnp.pad(due, (0, -count % _ROW)).reshape(-1, _ROW // 32, 32)
    bit = jnp.left_shift(jnp.uint32(1), jnp.arange(32, dtype=jnp.uint32))
    words = jnp.sum(jnp.where(lanes, bit[None, None], 0), 2, dtype=jnp.uint32)
    held = jnp.sum(lax.population_count(words).astype(jnp.int32), 1, dtype=jnp.int32)
    ends = cumsum(held)

    def append_indices(k: Array, index: Array) -> Array:
        found = _indices_from_rank(words, ends - held, ends, k * _FEW, count)
        return lax.dynamic_update_slice(index, found, (k * _FEW,))

    turns = lax.div(ends[-1] + _FEW - 1, jnp.int32(_FEW))
    index = jnp.full(-(-(count + spare) // _FEW) * _FEW, count, jnp.int32)
    return lax.fori_loop(0, turns, append_indices, index)[: count + spare], ends[-1]


def _indices_from_rank(words: Array, start: Array, ends: Array, first: Array, count: int) -> Array:
    """Return the indices [_FEW] of due bodies from the rank `move_tile` on, then `count`.

    words: [R, W] bits of the rows, whose ranks run from `start` [R] to before `ends` [R].
    """
    rank = first + jnp.arange(_FEW, dtype=jnp.int32)
    row = jnp.sum(ends[:, None] <= rank[None], 0, dtype=jnp.int32)
    rest = rank - jnp.take(start, row, mode="clip")
    of_row = jnp.take(words, row, axis=0, mode="clip")
    word, lane = of_row[:, 0], jnp.zeros_like(rank)
    for k in range(1, words.shape[1]):
        beyond, rest = _rank_after_word(word, rest)
        word, lane = jnp.where(beyond, of_row[:, k], word), jnp.where(beyond, 32 * k, lane)
    # the bit of that rank is found by bisection of its word
    for width in (16, 8, 4, 2, 1):
        low = word & jnp.uint32(2**width - 1)
        beyond, rest = _rank_after_word(low, rest)
        word = jnp.where(beyond, word >> jnp.uint32(width), low)
        lane = lane + jnp.where(beyond, width, 0)
    return jnp.where(rank < ends[-1], row * _ROW + lane, count)


def _rank_after_word(word: Array, rank: Array) -> tuple[Array, Array]:
    """Return whether the bit of that rank is after the word, and its rank in the remainder."""
    bits = lax.population_count(word).astype(jnp.int32)
    return rank >= bits, jnp.where(rank >= bits, rank - bits, rank)


def cumsum(x: Array) -> Array:
    """Return the cumulative sums [R], in one pass if they are few."""
    if x.shape[0] > 512:
        return lax.associative_scan(jnp.add, x)
    index = jnp.arange(x.shape[0], dtype=jnp.int32)
    return jnp.sum(jnp.where(index[:, None] <= index[None], x[:, None], 0), 0, dtype=x.dtype)


def change_if[T](condition: Array, change: Callable[[T], T], value: T) -> T:
    """Return `change(value)` if `condition` [] bool, else `value`, by a loop of one iteration.

    XLA's CPU backend compiles every operation in a branch of `lax.cond` as a separate module, at
    some 15 ms each. A loop is one module for all its operations, unless one of these is a scatter.

    >>> change_if(jnp.bool_(True), lambda x: x + 1, jnp.float32(1.0)).item()
    2.0
    """
    turn = lambda carry: (jnp.bool_(False), change(carry[1]))
    return lax.while_loop(lambda carry: carry[0], turn, (condition, value))[1]
