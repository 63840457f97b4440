"""Massless bodies close to a star: Kepler's motion about it, and all others as a perturbation.

A body within `Pairing.close` of a star that dominates there is carried from step to step by its
exact two-body motion, on any conic, however deep it dives. The pull of all other bodies, relative
to what they do to the star, acts through kicks at both ends of the step, in which the values and
the derivatives of the perturbation count as in Hermite's quadrature; the error of a step is of
fourth order, times the perturbation alone.

Steps are proportional to the distance (equal in the eccentric anomaly, as for the regularised pairs
of `binaries`), so that an encounter takes a bounded number of them at any depth. Bodies that belong
to a star in a pair are left to the block steps.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.pytree import pytree

from ..orbits import ks
from .binary import sight
from .binary.sight import Pull
from .binary.slots import Slots
from .blocks import Hermite, Population, next_step, predicted, size
from .massless import Massless
from .once import once
from .tiles import Move

_ENTER, _LEAVE = 1 / 30, 1 / 10  # perturbation over attraction
_STEP = 1.8  # times sqrt(eta): of the time in which an orbit crosses `close`, and less nearer
_GATE = 12.5  # as `massless`: steps this close to a star are no longer than sqrt(12.5 eta r^3 / m)


@pytree
class Stars:
    """The stars at the time of a block."""

    sources: Array  # [6, N] as predicted, which forces come from
    places: Array  # [6, N] where they are, those in pairs too
    free: Array  # [N] bool: not in a pair
    now: Array  # [] part of the interval


def near(spec: Hermite, tracers: Massless) -> Array:
    """Which massless bodies [B] have a host, or may be near enough to a star to get one."""
    short = jnp.sqrt(_GATE * spec.eta * spec.pairing.close**3 / jnp.mean(spec.m)) / spec.interval
    return (tracers.host < spec.m.shape[0]) | (tracers.dt < short)


def move(spec: Hermite, pull: Pull, stars: Callable[[], Stars], any: Array) -> Move[Massless]:
    """How those that are `near` move, after those without a host were brought to now.

    Args:
        spec: how to integrate.
        pull: the pull of all bodies, now.
        stars: `seen`, called only where bodies are near a star.
        any: whether there are.
    """
    count = spec.m.shape[0]
    nothing = lambda: jax.tree.map(lambda q: jnp.zeros(q.shape, q.dtype), jax.eval_shape(stars))
    them = lax.cond(any, stars, nothing)

    def moved(some: Array, old: Massless) -> tuple[Massless, Array]:
        hosted = old.host < count
        host = jnp.where(hosted, old.host, _nearest(them, old.x))
        d = old.x - jnp.take(them.places, host, axis=1)
        close = hosted | (size(d[:3]) < spec.pairing.close)
        settled = lambda old: _settled(spec, old, host, pull, them)
        return once(jnp.any(close), settled, old), some < 0

    return moved


def seen(
    spec: Hermite, sources: Array, stars: Population, slots: Slots, apart: Array, now: Array
) -> Stars:
    """The stars at `now`, predicted at `sources` [6, N] before those that were due moved.

    apart: state [6, S] of the pairs.
    """
    pair, here = slots.pairs, predicted(spec, stars, now)
    one, two = sight.places(pair, jnp.take(here, pair.first, axis=1, mode="clip"), apart)
    place = here.at[:, pair.first].set(one, mode="drop").at[:, pair.second].set(two, mode="drop")
    return Stars(sources, place, slots.weights == spec.m, now)


def _settled(spec: Hermite, old: Massless, host: Array, pull: Pull, them: Stars) -> Massless:
    """The bodies of a tile, brought to now by their hosts, some with new ones."""
    count = spec.m.shape[0]
    hosted = old.host < count
    gm, free = (jnp.take(q, host) for q in (spec.m, them.free))
    home, place = (jnp.take(q, host, axis=1) for q in (them.sources, them.places))
    h = jnp.where(hosted, spec.interval * (them.now - old.t), 0)[None]
    # what has a host is where that brings it; another is where it was left a moment ago
    at = jnp.where(hosted[None], home + _drifted(old, hosted, gm, h), old.x)
    apart = at - jnp.where(hosted[None], home, place)
    # with a host that was taken, the tide is as before, and the pull felt where that leads to
    lost, past = hosted & ~free, _kicked(apart, h, old.past)
    here = jnp.where(lost[None], place + past, at)
    nobody = jnp.full(2 * host.size, count, jnp.int32)
    f, there = jnp.split(pull(nobody, jnp.concatenate([here, home], 1)), 2, axis=1)
    tide = f - _attraction(home - at, gm) - there
    apart = jnp.where(lost[None], past, _kicked(apart, h, tide))
    x = jnp.where(hosted[None], place + apart, old.x)
    stays = _dominates(spec, size(apart[:3]), size(tide[:3]), gm, hosted) & free
    wanted = jnp.where(stays, _step(spec, apart, size(tide[:3]), gm), _leaving(spec, apart, gm))
    dt, _ = next_step(spec, old.dt, wanted, them.now)
    touched = stays | hosted
    keep = lambda value, other: jnp.where(touched[None], jnp.where(stays[None], value, 0), other)
    return Massless(
        x,
        jnp.where(touched[None], f, old.a),
        keep(apart, old.s),
        keep(tide, old.past),
        jnp.where(touched, 0, old.gap),
        jnp.where(touched, them.now, old.t),
        jnp.where(touched, dt, old.dt),
        jnp.where(stays, host, count).astype(jnp.int32),
    )


def _drifted(old: Massless, hosted: Array, gm: Array, h: Array) -> Array:
    """The state [6, B] relative to the host after the kick that begins the step, and the drift."""
    p, rate = old.past[:3], old.past[3:]
    r = jnp.where(hosted[None], old.s[:3] - h * h / 12 * p, 1)
    v = jnp.where(hosted[None], old.s[3:] + h / 2 * (p + h / 6 * rate), 0)
    return jnp.concatenate(ks.physical(ks.after(ks.regularised(r, v, gm), h[0])))


def _kicked(apart: Array, h: Array, tide: Array) -> Array:
    """The state [6, B] relative to the host after the kick that ends a step of `h`."""
    v = apart[3:] + h / 2 * (tide[:3] - h / 6 * tide[3:])
    return jnp.concatenate([apart[:3] + h * h / 12 * tide[:3], v])


def _dominates(spec: Hermite, r: Array, tide: Array, gm: Array, hosted: Array) -> Array:
    """Whether the host's pull is all but the only one; a host is left later than found."""
    limit, reach = jnp.where(hosted, _LEAVE, _ENTER), jnp.where(hosted, 2.0, 1.0)
    return (tide * r * r < limit * gm) & (r < reach * spec.pairing.close)


