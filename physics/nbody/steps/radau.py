"""One Gauss-Radau step of order 15 for x'' = f(x, x'), as in Everhart's RA15 and in IAS15.

Everhart (1985), doi:10.1007/978-94-009-5400-7_17; Rein & Spiegel (2015), doi:10.1093/mnras/stu2164.

The acceleration is a polynomial of degree 7 through its values at eight nodes: the start of the
step and the seven Gauss-Radau points. Position and velocity anywhere in the step are integrals of
it, so the unknowns are the values at the nodes, found by fixed-point iteration. Both papers store
the coefficients of the polynomial and sweep over the nodes sequentially. This module stores its
*values* (all weights are then of order one, so rounding does not grow) and evaluates all nodes in
one batch, which costs a vector processor no more than one node. The solution is the same.
"""

import functools
import operator
from collections.abc import Callable
from decimal import Decimal, localcontext

import jax.numpy as jnp
import numpy as np
from jax import Array, lax


def _polynomial_product(p: list[Decimal], root: Decimal) -> list[Decimal]:
    """Return the coefficients, constant first, of p(h) (h - root)."""
    raised, scaled = [Decimal(0), *p], [*(root * c for c in p), Decimal(0)]
    return [a - b for a, b in zip(raised, scaled)]


def _radau_nodes() -> list[Decimal]:
    """Return the zeros of P_7(2h - 1) + P_8(2h - 1): 0 and the seven Gauss-Radau points."""
    p, q = [Decimal(1)], [Decimal(-1), Decimal(2)]  # shifted Legendre, constant first
    for n in range(1, 8):  # Bonnet: (n + 1) P_{n+1} = (2n + 1)(2h - 1) P_n - n P_{n-1}
        up = [2 * a - b for a, b in zip([Decimal(0), *q], [*q, Decimal(0)])]
        low = [*p, Decimal(0), Decimal(0)]
        p, q = q, [((2 * n + 1) * a - n * b) / (n + 1) for a, b in zip(up, low)]
    total = [a + b for a, b in zip(q, [*p, Decimal(0)])]
    slope = [k * c for k, c in enumerate(total)][1:]
    nodes = [Decimal(0)]
    for seed in np.sort(np.roots([float(c) for c in total[::-1]]).real)[1:]:
        h = Decimal(float(seed))
        for _ in range(8):  # Newton's method doubles the digits: 8 rounds suffice for 50 digits
            value, rate = (
                sum((c * h**k for k, c in enumerate(row)), Decimal(0)) for row in (total, slope)
            )
            h -= value / rate
        nodes.append(h)
    return nodes


def _tables() -> tuple[np.ndarray, ...]:
    """Return nodes [8], Lagrange coefficients [8, 8], velocity and position weights [9, 8].

    Row k of the coefficients holds the factor of h^k in each node's Lagrange polynomial. Rows 0..7
    of the weights integrate up to the nodes, row 8 to the end of the step.
    """
    with localcontext() as context:
        context.prec = 60
        nodes = _radau_nodes()
        columns = []
        for j, own in enumerate(nodes):
            p = [Decimal(1)]
            for i, other in enumerate(nodes):
                if i != j:
                    p = [c / (own - other) for c in _polynomial_product(p, other)]
            columns.append(p)
        velocity, position = (
            [[sum(c * w(k, h) for k, c in enumerate(p)) for p in columns] for h in [*nodes, 1]]
            for w in (
                lambda k, h: Decimal(h) ** (k + 1) / (k + 1),
                lambda k, h: Decimal(h) ** (k + 2) / ((k + 1) * (k + 2)),
            )
        )
    tables = (nodes, list(zip(*columns)), velocity, position)
    return tuple(np.array(t, dtype=object).astype(np.float64) for t in tables)


NODES, LAGRANGE, VELOCITY, POSITION = _tables()


def solve(
    accelerate: Callable[[int, Array, Array], Array],
    x: Array,
    v: Array,
    dt: Array,
    guess: Array,
    iterations: int,
) -> tuple[Array, Array]:
    """Return the accelerations at the nodes [8, ...] and the last change of the last one.

    Each iteration multiplies the error by about 0.2 (omega dt)^2 for the fastest frequency omega.
    With `extrapolate` from the previous step, the initial error is of order (omega dt)^8.

    Args:
        accelerate: `accelerate(first, x, v)` returns the acceleration [8 - first, ...] at the nodes
            from number `first` on, for positions and velocities `x` and `v` [8 - first, ...].
        x: position at the start [...].
        v: velocity at the start [...].
        dt: the step, a scalar or with as many axes as `x`, to broadcast against it.
        guess: initial accelerations at the nodes [8, ...].
        iterations: number of force evaluations, at least two.
    """
    a = accelerate(0, *node_states(x, v, dt, guess, 0))

    def improve(_, carry):  # the first node, the start of the step, does not change any more
        a, _ = carry
        better = accelerate(1, *node_states(x, v, dt, a, 1))
        return jnp.concatenate([a[:1], better]), better[-1] - a[-1]

    return lax.fori_loop(0, iterations - 1, improve, (a, jnp.zeros_like(a[-1])))


