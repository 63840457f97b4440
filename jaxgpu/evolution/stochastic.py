"""Random objectives with a state: noise, episodes, running statistics.

An `Objective` is a spec with three methods, and `NoisyProblem` is the problem of minimising it
over a box. All candidates of a generation are evaluated with the same key (common random numbers),
so chance favours none, and from the same state. Their observations are passed to `update` together
and in order, so the next state does not depend on the number of candidates evaluated in one batch
nor on the number of devices.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.inputs import arguments, ranges
from jaxgpu.inputs.explanations import explain_errors, on_host
from jaxgpu.inputs.fields import pytree, size, static
from jaxgpu.runs.program import refuse_changed

from .problem import Box, Problem, as_floats, call_objective, check_box, check_outcome, replace_nan


class Objective(ABC):
    """An objective to minimise on average. Subclasses use `@pytree`, so their numbers are leaves.

    >>> @pytree
    ... class Scaled(Objective):
    ...     '''Noisy values over the mean of all that were seen before.'''
    ...     def init(self):
    ...         return {"count": jnp.float32(1), "sum": jnp.float32(1)}
    ...     def evaluate(self, x, key, state):
    ...         f = jnp.sum(x * x) * jnp.exp(0.1 * jax.random.normal(key))
    ...         return f * state["count"] / state["sum"], None, f
    ...     def update(self, state, seen):
    ...         return {"count": state["count"] + seen.size, "sum": state["sum"] + jnp.sum(seen)}
    >>> from jaxgpu.evolution import Real, minimize
    >>> found = minimize(Scaled(), Real(jnp.full(2, -3.0), 3.0), 600)
    >>> int(found.objective["count"]) >= 500, bool(jnp.max(jnp.abs(found.x)) < 0.3)
    (True, True)
    """

    def init(self) -> Any:
        """Return the state before the first generation, a pytree of arrays; empty by default."""
        return ()

    @abstractmethod
    def evaluate(self, x: Any, key: Array, state: Any) -> tuple[Any, Any, Any]:
        """Return the values of one candidate, and an observation for `update`.

        Args:
            x: decision vector [D], or the point of a space that it encodes.
            key: key of the generation, the same for all its candidates; a key of this candidate
                only if `NoisyProblem.common` is false.
            state: output of `init` or `update`.
        Returns:
            The objectives, [] or [m], to minimise; the total constraint violation (at most 0 if all
            constraints hold) or None; and the observation, a pytree of arrays.
        """

    def update(self, state: Any, seen: Any) -> Any:
        """Return the state for the next generation; unchanged by default.

        Args:
            state: state of this generation.
            seen: observations of all candidates in order, leaves [N, ...].
        """
        del seen
        return state


@pytree
class NoisyFunction(Objective):
    """An objective given by a function of a point and a key, without a state.

    >>> noisy = NoisyFunction(lambda x, key: (x - 2.0) ** 2 + 0.1 * jax.random.normal(key))
    >>> from jaxgpu.evolution import Real, minimize
    >>> abs(float(minimize(noisy, Real(-5.0, 5.0), 2000).x) - 2.0) < 0.1
    True
    """

    # maps a point and a key to the objectives, or to a pair of them and the total violation
    function: Callable[[Any, Array], Any] = static()

    def evaluate(self, x: Any, key: Array, state: Any) -> tuple[Any, Any, Any]:
        """Return the values of the function; there is no observation."""
        out = call_objective(self.function, x, key)
        f, violation = out if isinstance(out, tuple) and len(out) == 2 else (out, None)
        return f, violation, ()


@pytree
class NoisyProblem:
    """An objective to minimise over a box, the random counterpart of `Problem`.

    `evolution.run`, `search` and `minimize` take it where they take a `Problem`.

    >>> noisy = NoisyFunction(lambda x, key: jnp.sum(x * x) + jax.random.normal(key))
    >>> from jaxgpu.evolution import box
    >>> problem = NoisyProblem(box(-1.0, 1.0, 2), noisy, at_once=2)
    >>> x = jnp.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    >>> f, violation, state = problem.evaluate(x, jax.random.key(0), problem.init())
    >>> print((f - f[:1]).round(3).ravel())  # the same noise for all candidates
    [0. 1. 2.]
    """

    box: Box
    objective: Any  # an Objective
    objectives: int = size(default=1, least=1)  # m, their number
    # number of candidates evaluated per batch on a device, which limits memory; preferably a
    # divisor of the device's share of a generation; None for all
    at_once: int | None = size(default=None, least=1, none=True)
    common: bool = static(default=True)  # one key for all candidates of a generation

    def init(self) -> Any:
        """Return the first state of the objective."""
        if not isinstance(self.objective, Objective):
            kind = type(self.objective).__name__
            raise TypeError(f"NoisyProblem: objective is a {kind}; it must be an Objective")
        return jax.tree.map(jnp.asarray, self.objective.init())

    def evaluate(
        self, x: Array, key: Array, state: Any, axis: str | None = None
    ) -> tuple[Array, Array, Any]:
        """Return objectives and violations of many decision vectors, and the next state.

        A failed evaluation (a NaN objective or violation) gets infinite objectives and violation. A
        next state that contains NaN is discarded and the old one is kept.

        Args:
            x: [N, D] candidates.
            key: key of this generation.
            state: state of the objective.
            axis: mesh axis, inside `jax.shard_map`. Each device has all of x, computes a share of
                the values, and receives all of them.
        Returns:
            [N, m], [N] and the state.
        """
        x, d = as_floats("evaluate: x", x), np.shape(self.box.lower)[-1]
        if x.ndim != 2 or x.shape[1] != d:
            raise ValueError(f"evaluate: x has shape {list(x.shape)}; it must be [N, {d}]")
        arguments.arrays("evaluate: state", state)
        drawn = () if self.common else (jax.random.split(key, x.shape[0]),)

        def evaluate_row(row: tuple[Array, ...]) -> tuple[Array, Array, Any]:
            return self.outcome(row[0], row[1] if drawn else key, state)

        rows = jax.tree.map(partial(_local_rows, axis), (x, *drawn))
        if self.at_once is None or self.at_once >= rows[0].shape[0]:
            values = jax.vmap(evaluate_row)(rows)
        else:
            values = lax.map(evaluate_row, rows, batch_size=self.at_once)
        # the barrier makes the rounding of the gathered values the same as on one device
        f, violation, seen = jax.tree.map(
            partial(_gather_rows, axis), lax.optimization_barrier(values)
        )
        after = self.objective.update(state, seen)
        after = jax.tree.map(jnp.asarray, after)
        refuse_changed("objective: update", state, after)
        broken = jnp.any(jnp.stack([jnp.bool_(False), *map(_has_nan, jax.tree.leaves(after))]))
        after = jax.tree.map(lambda old, new: jnp.where(broken, old, new), state, after)
        return *replace_nan(f, violation), after

    def outcome(self, x: Array, key: Array, state: Any) -> tuple[Array, Array, Any]:
        """Return objectives [m], violation [] and observation of one decision vector [D].

        Raises:
            TypeError: JAX cannot trace the objective, or it does not return real numbers.
            ValueError: its output has the wrong shape.
        """
        point = x if self.box.encoding is None else self.box.encoding.decode(x)
        out = call_objective(self.objective.evaluate, point, key, state)
        if not isinstance(out, tuple) or len(out) != 3:
            kind = f"a tuple of {len(out)}" if isinstance(out, tuple) else type(out).__name__
            raise TypeError(
                f"objective: evaluate returns {kind}; it must be (f, violation, seen), with None "
                "and () if there are no constraints and no observation"
            )
        f, violation = check_outcome(out[0], out[1], x.dtype)
        if f.shape[0] != self.objectives:
            raise ValueError(
                f"evaluate: the objective returns {f.shape[0]} objectives; the problem declares "
                f"{self.objectives}"
            )
        violation = jnp.zeros((), x.dtype) if violation is None else violation
        return f, violation, jax.tree.map(jnp.asarray, out[2])

    @on_host
    def to_problem(self) -> Problem:
        """Return a problem with the box and the number of objectives, without a callable function.

        >>> from jaxgpu.evolution import box, single
        >>> problem = NoisyProblem(box(-1.0, 1.0, 3), NoisyFunction(lambda x, key: jnp.sum(x)))
        >>> jax.jit(single.CMAES(8).init)(jax.random.key(0), problem.to_problem()).best.x.shape
        (3,)
        """
        return Problem(self.box, _raise_if_called, self.objectives)


type AnyProblem = Problem | NoisyProblem


@explain_errors
@on_host
def check_stochastic(name: str, problem: NoisyProblem) -> NoisyProblem:
    """Check a `NoisyProblem` problem and return it with bounds of one float type.

    Args:
        name: name of the called function, with which error messages begin.

    >>> from jaxgpu.evolution import box
    >>> check_stochastic("run", NoisyProblem(box(-1.0, 1.0, 3), jnp.sum))
    Traceback (most recent call last):
    TypeError: run: NoisyProblem.objective is a function; it must be an Objective; ...
    """
    if not isinstance(problem.objective, Objective):
        raise TypeError(
            f"{name}: NoisyProblem.objective is a {type(problem.objective).__name__}; it must be "
            "an Objective; wrap a function of a point and a key in "
            "evolution.NoisyFunction(function)"
        )
    ranges.check(name, problem)
    within = check_box(name, problem.box)
    return problem if within is problem.box else replace(problem, box=within)


def _raise_if_called(x: Array) -> Array:
    raise TypeError("plain: this problem has no function; evaluate its Stochastic instead")


def _local_rows(axis: str | None, rows: Array) -> Array:
    """Return this device's rows of the rows [N, ...], which every device has."""
    if axis is None:
        return rows
    count = rows.shape[0] // lax.axis_size(axis)
    return lax.dynamic_slice_in_dim(rows, count * lax.axis_index(axis), count)


def _gather_rows(axis: str | None, rows: Array) -> Array:
    """Gather the rows of all devices, in order, on each device."""
    return rows if axis is None else lax.all_gather(rows, axis, tiled=True)


def _has_nan(leaf: Array) -> Array:
    if not jnp.issubdtype(leaf.dtype, jnp.inexact):
        return jnp.bool_(False)
    return jnp.any(jnp.isnan(leaf))
