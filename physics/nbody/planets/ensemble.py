"""Many small systems at once, each with adaptive Gauss-Radau steps of its own (order 15).

Systems lie along the machine's vectors, in lanes. A lane whose system has arrived writes it down
and takes the next one from the queue, so that no lane waits for the slowest system. The step is
that of IAS15 (Rein & Spiegel 2015, doi:10.1093/mnras/stu2164): the highest coefficient of a body's
acceleration against the acceleration, and a step that proves four times too long is taken again.

A step of a system of three bodies takes 0.48 us of a core (Zen 4): 29 evaluations of three pairs,
which the division and root alone would let one do in 0.08 us, and 1900 products of weights.
"""

import functools
import operator
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu import ranges
from jaxgpu.pytree import number, pytree, size, static

from .. import bodies, layout
from ..forces.pairs import inverse_powers
from ..layout import Columns, Rows
from ..steps import radau

_TURNS = 8  # steps between two looks at the queue


@pytree
class Ensemble:
    """How to integrate."""

    tolerance: Array | float = number(
        default=1e-4, above=0
    )  # [] highest coefficient over acceleration
    convergence: Array | float = number(default=1e-8, above=0)  # [] last change over acceleration
    most: Array | int = number(default=100_000, least=1, unit="steps")  # [] that a system may try
    sweeps: int = size(default=4, least=1)  # of the nodes in a step
    lanes: int = size(default=32, least=1)  # systems advanced together: as the cache holds


@pytree
class Systems:
    """M systems of N bodies, as the machine wants them; G = 1. `gathered` makes them."""

    x: Array  # [N, 3, M] position
    v: Array  # [N, 3, M] velocity
    m: Array  # [N, M] mass; 0 for a massless body
    told: bool = static(default=False)  # these are the axes, though three could be another


@pytree
class Arrived:
    """The systems at the end, and how they came there."""

    x: Array  # [N, 3, M] position
    v: Array  # [N, 3, M] velocity
    steps: Array  # [M] int32: steps accepted
    unfinished: Array  # [M] bool: did not arrive: out of steps, or the span or the bodies were nan
    #   or the span negative; x and v are then meaningless


@pytree
class _Lanes:
    """What is under way."""

    x: Array  # [N, 3, W]
    v: Array  # [N, 3, W]
    low: Array  # [2, N, 3, W] what rounding keeps out of x and v
    a: list[Array]  # 8 x [N, 3, W] coefficients of the acceleration over the last step
    m: Array  # [N, W]
    t: Array  # [W] time since the start
    dt: Array  # [W] step to try
    last: Array  # [W] length of the last step
    span: Array  # [W]
    steps: Array  # [W] int32
    tries: Array  # [W] int32
    owner: Array  # [W] int32: which system; M for none


def gathered(x: Array | Rows | Columns, v: Array | Rows | Columns, m: Array) -> Systems:
    """The systems of positions and velocities [M, N, 3] and masses [M, N]: batches lead.

    Of three bodies say which way they lie in each system: `layout.Rows(x)` or `layout.Columns(x)`.

    >>> x = jnp.zeros((10, 2, 3)).at[:, 1, 0].set(1.0)  # ten pairs
    >>> gathered(x, jnp.zeros((10, 2, 3)), jnp.ones((10, 2))).x.shape
    (2, 3, 10)
    """
    name = "ensemble.gathered"
    x, v = layout.rows(f"{name}: x", x, batch=1), layout.rows(f"{name}: v", v, batch=1)
    m = bodies.numbers(f"{name}: m", m, least=0)
    if x.ndim != 3 or v.shape != x.shape or m.shape != x.shape[:2]:
        shapes = f"x {list(x.shape)}, v {list(v.shape)}, m {list(m.shape)}"
        raise ValueError(f"{name}: {shapes}; must be twice [M, N, 3] and [M, N]")
    x, v, m = bodies.one_precision(name, x=x, v=v, m=m)
    return Systems(jnp.moveaxis(x, 0, -1), jnp.moveaxis(v, 0, -1), m.T, told=True)


