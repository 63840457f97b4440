"""The blocks of an interval on NVIDIA's GPUs, which pay for a launch what many bodies cost.

All bodies are evaluated in each block and the due stay moved: nobody is looked for, nothing is
gathered. A block of stars is seven launches: the time of the next block, the prediction, the pair
sum and the sum of its parts, the correction, the next steps with all counts, and the question
whether the interval is over; with tracers it is fourteen. Where bodies do not fill a kernel's
threads copies of the last one do, without mass, which are dropped in the end.

Every row of a vector is an array of its own (`rows`), so that all of a correction has one shape and
is one kernel. On a TPU rows cost copies where the loop begins and ends: it keeps what `block` does.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.inputs.fields import pytree

from .rows import Vector, apart, together

_WIDTH = 128  # bodies are a multiple of it
_NEVER = -1.0  # a time at which nobody is due
# (bodies, now) -> where they are predicted to be
type Predict = Callable[[Any, Array], Vector]
# (bodies, forces [D, N], now) -> bodies corrected, and which want a step below the floor
type Correct = Callable[[Any, Vector, Array], tuple[Any, Array]]


@dataclass(frozen=True)
class Motion:
    """How an order moves bodies, each given all of them with their rows apart."""

    stars: tuple[Predict, Correct]  # how stars are carried to a moment, and corrected there
    tracers: tuple[Predict, Correct]  # the same of tracers
    # (masses, sources, path of the origin, now, points) -> forces [D, K]
    force: Callable[[Array, Vector, Any, Array, Vector], Array]


@pytree
class Moving:
    """Bodies on their way through an interval."""

    group: Any  # with rows apart
    steps: Array  # [N] int32: made so far
    floored: Array  # [N] int32: how many of them should have been shorter


def interval(
    motion: Motion, stars: Any, tracers: Any, m: Array, path: Any, gate: Array | None = None
) -> tuple[tuple[Any, Any], Array, Array, Array]:
    """Stars and tracers at the end of an interval, or of a block in which a star's step is short.

    Returns also how many blocks there were, steps [2] of both, and how many were floored.

    Args:
        motion: how they move.
        stars: all of them, between two blocks.
        tracers: the same; perhaps none.
        m: masses [N] of the stars.
        path: of the origin in its galaxy.
        gate: [N] steps, below which that of a star which has just made one is short.
    """

    def unfinished(carry: tuple[Moving, Moving, Array, Array, Array]) -> Array:
        *_, now, short = carry
        return (now < 1) & ~short

    def block(carry: tuple[Moving, Moving, Array, Array, Array]) -> tuple:
        stars, tracers, blocks, before, short = carry
        # steps divide the interval, so that the last block is that of all bodies, at 1
        following = lax.stop_gradient(_next(stars, tracers))  # a table's entry
        now = following
        if gate is not None:
            # asked of the block before and here, where it is one pass with `_next`: in a block that
            # comes too late nobody is due
            short = short_steps(stars.group, before, gate)
            now = jnp.where(short, _NEVER, following)
        # a star must find itself among the sources to the bit, or it would pull on itself
        sources = lax.optimization_barrier(motion.stars[0](stars.group, now))
        force = lambda x: tuple(motion.force(m, sources, path, now, x))
        # true of all stars: so the count of blocks has the shape of all else, and no launch
        block_begins = (stars.group.t < now).astype(jnp.int32)
        stars = _moved(motion.stars[1], stars, force(sources), now)
        if tracers.steps.size:
            guess = motion.tracers[0](tracers.group, now)
            tracers = _moved(motion.tracers[1], tracers, force(guess), now)
        return stars, tracers, blocks + block_begins, following, short

    begin = _begun(stars), _begun(tracers)
    spare = (0, begin[0].steps.size - m.size)
    m, gate = jnp.pad(m, spare), gate if gate is None else jnp.pad(gate, spare)
    never = jnp.asarray(_NEVER, m.dtype)
    carry = *begin, jnp.zeros_like(begin[0].steps), never, jnp.bool_(False)
    *ends, blocks, _, _ = lax.while_loop(unfinished, block, carry)
    counts = stars.t.size, tracers.t.size
    total = lambda name: jnp.stack(
        [jnp.sum(getattr(end, name)[:n], dtype=jnp.int32) for end, n in zip(ends, counts)]
    )
    moved = together(ends[0].group, counts[0]), together(ends[1].group, counts[1])
    return moved, blocks[0], total("steps"), jnp.sum(total("floored"), dtype=jnp.int32)


def short_steps(stars: Any, now: Array, gate: Array) -> Array:
    """Whether any of those who made a step at `now` [] has one below its `gate` [N] before it."""
    return jnp.any((stars.t == now) & (stars.dt < gate))


def _begun(group: Any) -> Moving:
    """Bodies that fill whole kernels, without a step."""
    count = -(-group.t.size // _WIDTH) * _WIDTH
    none = jnp.zeros(count, jnp.int32)
    return Moving(apart(group, count), none, none)


def _moved(correct: Correct, old: Moving, f: Vector, now: Array) -> Moving:
    """All bodies corrected by the forces `f`, of whom those that are due stay so."""
    due = old.group.t + old.group.dt == now
    new, low = correct(old.group, f, now)
    return Moving(
        group=jax.tree.map(lambda new, old: jnp.where(due, new, old), new, old.group),
        steps=old.steps + due.astype(jnp.int32),
        floored=old.floored + (low & due).astype(jnp.int32),
    )


def _next(*groups: Moving) -> Array:
    """When the next step of any body ends."""
    ends = [jnp.min(g.group.t + g.group.dt, initial=jnp.inf) for g in groups if g.steps.size]
    return jnp.min(jnp.stack(ends)) if len(ends) > 1 else ends[0]
