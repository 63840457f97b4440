"""`minimize`: optimise a function in one call."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from jaxgpu.inputs.explanations import explain_errors, on_host
from jaxgpu.inputs.ranges import Range, refuse
from jaxgpu.runs import Keep, Resume
from jaxgpu.runs.equal_functions import find_equal

from . import multi, protocol, single
from . import space as spaces
from .multi import das_dennis, layers_for
from .pareto import is_non_dominated
from .problem import Box, Problem
from .protocol import Algorithm, Evolution
from .stochastic import NoisyProblem, Objective

_SHOWN, _WIDTH = 9, 60  # maximum number of variables in a summary, and of characters of each


@dataclass(frozen=True, repr=False)
class Solution[S](Evolution[S]):
    """Result of `minimize`: one point, or with several objectives a front of K distinct points."""

    x: Any  # point of the space, NumPy; each leaf has a leading axis K for a front
    f: np.ndarray  # [] objective, or [K, m]
    violation: np.ndarray  # [] or [K] total constraint violation, 0 where feasible

    @property
    def feasible(self) -> bool:
        """True if all returned points satisfy the constraints."""
        return bool(np.all(self.violation <= 0))

    def summary(self) -> list[str]:
        """Return the lines of the summary: the best point or the front's extent, and the timing."""
        t, worst = self.timing, float(np.max(self.violation))
        feasible = "feasible" if self.feasible else f"violation up to {worst:.6g}"
        lines = [f"Solution: {_describe_objectives(self.f)}, {feasible}"]
        leaves = jax.tree.leaves_with_path(self.x)
        for at, leaf in leaves[:_SHOWN]:
            name = f"x{jax.tree_util.keystr(at)}"[:_WIDTH]
            lines.append(f"  {name}: {_format_leaf(leaf)}")
        if len(leaves) > _SHOWN:
            lines.append(f"  and {len(leaves) - _SHOWN} more")
        lines.append(f"  {type(self.state).__module__.rpartition('.')[2]}: {t.steps} generations")
        lines.append(f"  in {t.run:.3g} s, compiled in {t.compile:.2g} s")
        return lines + ([f"  {self.failed} evaluations failed"] if self.failed else [])


def _describe_objectives(f: np.ndarray) -> str:
    if f.ndim == 0:
        return f"f = {f:.6g}"
    ends = ", ".join(f"{low:.4g} to {high:.4g}" for low, high in zip(f.min(0)[:4], f.max(0)[:4]))
    return f"a front of {len(f)} points, f from {ends}"


def _format_leaf(leaf: np.ndarray) -> str:
    if leaf.size > 8:
        return f"{leaf.dtype}{list(leaf.shape)}, from {leaf.min():.6g} to {leaf.max():.6g}"
    return " ".join(np.array2string(leaf, precision=6).split())[:_WIDTH]


