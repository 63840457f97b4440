"""Tracers, bodies without mass: block steps of sixth order with one force evaluation per step.

The Hermite corrector (Makino & Aarseth 1992, PASJ 44, 141) interpolates acceleration and jerk at
both ends of a step. Together with the stored values at the start of the previous step they define a
polynomial of degree five. The error falls with the sixth power of the step, without another force
evaluation. The difference between sixth and fourth order estimates the error of the step and sets
the next one. Without a usable previous step (at the start, or if the step is now much shorter) the
step is of fourth order, with the length of Aarseth's criterion for stars.

Tracers do not act on other bodies: they are only targets of the pair sum.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array

from jaxgpu.devices.precision import safe_tiny
from jaxgpu.inputs.fields import pytree

from .blocks import PairedSteps, first_step, next_step, norm, pull_and_snap
from .rows import Vector, concat, map_rows

_REMEMBERED = 4.0  # maximum ratio of the previous step to this one for a usable previous step
_CAUTION = 12.5  # a step is at most sqrt(12.5) times that of Aarseth's criterion
_TOLERANCE = 0.0375  # times eta^2: as accurate as fourth-order steps by Aarseth's criterion


@pytree
class Tracers:
    """Tracers with their last computed state, each at its individual time.

    Invariant: a tracer with a host stores its state relative to the host in `s` and the tide in
    `past`, without a previous step (`gap` 0). Others store snap and crackle, and the previous step.
    """

    x: Array  # [6, M] position and velocity
    a: Array  # [6, M] acceleration and jerk
    s: Array  # [6, M] snap and crackle; with a host, position and velocity relative to it
    past: Array  # [6, M] previous acceleration and jerk; with a host, the tide and its derivative
    gap: Array  # [M] length of the previous step, time; 0 if it is not usable
    t: Array  # [M] time of the state as a fraction of the interval: an exact dyadic number
    dt: Array  # [M] next step as a fraction of the interval: an exact power of two
    host: Array  # [M] int32: its host star, see `close_encounters`; N for none


def init(spec: PairedSteps, x: Array, stars: Array, m: Array, a: Array, tide: Callable) -> Tracers:
    """Return tracers at `x` [6, M] between two steps, without hosts.

    Args:
        spec: settings of the integrator.
        x: positions over velocities.
        stars: positions over velocities of the stars [6, N].
        m: masses of the stars [N].
        a: acceleration [3, N] of the stars.
        tide: returns external acceleration and jerk [6, M].
    """
    f, snap = pull_and_snap(spec, x, stars, a, m)
    f = f + tide(x)
    end = jnp.ones(x.shape[1], x.dtype)  # all times are 1 between two calls of `step`
    return Tracers(
        x=x,
        a=f,
        s=jnp.concatenate([snap, jnp.zeros_like(snap)]),
        past=jnp.zeros_like(f),
        gap=jnp.zeros_like(end),
        t=end,
        dt=first_step(spec, f, snap),
        host=jnp.full(x.shape[1], m.shape[0], jnp.int32),
    )


def predict(spec: PairedSteps, tracers: Tracers, now: Array) -> Vector:
    """Predict positions and velocities [6, M] at `now` by Taylor series to the crackle."""
    h = spec.interval * (now - tracers.t)

    def taylor(
        h: Array, x: Array, v: Array, a: Array, j: Array, s: Array, c: Array
    ) -> tuple[Array, Array]:
        position = x + h * (v + h / 2 * (a + h / 3 * (j + h / 4 * (s + h / 5 * c))))
        return position, v + h * (a + h / 2 * (j + h / 3 * (s + h / 4 * c)))

    known = (q[k : k + 3] for q in (tracers.x, tracers.a, tracers.s) for k in (0, 3))
    return concat(*map_rows(taylor, (h,), *known))


def correct(spec: PairedSteps, old: Tracers, f: Vector, now: Array) -> tuple[Tracers, Array]:
    """Correct tracers with the force `f` [6, B] at `now`; also return a mask of floored steps.

    Between the ends a(t) = cubic + t^2 (t - h)^2 (alpha + beta t). The correction does not change
    acceleration and jerk at both ends. It matches them also at -g, the start of the previous step.
    """
    part = now - old.t
    h = spec.interval * jnp.where(part > 0, part, 1)  # padding lanes are not due: avoids 0 / 0
    known = (old.gap > 0) & (old.gap <= _REMEMBERED * h)
    given = (q[k : k + 3] for q in (old.x, old.a, old.past, f) for k in (0, 3))
    numbers = h, jnp.where(known, old.gap, h), known
    x, v, snap, crackle, missed = map_rows(_hermite_corrector, numbers, *given)
    s = concat(snap, crackle)
    error = jnp.where(known, norm(missed), jnp.inf)
    dt, low = next_step(spec, old.dt, _desired_step(spec, f, s, h, error), now)
    new = Tracers(
        x=concat(x, v),
        a=f,
        s=s,
        past=old.a,
        gap=h,
        t=jnp.full_like(old.t, now),
        dt=dt,
        host=old.host,
    )
    return new, low


def _hermite_corrector(
    h: Array,
    g: Array,
    known: Array,
    x0: Array,
    v0: Array,
    a0: Array,
    j0: Array,
    past: Array,
    past_jerk: Array,
    a1: Array,
    j1: Array,
) -> tuple[Array, Array, Array, Array, Array]:
    """Return position, velocity, snap and crackle after a step `h`, and the error of the cubic.

    g: the previous step, if it is `known`.
    """
    snap = (-6 * (a0 - a1) - h * (4 * j0 + 2 * j1)) / (h * h)  # of the cubic, at the start
    crackle = (12 * (a0 - a1) + 6 * h * (j0 + j1)) / (h * h * h)
    miss = past - (a0 - g * (j0 - g / 2 * (snap - g / 3 * crackle)))
    slope = past_jerk - (j0 - g * (snap - g / 2 * crackle))
    first = miss / (g * g * (g + h) ** 2)  # alpha - beta g
    beta = slope / (g * g * (g + h) ** 2) + 2 * (2 * g + h) / (g * (g + h)) * first
    beta, alpha = jnp.where(known, beta, 0), jnp.where(known, first + beta * g, 0)
    v = v0 + h / 2 * (a0 + a1) + h * h / 12 * (j0 - j1)
    v = v + h**5 * (alpha / 30 + beta * h / 60)
    # twice the integral of the polynomial, since the usual position corrector has a lower order
    x = 3 * a1 + 7 * a0 + h / 3 * (3 * j0 - 2 * j1) + h**4 * (alpha / 3 + beta * h / 7)
    x = x0 + h * v0 + h * h / 20 * x
    end = alpha + beta * h
    snap = snap + h * (crackle + 2 * h * end)
    return x, v, snap, crackle + h * (12 * end + 6 * h * beta), h**4 * alpha / 30


def _desired_step(spec: PairedSteps, f: Vector, s: Vector, h: Array, error: Array) -> Array:
    """Return the next step [B] after a step `h`; `error` is that of the cubic, inf if unknown."""
    a, jerk, snap, crackle = (norm(q[k : k + 3]) for q in (f, s) for k in (0, 3))
    above, below = a * snap + jerk * jerk, jerk * crackle + snap * snap
    # without any force, up to rounding of the previous one, the step is the longest
    free = (above == 0) | (below == 0)
    aarseth = jnp.sqrt(spec.eta * above / jnp.where(free, 1, below))
    room = _TOLERANCE * spec.eta * spec.eta * a / jnp.maximum(error, safe_tiny(a.dtype))
    longer = jnp.minimum(h * jnp.sqrt(jnp.sqrt(room)), aarseth * _CAUTION**0.5)
    return jnp.where(free, jnp.inf, jnp.where(jnp.isinf(error), aarseth, longer))
