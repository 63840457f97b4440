"""MOEA/D with one subproblem per direction, all advanced in parallel.

Zhang & Li (2007), doi:10.1109/TEVC.2007.892759. The paper processes the subproblems sequentially,
so that a child can replace its parents' neighbors before those mate. Here all children are created
first. Each subproblem then takes the best of its own member and the children of its neighborhood:
the result does not depend on an order, and one generation is one program. The objectives are
translated by the ideal point and, as in the paper's first experiments, not scaled. Constraints: the
less violating member wins before the scalarisation is considered.

O(H T m) time and O(H T) memory.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.inputs.fields import number, pytree, size, static

from ..population import Population, sample
from ..problem import Box, Problem
from ..protocol import Algorithm, check_inputs, check_tell
from .reference_directions import TILE, ReferenceDirections
from .variation import SBX, PolynomialMutation

DECOMPOSITIONS = ("pbi", "tchebycheff", "weighted_sum")


@pytree
class MOEAD(Algorithm["State"]):
    """MOEA/D (Zhang & Li 2007); the defaults are the paper's parameters.

    >>> from jaxgpu.evolution import evolve, problems
    >>> from jaxgpu.evolution.multi import das_dennis
    >>> spec = MOEAD(das_dennis(3, 4), n_neighbors=5)
    >>> jax.jit(evolve)(spec, problems.dtlz2(3), jax.random.key(0), 3).population.f.shape
    (15, 3)
    """

    ref_dirs: ReferenceDirections  # H directions: the weights of the subproblems
    # T, subproblems that mate and share children, including the subproblem itself
    n_neighbors: int = size(default=20, least=2)
    decomposition: str = static(default="pbi")  # or "tchebycheff", "weighted_sum"
    crossover: SBX = SBX(20.0, 1.0)
    mutation: PolynomialMutation = PolynomialMutation()
    theta: Array | float = number(default=5.0, least=0, one=True)  # [] penalty of pbi

    def __post_init__(self) -> None:
        if self.decomposition not in DECOMPOSITIONS:
            raise ValueError(
                f"MOEAD: decomposition={self.decomposition!r}; it must be in {DECOMPOSITIONS}"
            )

    @property
    def batch_size(self) -> int:
        return self.ref_dirs.w.shape[-2]

    def init(self, key: Array, problem: Problem) -> "State":
        """Return the state with one member per subproblem, sampled uniformly in the box."""
        problem = check_inputs("init", self, key, problem)
        self.ref_dirs.check_objectives("MOEAD", problem.objectives)
        h, m = self.ref_dirs.w.shape
        if self.n_neighbors > h:
            raise ValueError(
                f"MOEAD: n_neighbors={self.n_neighbors}; it must be 2 to {h}, the direction count"
            )
        members = sample(key, problem, h)
        return State(
            population=members,
            neighbors=neighbors(self.ref_dirs.w, self.n_neighbors),
            ideal=jnp.full(m, jnp.inf, members.x.dtype),
            box=problem.box,
            generation=jnp.int32(0),
        )

    def ask(self, state: "State", key: Array) -> Array:
        """Return one child of two different random neighbors per subproblem."""
        k_mates, k_cross, k_mutate = jax.random.split(key, 3)
        x, (h, t) = state.population.x, state.neighbors.shape
        first = jax.random.randint(k_mates, (h,), 0, t)
        step = jax.random.randint(jax.random.fold_in(k_mates, 1), (h,), 1, t)
        row = jnp.arange(h)
        a = x[state.neighbors[row, first]]
        b = x[state.neighbors[row, (first + step) % t]]
        made, _ = self.crossover(k_cross, a, b, state.box)
        made = self.mutation(k_mutate, made, state.box)
        # the first generation evaluates the initial members
        return jnp.where(state.generation == 0, x, made)

    def tell(self, state: "State", x: Array, f: Array, violation: Array | None = None) -> "State":
        """Select for each subproblem the best of its own member and its neighborhood's children."""
        x, f, violation = check_tell(self, state, x, f, violation)
        feasible = (violation <= 0)[:, None]
        ideal = jnp.minimum(state.ideal, jnp.min(jnp.where(feasible, f, jnp.inf), axis=0))
        origin = jnp.where(jnp.isfinite(ideal), ideal, 0)
        old, near = state.population, state.neighbors
        values = jnp.concatenate([old.f[:, None], f[near]], axis=1)  # [H, 1 + T, m]
        broken = jnp.concatenate([old.violation[:, None], violation[near]], axis=1)
        scalar = scalarize(self, values - origin[None, None], self.ref_dirs.w[:, None])
        scalar = jnp.where(broken <= jnp.min(broken, axis=1, keepdims=True), scalar, jnp.inf)
        best = jnp.argmin(scalar, axis=1)  # 0 is the subproblem's own member
        child = near[jnp.arange(near.shape[0]), jnp.maximum(best - 1, 0)]

        def select_best(old: Array, new: Array) -> Array:
            keep = (best == 0).reshape(-1, *[1] * (old.ndim - 1))
            return jnp.where(keep, old, new[child])

        population = jax.tree.map(select_best, old, Population(x, f, violation))
        generation = state.generation + 1
        return replace(state, population=population, ideal=ideal, generation=generation)


@pytree
class State:
    """State of a MOEA/D run."""

    population: Population
    neighbors: Array  # [H, T] subproblems with the nearest weights, itself first
    ideal: Array  # [m] best value so far of each objective, of feasible members
    box: Box
    generation: Array  # [] number of generations so far


def neighbors(w: Array, count: int) -> Array:
    """Return the nearest weights of each [H, m]; for ties the first. [H, count] int32."""

    def nearest_weights(row: Array) -> Array:
        # the barrier prevents fusion with the sum, whose rounding would break ties
        square = lax.optimization_barrier((w - row[None]) ** 2)
        return jnp.argsort(jnp.sum(square, axis=1), stable=True)[:count].astype(jnp.int32)

    return lax.map(nearest_weights, w, batch_size=TILE)


def scalarize(spec: MOEAD, f: Array, w: Array) -> Array:
    """Return the scalarised value of translated objectives f for weights w. [..., m] -> [...]."""
    if spec.decomposition == "weighted_sum":
        return jnp.sum(w * f, axis=-1)
    if spec.decomposition == "tchebycheff":
        return jnp.max(jnp.maximum(w, 1e-6) * jnp.abs(f), axis=-1)
    unit = w / jnp.sqrt(jnp.sum(w * w, axis=-1, keepdims=True))  # boundary intersection
    along = jnp.sum(f * unit, axis=-1, keepdims=True)
    off = f - along * unit
    return along[..., 0] + spec.theta * jnp.sqrt(jnp.sum(off * off, axis=-1))
