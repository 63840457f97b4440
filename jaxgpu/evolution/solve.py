"""Optimise a function in one call."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu.ranges import Range, refuse
from jaxgpu.run import Run, Timing
from jaxgpu.run import run as run_steps

from . import multi, protocol, single, space
from .multi.lattice import das_dennis, layers_for
from .pareto import nondominated
from .problem import Problem


@dataclass(frozen=True)
class Solution:
    """What was found: one point, or with several objectives a front of K different ones."""

    x: Any  # point of the space; each leaf with a leading axis K where there is a front
    f: np.ndarray  # [] objective, or [K, m]
    violation: np.ndarray  # [] or [K] total constraint violation, 0 where feasible
    state: Any  # of the algorithm, at the end
    timing: Timing
    failed: int  # evaluations that gave nan, or an infinite violation

    @property
    def feasible(self) -> bool:
        """Whether all that was found satisfies the constraints."""
        return bool(np.all(self.violation <= 0))


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
            for more, from five on with two layers of directions.
        seed: of all random numbers.
        out: folder of checkpoints.
        resume: go on from the newest checkpoint in `out`.
    Returns:
        Solution; of several objectives the feasible non-dominated members of the population. If
        no feasible point was found, a warning says so, and the least violating are returned.

    Raises:
        ValueError: bounds are reversed or no numbers; every evaluation gave nan or infinity.
        TypeError: JAX cannot trace the function, or it returns no real numbers.

    >>> from jaxgpu.evolution import Real, minimize
    >>> float(minimize(lambda x: (x - 2.0) ** 2, Real(-5.0, 5.0), 400).x.round(3))
    2.0
    """
    refuse("minimize: evaluations", evaluations, Range(least=1, whole=True, one=True))
    refuse("minimize: seed", seed, Range(whole=True, one=True))
    problem = space.problem(function, over)
    spec = _default(problem.objectives, space.dimension(over)) if algorithm is None else algorithm
    key = jax.random.key(seed)
    problem = protocol.checked("minimize", spec, key, problem)
    count = _batch(spec, problem)
    if evaluations < 2 * count:
        raise ValueError(
            f"minimize: evaluations={evaluations}; one generation takes {count}, give at least two"
        )
    generations = int(evaluations) // count
    done = _run(spec, problem, key, generations, out, resume)
    (state, failed), made = done.state, generations * count
    found = _best(problem, state)
    found = found if np.all(found[1] < np.inf) and found[1].size else None
    if found is None:
        raise ValueError(
            f"minimize: none of {made} evaluations gave a finite objective and violation, and "
            f"{int(failed)} gave nan; the function must have values in some part of the space"
        )
    u, f, violation = found
    if not (violation <= 0).all():
        warnings.warn(
            f"minimize: none of {made} evaluations is feasible; the least violating is returned, "
            f"violation={violation.min():g}",
            RuntimeWarning,
            stacklevel=2,
        )
    read = lambda u: space.read(over, u)
    x = read(u) if u.ndim == 1 else jax.vmap(read)(u)
    return Solution(x, f, violation, state, done.timing, int(failed))


def _run(
    spec: Any, problem: Problem, key: jax.Array, generations: int, out: Any, resume: bool
) -> Run:
    """As `protocol.run`, with a count of the failed evaluations beside the state."""
    first, rest = jax.random.split(key)

    def step(state: tuple[Any, jax.Array], key: jax.Array) -> tuple[Any, jax.Array]:
        inner, failed = protocol.counted_step(spec, problem, state[0], key)
        return inner, state[1] + failed

    start = jax.jit(protocol.init)(spec, first, problem), jnp.int32(0)
    return run_steps(step, start, generations, key=rest, out=out, resume=resume)


def _best(problem: Problem, state: Any) -> tuple[jax.Array, np.ndarray, np.ndarray]:
    """The best point [D] of a state, or the front [K, D], with values and violations."""
    if problem.objectives == 1 and hasattr(state, "best"):
        best = state.best
        return best.x, np.asarray(best.f), np.asarray(best.violation)
    members = state.population
    f, violation = np.asarray(members.f), np.asarray(members.violation)
    front = _front(f, violation)
    if problem.box.words is not None and len(front):
        words = np.asarray(jax.vmap(problem.box.words)(members.x[front]))
        front = front[np.sort(np.unique(words, axis=0, return_index=True)[1])]
    return members.x[front], f[front], violation[front]


def _default(objectives: int, dimension: int) -> Any:
    if objectives == 1:
        return single.Restarts(single.default_population(max(dimension, 2)), doublings=5)
    if objectives == 2:
        return multi.NSGA2()
    layers = layers_for(objectives, 120 if objectives < 5 else 160)
    directions = das_dennis(objectives, *layers)
    return multi.NSGA3(directions, population=directions.w.shape[0] // 2 * 2 + 2)


def _batch(spec: Any, problem: Problem) -> int:
    def first(key: jax.Array) -> jax.Array:
        return protocol.ask(spec, protocol.init(spec, key, problem), key)

    return jax.eval_shape(first, jax.random.key(0)).shape[0]


def _front(f: np.ndarray, violation: np.ndarray) -> np.ndarray:
    """Indices of the least violating, non-dominated members that have values."""
    known = (f < np.inf).all(1) & np.isfinite(violation)
    return np.flatnonzero(known & np.asarray(nondominated(jnp.asarray(f), jnp.asarray(violation))))