def solve_gauss_seidel(
    accelerate: Callable[[Array, Array], Array],
    x: Array,
    v: Array,
    dt: Array,
    guess: list[Array],
    sweeps: int,
) -> tuple[list[Array], Array]:
    """Return the results of `solve` by Gauss-Seidel sweeps over the nodes, as in both papers.

    A sweep multiplies the error by about 0.004 (omega dt)^2. Three sweeps replace five iterations
    of `solve`; four are needed if forces depend on velocities. Nodes are sequential, so
    only a batch of many systems fills the vector registers.

    Args:
        accelerate: `accelerate(x, v)` returns the acceleration at one node.
        guess: eight accelerations [...], one per node; the first is recomputed.
    """
    a = [accelerate(x, v), *guess[1:]]

    def sweep(_, carry: tuple[list[Array], Array]) -> tuple[list[Array], Array]:
        a, last = list(carry[0]), carry[0][7]
        for n, h in enumerate(NODES.tolist()[1:], 1):
            reach = x + dt * (h * v + dt * weighted_sum(POSITION[n], a))
            speed = v + dt * weighted_sum(VELOCITY[n], a)
            a[n] = accelerate(lax.optimization_barrier(reach), speed)
        return a, a[7] - last

    return lax.fori_loop(0, sweeps, sweep, (a, jnp.zeros_like(x)))


def weighted_sum(weights: np.ndarray, values: list[Array]) -> Array:
    """Return the weighted sum of the values [...], elementwise so that it fuses with others."""
    terms = [float(w) * q for w, q in zip(weights, values)]
    return functools.reduce(operator.add, terms)


def node_states(x: Array, v: Array, dt: Array, a: Array, first: int) -> tuple[Array, Array]:
    """Return positions and velocities [8 - first, ...] at the nodes for accelerations [8, ...]."""
    by_node = apply_weights(np.concatenate([POSITION[first:8], VELOCITY[first:8]]), a)
    count = 8 - first
    h = jnp.asarray(NODES[first:], x.dtype).reshape((count,) + (1,) * x.ndim)
    dt = dt[None] if jnp.ndim(dt) else dt
    return x[None] + dt * (h * v[None] + dt * by_node[:count]), v[None] + dt * by_node[count:]


def increment(v: Array, dt: Array, a: Array) -> tuple[Array, Array]:
    """Return the changes of position and velocity over a step, for node accelerations [8, ...]."""
    dx, dv = apply_weights(np.concatenate([POSITION[8:], VELOCITY[8:]]), a)
    return dt * (v + dt * dx), dt * dv


def extrapolate(a: Array, ratio: Array) -> Array:
    """Return accelerations [8, ...] at the nodes of the next step, extrapolated from this one.

    Args:
        a: accelerations at the nodes of this step [8, ...].
        ratio: length of the next step over that of this one; broadcasts against `a[0]`.
    """
    power = apply_weights(LAGRANGE, a)  # coefficients of h^0 ... h^7
    h = 1 + ratio[None] * jnp.asarray(NODES, a.dtype).reshape((8,) + (1,) * ratio.ndim)
    value = power[7][None]
    for k in range(6, -1, -1):
        value = value * h + power[k][None]
    return value


def extrapolate_poly(coefficients: list[Array], ratio: Array) -> list[Array]:
    """Return the values of `extrapolate` from eight polynomial coefficients."""
    values = []
    for h in NODES.tolist():
        value = coefficients[7]
        for c in coefficients[6::-1]:
            value = value * (1 + ratio * h) + c
        values.append(value)
    return values


def apply_weights(weights: np.ndarray, values: Array) -> Array:
    """Return weights [K, J] times values [J, ...], summed over J: [K, ...]."""
    flat = values.reshape(values.shape[0], -1)
    total = lax.dot(jnp.asarray(weights, values.dtype), flat, precision="highest")
    return total.reshape(-1, *values.shape[1:])
