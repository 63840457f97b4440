"""Close encounters of tracers with a star: Kepler's motion about it, all others a perturbation.

A tracer within `Pairing.close` of a star that dominates there, its *host*, is carried from step to
step by its exact two-body motion, on any conic, however deep it dives. The pull of all other
bodies, relative to what they do to the host, acts through kicks at both ends of the step, in which
the values and the derivatives of the perturbation count as in Hermite's quadrature; the error of a
step is of fourth order, times the perturbation alone.

Steps are proportional to the distance (equal in the eccentric anomaly, as for regularised pairs),
so that an encounter takes a bounded number of them at any depth. Tracers about a star that is in a
pair are left to the block steps.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.pytree import pytree

from ..orbits import ks
from .binary.ks_pairs import Pairs
from .binary.members import places
from .blocks import PairedSteps, Population, next_step, predicted, size
from .scheduler import Move, change_if
from .tracers import Tracers

_ENTER, _LEAVE = 1 / 30, 1 / 10  # perturbation over attraction
_STEP = 1.8  # times sqrt(eta): of the time in which an orbit crosses `close`, and less nearer
_GATE = 12.5  # as `tracers`: steps this close to a star are no longer than sqrt(12.5 eta r^3 / m)


@pytree
class Hosts:
    """The stars at the time of a block, as those that may be hosts."""

    sources: Array  # [6, N] as predicted, which forces come from
    x: Array  # [6, N] where they are, those in pairs too
    m: Array  # [N] their masses
    free: Array  # [N] bool: not in a pair
    now: Array  # [] part of the interval


def hosts_at(
    spec: PairedSteps,
    sources: Array,
    stars: Population,
    pairs: Pairs,
    relative: Array,
    now: Array,
) -> Hosts:
    """The stars at `now`, predicted at `sources` [6, N] before those that were due moved.

    relative: state [6, S] of the pairs.
    """
    pair, here = pairs.batch, predicted(spec, stars, now)
    one, two = places(pair, jnp.take(here, pair.first, axis=1, mode="clip"), relative)
    x = here.at[:, pair.first].set(one, mode="drop").at[:, pair.second].set(two, mode="drop")
    # a place that stands for another mass than its star's is the centre or the second of a pair
    return Hosts(sources=sources, x=x, m=pairs.m, free=pairs.weights == pairs.m, now=now)


def candidates(spec: PairedSteps, m: Array, tracers: Tracers) -> Array:
    """Which tracers [B] have a host, or may be near enough to a star to get one.

    m: masses [N] of the stars.
    """
    short = jnp.sqrt(_GATE * spec.eta * spec.pairing.close**3 / jnp.mean(m)) / spec.interval
    return (tracers.host < m.shape[0]) | (tracers.dt < short)


def move(
    spec: PairedSteps,
    force: Callable[[Array], Array],
    hosts: Callable[[], Hosts],
    listed: Array,
) -> Move[Tracers]:
    """How `candidates` move, after those without a host were brought to now.

    Args:
        spec: how to integrate.
        force: acceleration and jerk [6, K] of all bodies at [6, K], now.
        hosts: `hosts_at`, called only where there are candidates.
        listed: how many candidates there are, or whether.
    """
    nothing = lambda: jax.tree.map(lambda q: jnp.zeros(q.shape, q.dtype), jax.eval_shape(hosts))
    stars = lax.cond(listed, hosts, nothing)

    def moved(index: Array, old: Tracers) -> tuple[Tracers, Array]:
        hosted = old.host < stars.m.shape[0]
        host = jnp.where(hosted, old.host, _nearest(stars, old.x))
        d = old.x - jnp.take(stars.x, host, axis=1)
        close = hosted | (size(d[:3]) < spec.pairing.close)
        step = lambda old: _kepler_step(spec, old, host, force, stars)
        return change_if(jnp.any(close), step, old), index < 0

    return moved


def _kepler_step(
    spec: PairedSteps,
    old: Tracers,
    host: Array,
    force: Callable[[Array], Array],
    stars: Hosts,
) -> Tracers:
    """The tracers of a tile, brought to now by their hosts, some with new ones."""
    count = stars.m.shape[0]
    hosted = old.host < count
    gm, free = (jnp.take(q, host) for q in (stars.m, stars.free))
    home, place = (jnp.take(q, host, axis=1) for q in (stars.sources, stars.x))
    h = jnp.where(hosted, spec.interval * (stars.now - old.t), 0)[None]
    # what has a host is where that brings it; another is where it was left a moment ago
    at = jnp.where(hosted[None], home + _drifted(old, hosted, gm, h), old.x)
    relative = at - jnp.where(hosted[None], home, place)
    # with a host that was taken, the tide is as before, and the pull felt where that leads to
    lost, past = hosted & ~free, _kicked(relative, h, old.past)
    here = jnp.where(lost[None], place + past, at)
    # at the tracers and at their hosts, in one pass
    f, there = jnp.split(force(jnp.concatenate([here, home], 1)), 2, axis=1)
    tide = f - _attraction(home - at, gm) - there
    relative = jnp.where(lost[None], past, _kicked(relative, h, tide))
    x = jnp.where(hosted[None], place + relative, old.x)
    tide_size = size(tide[:3])
    stays = _dominates(spec, size(relative[:3]), tide_size, gm, hosted) & free
    step, first = _step(spec, relative, tide_size, gm), _first_free_step(spec, relative, gm)
    dt, _ = next_step(spec, old.dt, jnp.where(stays, step, first), stars.now)
    # those that neither had a host nor get one go through this as they came
    touched = stays | hosted
    keep = lambda value, other: jnp.where(touched[None], jnp.where(stays[None], value, 0), other)
    return Tracers(
        x=x,
        a=jnp.where(touched, f, old.a),
        s=keep(relative, old.s),
        past=keep(tide, old.past),
        gap=jnp.where(touched, 0, old.gap),
        t=jnp.where(touched, stars.now, old.t),
        dt=jnp.where(touched, dt, old.dt),
        host=jnp.where(stays, host, count).astype(jnp.int32),
    )


def _drifted(old: Tracers, hosted: Array, gm: Array, h: Array) -> Array:
    """The state [6, B] relative to the host after the kick that begins the step, and the drift."""
    p, rate = old.past[:3], old.past[3:]
    r = jnp.where(hosted[None], old.s[:3] - h * h / 12 * p, 1)
    v = jnp.where(hosted[None], old.s[3:] + h / 2 * (p + h / 6 * rate), 0)
    return jnp.concatenate(ks.physical(ks.after(ks.regularised(r, v, gm), h[0])))


def _kicked(relative: Array, h: Array, tide: Array) -> Array:
    """The state [6, B] relative to the host after the kick that ends a step of `h`."""
    v = relative[3:] + h / 2 * (tide[:3] - h / 6 * tide[3:])
    return jnp.concatenate([relative[:3] + h * h / 12 * tide[:3], v])


def _dominates(spec: PairedSteps, r: Array, tide: Array, gm: Array, hosted: Array) -> Array:
    """Whether the host's pull is all but the only one; a host is left later than found."""
    limit, reach = jnp.where(hosted, _LEAVE, _ENTER), jnp.where(hosted, 2.0, 1.0)
    return (tide * r * r < limit * gm) & (r < reach * spec.pairing.close)


