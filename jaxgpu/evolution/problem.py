"""Optimisation problems: a box of decision vectors and a function to minimise."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs import ranges
from jaxgpu.inputs.calls import defer_check
from jaxgpu.inputs.explanations import explain_errors
from jaxgpu.inputs.fields import number, pytree, size, static
from jaxgpu.inputs.type_hints import check_arity

_UNTRACEABLE = (
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.ConcretizationTypeError,
)


@pytree
class Box:
    """Bounds of the decision vectors, in their own units; leaves, so that they can be mapped."""

    lower: Array = number()  # [D] lower bounds
    upper: Array = number()  # [D] upper bounds, not below `lower`
    # `space.Encoding` of the vectors; None if a vector is itself the point
    encoding: Any = None


@pytree
class Problem:
    """A function to minimise over a box.

    `function` maps one decision vector [D], or the point that it encodes, to its objectives [m], or
    to a pair of them and the total constraint violation, a scalar that is at most 0 if all
    constraints hold.
    """

    box: Box
    # maps one point [D] to objectives, or to (objectives, violation)
    function: Callable[[Any], Any] = static()
    objectives: int = size(default=1, least=1)  # m, their number

    def evaluate(self, x: Array) -> tuple[Array, Array]:
        """Return objectives and violations of many decision vectors. [N, D] -> [N, m], [N].

        A failed evaluation (a NaN objective or violation) gets infinite objectives and violation,
        so it never wins, and no NaN enters a population.

        >>> sphere = Problem(box(-1.0, 1.0, 2), lambda x: jnp.sum(x * x, keepdims=True))
        >>> print(sphere.evaluate(jnp.array([[1.0, 1.0], [jnp.nan, 0.0]]))[0].ravel())
        [ 2. inf]
        """
        x, d = as_floats("evaluate: x", x), np.shape(self.box.lower)[-1]
        if x.ndim != 2 or x.shape[1] != d:
            raise ValueError(f"evaluate: x has shape {list(x.shape)}; it must be [N, {d}]")
        encoding = self.box.encoding
        if encoding is not None and not callable(getattr(encoding, "decode", None)):
            kind = type(encoding).__name__
            raise TypeError(f"evaluate: box.encoding is a {kind}; it must be a space's, or None")

        def evaluate_row(x: Array) -> tuple[Array, Array]:
            f, violation = self.outcome(x)
            return f, jnp.zeros((), x.dtype) if violation is None else violation

        f, violation = jax.vmap(evaluate_row)(x)
        if f.shape[1] != self.objectives:
            raise ValueError(
                f"evaluate: the function returns {f.shape[1]} objectives; the problem declares "
                f"{self.objectives}"
            )
        return replace_nan(f, violation)

    def outcome(self, x: Array) -> tuple[Array, Any]:
        """Return objectives [m] and the violation [], or None, of one decision vector [D]."""
        point = x if self.box.encoding is None else self.box.encoding.decode(x)
        return outcome(self.function, point, x.dtype)


@explain_errors
def box(lower: float, upper: float, count: int, dtype: Any = None) -> Box:
    """Return a box with the same bounds for `count` variables, in the default float type.

    >>> box(0.0, 1.0, 3).upper.shape
    (3,)
    """
    ranges.refuse("box: count", count, ranges.Range(least=1, whole=True, one=True))
    dtype = jnp.zeros(0).dtype if dtype is None else dtype
    made = Box(jnp.full(count, lower, dtype), jnp.full(count, upper, dtype))
    return check_box("box", made)


def check_problem(name: str, problem: Problem) -> Problem:
    """Check a problem and return it with bounds of one float type.

    Values are compared with their ranges if they are known, on the host; shapes always.

    Args:
        name: name of the called function, with which error messages begin.
    """
    if not isinstance(problem, Problem):
        raise TypeError(
            f"{name}: problem={_describe_type(problem)}; it must be a Problem, as `problem` returns"
        )
    if not callable(problem.function):
        found = _describe_type(problem.function)
        raise TypeError(f"{name}: Problem.function={found}; it must be a function of a vector [D]")
    ranges.check(name, problem)
    within = check_box(name, problem.box)
    return problem if within is problem.box else dataclasses.replace(problem, box=within)


def check_box(name: str, box: Box) -> Box:
    """Check a box and return it with bounds [D] of one float type."""
    ranges.check(name, box)
    lower, upper = (jnp.asarray(bound) for bound in (box.lower, box.upper))
    if lower.shape != upper.shape or lower.ndim != 1 or lower.shape[0] < 1:
        raise ValueError(
            f"{name}: Box.lower has shape {list(lower.shape)}, Box.upper {list(upper.shape)}; both "
            "must be [D], with at least one variable"
        )
    dtype = widest_float(lower, upper)
    defer_check(
        lambda low, high: check_order(f"{name}: Box", low, high, dtype), box.lower, box.upper
    )
    if lower.dtype == upper.dtype == dtype and lower is box.lower and upper is box.upper:
        return box
    return Box(lower.astype(dtype), upper.astype(dtype), box.encoding)


def check_order(name: str, lower: Any, upper: Any, dtype: Any) -> None:
    """Raise if bounds are reversed, or if their distance is not finite in the given dtype."""
    with np.errstate(over="ignore"):
        low, high = (np.asarray(bound).astype(dtype) for bound in (lower, upper))
        low, high = np.broadcast_arrays(low, high)
        wrong, wide = low > high, ~np.isfinite(high - low)
    if wrong.any():
        at = tuple(np.argwhere(wrong)[0])
        raise ValueError(
            f"{name}: lower={low[at]:g}, upper={high[at]:g}{_format_index(at)}; lower must "
            "not be above upper"
        )
    if wide.any():
        at = tuple(np.argwhere(wide)[0])
        raise ValueError(
            f"{name}: lower={low[at]:g}, upper={high[at]:g}{_format_index(at)}; their "
            f"distance must be a finite {np.dtype(dtype).name}"
        )


def _format_index(at: tuple[int, ...]) -> str:
    return f" at {[int(i) for i in at]}" if at else ""


def replace_nan(f: Array, violation: Array) -> tuple[Array, Array]:
    """Return values [N, m] and violations [N] with infinity in both where either has a NaN."""
    broken = jnp.any(jnp.isnan(f), axis=1) | jnp.isnan(violation)
    violation = jnp.where(broken, jnp.inf, jnp.maximum(violation, 0))
    return jnp.where(broken[:, None], jnp.inf, f), violation


def outcome(function: Callable[[Any], Any], x: Any, dtype: Any = None) -> tuple[Array, Any]:
    """Return objectives [m] and the violation [], or None, of one point, in the float type of x.

    Raises:
        TypeError: JAX cannot trace the function, or it does not return real numbers.
        ValueError: its output has the wrong shape.
    """
    dtype = x.dtype if dtype is None else dtype
    out = call_objective(function, x)
    if isinstance(out, tuple) and len(out) != 2:
        raise TypeError(
            f"objective: it returns a tuple of {len(out)}; it must be f or (f, violation), with "
            "several objectives in one array, jnp.stack([f1, f2, f3])"
        )
    f, violation = out if isinstance(out, tuple) else (out, None)
    return check_outcome(f, violation, dtype)


def call_objective(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a user's objective; raise an explained error if JAX cannot trace or call it."""
    check_arity("objective", function, *arguments)
    try:
        return function(*arguments)
    except _UNTRACEABLE as error:
        raise TypeError(
            f"objective: JAX cannot trace it ({type(error).__name__}); write it with jax.numpy, "
            "and jnp.where for if, or evaluate it on the host between ask and tell"
        ) from error


