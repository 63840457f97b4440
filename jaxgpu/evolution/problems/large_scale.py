"""LSMOP1-9: hundreds to millions of variables, in groups of unequal importance.

Cheng, Jin & Olhofer (2017), doi:10.1109/TCYB.2016.2600577. The distance variables are linked to the
first position and distributed over the objectives in groups of chaotic sizes. Each group is divided
into five parts, to each of which a basic function is applied. This follows PlatEMO, the authors'
program, whose values are those usually reported: the linkage counts from the very first variable
and divides by D (the paper: by the number of distance variables), and the remaining variables,
fewer than 5 m, have no effect.
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs.explanations import explain_errors

from ..problem import Box, Problem, check_integers
from .front_shapes import sphere, triangle

_PARTS = 5  # number of parts per group


@explain_errors
def lsmop(number: int, objectives: int = 3, variables: int | None = None) -> Problem:
    """Return one of the nine: with a triangle (1-4), the unit sphere (5-8), or disconnected (9).

    Args:
        number: 1 to 9.
        objectives: m, at least 2.
        variables: D, 100 m by default; enough for five parts of two variables in every group.

    >>> x = jnp.zeros(300).at[1].set(0.5)
    >>> print(lsmop(1).function(x), lsmop(5).function(x).round(3))
    [0. 0. 1.] [0.707 0.707 0.   ]
    """
    check_integers("lsmop", number=number, objectives=objectives)
    m = objectives
    d = 100 * m if variables is None else variables
    check_integers("lsmop", variables=d)
    if not 1 <= number <= 9 or m < 2:
        raise ValueError(f"lsmop: number={number}, objectives={m}; need 1 to 9, at least 2")
    sizes = group_sizes(m, d)
    if min(sizes) < 2:
        raise ValueError(
            f"lsmop: variables={d} for {m} objectives; the smallest group then has subgroups of "
            f"{min(sizes)} variables; it needs 2; give more"
        )
    share = np.arange(m, d + 1) / d
    link = 1 + (share if number <= 4 else np.cos(np.pi / 2 * share))
    basic = _BASIC[number]

    def function(x: Array) -> Array:
        y, z = x[: m - 1], x[m - 1 :]
        z = jnp.asarray(link, x.dtype) * z - 10 * x[0]
        g = _distances(z, sizes, basic)
        if number <= 4:
            return (1 + g) * triangle(y)
        if number <= 8:
            return (1 + g + jnp.append(g[1:], jnp.zeros_like(g[:1]))) * sphere(y)
        h = 2 + jnp.sum(g)
        return jnp.append(y, h * m - jnp.sum(y * (1 + jnp.sin(3 * jnp.pi * y))))

    upper = jnp.asarray(np.where(np.arange(d) < m - 1, 1.0, 10.0), float)
    return Problem(Box(jnp.zeros_like(upper), upper), function, m)


def group_sizes(objectives: int, variables: int) -> list[int]:
    """Return the size of the five parts of each group, by the logistic map c -> 3.8 c (1 - c).

    >>> group_sizes(3, 300)
    [12, 30, 16]
    """
    c = [3.8 * 0.1 * 0.9]
    for _ in range(objectives - 1):
        c.append(3.8 * c[-1] * (1 - c[-1]))
    count = variables - objectives + 1
    return [math.floor(each / sum(c) * count / _PARTS) for each in c]


def _distances(z: Array, sizes: list[int], basic: tuple[Callable[[Array], Array], ...]) -> Array:
    """Return the mean of a basic function over the parts of each group, per variable. [m]."""
    found, at = [], 0
    for i, size in enumerate(sizes):
        parts = z[at : at + _PARTS * size].reshape(_PARTS, size)
        found.append(jnp.mean(jax.vmap(basic[i % 2])(parts)) / size)
        at += _PARTS * size
    return jnp.stack(found)


def _ball(z: Array) -> Array:
    return jnp.sum(z * z)


def _schwefel(z: Array) -> Array:
    return jnp.max(jnp.abs(z))


def _rosenbrock(z: Array) -> Array:
    return jnp.sum(100 * (z[:-1] ** 2 - z[1:]) ** 2 + (z[:-1] - 1) ** 2)


def _rastrigin(z: Array) -> Array:
    """Evaluate Rastrigin's function, with 1 - cos as a sine squared to avoid cancellation."""
    return jnp.sum(z * z + 20 * jnp.sin(jnp.pi * z) ** 2)


def _griewank(z: Array) -> Array:
    root = jnp.asarray(np.sqrt(np.arange(1, z.shape[0] + 1)), z.dtype)
    return jnp.sum(z * z) / 4000 - jnp.prod(jnp.cos(z / root)) + 1


def _ackley(z: Array) -> Array:
    """Evaluate 20 - 20 exp(-r / 5) + e - exp(mean cos), with differences by expm1."""
    square = jnp.mean(z * z)
    # the derivative at the optimum, where that of the root is undefined, is set to 0
    r = jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1)), 0)
    waves = 2 * jnp.mean(jnp.sin(jnp.pi * z) ** 2)
    return -20 * jnp.expm1(-r / 5) - math.e * jnp.expm1(-waves)


_BASIC: dict[int, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    1: (_ball, _ball),
    2: (_griewank, _schwefel),
    3: (_rastrigin, _rosenbrock),
    4: (_ackley, _griewank),
    5: (_ball, _ball),
    6: (_rosenbrock, _schwefel),
    7: (_ackley, _rosenbrock),
    8: (_griewank, _ball),
    9: (_ball, _ackley),
}
