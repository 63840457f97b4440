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
from jaxgpu.pytree import number, pytree, size

from .. import bodies
from ..forces.pairs import inverse_powers
from ..steps import kahan, radau

_TURNS = 8  # steps between two looks at the queue


@pytree
class Systems:
    """M systems of N bodies, and how they came there; G = 1."""

    x: Array  # [M, N, 3] position
    v: Array  # [M, N, 3] velocity
    m: Array  # [M, N] mass; 0 for a tracer
    steps: Array  # [M] int32: integration steps accepted so far
    unfinished: Array  # [M] bool: did not arrive: out of steps, or dt or the bodies were nan, or dt
    #   negative; x and v are then meaningless


@pytree
class Ensemble:
    """How to integrate, and how far a step of all systems goes.

    >>> x = jnp.zeros((10, 2, 3)).at[:, 1, 0].set(1.0)  # ten pairs, on circles
    >>> v = jnp.zeros((10, 2, 3)).at[:, :, 1].set(jnp.array([[-0.5, 0.5]]) * 2**0.5)
    >>> spec = Ensemble(dt=2 * jnp.pi / 2**0.5)
    >>> end = spec.step(spec.init(x, v, jnp.ones((10, 2))))
    >>> end.x.shape, bool(jnp.abs(end.x - x).max() < 1e-4)
    ((10, 2, 3), True)
    """

    dt: Array | float = number(least=0)  # [] or [M] time that a step covers
    tolerance: Array | float = number(
        default=1e-4, above=0
    )  # [] highest coefficient over acceleration
    convergence: Array | float = number(default=1e-8, above=0)  # [] last change over acceleration
    most: Array | int = number(default=100_000, least=1, unit="steps")  # [] tries a system, a step
    sweeps: int = size(default=4, least=1)  # of the nodes in an integration step
    lanes: int = size(default=32, least=1)  # systems advanced together: as the cache holds

    def init(self, x: Array, v: Array, m: Array) -> Systems:
        """The systems of positions and velocities [M, N, 3] and masses [M, N].

        Raises:
            ValueError: shapes that do not fit, values that are not finite or out of range, two
                bodies of a system at one place, a negative dt or mass, two floating types.
        """
        return _checked(self, x, v, m)

    def step(self, state: Systems) -> Systems:
        """All systems `dt` later, each in steps of its own.

        Cost of an integration step of a system: 1 + 7 sweeps evaluations of N (N - 1) / 2 pairs;
        each pair is compiled by itself: 3 s for three bodies, 10 s for eight. Memory O(M). Forward
        mode runs through. Under `jax.vmap` the lanes of all batches wait for each other: put
        everything into one ensemble.
        """
        return _advanced(self, state) if state.x.shape[0] else state


def energy(systems: Systems) -> Array:
    """Total energy [M]."""
    x, v, m = jnp.moveaxis(systems.x, 0, -1), jnp.moveaxis(systems.v, 0, -1), systems.m.T
    total = jnp.sum(m * jnp.sum(v * v, 1), 0) / 2
    for i in range(m.shape[0]):
        for j in range(i):
            d = x[i] - x[j]
            total = total - m[i] * m[j] / jnp.sqrt(jnp.sum(d * d, 0))
    return total


@pytree
class _Columns:
    """Systems as the machine wants them: components first, systems along its vectors."""

    x: Array  # [N, 3, M]
    v: Array  # [N, 3, M]
    m: Array  # [N, M]
    dt: Array  # [M]


@pytree
class _Arrived:
    """What has been written down: the ends of the systems that are no longer under way."""

    x: Array  # [N, 3, M]
    v: Array  # [N, 3, M]
    steps: Array  # [M] int32
    unfinished: Array  # [M] bool


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
    span: Array  # [W] time to cover
    steps: Array  # [W] int32
    tries: Array  # [W] int32
    owner: Array  # [W] int32: which system; M for none


def _checked(spec: Ensemble, x: Array, v: Array, m: Array) -> Systems:
    name = "Ensemble.init"
    ranges.check(name, spec)
    x, v = bodies.vectors(f"{name}: x", x), bodies.vectors(f"{name}: v", v)
    m = bodies.numbers(f"{name}: m", m, least=0)
    if x.ndim != 3 or x.shape[1] == 0 or v.shape != x.shape or m.shape != x.shape[:2]:
        shapes = f"x {list(x.shape)}, v {list(v.shape)}, m {list(m.shape)}"
        raise ValueError(f"{name}: {shapes}; must be twice [M, N, 3] and [M, N], a body or more")
    count = x.shape[0]
    if jnp.shape(spec.dt) not in ((), (1,), (count,)):
        raise ValueError(
            f"{name}: dt has shape {list(jnp.shape(spec.dt))}; it must be [] or [{count}]"
        )
    x, v, m = bodies.one_precision(name, x=x, v=v, m=m)
    if not isinstance(x, jax.core.Tracer) and not isinstance(m, jax.core.Tracer):
        _refuse_meetings(name, np.asarray(x), np.asarray(m))
    none = jnp.zeros(count, jnp.int32)
    return Systems(x=x, v=v, m=m, steps=none, unfinished=none.astype(bool))