def check_outcome(f: Any, violation: Any, dtype: Any) -> tuple[Array, Any]:
    """Return objectives [m] and the violation [], or None, as arrays of a float type."""
    f = jnp.atleast_1d(as_floats("objective: f", f)).astype(dtype)
    if f.ndim != 1 or f.shape[0] < 1:
        raise ValueError(
            f"objective: f has shape {list(f.shape)}; it must be a scalar or [objectives]"
        )
    if violation is None:
        return f, None
    violation = as_floats("objective: violation", violation).astype(dtype)
    if violation.shape != ():
        raise ValueError(
            f"objective: violation has shape {list(violation.shape)}; it must be one number, the "
            "total, jnp.sum(jnp.maximum(g, 0)) of constraints g <= 0"
        )
    return f, violation


def widest_float(*arrays: Array) -> Any:
    """Return the widest float type of the arrays; the default one if none holds floats."""
    kinds = [a.dtype for a in arrays if jnp.issubdtype(a.dtype, jnp.floating)]
    return max(kinds, key=lambda kind: kind.itemsize) if kinds else jnp.zeros(0).dtype


def check_integers(name: str, **values: Any) -> None:
    """Raise if one of the sizes of a problem is not an integer."""
    for which, value in values.items():
        ranges.refuse(f"{name}: {which}", value, ranges.Range(whole=True, one=True))


def as_floats(name: str, value: Any) -> Array:
    """Convert the value to an array of floats; raise if it does not hold real numbers."""
    try:
        a = None if value is None else jnp.asarray(value)
    except (TypeError, ValueError):
        a = None
    if a is None or jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
        raise TypeError(
            f"{name} is {_describe_type(value)}; it must be a number or an array of numbers"
        )
    if jnp.issubdtype(a.dtype, jnp.complexfloating):
        raise TypeError(f"{name} is of type {a.dtype}; it must be real: take jnp.real or jnp.abs")
    return a if jnp.issubdtype(a.dtype, jnp.floating) else a.astype(jnp.zeros(0).dtype)


def _describe_type(value: Any) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"
