"""Massless bodies in the film of massive ones, each with steps as short as it needs.

A stretch of the film is crossed in 2^k equal Gauss-Radau steps, and every body has its own level k.
The levels are worked off in ascending order; the bodies of a level are gathered into tiles of fixed
size, so that one program serves any number of them and a close encounter costs what it costs and
no more. A body whose step was too long to be trusted starts the stretch again, one level deeper.
The step is controlled as in IAS15 (Rein & Spiegel 2015, doi:10.1093/mnras/stu2164, sect. 2.4): by
the highest coefficient of the acceleration's polynomial against the acceleration.

Cost: 8 + 7 (iterations - 1) evaluations of N forces a step; memory O(M). Nothing is returned to the
massive bodies: their bits are the same with any number of massless ones.
"""

from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.pytree import number, pytree, size

from .. import layout
from ..steps import radau
from ..steps.film import Film

# (x_bodies, v_bodies [K, N, 3]; x, v [K, 3, B]) -> acceleration [K, 3, B]
Force = Callable[[Array, Array, Array, Array], Array]


@pytree
class Control:
    """How finely the massless bodies are followed: by the polynomial of their acceleration."""

    tolerance: Array | float = number(
        default=1e-5, above=0
    )  # [] highest coefficient over acceleration
    convergence: Array | float = number(default=1e-8, above=0)  # [] last change over acceleration
    iterations: int = size(default=3, least=2)
    deepest: int = size(default=12, least=0, most=30)  # the shortest step is 2^-deepest of the film
    tile: int = size(default=512, least=1)  # bodies that are advanced together


@pytree
class Swarm:
    """M massless bodies. Components come first, so that bodies lie along the machine's vectors."""

    x: Array  # [3, M] position, length
    v: Array  # [3, M] velocity, length per time
    a: Array  # [8, 3, M] acceleration at the nodes of the last step
    taken: Array  # [M] int32: level of the last step
    level: Array  # [M] int32: level to try next
    coarse: Array  # [M] int32: stretches in which even the deepest level missed the tolerance


def init(force: Force, film: Film, x: Array, v: Array) -> Swarm:
    """A swarm at positions `x` and velocities `v` [3, M], at the start of the film."""
    x, v = layout.columns("swarm.init: x", x), layout.columns("swarm.init: v", v)
    if x.ndim != 2 or x.shape != v.shape:
        raise ValueError(f"swarm.init: x {list(x.shape)}, v {list(v.shape)}; both must be [3, M]")
    bodies = film.at(jnp.zeros(1, x.dtype))
    a = force(*bodies, x[None], v[None])
    # with a constant for a guess, an eighth of the stretch still converges; see `advance`
    level = jnp.full(x.shape[1], 3, jnp.int32)
    none = jnp.zeros_like(level)
    return Swarm(x, v, jnp.repeat(a, 8, axis=0), level, level, none)


def advance(force: Force, control: Control, film: Film, swarm: Swarm) -> Swarm:
    """The swarm at the end of the film."""
    count = swarm.x.shape[1]
    if count == 0:
        return swarm
    tile_size = min(control.tile, count)

    def work_off(carry):
        k, swarm, waiting = carry
        due = waiting & (swarm.level == k)
        index = jnp.nonzero(due, size=count + tile_size, fill_value=count)[0]

        def tile(i, carry):
            swarm, waiting = carry
            some = lax.dynamic_slice(index, (i * tile_size,), (tile_size,))
            old = jax.tree.map(lambda all: jnp.take(all, some, axis=-1, mode="clip"), swarm)
            new, refused = _cross(force, control, film, lax.optimization_barrier(old), k)
            new = lax.optimization_barrier(new)
            put = lambda all, part: all.at[..., some].set(part, mode="drop")
            return jax.tree.map(put, swarm, new), put(waiting, refused)

        tiles = (jnp.sum(due, dtype=jnp.int32) + tile_size - 1) // tile_size
        swarm, waiting = lax.fori_loop(0, tiles, tile, (swarm, waiting))
        return k + 1, swarm, waiting

    start = jnp.int32(0), swarm, jnp.ones(count, bool)
    return lax.while_loop(lambda carry: jnp.any(carry[2]), work_off, start)[1]