def _refuse_meetings(name: str, x: np.ndarray, m: np.ndarray) -> None:
    for i in range(x.shape[1]):
        for j in range(i):
            met = (x[:, i] == x[:, j]).all(1) & (m[:, i] + m[:, j] > 0)
            if met.any():
                raise ValueError(
                    f"{name}: bodies {j} and {i} of system {int(np.argmax(met))} are at one place; "
                    "move one, or merge them"
                )


@jax.jit
def _advanced(spec: Ensemble, state: Systems) -> Systems:
    count = state.x.shape[0]
    systems = _Columns(
        x=jnp.moveaxis(state.x, 0, -1),
        v=jnp.moveaxis(state.v, 0, -1),
        m=state.m.T,
        dt=jnp.broadcast_to(jnp.asarray(spec.dt, state.x.dtype), (count,)),
    )
    width = min(spec.lanes, count)
    none = jnp.zeros(count, jnp.int32)
    out = _Arrived(x=systems.x, v=systems.v, steps=none, unfinished=none.astype(bool))
    lanes = _loaded(systems, jnp.arange(width, dtype=jnp.int32))

    def under_way(carry: tuple[_Lanes, _Arrived, Array]) -> Array:
        return jnp.any(carry[0].owner < count)

    def turn(carry: tuple[_Lanes, _Arrived, Array]) -> tuple[_Lanes, _Arrived, Array]:
        lanes, out, queued = carry
        lanes = lax.fori_loop(0, _TURNS, lambda _, lanes: _step(spec, lanes), lanes)
        return lax.cond(
            jnp.any(_finished(spec, lanes) & (lanes.owner < count)),
            lambda: _relieved(spec, systems, lanes, out, queued),
            lambda: (lanes, out, queued),
        )

    out = lax.while_loop(under_way, turn, (lanes, out, jnp.int32(width)))[1]
    return replace(
        state,
        x=jnp.moveaxis(out.x, -1, 0),
        v=jnp.moveaxis(out.v, -1, 0),
        steps=state.steps + out.steps,
        unfinished=state.unfinished | out.unfinished,
    )


def _relieved(
    spec: Ensemble, systems: _Columns, lanes: _Lanes, out: _Arrived, queued: Array
) -> tuple[_Lanes, _Arrived, Array]:
    """Write down what has arrived and take up what is waiting."""
    count = systems.dt.shape[0]
    free = _finished(spec, lanes)
    # an idle lane's owner is `count`, a place that is dropped: nothing is written down twice
    place = jnp.where(free, lanes.owner, count)
    put = lambda column, new: column.at[..., place].set(new, mode="drop")
    late = ~(lanes.t == lanes.span)  # negative or nan, it is never reached
    out = _Arrived(
        x=put(out.x, lanes.x),
        v=put(out.v, lanes.v),
        steps=put(out.steps, lanes.steps),
        unfinished=put(out.unfinished, late),
    )
    following = queued + jnp.cumsum(free, dtype=jnp.int32) - 1
    fresh = _loaded(systems, jnp.where(free, jnp.minimum(following, count), count))
    lanes = jax.tree.map(lambda new, old: jnp.where(_to(free, new), new, old), fresh, lanes)
    return lanes, out, jnp.minimum(queued + jnp.sum(free, dtype=jnp.int32), count)


def _finished(spec: Ensemble, lanes: _Lanes) -> Array:
    return ~(lanes.t < lanes.span) | (lanes.tries >= spec.most)


def _loaded(systems: _Columns, owner: Array) -> _Lanes:
    """Lanes with the systems `owner` [W] at their start; the last one stands in for none."""
    some = jax.tree.map(lambda q: jnp.take(q, owner, axis=-1, mode="clip"), systems)
    x, v, m, span = some.x, some.v, some.m, some.dt
    a = _pull(m, x)
    # a guess: what follows is judged, and taken again where it was too long
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
    return _Lanes(
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
    moved = [kahan.added(*q) for q in ((lanes.x, lanes.low[0], dx), (lanes.v, lanes.low[1], dv))]
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


def _to(mask: Array, like: Array) -> Array:
    return mask.reshape((1,) * (like.ndim - 1) + mask.shape)
