"""DTLZ1-7 for any number of objectives, with convex, inverted and constrained variants.

Deb, Thiele, Laumanns & Zitzler (2005), doi:10.1007/1-84628-137-7_6; convex DTLZ2 and constrained
C1-DTLZ1, C1-DTLZ3, C2-DTLZ2, C3-DTLZ1, C3-DTLZ4: Deb & Jain (2014), Jain & Deb (2014),
doi:10.1109/TEVC.2013.2281535, doi:10.1109/TEVC.2013.2281534; inverted DTLZ1 from the latter, and
DTLZ2 in the same way; scaled variants from the former.
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs import ranges
from jaxgpu.inputs.explanations import explain_errors, on_host

from ..problem import Problem, box, check_integers
from .front_shapes import sphere, triangle


@explain_errors
def dtlz1(objectives: int = 3, variables: int | None = None) -> Problem:
    """Return DTLZ1: a linear front sum f = 1/2 behind 11^k - 1 local ones; k = 5 by default.

    >>> float(dtlz1().function(jnp.full(7, 0.5)).sum())
    0.5
    """
    return _problem(_dtlz1_function(objectives), objectives, variables, 5)


@explain_errors
def dtlz2(objectives: int = 3, variables: int | None = None) -> Problem:
    """Return DTLZ2, whose front is the unit sphere."""
    return _problem(_spherical_function(objectives, _squared_distance), objectives, variables, 10)


@explain_errors
def dtlz3(objectives: int = 3, variables: int | None = None) -> Problem:
    """Return DTLZ3: the unit sphere behind 3^k - 1 local fronts.

    >>> dtlz3().evaluate(jnp.full((1, 12), 0.5))[0].round(3)  # on the front
    Array([[0.5  , 0.5  , 0.707]], dtype=float32)
    """
    return _problem(_spherical_function(objectives, _rastrigin_distance), objectives, variables, 10)


@explain_errors
def dtlz4(objectives: int = 3, variables: int | None = None) -> Problem:
    """Return DTLZ4: the unit sphere, with most of the box mapped to its edges.

    >>> dtlz4().evaluate(jnp.full((1, 12), 0.5))[0].round(3)
    Array([[1., 0., 0.]], dtype=float32)
    """
    return _problem(
        _spherical_function(objectives, _squared_distance, 100), objectives, variables, 10
    )


@explain_errors
def dtlz5(objectives: int = 3, variables: int | None = None) -> Problem:
    """Return DTLZ5: a curve on the unit sphere (for m = 3; for more the front is not degenerate).

    >>> dtlz5().evaluate(jnp.full((1, 12), 0.5))[0].round(3)
    Array([[0.5  , 0.5  , 0.707]], dtype=float32)
    """
    return _problem(_degenerate_function(objectives, _squared_distance), objectives, variables, 10)


@explain_errors
def dtlz6(objectives: int = 3, variables: int | None = None) -> Problem:
    """Return DTLZ6: the curve of DTLZ5, hard to converge to: g = sum x^0.1.

    >>> dtlz6().evaluate(jnp.full((1, 12), 0.5).at[:, 2:].set(0.0))[0].round(3)
    Array([[0.5  , 0.5  , 0.707]], dtype=float32)
    """
    return _problem(
        _degenerate_function(objectives, lambda z: jnp.sum(z**0.1)), objectives, variables, 10
    )


@explain_errors
def dtlz7(objectives: int = 3, variables: int | None = None) -> Problem:
    """Return DTLZ7: a front of 2^(m-1) disconnected regions.

    >>> dtlz7().evaluate(jnp.zeros((1, 22)))[0].round(3)
    Array([[0.       , 0.       , 6.0000005]], dtype=float32)
    """

    def function(x: Array) -> Array:
        y, z = x[: objectives - 1], x[objectives - 1 :]
        g = 1 + 9 * jnp.mean(z)
        h = objectives - jnp.sum(y / (1 + g) * (1 + jnp.sin(3 * jnp.pi * y)))
        return jnp.append(y, (1 + g) * h)

    return _problem(function, objectives, variables, 20)


@explain_errors
def convex_dtlz2(objectives: int = 3, variables: int | None = None) -> Problem:
    """Return DTLZ2 with f_i^4, and f_m^2 for the last objective: a convex front.

    >>> convex_dtlz2().evaluate(jnp.full((1, 12), 0.5))[0].round(3)
    Array([[0.062, 0.062, 0.5  ]], dtype=float32)
    """
    ball = _spherical_function(objectives, _squared_distance)

    def function(x: Array) -> Array:
        f = ball(x)
        return jnp.append(f[:-1] ** 4, f[-1] ** 2)

    return _problem(function, objectives, variables, 10)


@explain_errors
def inverted_dtlz1(objectives: int = 3, variables: int | None = None) -> Problem:
    """Return DTLZ1 with an inverted triangle: f -> (1 + g) / 2 - f.

    >>> inverted_dtlz1().evaluate(jnp.full((1, 7), 0.5))[0].round(3)
    Array([[0.37500003, 0.37500003, 0.25      ]], dtype=float32)
    """
    first = _dtlz1_function(objectives)

    def function(x: Array) -> Array:
        f = first(x)
        return jnp.sum(f) - f  # the objectives of DTLZ1 add up to (1 + g) / 2

    return _problem(function, objectives, variables, 5)


@explain_errors
def inverted_dtlz2(objectives: int = 3, variables: int | None = None) -> Problem:
    """Return DTLZ2 with an inverted sphere: f -> 1 + g - f.

    >>> inverted_dtlz2().evaluate(jnp.full((1, 12), 0.5))[0].round(3)
    Array([[0.5  , 0.5  , 0.293]], dtype=float32)
    """
    ball = _spherical_function(objectives, _squared_distance)

    def function(x: Array) -> Array:
        return 1 + _squared_distance(x[objectives - 1 :]) - ball(x)

    return _problem(function, objectives, variables, 10)


@explain_errors
@on_host
def scale_objectives(problem: Problem, base: float = 10.0) -> Problem:
    """Return the problem with objectives times base^0, base^1, ..., as in scaled DTLZ1, 2.

    >>> scale_objectives(dtlz1()).evaluate(jnp.full((1, 7), 0.5))[0].round(3)
    Array([[ 0.125   ,  1.25    , 25.000002]], dtype=float32)
    """
    ranges.refuse("scale_objectives: base", base, ranges.Range(above=0, one=True))
    factor = base ** np.arange(problem.objectives)
    return Problem(
        problem.box,
        lambda x: problem.function(x) * jnp.asarray(factor, x.dtype),
        problem.objectives,
    )


@explain_errors
def c1_dtlz1(objectives: int = 3, variables: int | None = None) -> Problem:
    """Return C1-DTLZ1, which is feasible only near its front.

    >>> f, violation = c1_dtlz1().evaluate(jnp.full((1, 7), 0.5))
    >>> f.round(3), violation.round(2)
    (Array([[0.125, 0.125, 0.25 ]], dtype=float32), Array([0.], dtype=float32))
    """
    violation = lambda f: jnp.sum(f[:-1]) / 0.5 + f[-1] / 0.6 - 1
    return _problem(_dtlz1_function(objectives), objectives, variables, 5, violation)


@explain_errors
def c1_dtlz3(objectives: int = 3, variables: int | None = None) -> Problem:
    """Return C1-DTLZ3: an infeasible shell, from radius 4 to 9, 12.5 or 15, before the front.

    >>> f, violation = c1_dtlz3().evaluate(jnp.full((1, 12), 0.5))
    >>> f.round(3), violation.round(2)
    (Array([[0.5  , 0.5  , 0.707]], dtype=float32), Array([0.], dtype=float32))
    """
    check_integers("dtlz", objectives=objectives)
    r = 9.0 if objectives < 5 else 12.5 if objectives <= 12 else 15.0

    def violation(f: Array) -> Array:
        square = jnp.sum(f * f)
        return (square - 16) * (r**2 - square)

    return _problem(
        _spherical_function(objectives, _rastrigin_distance), objectives, variables, 10, violation
    )


@explain_errors
def c2_dtlz2(objectives: int = 3, variables: int | None = None) -> Problem:
    """Return C2-DTLZ2, feasible in spheres around the corners and the center of its front.

    >>> f, violation = c2_dtlz2().evaluate(jnp.full((1, 12), 0.5))
    >>> f.round(3), violation.round(2)
    (Array([[0.5  , 0.5  , 0.707]], dtype=float32), Array([0.], dtype=float32))
    """
    check_integers("dtlz", objectives=objectives)
    r = {2: 0.2, 3: 0.4}.get(objectives, 0.5)

    def violation(f: Array) -> Array:
        square = f * f
        ends = (f - 1) ** 2 + jnp.sum(square) - square - r**2
        middle = jnp.sum((f - objectives**-0.5) ** 2) - r**2
        return jnp.minimum(jnp.min(ends), middle)

    return _problem(
        _spherical_function(objectives, _squared_distance), objectives, variables, 10, violation
    )


@explain_errors
def c3_dtlz1(objectives: int = 3, variables: int | None = None) -> Problem:
    """Return C3-DTLZ1: the front is a union of m planes that the constraints add before DTLZ1's.

    >>> f, violation = c3_dtlz1().evaluate(jnp.full((1, 7), 0.5))
    >>> f.round(3), violation.round(2)
    (Array([[0.125, 0.125, 0.25 ]], dtype=float32), Array([1.], dtype=float32))
    """

    def violation(f: Array) -> Array:
        return jnp.sum(jnp.maximum(1 - (f / 0.5 + jnp.sum(f) - f), 0))

    return _problem(_dtlz1_function(objectives), objectives, variables, 5, violation)


@explain_errors
def c3_dtlz4(objectives: int = 3, variables: int | None = None) -> Problem:
    """Return C3-DTLZ4: the front is a union of m ellipsoids that constraints add before DTLZ4's.

    >>> f, violation = c3_dtlz4().evaluate(jnp.full((1, 12), 0.5))
    >>> f.round(3), violation.round(2)
    (Array([[1., 0., 0.]], dtype=float32), Array([0.75], dtype=float32))
    """

    def violation(f: Array) -> Array:
        square = f * f
        return jnp.sum(jnp.maximum(1 - (square / 4 + jnp.sum(square) - square), 0))

    function = _spherical_function(objectives, _squared_distance, 100)
    return _problem(function, objectives, variables, 10, violation)


def _problem(
    function: Callable[[Array], Array],
    objectives: int,
    variables: int | None,
    distance: int,
    violation: Callable[[Array], Array] | None = None,
) -> Problem:
    """Return the problem of a function of x, with an optional violation of the objectives."""
    check_integers("dtlz", objectives=objectives)
    count = objectives - 1 + distance if variables is None else variables
    check_integers("dtlz", variables=count)
    if objectives < 2 or count < objectives:
        raise ValueError(
            f"dtlz: {objectives} objectives, {count} variables; need 2 <= objectives <= variables"
        )
    if violation is None:
        return Problem(box(0.0, 1.0, count), function, objectives)

    def with_violation(x: Array) -> tuple[Array, Array]:
        f = function(x)
        return f, violation(f)

    return Problem(box(0.0, 1.0, count), with_violation, objectives)


def _dtlz1_function(m: int) -> Callable[[Array], Array]:
    return lambda x: 0.5 * (1 + _rastrigin_distance(x[m - 1 :])) * triangle(x[: m - 1])


def _spherical_function(
    m: int, distance: Callable[[Array], Array], power: int = 1
) -> Callable[[Array], Array]:
    return lambda x: (1 + distance(x[m - 1 :])) * sphere(x[: m - 1] ** power)


def _degenerate_function(m: int, distance: Callable[[Array], Array]) -> Callable[[Array], Array]:
    def function(x: Array) -> Array:
        g = distance(x[m - 1 :])
        y = (1 + 2 * g * x[: m - 1]) / (2 * (1 + g))
        return (1 + g) * sphere(y.at[0].set(x[0]))

    return function


def _squared_distance(z: Array) -> Array:
    return jnp.sum((z - 0.5) ** 2)


def _rastrigin_distance(z: Array) -> Array:
    # 1 - cos(2 a) = 2 sin(a)^2: near the front the paper's sum cancels to 1e-4 in float32
    s = z - 0.5
    return 100 * jnp.sum(s * s + 2 * jnp.sin(10 * jnp.pi * s) ** 2)