def _cross(force: Force, control: Control, film: Film, old: Swarm, k: Array) -> tuple[Swarm, Array]:
    """Cross the film in 2^k steps; what was too coarse is returned as it was, one level deeper."""
    pieces = lax.shift_left(jnp.int32(1), k)
    part = 1 / pieces.astype(old.x.dtype)
    dt = film.dt * (film.x.shape[0] * part)
    nodes = jnp.asarray(radau.NODES, old.x.dtype)

    def step(s, carry):
        x, v, a, worst = carry
        bodies = lax.optimization_barrier(film.at((s.astype(x.dtype) + nodes) * part))
        pull = lambda first, x, v: force(bodies[0][first:], bodies[1][first:], x, v)
        guess = radau.extrapolated(a, jnp.where(s == 0, ratio, 1)[None])
        a, change = radau.solve(pull, x, v, dt, guess, control.iterations)
        dx, dv = radau.increment(v, dt, a)
        return x + dx, v + dv, a, jnp.maximum(worst, error(control, a, change))

    ratio = jnp.exp2((old.taken - k).astype(old.x.dtype))
    start = old.x, old.v, old.a, jnp.zeros_like(ratio)
    x, v, a, worst = lax.fori_loop(0, pieces, step, start)
    return _judged(control, old, replace(old, x=x, v=v, a=a), worst, k)


def error(control: Control, a: Array, change: Array, least: Array | float = 0.0) -> Array:
    """How coarse a step was, [B]: up to 1 is fine, nan is not. Rounding alone stays below 1.

    Args:
        control: what is asked of a step.
        a: accelerations at its nodes [8, 3, B].
        change: how much the last iteration changed the last of them [3, B].
        least: the least acceleration that errors are held against.
    """
    pull, rounding = jnp.maximum(_length(a[0]), least), float(jnp.finfo(a.dtype).eps)
    noise = rounding * float(np.abs(radau.LAGRANGE[7]).sum())
    truncation = _length(radau.weighted(radau.LAGRANGE[7:], a)[0])
    truncation = truncation / jnp.maximum(jnp.asarray(control.tolerance, a.dtype), noise)
    convergence = jnp.maximum(jnp.asarray(control.convergence, a.dtype), 8 * rounding)
    return jnp.maximum(truncation, _length(change) / convergence) / pull


def _judged(
    control: Control, old: Swarm, new: Swarm, error: Array, k: Array
) -> tuple[Swarm, Array]:
    """The new state where it can be trusted, the old one a level deeper elsewhere."""
    fine = error <= 1
    kept = fine | (k >= control.deepest)
    # the error of a step falls as its length to the seventh power; 2^-9 leaves room for surprises
    deeper = jnp.clip(jnp.ceil(jnp.log2(jnp.where(fine, 1, error)) / 7), 1, 3)
    deeper = jnp.where(jnp.isnan(error), 3, deeper).astype(jnp.int32)
    easy = (error < 2.0**-9) & (k > 0)
    level = jnp.where(kept, k - easy.astype(jnp.int32), jnp.minimum(k + deeper, control.deepest))
    merged = jax.tree.map(lambda new, old: jnp.where(_to(kept, new), new, old), new, old)
    taken = jnp.where(kept, k, old.taken)
    coarse = old.coarse + (kept & ~fine).astype(jnp.int32)
    return replace(merged, taken=taken, level=level, coarse=coarse), ~kept


def _length(vector: Array) -> Array:
    return jnp.sqrt(vector[0] * vector[0] + vector[1] * vector[1] + vector[2] * vector[2])


def _to(mask: Array, like: Array) -> Array:
    return mask.reshape((1,) * (like.ndim - 1) + mask.shape)