def _step(spec: PairedSteps, relative: Array, tide: Array, gm: Array) -> Array:
    """The step [B] of a hosted tracer: a part of an orbit, and of the time in which a tide acts."""
    r, v = size(relative[:3]), size(relative[3:])
    beta = 2 * gm / r - v * v  # gm / a; minus the square of the speed at infinity
    speed = jnp.sqrt(jnp.maximum(jnp.abs(beta), gm / spec.pairing.close))
    slow = jnp.sqrt(r / jnp.maximum(tide, jnp.finfo(r.dtype).tiny))
    return _STEP * jnp.sqrt(spec.eta) * jnp.minimum(r / speed, slow)


def _first_free_step(spec: PairedSteps, relative: Array, gm: Array) -> Array:
    """The first step [B] without a host: half of Aarseth's, on a circle or a straight line."""
    r, v = size(relative[:3]), size(relative[3:])
    return jnp.sqrt(spec.eta) / 2 * jnp.minimum(jnp.sqrt(r * r * r / gm), r / v)


def _nearest(stars: Hosts, at: Array) -> Array:
    """Index [B] of the free star nearest to each place [6, B]."""
    d = stars.sources[:3, :, None] - at[:3, None, :]
    r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2]
    return jnp.argmin(jnp.where(stars.free[:, None], r2, jnp.inf), axis=0).astype(jnp.int32)


def _attraction(d: Array, gm: Array) -> Array:
    """Acceleration and jerk [6, B] by a body at relative positions over velocities [6, B]."""
    r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2]
    w = gm * lax.rsqrt(r2) / r2
    q = 3 * (d[0] * d[3] + d[1] * d[4] + d[2] * d[5]) / r2
    return jnp.concatenate([w[None] * d[:3], w[None] * (d[3:] - q[None] * d[:3])])
