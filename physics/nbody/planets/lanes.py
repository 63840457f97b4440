"""Adaptive Gauss-Radau steps (order 15) of small systems in lanes, each with an individual step.

The step control is that of IAS15 (Rein & Spiegel 2015, doi:10.1093/mnras/stu2164): it compares the
highest coefficient of a body's acceleration with the acceleration, and repeats a step that proves
four times too long.

A step of a three-body system takes 0.48 us of a core (Zen 4): 29 evaluations of three pairs, whose
division and square root alone would take 0.08 us, and 1900 products of weights. Components come
first, [N, 3, W]: the W lanes fill the vector registers.
"""

import functools
import operator
from dataclasses import replace
from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.geometry.vectors import dot
from jaxgpu.inputs.fields import pytree

from ..forces.powers import inverse_powers
from ..steps import kahan, radau


class StepControl(Protocol):
    """Settings of the step control, as in `Ensemble`."""

    @property
    def tolerance(self) -> Array | float:
        """[] maximum of the highest-order coefficient over the acceleration."""
        ...

    @property
    def convergence(self) -> Array | float:
        """[] maximum of the last change over the acceleration."""
        ...

    @property
    def most(self) -> Array | int:
        """[] maximum number of steps that a system may try."""
        ...

    @property
    def sweeps(self) -> int:
        """Sweeps over the nodes per step."""
        ...


@pytree
class Lanes:
    """Systems in progress, one per lane."""

    x: Array  # [N, 3, W]
    v: Array  # [N, 3, W]
    low: Array  # [2, N, 3, W] accumulated rounding errors of x and v
    a: list[Array]  # 8 x [N, 3, W] coefficients of the acceleration over the last step
    m: Array  # [N, W]
    t: Array  # [W] time since the start
    dt: Array  # [W] step to try
    last: Array  # [W] length of the last step
    span: Array  # [W] time to cover
    steps: Array  # [W] int32
    tries: Array  # [W] int32
    owner: Array  # [W] int32: index of the system; M for none


def is_finished(rule: StepControl, lanes: Lanes) -> Array:
    """Return a mask [W] of lanes that have covered their time or are out of steps."""
    return ~(lanes.t < lanes.span) | (lanes.tries >= rule.most)


def init_lanes(x: Array, v: Array, m: Array, span: Array, owner: Array) -> Lanes:
    """Return lanes with systems at their start, which will cover the time `span` [W]."""
    a = _pull(m, x)
    # the first step is only a guess: step control rejects and repeats it if it is too long
    fall = jnp.full_like(span, jnp.inf)
    for i in range(x.shape[0]):
        for j in range(i):
            r2 = jnp.sum((x[i] - x[j]) ** 2, 0)
            mass = m[i] + m[j]
            free = jnp.sqrt(r2 * jnp.sqrt(r2) / jnp.where(mass > 0, mass, 1))
            fall = jnp.minimum(fall, jnp.where(mass > 0, free, jnp.inf))
    none = jnp.zeros(owner.shape, jnp.int32)
    time = jnp.zeros_like(span)
    dt = jnp.minimum(1e-2 * fall, span)
    a = [a] + 7 * [0 * a]
    return Lanes(
        x=x,
        v=v,
        low=jnp.stack([0 * x, 0 * x]),
        a=a,
        m=m,
        t=time,
        dt=dt,
        last=dt,
        span=span,
        steps=none,
        tries=none,
        owner=owner,
    )


