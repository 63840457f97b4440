"""Optimise a function in one call."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu.evolution import multi, single, space
from jaxgpu.evolution.lattice import das_dennis, divisions_for
from jaxgpu.evolution.pareto import nondominated
from jaxgpu.evolution.protocol import ask, init, run
from jaxgpu.run import Timing


@dataclass(frozen=True)
class Solution:
    """What was found: one point, or with several objectives a front of K of them."""

    x: Any  # point of the space; each leaf with a leading axis K where there is a front
    f: np.ndarray  # [] objective, or [K, m]
    violation: np.ndarray  # [] or [K] total constraint violation, 0 where feasible
    state: Any  # of the algorithm, at the end
    timing: Timing


def minimize(
    function: Any,
    over: Any,
    evaluations: int = 20_000,
    *,
    algorithm: Any = None,
    seed: int = 0,
    out: str | Path | None = None,
    resume: bool = False,
) -> Solution:
    """Find the point of a space with the least objective, or the front of several objectives.

    Args:
        function: of one point of the space, traceable by JAX, to a scalar, to objectives [m], or
            to a pair of one of these and the total constraint violation (at most 0 if feasible).
        over: pytree of variables (`space.Real`, `Integer`, `Categorical`, `Boolean`,
            `Permutation`).
        evaluations: how many calls of the function at most.
        algorithm: spec; by default BIPOP-CMA-ES for one objective, NSGA-II for two and NSGA-III
            for more.
        seed: of all random numbers.
        out: folder of checkpoints.
        resume: go on from the newest checkpoint in `out`.
    Returns:
        Solution; of several objectives the feasible non-dominated members of the population.

    >>> from jaxgpu.evolution import Real, minimize
    >>> float(minimize(lambda x: (x - 2.0) ** 2, Real(-5.0, 5.0), 400).x.round(3))
    2.0
    """
    problem = space.problem(function, over)
    spec = _default(problem.objectives, space.dimension(over)) if algorithm is None else algorithm
    count = _batch(spec, problem)
    if evaluations < 2 * count:
        raise ValueError(
            f"minimize: evaluations={evaluations}; one generation takes {count}, give at least two"
        )
    generations = evaluations // count
    key = jax.random.key(seed)
    done = run(spec, problem, key, generations, out=out, resume=resume)
    if problem.objectives == 1 and hasattr(done.state, "best"):
        best = done.state.best
        u, f, violation = best.x, np.asarray(best.f), np.asarray(best.violation)
        return Solution(space.read(over, u), f, violation, done.state, done.timing)
    members = done.state.population
    front = _front(np.asarray(members.f), np.asarray(members.violation))
    x = jax.vmap(lambda u: space.read(over, u))(members.x[front])
    f, violation = np.asarray(members.f)[front], np.asarray(members.violation)[front]
    return Solution(x, f, violation, done.state, done.timing)


def _default(objectives: int, dimension: int) -> Any:
    if objectives == 1:
        return single.Restarts(single.default_population(max(dimension, 2)), doublings=5)
    if objectives == 2:
        return multi.NSGA2()
    directions = das_dennis(objectives, divisions_for(objectives, 120))
    return multi.NSGA3(directions, population=directions.w.shape[0] // 2 * 2 + 2)


def _batch(spec: Any, problem: Any) -> int:
    def first(key: Any) -> Any:
        return ask(spec, init(spec, key, problem), key)

    return jax.eval_shape(first, jax.random.key(0)).shape[0]


def _front(f: np.ndarray, violation: np.ndarray) -> np.ndarray:
    """Indices of the least violating, non-dominated members that have values."""
    known = np.isfinite(f).all(1) & np.isfinite(violation)
    return np.flatnonzero(known & np.asarray(nondominated(jnp.asarray(f), jnp.asarray(violation))))
