"""HypE and SMS-EMOA: survival of the members whose loss would cost the most hypervolume.

Bader & Zitzler (2011), doi:10.1162/EVCO_a_00009, and, with `depth=1`, the exclusive contributions
of SMS-EMOA (Beume, Naujoks & Emmerich 2007, doi:10.1016/j.ejor.2006.08.008). If k members must be
removed, the fitness of a member is

    I = sum_j alpha_j / j V_j,    alpha_j = prod_(l < j) (k - l) / (n - l),

where V_j is the volume dominated by it and exactly j - 1 others of the n: its expected loss when it
and random others, k in all, are removed. The volumes are measured along rays (see
`indicators.rays`), so memory is O(N).

Differences from the papers: rays from the reference point replace points in a box; terms beyond
`depth` members are dropped (alpha_j falls about as (k / n)^j). Members are removed in `rounds` of
several if there are fewer rounds than members to remove, and one by one otherwise. That is worth
its time: 28 members on DTLZ2 with three objectives reach 1.02 of the volume of 28 ideal points one
by one, and 0.97 in four rounds. Objectives are scaled to the front of each generation, and the
reference is 1.1 of its range. 4 (m + depth) N rays operations per round.
"""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.inputs.fields import pytree, size

from ..indicators.rays import TILE, directions, ray_lengths
from ..pareto.order import argsort
from ..population import Population, flatnonzero, key_from, take
from .mating import Elitist, ElitistState
from .variation import SBX, PolynomialMutation


@pytree
class HypE(Elitist["State"]):
    """HypE (Bader & Zitzler 2011), a many-objective algorithm with hypervolume-based survival.

    >>> from jaxgpu.evolution import evolve, problems
    >>> spec = HypE(pop_size=12, rays=64, rounds=2)
    >>> jax.jit(evolve)(spec, problems.zdt1(5), jax.random.key(0), 3).population.f.shape
    (12, 2)
    """

    pop_size: int = size(default=100, least=4)  # N, even
    crossover: SBX = SBX(15.0, 1.0)
    mutation: PolynomialMutation = PolynomialMutation()
    rays: int = size(default=1024, least=TILE)  # a multiple of the minimum
    rounds: int = size(default=32, least=1)  # rounds of removal per generation
    depth: int = size(default=4, least=1)  # members that may share a volume; 1 gives SMS-EMOA

    def __post_init__(self) -> None:
        super().__post_init__()
        if not all(isinstance(n, int) for n in (self.rays, self.rounds, self.depth)):
            return  # `init` rejects it by the ranges of the fields
        if self.rays < 1 or self.rays % TILE or min(self.rounds, self.depth) < 1:
            raise ValueError(
                f"HypE: rays={self.rays}, rounds={self.rounds}, depth={self.depth}; rays must be "
                f"a multiple of {TILE}, the others at least 1"
            )

    def begin(self, members: Population, rank: Array, **placed: Any) -> "State":
        zero = jnp.zeros(self.pop_size, members.x.dtype)
        return State(population=members, rank=rank, fitness=zero, **placed)

    def wins(self, state: "State", pair: Array) -> Array:
        """Return whether the first of each pair wins: by front, within a front by fitness."""
        rank, value = state.rank[pair], state.fitness[pair]
        return (rank[0] < rank[1]) | ((rank[0] == rank[1]) & (value[0] >= value[1]))

    def survive(self, state: "State", merged: Population, rank: Array, cut: Array) -> "State":
        """Keep the first fronts, and from the last one the members of the highest fitness."""
        n, m = self.pop_size, merged.f.shape[1]
        reach = _reference_offsets(
            merged.f, (rank <= cut) & jnp.all(jnp.isfinite(merged.f), axis=1)
        )
        key = jax.random.fold_in(key_from(merged.x[:n]), state.generation)
        shifts = jax.random.bits(key, (self.rounds + 1, m - 1), jnp.uint32)
        edge = rank == cut

        def remove(i: Array, alive: Array) -> Array:
            # remove an equal share of the excess per round, the least fit first
            excess = jnp.sum(alive, dtype=jnp.int32) - n
            count = -(-excess // (self.rounds - i))
            left = jnp.where(alive[:, None], reach, 0)
            value = fitness(self, left, shifts[i], excess, alive & edge)
            order = argsort(jnp.where(alive & edge, value, jnp.inf))
            removed = jnp.arange(2 * n) < count
            return alive & ~jnp.zeros_like(alive).at[order].set(removed, unique_indices=True)

        alive = lax.fori_loop(0, self.rounds, remove, rank <= cut)
        best = flatnonzero(alive, n)
        reach = jnp.where(alive[:, None], reach, 0)
        value = fitness(self, reach, shifts[-1], jnp.int32(n), alive)
        return replace(state, population=take(merged, best), rank=rank[best], fitness=value[best])


@pytree
class State(ElitistState):
    """State of a HypE run."""

    fitness: Array  # [N] expected loss of hypervolume


def _reference_offsets(f: Array, alive: Array) -> Array:
    """Return distances to the reference point in ranges of the alive members, else 0. [n, m]."""
    marked = alive[:, None]
    low = jnp.min(jnp.where(marked, f, jnp.inf), axis=0)
    high = jnp.max(jnp.where(marked, f, -jnp.inf), axis=0)
    span = jnp.where(jnp.isfinite(high - low) & (high > low), high - low, 1)
    return jnp.where(marked, 1.1 - (jnp.where(marked, f, low[None]) - low[None]) / span[None], 0)


def fitness(spec: HypE, reach: Array, shift: Array, excess: Array, members: Array) -> Array:
    """Return the expected loss of volume with each member if `excess` of the `members` go. [n]."""
    n, m = reach.shape
    k, among = excess.astype(reach.dtype), jnp.sum(members).astype(reach.dtype)
    j = jnp.arange(1, spec.depth, dtype=reach.dtype)
    odds = jnp.maximum(k - j, 0) / jnp.maximum(among - j, 1)
    alpha = jnp.append(jnp.ones(1, reach.dtype), jnp.cumprod(odds))
    alpha = alpha / jnp.arange(1, spec.depth + 1, dtype=reach.dtype)

    def add_tile(total: Array, start: Array) -> tuple[Array, None]:
        s = ray_lengths(reach, directions(shift, start, reach.dtype))
        far = jnp.max(s, axis=1, keepdims=True)
        share = jnp.zeros_like(s)
        for _ in range(spec.depth):
            inner = s >= far
            count = jnp.sum(inner, axis=1, keepdims=True, dtype=jnp.int32)  # ties raise the count
            second = jnp.max(jnp.where(inner, 0, s), axis=1, keepdims=True)
            each = jnp.where(count <= spec.depth, alpha[jnp.minimum(count, spec.depth) - 1], 0)
            share += jnp.where(inner, each * (far**m - second**m), 0)
            far = second
        return total + jnp.sum(share, axis=0), None

    starts = jnp.arange(0, spec.rays, TILE, dtype=jnp.uint32)
    return lax.scan(add_tile, jnp.zeros(n, reach.dtype), starts)[0]