def advance(spec: Ensemble, systems: Systems, span: Array | float) -> Arrived:
    """All systems after the time `span`, a scalar or [M], none of it negative.

    Cost a step and system: 1 + 7 sweeps evaluations of N (N - 1) / 2 pairs; each pair is compiled
    by itself: 3 s for three bodies, 10 s for eight. Memory O(M). Forward mode runs through. Under
    `jax.vmap` the lanes of all batches wait for each other: put everything into one ensemble.

    Raises:
        ValueError: shapes that do not fit, or could be read another way (three bodies or three
            systems that `gathered` did not make), values that are not finite, two bodies of a
            system at one place, a negative span or mass, two floating types.
    """
    ranges.check("ensemble.advance", spec)
    systems = _checked("ensemble.advance", systems)
    count = systems.x.shape[2]
    span = ranges.numbers("ensemble.advance: span", span, least=0)
    if span.shape not in ((), (1,), (count,)):
        raise ValueError(
            f"ensemble.advance: span has shape {list(span.shape)}; it must be [] or [{count}]"
        )
    span = jnp.broadcast_to(jnp.asarray(span, systems.x.dtype), (count,))
    if count == 0:
        nobody = jnp.zeros(0, jnp.int32)
        return Arrived(systems.x, systems.v, nobody, nobody.astype(bool))
    width = min(spec.lanes, count)
    none = jnp.zeros(count, jnp.int32)
    out = Arrived(systems.x, systems.v, none, none.astype(bool))
    lanes = _loaded(systems, span, jnp.arange(width, dtype=jnp.int32))

    def under_way(carry: tuple[_Lanes, Arrived, Array]) -> Array:
        return jnp.any(carry[0].owner < count)

    def turn(carry: tuple[_Lanes, Arrived, Array]) -> tuple[_Lanes, Arrived, Array]:
        lanes, out, queued = carry
        lanes = lax.fori_loop(0, _TURNS, lambda _, lanes: _step(spec, lanes), lanes)
        return lax.cond(
            jnp.any(_finished(spec, lanes) & (lanes.owner < count)),
            lambda: _relieved(spec, systems, span, lanes, out, queued),
            lambda: (lanes, out, queued),
        )

    return lax.while_loop(under_way, turn, (lanes, out, jnp.int32(width)))[1]


def energy(systems: Systems) -> Array:
    """Total energy [M]."""
    systems = _checked("ensemble.energy", systems)
    v2 = jnp.sum(systems.v * systems.v, 1)
    total = jnp.sum(systems.m * v2, 0) / 2
    for i in range(systems.m.shape[0]):
        for j in range(i):
            d = systems.x[i] - systems.x[j]
            total = total - systems.m[i] * systems.m[j] / jnp.sqrt(jnp.sum(d * d, 0))
    return total


def _checked(name: str, systems: Systems) -> Systems:
    """The systems in one precision."""
    x = bodies.numbers(f"{name}: x", systems.x)
    v = bodies.numbers(f"{name}: v", systems.v)
    m = bodies.numbers(f"{name}: m", systems.m, least=0)
    shape = x.shape if x.ndim == 3 else (0, 0, 0)
    if shape[0] == 0 or shape[1] != 3 or v.shape != shape or m.shape != (shape[0], shape[2]):
        shapes = [list(q.shape) for q in (x, v, m)]
        raise ValueError(f"{name}: x, v, m {shapes}; must be [N, 3, M] twice and [N, M]")
    seen = not isinstance(x, jax.core.Tracer)
    if seen and not systems.told and 3 in (shape[0], shape[2]):
        raise ValueError(
            f"{name}: x has shape {list(shape)}, which can be read in two ways; make the systems "
            "by ensemble.gathered, or say Systems(..., told=True) of axes [N, 3, M]"
        )
    x, v, m = bodies.one_precision(name, x=x, v=v, m=m)
    if seen and not isinstance(m, jax.core.Tracer):
        _refuse_meetings(name, np.asarray(x), np.asarray(m))
    return replace(systems, x=x, v=v, m=m)


def _refuse_meetings(name: str, x: np.ndarray, m: np.ndarray) -> None:
    for i in range(x.shape[0]):
        for j in range(i):
            met = (x[i] == x[j]).all(0) & (m[i] + m[j] > 0)
            if met.any():
                raise ValueError(
                    f"{name}: bodies {j} and {i} of system {int(np.argmax(met))} are at one place; "
                    "move one, or merge them"
                )


def _relieved(
    spec: Ensemble, systems: Systems, span: Array, lanes: _Lanes, out: Arrived, queued: Array
) -> tuple[_Lanes, Arrived, Array]:
    """Write down what has arrived and take up what is waiting."""
    count = span.shape[0]
    free = _finished(spec, lanes)
    place = jnp.where(free, lanes.owner, count)
    put = lambda all, some: all.at[..., place].set(some, mode="drop")
    late = ~(lanes.t == lanes.span)  # negative or nan, it is never reached
    out = Arrived(
        put(out.x, lanes.x),
        put(out.v, lanes.v),
        put(out.steps, lanes.steps),
        put(out.unfinished, late),
    )
    following = queued + jnp.cumsum(free, dtype=jnp.int32) - 1
    fresh = _loaded(systems, span, jnp.where(free, jnp.minimum(following, count), count))
    lanes = jax.tree.map(lambda new, old: jnp.where(_to(free, new), new, old), fresh, lanes)
    return lanes, out, jnp.minimum(queued + jnp.sum(free, dtype=jnp.int32), count)


def _finished(spec: Ensemble, lanes: _Lanes) -> Array:
    return ~(lanes.t < lanes.span) | (lanes.tries >= spec.most)


