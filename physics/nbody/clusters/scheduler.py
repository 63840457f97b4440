"""The active-particle scheduler: who is due at a block, and how these bodies are advanced.

Of N bodies with steps of their own only the *active* ones, whose steps end now, are advanced in a
block (Makino & Aarseth 1992, PASJ 44, 141). They are gathered into tiles of fixed size, whose
number is known at run time, so that one program serves a block of one body and a block of all, at
the cost of those that are active. Many bodies go in large tiles, which spend little on gathering;
what is left goes in small ones, which waste few lanes.

Stars are few, and all are predicted in each block: `advance_group` finds the active ones in N
times. Tracers may be millions: a `Schedule` keeps the times at which their steps end apart, a page
of 128 bodies at a time, with the soonest of each page, so that a block looks at these, and into
those pages alone where one is due. All that is known of a tracer lies side by side in a row, so
that to fetch it is to touch four lines of a cache and not thirty; `Packing` says which columns of
the row are which field.

Accelerators pay for a launch what thousands of bodies cost: there all bodies of a block are moved
and the due stay moved, up to some thousands of them (`group_at_once`, `schedule_at_once`; where
no pairs are regularised a GPU keeps no schedule at all, see `at_once`).

Read downwards: `Packing`, `Schedule`, `advance` (a block of tracers), `advance_group` (a block of
stars), `in_tiles` (the loop over tiles), `due_indices` (who is due).
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

_PAGE, _LOOKED_INTO = 128, 8  # bodies a page, pages looked into at a time
_MANY = 16  # times a large tile: of fewer bodies all go in small ones
_FEW, _ROW = 64, 128  # indices found at a time, and the bits that are counted for them
# on accelerators: of so many bodies all are evaluated in each block, for to find those that are due
# costs twenty launches and more, as much as 4096^2 pairs do; of more, tiles of so many. Tracers are
# kept in pages, which cost more launches
AT_ONCE, _WIDE, _TRACERS_AT_ONCE = 4096, 256, 16384

# (indices [B] of bodies, the bodies) -> the bodies moved, and which of them [B] bool floored
type Move[T] = Callable[[Array, T], tuple[T, Array]]

# which of a tile move again [B] bool; and how, given how many there are of all tiles
type Again[T] = tuple[Callable[[T], Array], Callable[[Array], Move[T]]]


def all_at_once(stars: int, tracers: int) -> bool:
    """Whether an accelerator evaluates all of so many bodies in each block, by no schedule."""
    return 0 < stars <= AT_ONCE and tracers <= _TRACERS_AT_ONCE


class Stepped(Protocol):
    """A flat dataclass of arrays [..., M] of bodies, each at a time of its own."""

    @property
    def t(self) -> Array: ...

    @property
    def dt(self) -> Array: ...


class Packing[T: Stepped]:
    """Which columns of a row [C] hold which field of a body; integers are floats there, exactly."""

    def __init__(self, group: T) -> None:
        self._type, self._dtype = type(group), group.t.dtype
        flat: Any = group  # a dataclass, which a protocol cannot say
        self.columns: dict[str, slice] = {}  # of each field, in the order of the class
        self._like: dict[str, Array] = {}
        width = 0
        for field in fields(flat):
            value = getattr(flat, field.name)
            start, width = width, width + math.prod(value.shape[:-1])
            self.columns[field.name], self._like[field.name] = slice(start, width), value

    def rows(self, group: T) -> Array:
        """Rows [B, C] of a group of [..., B]."""
        columns = [
            value.astype(self._dtype).reshape(math.prod(value.shape[:-1]), value.shape[-1])
            for value in (getattr(group, name) for name in self.columns)
        ]
        return jnp.concatenate(columns).T

    def group(self, rows: Array) -> T:
        """The group of [..., B] whose rows [B, C] they are."""
        values = {}
        for name, columns in self.columns.items():
            like = self._like[name]
            part = rows.T[columns].reshape(*like.shape[:-1], len(rows))
            values[name] = part.astype(like.dtype)
        return self._type(**values)


@pytree
class Schedule:
    """The tracers between two blocks.

    Invariants: `ends` are `t + dt` of the rows, `soonest` is the least of each page of `ends`; the
    lists mean something within a block alone, and are kept so that none is allocated in each.
    """

    rows: Array  # [M, C] a body each, its fields as `Packing` has them
    ends: Array  # [R, 128] when their steps end, infinite past the last body
    soonest: Array  # [R] of each page
    active: Array  # [M + spare] int32: who was due in the last block
    again: Array  # [M + spare] int32: who moved twice in it


def open_schedule[T: Stepped](packing: Packing[T], group: T, widths: tuple[int, int]) -> Schedule:
    """The schedule of a group of M bodies that will be advanced in tiles of `widths`."""
    count = group.t.shape[0]
    ends = group.t + group.dt
    ends = jnp.pad(ends, (0, -count % _PAGE), constant_values=jnp.inf).reshape(-1, _PAGE)
    # room for a whole tile, or all pages looked into, that begins with the last body
    widest = max(_PAGE * _LOOKED_INTO, *widths, *_wide_tiles(count))
    unused = jnp.zeros(count + widest, jnp.int32)
    return Schedule(
        rows=packing.rows(group),
        ends=ends,
        soonest=jnp.min(ends, 1),
        active=unused,
        again=unused,
    )


def advance[T: Stepped](
    packing: Packing[T],
    schedule: Schedule,
    now: Array,
    move: Move[T],
    again: Again[T] | None,
    widths: tuple[int, int],
) -> tuple[Schedule, Array, Array]:
    """The schedule with those moved whose steps end `now`; how many they are, and were floored.

    Args:
        packing: of the rows.
        schedule: before the block.
        now: time of the block.
        move: moves the bodies of a tile.
        again: which of those that were moved move once more, and how; None for none. They are few,
            and gathered into tiles of their own after all have moved once.
        widths: bodies in a small tile and in a large one, on a CPU.
    """
    count = schedule.rows.shape[0]
    if count == 0:
        return schedule, jnp.int32(0), jnp.int32(0)
    wide = schedule_at_once if count <= _TRACERS_AT_ONCE else schedule_in_wide_tiles
    return lax.platform_dependent(
        schedule,
        cpu=partial(schedule_by_pages, packing, now, move, again, widths),
        default=partial(wide, packing, now, move, again),
    )


def schedule_by_pages[T: Stepped](
    packing: Packing[T],
    now: Array,
    move: Move[T],
    again: Again[T] | None,
    widths: tuple[int, int],
    schedule: Schedule,
) -> tuple[Schedule, Array, Array]:
    """As `advance`, looking into those pages alone where a body is due."""
    if schedule.rows.shape[0] < _MANY * widths[1]:
        widths = widths[0], 0  # so few are seldom due together: one loop is half the program
    pages, hits = due_indices(schedule.soonest == now, _LOOKED_INTO)
    looks = lax.div(hits + _LOOKED_INTO - 1, jnp.int32(_LOOKED_INTO))
    active, total = _active(schedule, pages, looks, now)
    schedule = replace(schedule, active=active)
    schedule, low = _moved(packing, move, again, widths, schedule, total)
    # only pages that were looked into have changed
    return replace(schedule, soonest=_soonest(schedule, pages, looks)), total, low


def schedule_in_wide_tiles[T: Stepped](
    packing: Packing[T], now: Array, move: Move[T], again: Again[T] | None, schedule: Schedule
) -> tuple[Schedule, Array, Array]:
    """As `advance`, looking at all bodies in one launch, and moving the due in wide tiles."""
    active, total = _listed(schedule.ends.ravel() == now, schedule.active)
    schedule = replace(schedule, active=active)
    widths = _wide_tiles(schedule.rows.shape[0])
    schedule, low = _moved(packing, move, again, widths, schedule, total)
    return replace(schedule, soonest=jnp.min(schedule.ends, 1)), total, low


def schedule_at_once[T: Stepped](
    packing: Packing[T], now: Array, move: Move[T], again: Again[T] | None, schedule: Schedule
) -> tuple[Schedule, Array, Array]:
    """As `advance`, with all bodies moved, of whom the due stay moved."""
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
        listed, few = _listed(again[0](new) & due, schedule.again)
        schedule = replace(schedule, again=listed)
        schedule, low = _moved_again(packing, again[1](few), _WIDE, schedule, few, low)
    total = jnp.sum(due, dtype=jnp.int32)
    return replace(schedule, soonest=jnp.min(schedule.ends, 1)), total, low


def _wide_tiles(count: int) -> tuple[int, int]:
    """Bodies in a small tile and in a large one, on accelerators."""
    return _WIDE, _MANY * _WIDE if count > _TRACERS_AT_ONCE else 0


def _listed(due: Array, room: Array) -> tuple[Array, Array]:
    """`room` [M + spare] with the indices of those that are due in front; how many they are."""
    rank = jnp.cumsum(due, dtype=jnp.int32) - 1
    index = jnp.arange(due.size, dtype=jnp.int32)
    return room.at[jnp.where(due, rank, room.size)].set(index, mode="drop"), rank[-1] + 1


def _moved[T: Stepped](
    packing: Packing[T],
    move: Move[T],
    again: Again[T] | None,
    widths: tuple[int, int],
    schedule: Schedule,
    total: Array,
) -> tuple[Schedule, Array]:
    """The schedule with the first `total` of `active` moved, and how many of them were floored."""
    count, none = schedule.rows.shape[0], jnp.int32(0)

    def first(index: Array, carry: tuple) -> tuple:
        schedule, low, listed = carry
        schedule, new, low = _move_rows(packing, move, index, schedule, low)
        if again is None:
            return schedule, low, listed
        take = again[0](new) & (index < count)  # spare lanes hold the index `count`
        rank = listed + running_sums(take.astype(jnp.int32)) - 1
        rank = jnp.where(take, rank, schedule.again.size)
        schedule = replace(schedule, again=schedule.again.at[rank].set(index, mode="drop"))
        return schedule, low, listed + jnp.sum(take, dtype=jnp.int32)

    start = schedule, none, none
    schedule, low, listed = in_tiles(schedule.active, total, count, widths, first, start)
    if again is None:
        return schedule, low
    return _moved_again(packing, again[1](listed), widths[0], schedule, listed, low)


def _moved_again[T: Stepped](
    packing: Packing[T],
    move: Move[T],
    width: int,
    schedule: Schedule,
    total: Array,
    low: Array,
) -> tuple[Schedule, Array]:
    """The schedule with the first `total` of `again` moved, and how many were floored by now."""

    def second(index: Array, carry: tuple[Schedule, Array]) -> tuple[Schedule, Array]:
        schedule, _, low = _move_rows(packing, move, index, *carry)
        return schedule, low

    count, widths = schedule.rows.shape[0], (width, 0)
    return in_tiles(schedule.again, total, count, widths, second, (schedule, low))


def _active(schedule: Schedule, pages: Array, looks: Array, now: Array) -> tuple[Array, Array]:
    """The bodies whose steps end `now`, in front of anything, and how many they are."""

    def listed(i: Array, carry: tuple) -> tuple:
        active, total = carry
        page = lax.dynamic_slice(pages, (i * _LOOKED_INTO,), (_LOOKED_INTO,))
        ends = jnp.take(schedule.ends, page, axis=0, mode="fill", fill_value=jnp.inf)
        place, more = due_indices((ends == now).reshape(-1), 0)
        index = jnp.take(page, place // _PAGE, mode="clip") * _PAGE + place % _PAGE
        # what stands behind the last one is overwritten by the next turn, or means nothing
        return lax.dynamic_update_slice(active, index, (total,)), total + more

    return lax.fori_loop(0, looks, listed, (schedule.active, jnp.int32(0)))


def _move_rows[T: Stepped](
    packing: Packing[T], move: Move[T], index: Array, schedule: Schedule, low: Array
) -> tuple[Schedule, T, Array]:
    """The schedule with the bodies of a tile moved, these, and how many were floored so far."""
    count = schedule.rows.shape[0]
    # spare lanes read the last body and write nowhere; the barrier keeps the gather out of the loop
    rows = lax.optimization_barrier(jnp.take(schedule.rows, index, axis=0, mode="clip"))
    new, below = move(index, packing.group(rows))
    rows = schedule.rows.at[index].set(packing.rows(new), mode="drop")
    page = jnp.where(index < count, index // _PAGE, schedule.soonest.size)
    ends = schedule.ends.at[page, index % _PAGE].set(new.t + new.dt, mode="drop")
    low = low + jnp.sum(below & (index < count), dtype=jnp.int32)
    return replace(schedule, rows=rows, ends=ends), new, low


def _soonest(schedule: Schedule, pages: Array, looks: Array) -> Array:
    """When the first step of each page [R] ends, after those looked into have changed."""

    def earliest(i: Array, soonest: Array) -> Array:
        page = lax.dynamic_slice(pages, (i * _LOOKED_INTO,), (_LOOKED_INTO,))
        ends = jnp.take(schedule.ends, page, axis=0, mode="clip")
        return soonest.at[page].set(jnp.min(ends, 1), mode="drop")

    return lax.fori_loop(0, looks, earliest, schedule.soonest)


def advance_group[T](
    group: T, due: Array, move: Move[T], tile: int, move_all: Move[T] | None = None
) -> tuple[T, Array]:
    """`group` with those bodies moved that are `due` [N]; how many steps were floored.

    Args:
        group: pytree of arrays [..., N].
        due: which bodies.
        move: moves the bodies of a tile; spare lanes hold the last body, and are dropped.
        tile: bodies in a tile, on a CPU.
        move_all: the same of all bodies, each where its index says; `move` by default.
    """
    if due.shape[0] == 0:
        return group, jnp.int32(0)
    few = due.shape[0] <= AT_ONCE
    at_once = partial(group_at_once, move_all or move)
    wide = at_once if few else partial(group_in_tiles, move, _WIDE)
    return lax.platform_dependent(group, due, cpu=partial(group_in_tiles, move, tile), default=wide)


def group_in_tiles[T](move: Move[T], tile: int, group: T, due: Array) -> tuple[T, Array]:
    """As `advance_group`, at the cost of those that are due."""
    count = due.shape[0]
    tile = min(tile, count)
    index, total = due_indices(due, tile)

    def each(index: Array, carry: tuple) -> tuple:
        group, floored = carry
        old = jax.tree.map(lambda q: jnp.take(q, index, axis=-1, mode="clip"), group)
        new, low = move(index, lax.optimization_barrier(old))
        put = lambda q, part: q.at[..., index].set(part, mode="drop")
        low = jnp.sum(low & (index < count), dtype=jnp.int32)
        return jax.tree.map(put, group, new), floored + low

    return in_tiles(index, total, count, (tile, 0), each, (group, jnp.int32(0)))


def group_at_once[T](move: Move[T], group: T, due: Array) -> tuple[T, Array]:
    """As `advance_group`, in a few launches whoever is due: all move, and the due stay moved."""
    new, low = move(jnp.arange(due.shape[0], dtype=jnp.int32), group)
    moved = jax.tree.map(lambda new, old: jnp.where(due, new, old), new, group)
    return moved, jnp.sum(low & due, dtype=jnp.int32)


def in_tiles[C](
    index: Array,
    total: Array,
    count: int,
    widths: tuple[int, int],
    each: Callable[[Array, C], C],
    carry: C,
) -> C:
    """What is carried through `each` of the tiles, in order.

    Args:
        index: of bodies; those behind the first `total` mean nothing.
        total: how many are to be moved.
        count: how many bodies there are; the index of spare lanes.
        widths: bodies in a small tile and in a large one, which may be 0 for none.
        each: (indices [B], carry) -> carry, with the bodies of a tile moved.
        carry: all bodies, and what goes with them.
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
        # a large tile that is nearly full costs less than the small ones instead
        tiles = lax.div(total + bulk // 4, jnp.int32(bulk))
        carry, done = loop(done, tiles, bulk, carry), tiles * bulk
    rest = jnp.maximum(total - done, 0)
    return loop(done, lax.div(rest + tile - 1, jnp.int32(tile)), tile, carry)


def due_indices(due: Array, spare: int) -> tuple[Array, Array]:
    """Indices of the bodies that are due, in front of `spare` and more of N; how many there are.

    Most blocks are of few bodies: they are found by counting bits, a vector of them at a time,
    without a scatter.
    """
    count = due.shape[0]
    lanes = jnp.pad(due, (0, -count % _ROW)).reshape(-1, _ROW // 32, 32)
    bit = jnp.left_shift(jnp.uint32(1), jnp.arange(32, dtype=jnp.uint32))
    words = jnp.sum(jnp.where(lanes, bit[None, None], 0), 2, dtype=jnp.uint32)
    held = jnp.sum(lax.population_count(words).astype(jnp.int32), 1, dtype=jnp.int32)
    ends = running_sums(held)

    def few(k: Array, index: Array) -> Array:
        found = _ranked(words, ends - held, ends, k * _FEW, count)
        return lax.dynamic_update_slice(index, found, (k * _FEW,))

    turns = lax.div(ends[-1] + _FEW - 1, jnp.int32(_FEW))
    index = jnp.full(-(-(count + spare) // _FEW) * _FEW, count, jnp.int32)
    return lax.fori_loop(0, turns, few, index)[: count + spare], ends[-1]


def _ranked(words: Array, start: Array, ends: Array, first: Array, count: int) -> Array:
    """Indices [_FEW] of the bodies due from the rank `first` on, then `count`.

    words: [R, W] bits of the rows, of ranks from `start` [R] to before `ends` [R].
    """
    rank = first + jnp.arange(_FEW, dtype=jnp.int32)
    row = jnp.sum(ends[:, None] <= rank[None], 0, dtype=jnp.int32)
    rest = rank - jnp.take(start, row, mode="clip")
    of_row = jnp.take(words, row, axis=0, mode="clip")
    word, lane = of_row[:, 0], jnp.zeros_like(rank)
    for k in range(1, words.shape[1]):
        beyond, rest = _beyond(word, rest)
        word, lane = jnp.where(beyond, of_row[:, k], word), jnp.where(beyond, 32 * k, lane)
    # the bit of that rank within its word, by halves
    for width in (16, 8, 4, 2, 1):
        low = word & jnp.uint32(2**width - 1)
        beyond, rest = _beyond(low, rest)
        word = jnp.where(beyond, word >> jnp.uint32(width), low)
        lane = lane + jnp.where(beyond, width, 0)
    return jnp.where(rank < ends[-1], row * _ROW + lane, count)


def _beyond(word: Array, rank: Array) -> tuple[Array, Array]:
    """Whether the bit of that rank is not in the word, and its rank in what comes after."""
    bits = lax.population_count(word).astype(jnp.int32)
    return rank >= bits, jnp.where(rank >= bits, rank - bits, rank)


def running_sums(x: Array) -> Array:
    """Sums [R] of the first, the first two ..., in one pass where they are few."""
    if x.shape[0] > 512:
        return lax.associative_scan(jnp.add, x)
    index = jnp.arange(x.shape[0], dtype=jnp.int32)
    return jnp.sum(jnp.where(index[:, None] <= index[None], x[:, None], 0), 0, dtype=x.dtype)


def change_if[T](condition: Array, change: Callable[[T], T], value: T) -> T:
    """`change(value)` where `condition` [] bool, else `value`: a loop of at most one turn.

    XLA's CPU backend makes a module of every operation in a branch of `lax.cond`, at some 15 ms of
    compilation each, and one of all operations in a loop, unless one of these is a scatter.

    >>> change_if(jnp.bool_(True), lambda x: x + 1, jnp.float32(1.0)).item()
    2.0
    """
    turn = lambda carry: (jnp.bool_(False), change(carry[1]))
    return lax.while_loop(lambda carry: carry[0], turn, (condition, value))[1]