def _step(spec: Hermite, apart: Array, tide: Array, gm: Array) -> Array:
    """The step [B] of a hosted body: a part of an orbit, and of the time in which a tide acts."""
    r, v = size(apart[:3]), size(apart[3:])
    beta = 2 * gm / r - v * v  # gm / a; minus the square of the speed at infinity
    speed = jnp.sqrt(jnp.maximum(jnp.abs(beta), gm / spec.pairing.close))
    slow = jnp.sqrt(r / jnp.maximum(tide, jnp.finfo(r.dtype).tiny))
    return _STEP * jnp.sqrt(spec.eta) * jnp.minimum(r / speed, slow)


def _leaving(spec: Hermite, apart: Array, gm: Array) -> Array:
    """The first step [B] on one's own: half of Aarseth's, on a circle or a straight line."""
    r, v = size(apart[:3]), size(apart[3:])
    return jnp.sqrt(spec.eta) / 2 * jnp.minimum(jnp.sqrt(r * r * r / gm), r / v)


def _nearest(them: Stars, at: Array) -> Array:
    """Index [B] of the free star nearest to each place [6, B]."""
    d = them.sources[:3, :, None] - at[:3, None, :]
    r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2]
    return jnp.argmin(jnp.where(them.free[:, None], r2, jnp.inf), axis=0).astype(jnp.int32)


def _attraction(d: Array, gm: Array) -> Array:
    """Acceleration and jerk [6, B] by a body at relative positions over velocities [6, B]."""
    r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2]
    w = gm * lax.rsqrt(r2) / r2
    q = 3 * (d[0] * d[3] + d[1] * d[4] + d[2] * d[5]) / r2
    return jnp.concatenate([w[None] * d[:3], w[None] * (d[3:] - q[None] * d[:3])])
