"""Objectives that are random and carry a state: noise, episodes, running statistics.

An `Objective` is a spec with three methods, and `Stochastic` is the problem of minimising it over a
box. All candidates of a generation are evaluated with the same key, so that chance favours none
(common random numbers), and from the same state. What each of them saw is handed to `update`
together and in their order, so neither the number of candidates that are evaluated at once nor the
number of devices says what the next state is.
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
from jaxgpu.inputs.doors import explained, on_host
from jaxgpu.inputs.fields import pytree, size, static
from jaxgpu.runs.program import refuse_changed

from .problem import Box, Problem, bounded, floats, sound, traced, valued


class Objective(ABC):
    """What is minimised on average; subclasses are made by `@pytree`, their numbers are leaves.

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
        """The state before the first generation, a pytree of arrays; by default none."""
        return ()

    @abstractmethod
    def evaluate(self, x: Any, key: Array, state: Any) -> tuple[Any, Any, Any]:
        """The values of one candidate, and what it saw.

        Args:
            x: decision vector [D], or the point of a space that it encodes.
            key: of this generation, the same for all its candidates; of this candidate alone where
                `Stochastic.common` is false.
            state: what `init` and `update` returned.
        Returns:
            objectives, [] or [m], to be minimised; the total violation of constraints, at most 0
            where all hold, or None; and a pytree of arrays for `update`.
        """

    def update(self, state: Any, seen: Any) -> Any:
        """The state for the next generation; by default it stays.

        Args:
            state: that of this generation.
            seen: what all candidates saw, leaves [N, ...] in their order.
        """
        del seen
        return state


@pytree
class Drawn(Objective):
    """The objective of a function of a point and a key, without a state.

    >>> noisy = Drawn(lambda x, key: (x - 2.0) ** 2 + 0.1 * jax.random.normal(key))
    >>> from jaxgpu.evolution import Real, minimize
    >>> abs(float(minimize(noisy, Real(-5.0, 5.0), 2000).x) - 2.0) < 0.1
    True
    """

    # of a point and a key, to objectives, or to a pair of them and the total violation
    function: Callable[[Any, Array], Any] = static()

    def evaluate(self, x: Any, key: Array, state: Any) -> tuple[Any, Any, Any]:
        """The values of the function; nothing is seen."""
        out = traced(self.function, x, key)
        f, violation = out if isinstance(out, tuple) and len(out) == 2 else (out, None)
        return f, violation, ()


