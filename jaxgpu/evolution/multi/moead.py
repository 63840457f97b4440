"""MOEA/D, one subproblem a direction, all subproblems advanced at once.

Zhang & Li (2007), doi:10.1109/TEVC.2007.892759. The paper takes the subproblems one after the
other, so that a child can replace its parents' neighbours before those are mated. Here all
children are made first, and each subproblem then takes the best of its own member and the children
of its neighbourhood: the result does not depend on an order, and one generation is one program.
The objectives are translated by the ideal point and, as in the paper's first experiments, not
scaled. Constraints: the less violating wins before the scalarisation is asked.

O(H T m) time and O(H T) memory.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.pytree import number, pytree, static
from jaxgpu.ranges import Range, check, refuse

from ..population import Population, sample
from ..problem import Box, Problem
from ..protocol import ask, init, tell
from .lattice import Directions
from .variation import Variation, polynomial_mutation, sbx

SCALARISATIONS = ("boundary", "tchebycheff", "sum")


@pytree
class MOEAD:
    """What to run. Make it with `moead`."""

    w: Array = number(least=0)  # [H, m] weights of the subproblems
    neighbours: Array = number(least=0, whole=True)  # [H, T] nearest weights of each, itself first
    variation: Variation = Variation(eta_crossover=20.0, eta_mutation=20.0, crossover=1.0)
    penalty: Array | float = number(
        default=5.0, least=0, one=True
    )  # [] of the distance to the line
    scalarisation: str = static(default="boundary")


@pytree
class State:
    """Where the run is."""

    population: Population
    ideal: Array  # [m] best value seen of each objective, of feasible members
    box: Box
    generation: Array  # []


def moead(
    directions: Directions,
    neighbourhood: int = 20,
    scalarisation: str = "boundary",
    variation: Variation | None = None,
) -> MOEAD:
    """The spec for a set of directions.

    Args:
        directions: one subproblem each.
        neighbourhood: T, subproblems that mate and share children, itself counted in.
        scalarisation: "boundary" (penalty boundary intersection), "tchebycheff" or "sum".
        variation: operators; the paper's by default.
    """
    check("moead", directions)
    if variation is not None:
        check("moead", variation)
    refuse("moead: neighbourhood", neighbourhood, Range(least=2, whole=True, one=True))
    h = directions.w.shape[0]
    if scalarisation not in SCALARISATIONS:
        raise ValueError(f"moead: scalarisation={scalarisation!r}; it must be in {SCALARISATIONS}")
    if not 2 <= neighbourhood <= h:
        raise ValueError(f"moead: neighbourhood={neighbourhood}; it must be from 2 to {h}")
    w = np.asarray(directions.w)
    near = [
        np.argsort(((w - row) ** 2).sum(1), kind="stable")[:neighbourhood].astype(np.int32)
        for row in w
    ]
    spec = MOEAD(directions.w, jnp.asarray(np.stack(near)), scalarisation=scalarisation)
    return spec if variation is None else _with(spec, variation)


def _with(spec: MOEAD, variation: Variation) -> MOEAD:
    return MOEAD(spec.w, spec.neighbours, variation, spec.penalty, spec.scalarisation)


@init.register
def _(spec: MOEAD, key: Array, problem: Problem) -> State:
    for name, table in (("w", spec.w), ("neighbours", spec.neighbours)):
        if jnp.ndim(table) != 2 or jnp.shape(table)[0] != jnp.shape(spec.w)[0]:
            raise ValueError(
                f"MOEAD: {name} has shape {list(jnp.shape(table))}; make the spec with `moead`"
            )
    h, m = spec.w.shape
    if problem.objectives != m:
        raise ValueError(f"MOEAD: weights of {m} objectives; the problem has {problem.objectives}")
    members = sample(key, problem, h)
    return State(members, jnp.full(m, jnp.inf, members.x.dtype), problem.box, jnp.int32(0))


@ask.register
def _(spec: MOEAD, state: State, key: Array) -> Array:
    """One child of two different random neighbours for each subproblem."""
    k_mates, k_cross, k_mutate = jax.random.split(key, 3)
    h, t = spec.neighbours.shape
    first = jax.random.randint(k_mates, (h,), 0, t)
    step = jax.random.randint(jax.random.fold_in(k_mates, 1), (h,), 1, t)
    row = jnp.arange(h)
    a = state.population.x[spec.neighbours[row, first]]
    b = state.population.x[spec.neighbours[row, (first + step) % t]]
    v = spec.variation
    x, _ = sbx(k_cross, a, b, state.box, v.eta_crossover, v.crossover, v.bounded)
    x = polynomial_mutation(k_mutate, x, state.box, v.eta_mutation, v.mutation / x.shape[1])
    return jnp.where(state.generation == 0, state.population.x, x)


@tell.register
def _(spec: MOEAD, state: State, x: Array, f: Array, violation: Array) -> State:
    feasible = (violation <= 0)[:, None]
    ideal = jnp.minimum(state.ideal, jnp.min(jnp.where(feasible, f, jnp.inf), axis=0))
    origin = jnp.where(jnp.isfinite(ideal), ideal, 0)
    old = state.population
    near = spec.neighbours
    everyone = jnp.concatenate([old.f[:, None], f[near]], axis=1)  # [H, 1 + T, m]
    broken = jnp.concatenate([old.violation[:, None], violation[near]], axis=1)
    value = scalarise(spec, everyone - origin[None, None], spec.w[:, None])
    value = jnp.where(broken <= jnp.min(broken, axis=1, keepdims=True), value, jnp.inf)
    best = jnp.argmin(value, axis=1)
    child = near[jnp.arange(near.shape[0]), jnp.maximum(best - 1, 0)]

    def pick(old: Array, new: Array) -> Array:
        keep = (best == 0).reshape(-1, *[1] * (old.ndim - 1))
        return jnp.where(keep, old, new[child])

    members = jax.tree.map(pick, old, Population(x, f, violation))
    return State(members, ideal, state.box, state.generation + 1)


def scalarise(spec: MOEAD, f: Array, w: Array) -> Array:
    """One value to be minimised for translated objectives f and weights w. [..., m] -> [...]."""
    if spec.scalarisation == "sum":
        return jnp.sum(w * f, axis=-1)
    if spec.scalarisation == "tchebycheff":
        return jnp.max(jnp.maximum(w, 1e-6) * jnp.abs(f), axis=-1)
    unit = w / jnp.sqrt(jnp.sum(w * w, axis=-1, keepdims=True))
    along = jnp.sum(f * unit, axis=-1, keepdims=True)
    off = f - along * unit
    return along[..., 0] + spec.penalty * jnp.sqrt(jnp.sum(off * off, axis=-1))