def step(rule: StepControl, lanes: Lanes) -> Lanes:
    """Try one step of each unfinished lane; accept it, or reject it and shorten the next."""
    dt = jnp.minimum(lanes.dt, lanes.span - lanes.t)
    ratio = dt / jnp.where(lanes.last > 0, lanes.last, 1)
    by_lane, ratio = dt[None, None], ratio[None, None]
    guess = radau.extrapolate_poly(lanes.a, ratio)
    nodes, change = radau.solve_gauss_seidel(
        lambda x, v: _pull(lanes.m, x), lanes.x, lanes.v, by_lane, guess, rule.sweeps
    )
    a = [lax.optimization_barrier(radau.weighted_sum(row, nodes)) for row in radau.LAGRANGE]
    best, good = _judge_step(rule, (nodes[0], a[7], change), dt)
    done = is_finished(rule, lanes)
    taken = good & ~done
    dx, dv = (radau.weighted_sum(w[8], nodes) for w in (radau.POSITION, radau.VELOCITY))
    dx, dv = by_lane * (lanes.v + by_lane * dx), by_lane * dv
    moved = [kahan.add(*q) for q in ((lanes.x, lanes.low[0], dx), (lanes.v, lanes.low[1], dv))]
    arrives = dt >= lanes.span - lanes.t
    new = replace(
        lanes,
        x=moved[0][0],
        v=moved[1][0],
        low=jnp.stack([moved[0][1], moved[1][1]]),
        a=a,
        t=jnp.where(arrives, lanes.span, lanes.t + dt),
        last=dt,
        steps=lanes.steps + 1,
    )
    kept = jax.tree.map(lambda new, old: jnp.where(expand_mask(taken, new), new, old), new, lanes)
    tries = lanes.tries + (~done).astype(jnp.int32)
    return replace(kept, dt=jnp.where(done, lanes.dt, best), tries=tries)


def _judge_step(rule: StepControl, vectors: tuple[Array, ...], dt: Array) -> tuple[Array, Array]:
    """Return the step to try next, and whether this one is accurate enough, for each lane.

    vectors: the acceleration [N, 3, W] at the start, its highest coefficient, and the last change
        of the acceleration at the last node.
    """
    pull, high, change = (jnp.sqrt(jnp.sum(q * q, 1)) for q in vectors)  # [N, W]
    # where forces cancel, the remainder is rounding error and cannot serve as a scale
    pull = jnp.maximum(pull, 1e-8 * jnp.max(pull, 0, keepdims=True))
    pull = jnp.where(pull > 0, pull, 1)
    eps = float(jnp.finfo(dt.dtype).eps)
    noise = 2 * eps * float(np.abs(radau.LAGRANGE[7]).sum())
    error = jnp.max(high / pull, 0)
    error = error / jnp.maximum(jnp.asarray(rule.tolerance, dt.dtype), noise)
    wild = jnp.max(change / pull, 0) / jnp.maximum(rule.convergence, 8 * eps)
    factor = jnp.where(error > 0, jnp.where(error > 0, error, 1) ** (-1 / 7), 4)
    # a sweep multiplies the error by (omega dt)^2; that of the guess is of order (omega dt)^8
    power = -1 / (6 + 2 * rule.sweeps)
    settle = jnp.where(wild > 1, jnp.where(wild > 1, wild, 1) ** power, 4)
    factor = jnp.minimum(factor, settle)
    good = (error < 4.0**7) & (wild <= 16)
    factor = jnp.where(jnp.isnan(error) | jnp.isnan(wild), 0.1, factor)
    lower = jnp.where(good, 0.25, 0.05)
    return dt * jnp.clip(factor, lower, jnp.where(good, 4, 0.5)), good


def _pull(m: Array, x: Array) -> Array:
    """Return the mutual accelerations [N, 3, W]."""
    count = x.shape[0]
    total: list[list[Array]] = [[] for _ in range(count)]
    for i in range(count):
        for j in range(i):
            d = x[j] - x[i]
            # without the barrier it is recomputed for every component of every body
            u3 = lax.optimization_barrier(inverse_powers(dot(d, d))[1])
            total[i].append((m[j] * u3)[None] * d)
            total[j].append((-m[i] * u3)[None] * d)
    return lax.optimization_barrier(jnp.stack([functools.reduce(operator.add, q) for q in total]))


def expand_mask(mask: Array, like: Array) -> Array:
    """Return the mask [W] with leading axes of length one, for leaves [..., W]."""
    return mask.reshape((1,) * (like.ndim - 1) + mask.shape)
