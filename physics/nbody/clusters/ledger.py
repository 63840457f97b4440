"""Many bodies kept a row each, and a book of who is due: a block costs those who are, not all.

All that is known of a body lies side by side, so that to fetch it is to touch four lines of a cache
and not thirty. The times at which steps end are kept apart, a page of 128 bodies at a time, with
the soonest of each page: a block looks at these, and into those pages alone where one is due.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.pytree import pytree

from . import tiles

_PAGE, _OPENED = 128, 8  # bodies a page, pages looked into at a time
_MANY = 16  # times a large tile: of fewer bodies all go in small ones

# who of a tile moves again [B] bool; and how, given how many there are of all tiles
type Again[T] = tuple[Callable[[T], Array], Callable[[Array], tiles.Move[T]]]


class Stepped(Protocol):
    """A pytree of arrays [..., M] of bodies, each at a time of its own."""

    @property
    def t(self) -> Array: ...

    @property
    def dt(self) -> Array: ...


class Layout[T: Stepped]:
    """Where the fields of a body lie in its row [C]; integers are kept as floats, exactly."""

    def __init__(self, group: T) -> None:
        leaves, self._tree = jax.tree.flatten(group)
        self._kinds = [(leaf.shape[:-1], leaf.dtype) for leaf in leaves]
        self._dtype = group.t.dtype

    def packed(self, group: T) -> Array:
        """Rows [B, C] of a group of [..., B]."""
        columns = [
            leaf.astype(self._dtype).reshape(math.prod(shape), leaf.shape[-1])
            for leaf, (shape, _) in zip(jax.tree.leaves(group), self._kinds, strict=True)
        ]
        return jnp.concatenate(columns).T

    def unpacked(self, rows: Array) -> T:
        """The group of [..., B] whose rows [B, C] they are."""
        leaves, start = [], 0
        for shape, dtype in self._kinds:
            end = start + math.prod(shape)
            leaves.append(rows.T[start:end].reshape(*shape, len(rows)).astype(dtype))
            start = end
        return jax.tree.unflatten(self._tree, leaves)


@pytree
class Ledger:
    """The bodies between two blocks."""

    rows: Array  # [M, C] a body each
    ends: Array  # [R, 128] when their steps end, infinite past the last body
    soonest: Array  # [R] of each page
    turn: Array  # [M + spare] int32: whose turn it was in the last block
    after: Array  # [M + spare] int32: who moved twice in it


def opened[T: Stepped](layout: Layout[T], group: T, widths: tuple[int, int]) -> Ledger:
    """The ledger of a group of M > 0 bodies that will be advanced in tiles of `widths`."""
    count = group.t.shape[0]
    ends = group.t + group.dt
    ends = jnp.pad(ends, (0, -count % _PAGE), constant_values=jnp.inf).reshape(-1, _PAGE)
    list = jnp.zeros(count + max(_PAGE * _OPENED, *widths), jnp.int32)
    return Ledger(layout.packed(group), ends, jnp.min(ends, 1), list, list)


def advance[T: Stepped](
    layout: Layout[T],
    ledger: Ledger,
    now: Array,
    move: tiles.Move[T],
    again: Again[T] | None,
    widths: tuple[int, int],
) -> tuple[Ledger, Array, Array]:
    """The ledger with those moved whose steps end `now`; how many they are, and were floored."""
    if ledger.rows.shape[0] < _MANY * widths[1]:
        widths = widths[0], 0  # so few are seldom due together: one loop is half the program
    pages, hits = tiles.indices(ledger.soonest == now, _OPENED)
    opened = lax.div(hits + _OPENED - 1, jnp.int32(_OPENED))
    turn, total = _whose_turn(ledger, pages, opened, now)
    ledger, count, none = replace(ledger, turn=turn), ledger.rows.shape[0], jnp.int32(0)

    def first(some: Array, carry: tuple) -> tuple:
        ledger, low, listed = carry
        ledger, new, low = _moved(layout, move, some, ledger, low)
        if again is None:
            return ledger, low, listed
        take = again[0](new) & (some < count)
        rank = jnp.where(
            take, listed + tiles.running(take.astype(jnp.int32)) - 1, ledger.after.size
        )
        ledger = replace(ledger, after=ledger.after.at[rank].set(some, mode="drop"))
        return ledger, low, listed + jnp.sum(take, dtype=jnp.int32)

    ledger, low, listed = tiles.swept(turn, total, count, widths, first, (ledger, none, none))
    if again is not None:
        move, narrow = again[1](listed), (widths[0], 0)
        second = lambda some, carry: _moved(layout, move, some, *carry)[::2]
        ledger, low = tiles.swept(ledger.after, listed, count, narrow, second, (ledger, low))
    return replace(ledger, soonest=_soonest(ledger, pages, opened)), total, low


def _whose_turn(ledger: Ledger, pages: Array, opened: Array, now: Array) -> tuple[Array, Array]:
    """The bodies whose steps end `now`, in front of anything, and how many they are."""

    def listed(i: Array, carry: tuple) -> tuple:
        turn, total = carry
        page = lax.dynamic_slice(pages, (i * _OPENED,), (_OPENED,))
        ends = jnp.take(ledger.ends, page, axis=0, mode="fill", fill_value=jnp.inf)
        place, more = tiles.indices((ends == now).reshape(-1), 0)
        who = jnp.take(page, place // _PAGE, mode="clip") * _PAGE + place % _PAGE
        return lax.dynamic_update_slice(turn, who, (total,)), total + more

    return lax.fori_loop(0, opened, listed, (ledger.turn, jnp.int32(0)))


def _moved[T: Stepped](
    layout: Layout[T], move: tiles.Move[T], some: Array, ledger: Ledger, low: Array
) -> tuple[Ledger, T, Array]:
    """The ledger with `some` [B] of its bodies moved, these, and how many were floored."""
    count = ledger.rows.shape[0]
    rows = lax.optimization_barrier(jnp.take(ledger.rows, some, axis=0, mode="clip"))
    new, below = move(some, layout.unpacked(rows))
    rows = ledger.rows.at[some].set(layout.packed(new), mode="drop")
    page = jnp.where(some < count, some // _PAGE, ledger.soonest.size)
    ends = ledger.ends.at[page, some % _PAGE].set(new.t + new.dt, mode="drop")
    low = low + jnp.sum(below & (some < count), dtype=jnp.int32)
    return replace(ledger, rows=rows, ends=ends), new, low


def _soonest(ledger: Ledger, pages: Array, opened: Array) -> Array:
    """When the first step of each page [R] ends, after those of the opened ones have changed."""

    def earliest(i: Array, soonest: Array) -> Array:
        page = lax.dynamic_slice(pages, (i * _OPENED,), (_OPENED,))
        ends = jnp.take(ledger.ends, page, axis=0, mode="clip")
        return soonest.at[page].set(jnp.min(ends, 1), mode="drop")

    return lax.fori_loop(0, opened, earliest, ledger.soonest)