@explain_errors
@on_host
def minimize(
    function: Callable[[Any], Any] | Objective,
    space: Any,
    evaluations: int = 20_000,
    *,
    algorithm: Algorithm | None = None,
    seed: int = 0,
    at_once: int | None = None,
    until: Callable[[Any], Any] | None = None,
    measure: Callable[[Any], Any] | None = None,
    mesh: Mesh | None = None,
    out: str | Path | None = None,
    resume: Resume = False,
    keep: Keep = None,
) -> Solution:
    """Minimise a function over a space; return the best point, or the front of several objectives.

    A second call with the same function and shapes reuses the compiled program for any bounds, seed
    and values of the algorithm, which are operands of it.

    Args:
        function: maps one point of the space, traceable by JAX, to a scalar, to objectives [m], or
            to a pair of one of these and the total constraint violation (at most 0 if feasible).
            Alternatively an `Objective`, which may draw random numbers and carry a state; the
            returned values are then its random samples, the luckiest of a run.
        space: pytree of variables (`Real`, `Integer`, `Categorical`, `Boolean`, `Permutation`).
        evaluations: maximum number of function evaluations.
        algorithm: spec; by default BIPOP-CMA-ES for one objective, NSGA-II for two and NSGA-III for
            more, from five on with two layers of directions.
        seed: seed of all random numbers.
        at_once: number of candidates of an `Objective` evaluated per batch on a device, which
            limits memory; all by default.
        until: maps the state of the algorithm to a bool on the device; the search ends when it is
            true.
        measure: maps the state of the algorithm to the value recorded at the start and after each
            generation; by default the best objective and violation (`protocol.progress`).
        mesh: devices that evaluate a share of each generation; their number must divide that of the
            candidates (`protocol.run`).
        out: folder of checkpoints.
        resume: resume from the newest checkpoint in `out`: True, names of values that may differ,
            or a `Branch`, as in `jaxgpu.runs.run`.
        keep: checkpoints to retain, counted in generations, as in `jaxgpu.runs.run`.
    Returns:
        Solution; for several objectives the feasible non-dominated members of the population. If no
        feasible point was found, it warns and returns the least violating points.

    Raises:
        ValueError: bounds are reversed or not numbers; every evaluation gave nan or infinity; the
            mesh does not divide a generation.
        TypeError: JAX cannot trace the function, or it does not return real numbers; `mesh` is not
            a mesh.

    >>> from jaxgpu.evolution import Real, minimize
    >>> float(minimize(lambda x: (x - 2.0) ** 2, Real(-5.0, 5.0), 400).x.round(3))
    2.0
    """
    refuse("minimize: evaluations", evaluations, Range(least=1, whole=True, one=True))
    refuse("minimize: seed", seed, Range(whole=True, one=True))
    refuse("minimize: at_once", at_once, Range(least=1, whole=True, one=True, none=True))
    problem = spaces.problem(find_equal(function), space, at_once)
    spec = _default_algorithm(problem) if algorithm is None else algorithm
    key = jax.random.key(seed)
    problem = protocol.check_inputs("minimize", spec, key, problem)
    mesh = protocol.check_mesh_size("minimize", spec, mesh)
    count = spec.batch_size
    if evaluations < 2 * count:
        raise ValueError(
            f"minimize: evaluations={evaluations}; one generation takes {count}; give at least two"
        )
    done = protocol.run(
        spec,
        problem,
        key,
        int(evaluations) // count,
        measure=measure,
        until=until,
        mesh=mesh,
        out=out,
        resume=resume,
        keep=keep,
    )
    x, f, violation = _best_points(problem, done.state)
    if not f.size or not np.all(f < np.inf):
        made = done.timing.steps * count
        raise ValueError(
            f"minimize: none of {made} evaluations gave a finite objective and violation, and "
            f"{done.failed} gave nan; the function must be finite in some part of the space"
        )
    if not (violation <= 0).all():
        made = done.timing.steps * count
        warnings.warn(
            f"minimize: none of {made} evaluations is feasible; the point of least violation is "
            f"returned, violation={violation.min():g}",
            RuntimeWarning,
            stacklevel=2,
        )
    return Solution(
        state=done.state,
        history=done.history,
        timing=done.timing,
        failed=done.failed,
        objective=done.objective,
        x=x,
        f=f,
        violation=violation,
    )


def _best_points(problem: Problem | NoisyProblem, state: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return the best point of a state, or the front of K points, with values and violations."""
    if problem.objectives == 1 and hasattr(state, "best"):
        best = state.best
        x = jax.tree.map(lambda leaf: leaf[0], _decode_on_host(problem.box, best.x[None])[0])
        return x, np.asarray(best.f), np.asarray(best.violation)
    members = state.population
    x, words = _decode_on_host(problem.box, members.x)
    f, violation = np.asarray(members.f), np.asarray(members.violation)
    known = (f < np.inf).all(1) & np.isfinite(violation)
    front = np.flatnonzero(known & np.asarray(_nondominated(members.f, members.violation)))
    # keep one member per distinct point of the space
    front = front[np.sort(np.unique(words[front], axis=0, return_index=True)[1])]
    return jax.tree.map(lambda leaf: leaf[front], x), f[front], violation[front]


def _decode_on_host(box: Box, x: jax.Array) -> tuple[Any, np.ndarray]:
    """Return the points that decision vectors [N, D] encode, and their words, on the host."""
    return jax.device_get(_decode_points(box.encoding, x))


# jitted for their caches, so a second call compiles nothing
_nondominated = jax.jit(is_non_dominated)


@jax.jit
def _decode_points(encoding: spaces.Encoding, x: jax.Array) -> tuple[Any, jax.Array]:
    return jax.vmap(encoding.decode)(x), jax.vmap(encoding.identifier)(x)


def _default_algorithm(problem: Problem | NoisyProblem) -> Algorithm:
    m, d = problem.objectives, problem.box.lower.shape[0]
    if m == 1:
        return single.Restarts(single.default_pop_size(max(d, 2)), doublings=5)
    if m == 2:
        return multi.NSGA2()
    ref_dirs = das_dennis(m, *layers_for(m, 120 if m < 5 else 160))
    return multi.NSGA3(ref_dirs, ref_dirs.w.shape[0] // 2 * 2 + 2)