@pytree
class Stochastic:
    """An objective to be minimised over a box, as `Problem` is a function.

    `evolution.run`, `search` and `minimize` take it where they take a `Problem`.

    >>> noisy = Drawn(lambda x, key: jnp.sum(x * x) + jax.random.normal(key))
    >>> from jaxgpu.evolution import box
    >>> problem = Stochastic(box(-1.0, 1.0, 2), noisy, at_once=2)
    >>> x = jnp.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    >>> f, violation, state = problem.evaluate(x, jax.random.key(0), problem.init())
    >>> print((f - f[:1]).round(3).ravel())  # one draw for all of them
    [0. 1. 2.]
    """

    box: Box
    objective: Any  # an Objective
    objectives: int = size(default=1, least=1)  # m
    # how many candidates are evaluated at once on a device, whose memory that bounds; best a
    # divisor of its share of a generation; None for all
    at_once: int | None = size(default=None, least=1, none=True)
    common: bool = static(default=True)  # one key for all candidates of a generation

    def init(self) -> Any:
        """The first state of the objective."""
        if not isinstance(self.objective, Objective):
            kind = type(self.objective).__name__
            raise TypeError(f"Stochastic: objective is a {kind}; it must be an Objective")
        return jax.tree.map(jnp.asarray, self.objective.init())

    def evaluate(
        self, x: Array, key: Array, state: Any, axis: str | None = None
    ) -> tuple[Array, Array, Any]:
        """Objectives and violations of many decision vectors, and the next state.

        A failed evaluation (a NaN objective or violation) is infinitely bad and infinitely
        violating. A next state with a NaN in it is not taken: the old one stays.

        Args:
            x: [N, D] candidates.
            key: of this generation.
            state: of the objective.
            axis: of a mesh, inside `jax.shard_map`, each of whose devices has all of x, computes a
                share of the values, and is given all of them.
        Returns:
            [N, m], [N] and the state.
        """
        x, d = floats("evaluate: x", x), np.shape(self.box.lower)[-1]
        if x.ndim != 2 or x.shape[1] != d:
            raise ValueError(f"evaluate: x has shape {list(x.shape)}; it must be [N, {d}]")
        arguments.arrays("evaluate: state", state)
        drawn = () if self.common else (jax.random.split(key, x.shape[0]),)

        def one(row: tuple[Array, ...]) -> tuple[Array, Array, Any]:
            return self.outcome(row[0], row[1] if drawn else key, state)

        rows = jax.tree.map(partial(_share, axis), (x, *drawn))
        if self.at_once is None or self.at_once >= rows[0].shape[0]:
            values = jax.vmap(one)(rows)
        else:
            values = lax.map(one, rows, batch_size=self.at_once)
        # what is joined is rounded as on one device, whatever is done with it
        f, violation, seen = jax.tree.map(partial(_joined, axis), lax.optimization_barrier(values))
        after = self.objective.update(state, seen)
        after = jax.tree.map(jnp.asarray, after)
        refuse_changed("objective: update", state, after)
        broken = jnp.any(jnp.stack([jnp.bool_(False), *map(_has_nan, jax.tree.leaves(after))]))
        after = jax.tree.map(lambda old, new: jnp.where(broken, old, new), state, after)
        return *sound(f, violation), after

    def outcome(self, x: Array, key: Array, state: Any) -> tuple[Array, Array, Any]:
        """Objectives [m], violation [] and what was seen, of one decision vector [D].

        Raises:
            TypeError: JAX cannot trace the objective, or what it returns are no real numbers.
            ValueError: what it returns has another shape.
        """
        point = x if self.box.encoding is None else self.box.encoding.read(x)
        out = traced(self.objective.evaluate, point, key, state)
        if not isinstance(out, tuple) or len(out) != 3:
            kind = f"a tuple of {len(out)}" if isinstance(out, tuple) else type(out).__name__
            raise TypeError(
                f"objective: evaluate returns {kind}; it must be (f, violation, seen), with None "
                "and () where there are no constraints and nothing was seen"
            )
        f, violation = valued(out[0], out[1], x.dtype)
        if f.shape[0] != self.objectives:
            raise ValueError(
                f"evaluate: the objective returns {f.shape[0]} objectives; the problem says "
                f"{self.objectives}"
            )
        violation = jnp.zeros((), x.dtype) if violation is None else violation
        return f, violation, jax.tree.map(jnp.asarray, out[2])

    @on_host
    def plain(self) -> Problem:
        """The box and the number of objectives as algorithms are given them; no function to call.

        >>> from jaxgpu.evolution import box, single
        >>> problem = Stochastic(box(-1.0, 1.0, 3), Drawn(lambda x, key: jnp.sum(x)))
        >>> jax.jit(single.CMAES(8).init)(jax.random.key(0), problem.plain()).best.x.shape
        (3,)
        """
        return Problem(self.box, _uncalled, self.objectives)


@explained
@on_host
def stochastic(name: str, problem: Stochastic) -> Stochastic:
    """The problem, its bounds arrays of one float type; refused where it is none.

    Args:
        name: of the function that was called, which begins the sentence.

    >>> from jaxgpu.evolution import box
    >>> stochastic("run", Stochastic(box(-1.0, 1.0, 3), jnp.sum))
    Traceback (most recent call last):
    TypeError: run: Stochastic.objective is a function; it must be an Objective; ...
    """
    if not isinstance(problem.objective, Objective):
        raise TypeError(
            f"{name}: Stochastic.objective is a {type(problem.objective).__name__}; it must be an "
            "Objective; of a function of a point and a key it is evolution.Drawn(function)"
        )
    ranges.check(name, problem)
    within = bounded(name, problem.box)
    return problem if within is problem.box else replace(problem, box=within)


def _uncalled(x: Array) -> Array:
    raise TypeError("plain: this problem has no function; evaluate the Stochastic it was made of")


def _share(axis: str | None, rows: Array) -> Array:
    """Of rows [N, ...] that every device has, those of this one."""
    if axis is None:
        return rows
    count = rows.shape[0] // lax.axis_size(axis)
    return lax.dynamic_slice_in_dim(rows, count * lax.axis_index(axis), count)


def _joined(axis: str | None, rows: Array) -> Array:
    """The rows of all devices, in their order, on each."""
    return rows if axis is None else lax.all_gather(rows, axis, tiled=True)


def _has_nan(leaf: Array) -> Array:
    if not jnp.issubdtype(leaf.dtype, jnp.inexact):
        return jnp.bool_(False)
    return jnp.any(jnp.isnan(leaf))
