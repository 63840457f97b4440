"""L-SHADE: differential evolution with learned parameters and a shrinking population.

Tanabe & Fukunaga (2014), doi:10.1109/CEC.2014.6900380, with its parameters: current-to-pbest/1 with
an archive, H memories of F and CR, linear reduction of N to 4 over the given evaluations.

Shapes are fixed, so `ask` always returns one batch, and a generation consists of several. All
candidates count as evaluations, including copies of removed members in the last batch of a
generation. The memories are weighted by improvements of f, so an increasing transformation of f
changes the run; an offset does not. Difference: an improvement on an infeasible or failed parent
weighs as much as the largest other.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.inputs.fields import number, pytree, size

from ..population import key_from, sample
from ..problem import Box, Problem
from ..protocol import Algorithm, check_tell
from .ranking import Best, check_single, init_best, order, update_best


@pytree
class LSHADE(Algorithm["State"]):
    """L-SHADE (Tanabe & Fukunaga 2014), a differential evolution.

    >>> from jaxgpu.evolution import Problem, box, evolve
    >>> valley = Problem(box(-5.0, 5.0, 2), lambda x: jnp.sum((x - 1) ** 2))
    >>> state = jax.jit(evolve)(LSHADE(800, pop_size=20), valley, jax.random.key(0), 200)
    >>> bool(state.best.f < 1e-3)
    True
    """

    evaluations: Array | int = number(least=1, one=True)  # [] number until 4 members remain
    pop_size: int = size(least=6)  # initial N; 18 D in the paper
    memory: int = size(default=6, least=1)  # H, memories of F and CR
    # [] p, fraction of the members that can be pbest
    greed: Array | float = number(default=0.11, above=0, most=1, one=True)
    # size of the archive of replaced parents, relative to the population
    archive: float = number(default=2.6, baked=True, least=0, one=True)
    # candidates per `ask`; use the population size if evaluations run in parallel
    batch_size: int = size(default=4, least=1)

    def __post_init__(self) -> None:
        whole = isinstance(self.pop_size, int) and isinstance(self.memory, int)
        if whole and (self.pop_size < 6 or self.memory < 1):
            raise ValueError(
                f"LSHADE: pop_size={self.pop_size}, memory={self.memory}; need at least 6 and 1"
            )

    def init(self, key: Array, problem: Problem) -> "State":
        """Return the state with members sampled uniformly in the box."""
        problem = check_single(self, key, problem)
        members = sample(key, problem, self.pop_size)
        (n, d), dtype = members.x.shape, members.x.dtype
        zero, half = jnp.int32(0), jnp.full(self.memory, 0.5, dtype)
        places = -(-n // self.batch_size) * self.batch_size
        far = jnp.full(places, jnp.inf, dtype)
        return State(
            x=members.x,
            f=members.violation,
            violation=members.violation,
            count=jnp.int32(n),
            used=zero,
            generation=zero,
            child=jnp.zeros((places, d), dtype),
            child_f=far,
            child_violation=far,
            filled=zero,
            archive=jnp.zeros((max(1, round(self.archive * n)), d), dtype),
            kept=zero,
            factor=half,
            rate=half,
            slot=zero,
            scale=jnp.full(n, 0.5, dtype),
            cross=jnp.full(n, 0.5, dtype),
            best=init_best(problem),
            box=problem.box,
        )

    def ask(self, state: "State", key: Array) -> Array:
        """Return the next batch of children, by current-to-pbest/1."""
        k_best, k_one, k_two, k_cross, k_sure = jax.random.split(key, 5)
        (n, d), dtype, size = state.x.shape, state.x.dtype, self.batch_size
        i = state.filled + jnp.arange(size, dtype=jnp.int32)
        place = jnp.minimum(i, n - 1)
        parent = state.x[place]
        top = jnp.maximum(2, jnp.round(self.greed * state.count.astype(dtype))).astype(jnp.int32)
        leader = jax.random.randint(k_best, (size,), 0, top)
        one = (i + jax.random.randint(k_one, (size,), 1, state.count)) % state.count
        two = jax.random.randint(k_two, (size,), 0, state.count + state.kept - 2)
        # skip the member itself and the first partner: uniform over all others
        low, high = jnp.minimum(i, one), jnp.maximum(i, one)
        two += (two >= low).astype(jnp.int32)
        two += (two >= high).astype(jnp.int32)
        old = state.archive[jnp.maximum(two - state.count, 0)]
        other = jnp.where((two < state.count)[:, None], state.x[jnp.minimum(two, n - 1)], old)
        pull = state.x[leader] - parent + state.x[one] - other
        v = parent + state.scale[place][:, None] * pull
        # a variable outside the box moves half way to the bound instead
        lower, upper = state.box.lower[None], state.box.upper[None]
        v = jnp.where(v < lower, (lower + parent) / 2, v)
        v = jnp.where(v > upper, (upper + parent) / 2, v)
        crossed = jax.random.uniform(k_cross, (size, d), dtype) < state.cross[place][:, None]
        crossed |= jax.random.randint(k_sure, (size, 1), 0, d) == jnp.arange(d)[None]
        moves = (state.generation > 0) & (i < state.count)
        return jnp.where(crossed & moves[:, None], v, parent)

    def tell(self, state: "State", x: Array, f: Array, violation: Array | None = None) -> "State":
        """Store the batch, and select survivors if the generation is complete."""
        x, f, violation = check_tell(self, state, x, f, violation)
        at = state.filled
        state = replace(
            state,
            child=lax.dynamic_update_slice_in_dim(state.child, x, at, 0),
            child_f=lax.dynamic_update_slice_in_dim(state.child_f, f[:, 0], at, 0),
            child_violation=lax.dynamic_update_slice_in_dim(
                state.child_violation, violation, at, 0
            ),
            filled=at + self.batch_size,
            used=state.used + self.batch_size,
            best=update_best(state.best, x, f, violation),
        )
        full = state.filled >= state.count
        return lax.cond(full, lambda s: _complete_generation(self, s), lambda s: s, state)


@pytree
class State:
    """State of an L-SHADE run. Members are in order, the best first; A slots in the archive.

    A generation has slots for C children: whole batches, at least as many as the first members.
    """

    x: Array  # [N, D] members
    f: Array  # [N] objective
    violation: Array  # [N] violation
    count: Array  # [] number of remaining members
    used: Array  # [] number of evaluations, i.e. of candidates of `ask`
    generation: Array  # [] generation 0 evaluates the initial members
    child: Array  # [C, D] children of this generation so far
    child_f: Array  # [C] their objectives
    child_violation: Array  # [C] their violations
    filled: Array  # [] number of children so far
    archive: Array  # [A, D] replaced parents
    kept: Array  # [] number of parents in the archive
    factor: Array  # [H] memory of F
    rate: Array  # [H] memory of CR, negative for the terminal value
    slot: Array  # [] index of the next memory to write
    scale: Array  # [N] F of the next children
    cross: Array  # [N] CR of the next children
    best: Best
    box: Box


def _complete_generation(spec: LSHADE, state: State) -> State:
    """Select the better of each parent and child, and learn from the children that won."""
    n = spec.pop_size
    x, value, violation = state.child[:n], state.child_f[:n], state.child_violation[:n]
    alive = jnp.arange(n) < state.count
    level = violation == state.violation
    wins = (violation < state.violation) | (level & (value < state.f))
    kept = alive & (wins | (level & (value == state.f)))
    improved = alive & wins & (state.generation > 0)
    gain = jnp.where(level, state.f - value, jnp.inf)
    factor, rate, slot = _update_memories(state, improved, gain)
    key = jax.random.fold_in(key_from(state.child), state.generation)
    k_archive, k_draw = jax.random.split(key)
    archive, size = _update_archive(k_archive, spec, state, improved)
    share = jnp.clip(state.used / spec.evaluations, 0, 1)
    count = jnp.round(n - (n - 4) * share).astype(jnp.int32)
    new_f = jnp.where(kept, value, state.f)
    new_violation = jnp.where(kept, violation, state.violation)
    # removed members stay behind all others
    ranked = order(
        jnp.where(alive, new_f, jnp.nan)[:, None], jnp.where(alive, new_violation, jnp.inf)
    )
    index = ranked[0]
    scale, cross = _sample_parameters(k_draw, factor, rate, n)
    return replace(
        state,
        x=jnp.where(kept[:, None], x, state.x)[index],
        f=new_f[index],
        violation=new_violation[index],
        count=jnp.minimum(count, state.count),
        generation=state.generation + 1,
        filled=jnp.int32(0),
        archive=archive,
        kept=size,
        factor=factor,
        rate=rate,
        slot=slot,
        scale=scale,
        cross=cross,
    )


def _update_memories(state: State, improved: Array, gain: Array) -> tuple[Array, Array, Array]:
    """Return the memories of F and CR after one generation, and the next slot (algorithm 1)."""
    known = jnp.where(improved & jnp.isfinite(gain), gain, 0)
    most = jnp.max(known)
    weight = jnp.where(improved, jnp.where(jnp.isfinite(gain), gain, most), 0)
    weight = jnp.where(improved & (most <= 0), 1, weight)
    weight = weight / jnp.maximum(jnp.max(weight), 1e-30)

    def lehmer(value: Array) -> Array:
        below = jnp.sum(weight * value)
        return jnp.sum(weight * value * value) / jnp.where(below > 0, below, 1)

    any_one = jnp.any(improved)
    ended = (state.rate[state.slot] < 0) | (jnp.max(jnp.where(improved, state.cross, 0)) <= 0)
    cross = jnp.where(ended, -1, lehmer(state.cross))
    factor = jnp.where(any_one, lehmer(state.scale), state.factor[state.slot])
    cross = jnp.where(any_one, cross, state.rate[state.slot])
    slot = jnp.where(any_one, (state.slot + 1) % state.factor.shape[0], state.slot)
    return (
        state.factor.at[state.slot].set(factor),
        state.rate.at[state.slot].set(cross),
        slot.astype(jnp.int32),
    )


def _update_archive(key: Array, spec: LSHADE, state: State, beaten: Array) -> tuple[Array, Array]:
    """Add replaced parents to the archive; drop random entries if it is too full."""
    room = state.archive.shape[0]
    members = jnp.concatenate([state.archive, state.x])
    real = jnp.concatenate([jnp.arange(room) < state.kept, beaten])
    lot = jax.random.bits(key, (members.shape[0],), jnp.uint32) >> 1
    index = jnp.argsort(jnp.where(real, lot, ~jnp.zeros_like(lot)), stable=True)[:room]
    most = jnp.round(spec.archive * state.count.astype(state.x.dtype)).astype(jnp.int32)
    return members[index], jnp.minimum(jnp.sum(real, dtype=jnp.int32), most)


def _sample_parameters(key: Array, factor: Array, rate: Array, count: int) -> tuple[Array, Array]:
    """Sample F and CR of the next children, each from a random memory."""
    k_slot, k_scale, k_cross = jax.random.split(key, 3)
    slot = jax.random.randint(k_slot, (count,), 0, factor.shape[0])
    middle, dtype = factor[slot], factor.dtype
    # a Cauchy variate conditioned on being positive (the paper resamples), by its quantiles
    least = 0.5 - jnp.arctan(middle / 0.1) / jnp.pi
    u = least + jax.random.uniform(k_scale, (count,), dtype) * (1 - least)
    scale = jnp.clip(middle + 0.1 * jnp.tan(jnp.pi * (u - 0.5)), 1e-6, 1)
    cross = rate[slot] + 0.1 * jax.random.normal(k_cross, (count,), dtype)
    return scale, jnp.where(rate[slot] < 0, 0, jnp.clip(cross, 0, 1))
