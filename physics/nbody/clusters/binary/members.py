"""States of the two stars of each regularised pair, relative and absolute.

Computed only for the requested pairs, since each requires a solution of Kepler's equation.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.inputs.fields import pytree

from ...orbits import ks
from ..blocks import PairedSteps
from ..scheduler import change_if
from .ks_pairs import Pair, Pairs, extent

_LANES = 8  # orbits solved together: one vector register of float64


@pytree
class Members:
    """The two stars of each pair, and its centre of mass."""

    first: Array  # [S] int32: star whose slot holds the centre; N if the slot is free
    one: Array  # [6, S]
    two: Array  # [6, S]
    centre: Array  # [6, S]
    m: Array  # [2, S] masses; 0 if the slot is free
    reach: Array  # [S] distance within which a pair acts as two stars, not as its centre; or 0


def members_if_any(
    spec: PairedSteps, pairs: Pairs, sources: Array, now: Array, asked: Array
) -> tuple[Array, Members]:
    """Return `relative_states` and `members` of the pairs; zeros if none is `asked` [S] for."""

    def compute_members(_: Any) -> tuple[Array, Members]:
        relative = relative_states(spec, pairs, now, asked)
        return relative, members(spec, pairs, sources, relative, asked)

    shapes = jax.eval_shape(lambda: compute_members(None))
    nothing = jax.tree.map(lambda q: jnp.zeros(q.shape, q.dtype), shapes)
    return change_if(jnp.any(asked), compute_members, nothing)


def relative_states(spec: PairedSteps, pairs: Pairs, now: Array, asked: Array) -> Array:
    """Return the state [6, S] of the second star relative to the first, of pairs `asked` [S] for.

    On a CPU, eight pairs at a time up to the last requested one: pairs occupy the first free slots.
    On other devices, all pairs.
    """
    return lax.platform_dependent(
        pairs,
        now,
        asked,
        cpu=partial(states_by_lanes, spec),
        default=lambda pairs, now, asked: all_states(spec, pairs, now),
    )


def states_by_lanes(spec: PairedSteps, pairs: Pairs, now: Array, asked: Array) -> Array:
    """Compute `relative_states` for eight pairs at a time."""
    count = asked.size
    width = min(_LANES, count)

    def solve(k: Array, states: Array) -> Array:
        start = k * width
        columns = lax.dynamic_slice_in_dim(pairs.columns, start, width, 1)
        here = all_states(spec, replace(pairs, columns=columns), now)
        return lax.dynamic_update_slice_in_dim(states, here, start, 1)

    last = jnp.max(jnp.where(asked, jnp.arange(1, count + 1, dtype=jnp.int32), 0))
    none = jnp.zeros((6, count), now.dtype)
    return lax.fori_loop(0, (last + width - 1) // width, solve, none)


@partial(jax.jit, inline=True)  # traced once for all call sites
def all_states(spec: PairedSteps, pairs: Pairs, now: Array) -> Array:
    """Compute `relative_states` for all slots."""
    pair = pairs.batch
    # adding the lag of a slowed-down orbit restores its true phase
    late = (now - pair.t) * spec.interval + pair.lag
    return jnp.concatenate(ks.to_cartesian(ks.advance(pair.orbit, late)))


def members(
    spec: PairedSteps, pairs: Pairs, sources: Array, relative: Array, asked: Array
) -> Members:
    """Return the members of pairs among stars at `sources` [6, N], separated by `relative` [6, S].

    asked: [S] bool, pairs that act as two stars; the reach of the others is 0.
    """
    pair = pairs.batch
    centre = jnp.take(sources, pair.first, axis=1, mode="clip")
    # at larger distances the quadrupole of a pair is below the fraction `weak` of its attraction
    reach = extent(pairs, pair.orbit) * jnp.cbrt(2 / spec.pairing.weak)
    one, two = member_states(pair, centre, relative)
    return Members(
        first=pair.first,
        one=one,
        two=two,
        centre=centre,
        m=pair.m,
        reach=jnp.where(asked, reach, 0),
    )


def member_states(pair: Pair, centre: Array, relative: Array) -> tuple[Array, Array]:
    """Return the states [6, ...] of both stars of pairs, from their centres and relative states."""
    return centre - pair.share[1][None] * relative, centre + pair.share[0][None] * relative
