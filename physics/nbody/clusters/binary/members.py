"""Where the two stars of each regularised pair are: relative states, and places of the members.

Computed only where a pair is asked for, since each is a solution of Kepler's equation.
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

_LANES = 8  # orbits solved together: a vector of float64


@pytree
class Members:
    """The two stars of each pair, and its centre of mass."""

    first: Array  # [S] int32: star whose place the centre takes; N where the slot is free
    one: Array  # [6, S]
    two: Array  # [6, S]
    centre: Array  # [6, S]
    m: Array  # [2, S] masses; 0 where the slot is free
    reach: Array  # [S] within this distance a pair acts as two, beyond it as its centre; or 0


def members_if_any(
    spec: PairedSteps, pairs: Pairs, sources: Array, now: Array, asked: Array
) -> tuple[Array, Members]:
    """`relative_states` and `members` of the pairs; zeros where none of `asked` [S] is."""

    def found(_: Any) -> tuple[Array, Members]:
        relative = relative_states(spec, pairs, now, asked)
        return relative, members(spec, pairs, sources, relative, asked)

    shapes = jax.eval_shape(lambda: found(None))
    nothing = jax.tree.map(lambda q: jnp.zeros(q.shape, q.dtype), shapes)
    return change_if(jnp.any(asked), found, nothing)


def relative_states(spec: PairedSteps, pairs: Pairs, now: Array, asked: Array) -> Array:
    """State [6, S] of the second star of each pair relative to its first, of those `asked` [S].

    On a CPU eight at a time, up to the last that is asked for: pairs take the first slots that are
    free. Elsewhere all of them.
    """
    return lax.platform_dependent(
        pairs,
        now,
        asked,
        cpu=partial(states_by_lanes, spec),
        default=lambda pairs, now, asked: states_at_once(spec, pairs, now),
    )


def states_by_lanes(spec: PairedSteps, pairs: Pairs, now: Array, asked: Array) -> Array:
    """As `relative_states`, eight at a time."""
    count = asked.size
    width = min(_LANES, count)

    def solve(k: Array, states: Array) -> Array:
        start = k * width
        columns = lax.dynamic_slice_in_dim(pairs.columns, start, width, 1)
        here = states_at_once(spec, replace(pairs, columns=columns), now)
        return lax.dynamic_update_slice_in_dim(states, here, start, 1)

    last = jnp.max(jnp.where(asked, jnp.arange(1, count + 1, dtype=jnp.int32), 0))
    none = jnp.zeros((6, count), now.dtype)
    return lax.fori_loop(0, (last + width - 1) // width, solve, none)


@partial(jax.jit, inline=True)  # traced once for all of its places
def states_at_once(spec: PairedSteps, pairs: Pairs, now: Array) -> Array:
    """As `relative_states`, of all slots."""
    pair = pairs.batch
    # a slowed orbit is behind by its lag, which is given back: the phase is the true one
    late = (now - pair.t) * spec.interval + pair.lag
    return jnp.concatenate(ks.physical(ks.after(pair.orbit, late)))


def members(
    spec: PairedSteps, pairs: Pairs, sources: Array, relative: Array, asked: Array
) -> Members:
    """The members of pairs among stars at `sources` [6, N], apart by `relative` [6, S].

    asked: [S] bool, those that act as two; the reach of others is 0.
    """
    pair = pairs.batch
    centre = jnp.take(sources, pair.first, axis=1, mode="clip")
    # beyond it the tide of a pair's quadrupole is below `weak` of its attraction
    reach = extent(pairs, pair.orbit) * jnp.cbrt(2 / spec.pairing.weak)
    one, two = places(pair, centre, relative)
    return Members(
        first=pair.first,
        one=one,
        two=two,
        centre=centre,
        m=pair.m,
        reach=jnp.where(asked, reach, 0),
    )


def places(pair: Pair, centre: Array, relative: Array) -> tuple[Array, Array]:
    """States [6, ...] of the two stars of pairs, from their centres and relative states."""
    return centre - pair.share[1][None] * relative, centre + pair.share[0][None] * relative
