"""Tracers in the dense output of massive bodies, with individual steps.

A span of time is crossed in 2^k equal Gauss-Radau steps, with a level k for each tracer. Levels are
processed in ascending order. The tracers of a level are gathered into tiles of fixed size. One
program thus serves any number of them, and only tracers in a close encounter pay for it. On
accelerators a tile holds `TILE_SIZE` tracers, and smaller numbers are not gathered. If its steps
were too long, a tracer restarts the span one or more levels deeper. The step control is that of
IAS15 (Rein & Spiegel 2015, doi:10.1093/mnras/stu2164, sect. 2.4): the highest-order coefficient of
the acceleration over the acceleration.

Cost: 8 + 7 (iterations - 1) evaluations of N forces per step; memory O(M). Tracers do not act on
the massive bodies, whose bits do not depend on the number of tracers. Internally, components come
first, so that tracers fill the vector registers.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.sharding import PartitionSpec

from jaxgpu.geometry.vectors import length
from jaxgpu.inputs.fields import number, pytree, size

from .. import validation
from ..steps import radau
from ..steps.dense_output import DenseOutput

# (x, v of the massive bodies [K, N, 3]; x, v [K, 3, B]) -> acceleration [K, 3, B]
Force = Callable[[Array, Array, Array, Array], Array]

# Tracers per tile on accelerators: a step takes some 10^4 operations per tracer, and for a whole
# tile half as long as its kernel launches.
TILE_SIZE = 65536


@pytree
class Control:
    """Accuracy of the steps of tracers, measured by the polynomial of their acceleration."""

    tolerance: Array | float = number(
        default=1e-5, above=0
    )  # [] highest-order coefficient over acceleration
    convergence: Array | float = number(default=1e-8, above=0)  # [] last change over acceleration
    iterations: int = size(default=3, least=2)  # iterations of the implicit step
    deepest: int = size(default=12, least=0, most=30)  # the shortest step is 2^-deepest of dt
    tile: int = size(default=512, least=1)  # tracers that are advanced together, on a CPU


@pytree
class Tracers:
    """State of M tracers."""

    x: Array  # [M, 3] position, length
    v: Array  # [M, 3] velocity, length per time
    a: Array  # [8, 3, M] acceleration at the nodes of the last step: initial guess of the next
    taken: Array  # [M] int32: level of the last step
    level: Array  # [M] int32: level to try next
    coarse: Array  # [M] int32: number of spans where even the deepest level missed the tolerance


def init(force: Force, output: DenseOutput, x: Array, v: Array) -> Tracers:
    """Return tracers at positions `x` and velocities `v` [M, 3] at the start of the dense output.

    Raises:
        ValueError: inconsistent shapes, values that are not finite.
    """
    x, v = (
        validation.check_vectors("tracers.init: x", x),
        validation.check_vectors("tracers.init: v", v),
    )
    if x.ndim != 2 or x.shape != v.shape:
        raise ValueError(f"tracers.init: x {list(x.shape)}, v {list(v.shape)}; both must be [M, 3]")
    massive = output.evaluate(jnp.zeros(1, x.dtype))
    a = force(*massive, x.T[None], v.T[None])
    # from a constant guess, a step of an eighth of the span still converges
    level = jnp.full(x.shape[0], 3, jnp.int32)
    return Tracers(
        x=x,
        v=v,
        a=jnp.repeat(a, 8, axis=0),
        taken=level,
        level=level,
        coarse=jnp.zeros_like(level),
    )


def partition(axis: str) -> Tracers:
    """Return the placement of tracers on a mesh: each array is distributed over `axis`."""
    first: Any = PartitionSpec(axis)  # Any, since the fields are typed as arrays
    last: Any = PartitionSpec(None, None, axis)
    return Tracers(x=first, v=first, a=last, taken=first, level=first, coarse=first)


def advance(force: Force, control: Control, output: DenseOutput, tracers: Tracers) -> Tracers:
    """Advance the tracers to the end of the dense output."""
    if tracers.x.shape[0] == 0:
        return tracers
    moved = partial(advance_tiles, force, control, output)
    few = tracers.x.shape[0] <= TILE_SIZE
    at_once = partial(advance_all, force, control, output)
    wide = at_once if few else partial(moved, TILE_SIZE)
    return lax.platform_dependent(tracers, cpu=partial(moved, control.tile), default=wide)


def advance_tiles(
    force: Force, control: Control, output: DenseOutput, size: int, tracers: Tracers
) -> Tracers:
    """Do as `advance`, with the tracers of a level gathered into tiles of `size`."""
    count = tracers.x.shape[0]
    tile_size = min(size, count)

    def process_level(carry: tuple[Array, Tracers, Array]) -> tuple[Array, Tracers, Array]:
        k, lanes, waiting = carry
        due = waiting & (lanes.level == k)
        # `count` is the padding: a gather clips it, and a scatter drops it
        index = jnp.nonzero(due, size=count + tile_size, fill_value=count)[0]

        def tile(i: Array, carry: tuple[Tracers, Array]) -> tuple[Tracers, Array]:
            lanes, waiting = carry
            batch = lax.dynamic_slice(index, (i * tile_size,), (tile_size,))
            old = jax.tree.map(lambda leaf: jnp.take(leaf, batch, axis=-1, mode="clip"), lanes)
            new, refused = _cross_span(force, control, output, lax.optimization_barrier(old), k)
            new = lax.optimization_barrier(new)
            put = lambda leaf, part: leaf.at[..., batch].set(part, mode="drop")
            return jax.tree.map(put, lanes, new), put(waiting, refused)

        tiles = (jnp.sum(due, dtype=jnp.int32) + tile_size - 1) // tile_size
        lanes, waiting = lax.fori_loop(0, tiles, tile, (lanes, waiting))
        return k + 1, lanes, waiting

    # a rejected tracer waits at a level above k, so the loop ends
    start = jnp.int32(0), _transpose_axes(tracers), jnp.ones(count, bool)
    return _transpose_axes(lax.while_loop(lambda carry: jnp.any(carry[2]), process_level, start)[1])


def advance_all(force: Force, control: Control, output: DenseOutput, tracers: Tracers) -> Tracers:
    """Do as `advance`, but advance all tracers at each level and keep the results of the due ones.

    Where kernel launches dominate the cost, this is cheaper than gathering the due tracers.
    """
    never = jnp.iinfo(tracers.level.dtype).max

    def process_level(carry: tuple[Array, Tracers, Array]) -> tuple[Array, Tracers, Array]:
        k, lanes, waiting = carry
        due = waiting & (lanes.level == k)
        new, refused = _cross_span(force, control, output, lanes, k)
        lanes = jax.tree.map(
            lambda new, old: jnp.where(_expand_mask(due, new), new, old), new, lanes
        )
        waiting = jnp.where(due, refused, waiting)
        return jnp.min(jnp.where(waiting, lanes.level, never)), lanes, waiting

    start = jnp.min(tracers.level), _transpose_axes(tracers), jnp.ones(tracers.level.shape, bool)
    return _transpose_axes(lax.while_loop(lambda carry: carry[0] < never, process_level, start)[1])


def _transpose_axes(tracers: Tracers) -> Tracers:
    """Transpose positions and velocities, to components first or back."""
    return replace(tracers, x=tracers.x.T, v=tracers.v.T)


def _cross_span(
    force: Force, control: Control, output: DenseOutput, old: Tracers, k: Array
) -> tuple[Tracers, Array]:
    """Advance lanes by 2^k steps; leave those that were too coarse unchanged, at a deeper level."""
    pieces = lax.shift_left(jnp.int32(1), k)
    part = 1 / pieces.astype(old.x.dtype)
    dt = output.dt * (output.x.shape[0] * part)
    nodes = jnp.asarray(radau.NODES, old.x.dtype)
    ratio = jnp.exp2((old.taken - k).astype(old.x.dtype))

    def step(s: Array, carry: tuple[Array, ...]) -> tuple[Array, ...]:
        x, v, a, worst = carry
        massive = lax.optimization_barrier(output.evaluate((s.astype(x.dtype) + nodes) * part))
        accelerate = lambda first, x, v: force(massive[0][first:], massive[1][first:], x, v)
        guess = radau.extrapolate(a, jnp.where(s == 0, ratio, 1)[None])
        a, change = radau.solve(accelerate, x, v, dt, guess, control.iterations)
        dx, dv = radau.increment(v, dt, a)
        return x + dx, v + dv, a, jnp.maximum(worst, error(control, a, change))

    start = old.x, old.v, old.a, jnp.zeros_like(ratio)
    x, v, a, worst = lax.fori_loop(0, pieces, step, start)
    return _accept_steps(control, old, replace(old, x=x, v=v, a=a), worst, k)


def error(control: Control, a: Array, change: Array, least: Array | float = 0.0) -> Array:
    """Return the error of a step over its tolerance, [B]: accurate if at most 1; nan is not.

    Args:
        control: the required accuracy. Rounding errors alone stay below 1.
        a: accelerations at the nodes of the step [8, 3, B].
        change: last change of the acceleration at the last node [3, B].
        least: minimum acceleration to which errors are compared.
    """
    pull, rounding = jnp.maximum(length(a[0]), least), float(jnp.finfo(a.dtype).eps)
    noise = rounding * float(np.abs(radau.LAGRANGE[7]).sum())
    truncation = length(radau.apply_weights(radau.LAGRANGE[7:], a)[0])
    truncation = truncation / jnp.maximum(jnp.asarray(control.tolerance, a.dtype), noise)
    convergence = jnp.maximum(jnp.asarray(control.convergence, a.dtype), 8 * rounding)
    return jnp.maximum(truncation, length(change) / convergence) / pull


def _accept_steps(
    control: Control, old: Tracers, new: Tracers, error: Array, k: Array
) -> tuple[Tracers, Array]:
    """Return the new lanes where they are accurate, elsewhere the old ones at a deeper level."""
    fine = error <= 1  # False for nan
    kept = fine | (k >= control.deepest)
    # the error of a step scales as its length to the seventh power; 2^-9 has a safety margin
    deeper = jnp.clip(jnp.ceil(jnp.log2(jnp.where(fine, 1, error)) / 7), 1, 3)
    deeper = jnp.where(jnp.isnan(error), 3, deeper).astype(jnp.int32)
    easy = (error < 2.0**-9) & (k > 0)
    level = jnp.where(kept, k - easy.astype(jnp.int32), jnp.minimum(k + deeper, control.deepest))
    merged = jax.tree.map(lambda new, old: jnp.where(_expand_mask(kept, new), new, old), new, old)
    taken = jnp.where(kept, k, old.taken)
    coarse = old.coarse + (kept & ~fine).astype(jnp.int32)
    return replace(merged, taken=taken, level=level, coarse=coarse), ~kept


def _expand_mask(mask: Array, like: Array) -> Array:
    return mask.reshape((1,) * (like.ndim - 1) + mask.shape)