def _loaded(systems: Systems, span: Array, owner: Array) -> _Lanes:
    """Lanes with the systems `owner` [W] at their start; the last one stands in for none."""
    x, v, m, span = (
        jnp.take(q, owner, axis=-1, mode="clip") for q in (systems.x, systems.v, systems.m, span)
    )
    a = _pull(m, x)
    # a guess: what follows is judged, and taken again where it was too long
    fall = jnp.full_like(span, jnp.inf)
    for i in range(x.shape[0]):
        for j in range(i):
            r2 = jnp.sum((x[i] - x[j]) ** 2, 0)
            both = m[i] + m[j]
            free = jnp.sqrt(r2 * jnp.sqrt(r2) / jnp.where(both > 0, both, 1))
            fall = jnp.minimum(fall, jnp.where(both > 0, free, jnp.inf))
    none = jnp.zeros(owner.shape, jnp.int32)
    time = jnp.zeros_like(span)
    dt = jnp.minimum(1e-2 * fall, span)
    a = [a] + 7 * [0 * a]
    return _Lanes(x, v, jnp.stack([0 * x, 0 * x]), a, m, time, dt, dt, span, none, none, owner)


def _step(spec: Ensemble, lanes: _Lanes) -> _Lanes:
    """One step of each lane that is under way: taken, or refused and shortened."""
    dt = jnp.minimum(lanes.dt, lanes.span - lanes.t)
    ratio = dt / jnp.where(lanes.last > 0, lanes.last, 1)
    by_lane, ratio = dt[None, None], ratio[None, None]
    guess = radau.continued(lanes.a, ratio)
    nodes, change = radau.solve_in_turn(
        lambda x, v: _pull(lanes.m, x), lanes.x, lanes.v, by_lane, guess, spec.sweeps
    )
    a = [lax.optimization_barrier(radau.combined(row, nodes)) for row in radau.LAGRANGE]
    best, good = _judged(spec, (nodes[0], a[7], change), dt)
    done = _finished(spec, lanes)
    taken = good & ~done
    dx, dv = (radau.combined(w[8], nodes) for w in (radau.POSITION, radau.VELOCITY))
    dx, dv = by_lane * (lanes.v + by_lane * dx), by_lane * dv
    moved = [_added(*q) for q in ((lanes.x, lanes.low[0], dx), (lanes.v, lanes.low[1], dv))]
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
    kept = jax.tree.map(lambda new, old: jnp.where(_to(taken, new), new, old), new, lanes)
    tries = lanes.tries + (~done).astype(jnp.int32)
    return replace(kept, dt=jnp.where(done, lanes.dt, best), tries=tries)


def _judged(spec: Ensemble, vectors: tuple[Array, ...], dt: Array) -> tuple[Array, Array]:
    """The step to try next, and whether this one was good enough, for each lane.

    vectors: the acceleration [N, 3, W] at the start, its highest coefficient, and the last change
        of the acceleration at the last node.
    """
    pull, high, change = (jnp.sqrt(jnp.sum(q * q, 1)) for q in vectors)  # [N, W]
    # where pulls balance, what is left is rounding and no measure of anything
    pull = jnp.maximum(pull, 1e-8 * jnp.max(pull, 0, keepdims=True))
    pull = jnp.where(pull > 0, pull, 1)
    eps = float(jnp.finfo(dt.dtype).eps)
    noise = 2 * eps * float(np.abs(radau.LAGRANGE[7]).sum())
    error = jnp.max(high / pull, 0)
    error = error / jnp.maximum(jnp.asarray(spec.tolerance, dt.dtype), noise)
    wild = jnp.max(change / pull, 0) / jnp.maximum(spec.convergence, 8 * eps)
    factor = jnp.where(error > 0, jnp.where(error > 0, error, 1) ** (-1 / 7), 4)
    # a sweep gains (omega dt)^2, and the guess is good to (omega dt)^8
    power = -1 / (6 + 2 * spec.sweeps)
    settle = jnp.where(wild > 1, jnp.where(wild > 1, wild, 1) ** power, 4)
    factor = jnp.minimum(factor, settle)
    good = (error < 4.0**7) & (wild <= 16)
    factor = jnp.where(jnp.isnan(error) | jnp.isnan(wild), 0.1, factor)
    lower = jnp.where(good, 0.25, 0.05)
    return dt * jnp.clip(factor, lower, jnp.where(good, 4, 0.5)), good


def _pull(m: Array, x: Array) -> Array:
    """Accelerations [N, 3, W] of each other."""
    count = x.shape[0]
    total: list[list[Array]] = [[] for _ in range(count)]
    for i in range(count):
        for j in range(i):
            d = x[j] - x[i]
            r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2]
            # else it is computed again for every component of every body
            u3 = lax.optimization_barrier(inverse_powers(r2)[1])
            total[i].append((m[j] * u3)[None] * d)
            total[j].append((-m[i] * u3)[None] * d)
    return lax.optimization_barrier(jnp.stack([functools.reduce(operator.add, q) for q in total]))


def _added(high: Array, low: Array, term: Array) -> tuple[Array, Array]:
    """high + low + term as a rounded sum and what the rounding left (Kahan's compensated sum)."""
    term = term + low
    total = high + term
    return total, term - (total - high)


def _to(mask: Array, like: Array) -> Array:
    return mask.reshape((1,) * (like.ndim - 1) + mask.shape)
