"""A log of close encounters, of fixed capacity, written between two moments of any integration.

Of two bodies that approach each other before and recede after, a pericentre lies in between,
however brief it was. Its distance is that of the two-body orbit through whichever moment is nearer
to it: exact for a flyby that no third body disturbs in that time. Bound pairs that turn more than
once between the moments are binaries and not logged. O(N K) time for K bodies, O(N) memory.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu import ranges
from jaxgpu.pytree import pytree

from .. import layout
from ..layout import Columns
from ..orbits import kepler


@pytree
class Log:
    """The encounters so far, in order of the moments between which they were."""

    time: Array  # [C] of the pericentre
    body: Array  # [C] int32: whose encounter
    star: Array  # [C] int32: with which star
    distance: Array  # [C] of the pericentre
    speed: Array  # [C] relative, at the pericentre
    count: Array  # [] int32: encounters so far; above C, the later ones were lost


def empty(capacity: int, like: Array) -> Log:
    """A log with room for `capacity` encounters, in the dtype of `like`."""
    ranges.numbers("encounters.empty: capacity", capacity, (), whole=True, least=1)
    none, where = jnp.zeros(capacity, like.dtype), jnp.zeros(capacity, jnp.int32)
    return Log(none, where, where, none, none, jnp.int32(0))


def watched(log: Log, time: tuple, stars: tuple, m: Array, radius: Array | float) -> Log:
    """The log with all encounters of stars among each other, closer than `radius`, added.

    Args:
        log: what was logged so far.
        time: the two moments.
        stars: positions over velocities [6, N] at both.
        m: masses [N].
        radius: pericentres beyond it are not logged.

    Of several encounters of one star between the moments, the closest is logged.
    """
    stars, m = _checked("encounters.watched", time, stars, m, radius)
    return _written(log, time, _closest(stars, stars, (m, m), time, radius), (m, m), True)


def watched_tracers(
    log: Log, time: tuple, tracers: tuple, stars: tuple, m: Array, radius: Array | float
) -> Log:
    """The log with all encounters of massless bodies [6, M] with stars [6, N] added."""
    name = "encounters.watched_tracers"
    stars, m = _checked(name, time, stars, m, radius)
    tracers = tuple(layout.columns(f"{name}: tracers", points, 6) for points in tracers)
    masses = jnp.zeros(tracers[0].shape[1], m.dtype), m
    return _written(log, time, _closest(tracers, stars, masses, time, radius), masses, False)


def _checked(
    name: str, time: tuple, stars: tuple, m: Array, radius: Array | float
) -> tuple[tuple, Array]:
    """The stars at both moments and their masses; of six stars, said to lie as they do."""
    stars = tuple(layout.columns(f"{name}: stars", points, 6) for points in stars)
    m = ranges.numbers(f"{name}: m", m, shape=stars[0].shape[1:], least=0)
    ranges.numbers(f"{name}: radius", radius, (), above=0, infinite=True)
    for moment in time:
        ranges.numbers(f"{name}: time", moment, ())
    return stars, m


def table(log: Log) -> dict[str, np.ndarray]:
    """The log on the host, without its spare room.

    Raises:
        RuntimeError: there were more encounters than the log holds.
    """
    count, room = int(log.count), log.time.shape[0]
    if count > room:
        raise RuntimeError(
            f"encounters.table: {count} encounters, room for {room}; give a capacity of {2 * count}"
        )
    names = ("time", "body", "star", "distance", "speed")
    return {name: np.asarray(getattr(log, name)[:count]) for name in names}


def _closest(bodies: tuple, stars: tuple, m: tuple, time: tuple, radius: Array | float) -> dict:
    """For each body its closest encounter: the star, when, how near, how fast, and whether any."""
    span = time[1] - time[0]

    def of_one(body: tuple[Array, Array, Array]) -> dict:
        before, after = ([s[k] - b[k] for k in range(6)] for s, b in zip(stars, body[:2]))
        gm = m[1] + body[2]
        near, q = _pericentres(before, after, gm)
        passed = (_dot(before) < 0) & (_dot(after) >= 0) & ~_turns(before, gm, span)
        q = jnp.where(passed & (_square(before) > 0), q, jnp.inf)
        star = jnp.argmin(q).astype(jnp.int32)
        state = [jnp.where(near[star], a[star], b[star]) for a, b in zip(after, before)]
        wait, _ = kepler.pericentre(
            Columns(jnp.stack(state[:3])), Columns(jnp.stack(state[3:])), gm[star]
        )
        wait = jnp.clip(jnp.where(near[star], span + wait, wait), 0, span)
        spin = jnp.sqrt(_spin(state))
        return {
            "star": star,
            "time": time[0] + wait,
            "distance": q[star],
            "speed": spin / q[star],
            "any": q[star] < radius,
        }

    return lax.map(of_one, (bodies[0].T, bodies[1].T, m[0]), batch_size=16)


def _pericentres(before: list, after: list, gm: Array) -> tuple[Array, Array]:
    """Whether the later moment is nearer to the pericentre, and its distance from there."""
    near = jnp.abs(_dot(after)) * _fast(before) < jnp.abs(_dot(before)) * _fast(after)
    d = [jnp.where(near, a, b) for a, b in zip(after, before)]
    spin = _spin(d)
    r = jnp.sqrt(jnp.where(_square(d) > 0, _square(d), 1))
    e2 = 1 + (_fast(d) - 2 * gm / r) * spin / (gm * gm)
    return near, spin / (gm * (1 + jnp.sqrt(jnp.maximum(e2, 0))))


def _turns(d: list, gm: Array, span: Array) -> Array:
    """Whether a pair is bound and turns more than once in the time."""
    r = jnp.sqrt(jnp.where(_square(d) > 0, _square(d), 1))
    beta = 2 * gm / r - _fast(d)
    return (beta > 0) & (2 * np.pi * gm < span * jnp.maximum(beta, 0) ** 1.5)


def _written(log: Log, time: tuple, found: dict, m: tuple, both: bool) -> Log:
    """The log with what was found; of two stars that found each other, the first writes."""
    body = jnp.arange(m[0].shape[0], dtype=jnp.int32)
    keep = found["any"]
    if both:
        partner = found["star"]
        mutual = (partner[partner] == body) & keep[partner]
        keep = keep & ~(mutual & (partner < body))
    room = log.time.shape[0]
    place = log.count + jnp.cumsum(keep, dtype=jnp.int32) - 1
    place = jnp.where(keep, place, room)
    put = lambda all, some: all.at[place].set(some, mode="drop")
    return Log(
        put(log.time, found["time"]),
        put(log.body, body),
        put(log.star, found["star"]),
        put(log.distance, found["distance"]),
        put(log.speed, found["speed"]),
        log.count + jnp.sum(keep, dtype=jnp.int32),
    )


def _dot(d: list) -> Array:
    return d[0] * d[3] + d[1] * d[4] + d[2] * d[5]


def _square(d: list) -> Array:
    return d[0] * d[0] + d[1] * d[1] + d[2] * d[2]


def _fast(d: list) -> Array:
    return d[3] * d[3] + d[4] * d[4] + d[5] * d[5]


def _spin(d: list) -> Array:
    x, v = d[:3], d[3:]
    h = [x[k - 2] * v[k - 1] - x[k - 1] * v[k - 2] for k in range(3)]
    return h[0] * h[0] + h[1] * h[1] + h[2] * h[2]
