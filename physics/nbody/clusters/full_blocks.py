"""The blocks of an interval on NVIDIA GPUs, where a kernel launch costs as much as many bodies.

All bodies are evaluated in each block, and only the due ones keep the result, so nothing is
searched or gathered. A block of stars takes seven launches: the time of the next block, the
prediction, the pair sum and the sum of its parts, the correction, the next steps with all counters,
and the test for the end of the interval. With tracers it takes fourteen. Massless copies of the
last body pad the arrays to full kernels and are dropped at the end.

Every row of a vector is a separate array (`rows`), so that all operations of a correction have the
same shape and form one kernel. On a TPU rows cost copies at the start and end of the loop, so
`block` is used there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.inputs.fields import pytree

from .rows import Vector, split_rows, stack_rows

_WIDTH = 128  # bodies are padded to a multiple of it
_NEVER = -1.0  # a time at which no body is due
# (bodies, now) -> predicted states
type Predict = Callable[[Any, Array], Vector]
# (bodies, forces [D, N], now) -> corrected bodies, and a mask of steps limited by the floor
type Correct = Callable[[Any, Vector, Array], tuple[Any, Array]]


@dataclass(frozen=True)
class Scheme:
    """Prediction, correction and force of an integration order, for bodies stored as rows."""

    stars: tuple[Predict, Correct]  # prediction of stars to a time, and their correction there
    tracers: tuple[Predict, Correct]  # the same for tracers
    # (masses, sources, path of the origin, now, points) -> forces [D, K]
    force: Callable[[Array, Vector, Any, Array, Vector], Array]


@pytree
class GroupState:
    """Bodies during an interval, with their counters."""

    group: Any  # bodies stored as rows
    steps: Array  # [N] int32: number of steps so far
    floored: Array  # [N] int32: number of them that the floor limited


def advance_interval(
    motion: Scheme, stars: Any, tracers: Any, m: Array, path: Any, gate: Array | None = None
) -> tuple[tuple[Any, Any], Array, Array, Array]:
    """Advance stars and tracers to the end of an interval, or of a block with a short star step.

    Also returns the number of blocks, the steps [2] of both, and the number of floored steps.

    Args:
        motion: prediction, correction and force.
        stars: all stars, between two blocks.
        tracers: all tracers, possibly none.
        m: masses [N] of the stars.
        path: path of the origin in the galaxy.
        gate: [N] thresholds; a star that has just been advanced has a short step if it is below.
    """

    def is_unfinished(carry: tuple[GroupState, GroupState, Array, Array, Array]) -> Array:
        *_, now, short = carry
        return (now < 1) & ~short

    def block(carry: tuple[GroupState, GroupState, Array, Array, Array]) -> tuple:
        stars, tracers, blocks, before, short = carry
        # steps divide the interval, so all bodies are due in the last block, at 1
        following = lax.stop_gradient(_next_time(stars, tracers))  # a power of two from a table
        now = following
        if gate is not None:
            # the steps of the previous block are tested here, fused with `_next_time` into one
            # pass; if one of them is short, no body is due in this extra block
            short = has_short_step(stars.group, before, gate)
            now = jnp.where(short, _NEVER, following)
        # a star must be bitwise identical to its source, or it would pull on itself
        sources = lax.optimization_barrier(motion.stars[0](stars.group, now))
        force = lambda x: tuple(motion.force(m, sources, path, now, x))
        # equal for all stars: with the shape of the other arrays it needs no extra kernel launch
        block_begins = (stars.group.t < now).astype(jnp.int32)
        stars = _correct_due(motion.stars[1], stars, force(sources), now)
        if tracers.steps.size:
            guess = motion.tracers[0](tracers.group, now)
            tracers = _correct_due(motion.tracers[1], tracers, force(guess), now)
        return stars, tracers, blocks + block_begins, following, short

    begin = _pad_bodies(stars), _pad_bodies(tracers)
    spare = (0, begin[0].steps.size - m.size)
    m, gate = jnp.pad(m, spare), gate if gate is None else jnp.pad(gate, spare)
    never = jnp.asarray(_NEVER, m.dtype)
    carry = *begin, jnp.zeros_like(begin[0].steps), never, jnp.bool_(False)
    *ends, blocks, _, _ = lax.while_loop(is_unfinished, block, carry)
    counts = stars.t.size, tracers.t.size
    total = lambda name: jnp.stack(
        [jnp.sum(getattr(end, name)[:n], dtype=jnp.int32) for end, n in zip(ends, counts)]
    )
    moved = stack_rows(ends[0].group, counts[0]), stack_rows(ends[1].group, counts[1])
    return moved, blocks[0], total("steps"), jnp.sum(total("floored"), dtype=jnp.int32)


def has_short_step(stars: Any, now: Array, gate: Array) -> Array:
    """Return whether a star that was advanced at `now` [] has a step below its `gate` [N]."""
    return jnp.any((stars.t == now) & (stars.dt < gate))


def _pad_bodies(group: Any) -> GroupState:
    """Return bodies padded to full kernels, with counters of zero."""
    count = -(-group.t.size // _WIDTH) * _WIDTH
    none = jnp.zeros(count, jnp.int32)
    return GroupState(split_rows(group, count), none, none)


def _correct_due(correct: Correct, old: GroupState, f: Vector, now: Array) -> GroupState:
    """Correct all bodies with the forces `f`; bodies that are not due remain unchanged."""
    due = old.group.t + old.group.dt == now
    new, low = correct(old.group, f, now)
    return GroupState(
        group=jax.tree.map(lambda new, old: jnp.where(due, new, old), new, old.group),
        steps=old.steps + due.astype(jnp.int32),
        floored=old.floored + (low & due).astype(jnp.int32),
    )


def _next_time(*groups: GroupState) -> Array:
    """Return the earliest time at which the step of a body ends."""
    ends = [jnp.min(g.group.t + g.group.dt, initial=jnp.inf) for g in groups if g.steps.size]
    return jnp.min(jnp.stack(ends)) if len(ends) > 1 else ends[0]
