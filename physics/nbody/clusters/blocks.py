"""Bodies with steps of their own: the block structure of time, and prediction in it.

Steps are powers of two of an interval and commensurate with the time (McMillan 1986), so that the
bodies that are due are those whose time is equal to the bit. Makino & Aarseth (1992), PASJ 44, 141.
"""

from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.pytree import number, pytree
from jaxgpu.pytree import size as whole

from ..forces import pairs
from ..forces.tide import Alone, Tide


@pytree
class Pairing:
    """Which close pairs are regularised, and how; see `binaries`. No slots, no pairs."""

    close: Array | float = number(
        default=0.0, least=0
    )  # [] length: semi-major axis of a pair of mean stars at most
    weak: Array | float = number(
        default=1e-6, above=0
    )  # [] perturbation below which a pair is slowed down, seen as a point
    strong: Array | float = number(
        default=0.05, above=0
    )  # [] perturbation above which it is a pair no more
    kicks: Array | float = number(
        default=32.0, above=0
    )  # [] by the others in an orbit; more if it is disturbed
    slots: int = whole(default=0, least=0)  # how many pairs at a time


@pytree
class Hermite:
    """How to integrate. Lengths, times and masses in units in which G is 1."""

    m: Array = number(above=0)  # [N] masses of the stars
    eta: Array | float = number(
        default=0.02, above=0
    )  # [] accuracy of the steps: dt = sqrt(eta ...)
    softening: Array | float = number(default=0.0, least=0)  # [] length; 0 for none
    interval: Array | float = number(
        default=0.125, above=0
    )  # [] time that one call of `step` covers
    pairing: Pairing = Pairing()  # which close pairs are regularised; none by default
    tide: Tide | Alone = Alone()  # of a galaxy
    longest: int = whole(default=2, least=0)  # steps are at most interval / 2^longest
    shortest: int = whole(default=40, least=1)  # and at least interval / 2^shortest; 23 in float32
    tile: int = whole(default=16, least=1)  # bodies advanced together, on a CPU
    bulk: int = whole(default=256, least=1)  # massless bodies advanced together where many are due


class Steps(Protocol):
    """How long steps may be."""

    @property
    def interval(self) -> Array | float: ...

    @property
    def longest(self) -> int: ...

    @property
    def shortest(self) -> int: ...


@pytree
class Population:
    """Bodies with their last known state, each at a time of its own."""

    x: Array  # [6, N] position and velocity
    a: Array  # [6, N] acceleration and jerk
    t: Array  # [N] time of that state, as a part of the interval: a dyadic number, exactly
    dt: Array  # [N] step to take next, as a part of the interval: a power of two, exactly


def predicted(spec: Hermite, group: Population, now: Array) -> Array:
    """Positions and velocities [6, N] at `now`, by Taylor series to the jerk."""
    h = (spec.interval * (now - group.t))[None]
    x, v, a, j = group.x[:3], group.x[3:], group.a[:3], group.a[3:]
    return jnp.concatenate([x + h * (v + h / 2 * (a + h / 3 * j)), v + h * (a + h / 2 * j)])


def first_step(spec: Hermite, a: Array, snap: Array) -> Array:
    """The step [N] of bodies with acceleration and jerk [6, N] and `snap` [3, N], of the interval.

    Aarseth's criterion as for a circular orbit, whose crackle is to the snap as that to the jerk;
    with no more than acceleration and jerk, a body at rest would take any step.
    """
    a, j, s = size(a[:3]), size(a[3:]), size(snap)
    free = s == 0
    wanted = jnp.sqrt(spec.eta * (a * s + j * j) / jnp.where(free, 1, 2 * s * s))
    return quantised(spec, jnp.where(free, jnp.inf, wanted) / spec.interval)


def pull_and_snap(
    spec: Hermite, x: Array, sources: Array, a: Array, m: Array
) -> tuple[Array, Array]:
    """Acceleration and jerk [6, K] at `x` by `sources`, and snap [3, K].

    a: acceleration [3, N] of the sources.
    """
    pull = lambda x, sources: pairs.pull(x, sources, m, spec.softening)
    f = pull(x, sources)
    along = lambda x, a: jnp.concatenate([x[3:], a])
    ways = along(x, f[:3]), along(sources, a)
    return f, jax.jvp(pull, (x, sources), ways)[1][3:]


def next_step(spec: Steps, dt: Array, wanted: Array, now: Array) -> tuple[Array, Array]:
    """The next steps: shorter at once, longer by one power where the block structure allows."""
    wanted = wanted / spec.interval
    twice = jnp.minimum(2 * dt, 2.0**-spec.longest)
    fits = jnp.floor(now / twice) * twice == now
    longer = jnp.where((wanted >= twice) & fits, twice, dt)
    dt = jnp.where(wanted < dt, quantised(spec, wanted), longer)
    return dt, ~(wanted >= 2.0 ** -_deepest(spec, wanted))


def fitting_step(spec: Steps, dt: Array, now: Array) -> Array:
    """The largest power of two up to `dt` [] that divides `now`, where bodies begin anew."""
    steps = _steps(spec, dt)
    fits = (steps <= dt) & (jnp.floor(now / steps) * steps == now)
    return jnp.max(jnp.where(fits, steps, steps[-1]))


def quantised(spec: Steps, wanted: Array) -> Array:
    """The largest allowed power of two that is not longer than `wanted`, part of an interval."""
    deepest = _deepest(spec, wanted)
    depth = jnp.ceil(-jnp.log2(wanted))
    depth = jnp.where(jnp.isnan(depth), deepest, depth)
    depth = jnp.clip(depth, spec.longest, deepest).astype(jnp.int32)
    # from a table, because XLA's exp2 is not exact and a block is found by equal times
    return _steps(spec, wanted)[depth]


def _deepest(spec: Steps, like: Array) -> int:
    """How often an interval is halved at most: a shorter step would not move the time."""
    return min(spec.shortest, jnp.finfo(like.dtype).nmant)


def _steps(spec: Steps, like: Array) -> Array:
    return jnp.asarray(0.5 ** np.arange(_deepest(spec, like) + 1), like.dtype)


def size(vector: Array) -> Array:
    """Euclidean length [...] of a vector [3, ...]."""
    return jnp.sqrt(vector[0] * vector[0] + vector[1] * vector[1] + vector[2] * vector[2])
