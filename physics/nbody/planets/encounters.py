"""A log of close encounters, of fixed capacity, written between two moments of any integration.

Of two bodies that approach each other before and recede after, a pericentre lies in between,
however brief it was. Its distance is that of the two-body orbit through whichever moment is nearer
to it: exact for a flyby that no third body disturbs in that time. Bound pairs that turn more than
once between the moments are binaries and not logged. O(N K) time for K bodies, O(N) memory.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.geometry.vectors import cross, dot
from jaxgpu.inputs import ranges
from jaxgpu.inputs.doors import explained
from jaxgpu.inputs.fields import number, pytree

from .. import bodies
from ..orbits import kepler


@pytree
class Moment:
    """Where bodies are at one time."""

    t: Array | float = number()  # [] time
    x: Array = number()  # [N, 3] position
    v: Array = number()  # [N, 3] velocity


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
    none, index = jnp.zeros(capacity, like.dtype), jnp.zeros(capacity, jnp.int32)
    return Log(time=none, body=index, star=index, distance=none, speed=none, count=jnp.int32(0))


@explained
def watched(log: Log, before: Moment, after: Moment, m: Array, radius: Array | float) -> Log:
    """The log with all encounters of stars among each other, closer than `radius`, added.

    Args:
        log: what was logged so far.
        before: the stars at one moment.
        after: the stars at the next.
        m: masses [N].
        radius: pericentres beyond it are not logged.

    Of several encounters of one star between the moments, the closest is logged.

    Raises:
        ValueError: shapes that do not fit, values that are not finite, a negative mass, a radius
            that is not positive.
    """
    name = "encounters.watched"
    stars = [_columns(name, "stars", moment) for moment in (before, after)]
    m = _masses(name, m, stars[0].shape[1], radius)
    found = _closest(stars, stars, m, m, before.t, after.t, radius)
    # of two stars that found each other, the first writes
    body = jnp.arange(m.shape[0], dtype=jnp.int32)
    partner = found["star"]
    mutual = (partner[partner] == body) & found["any"][partner]
    return _written(log, found, found["any"] & ~(mutual & (partner < body)))


@explained
def watched_tracers(
    log: Log,
    before: Moment,
    after: Moment,
    tracers_before: Moment,
    tracers_after: Moment,
    m: Array,
    radius: Array | float,
) -> Log:
    """The log with all encounters of tracers [M, 3] with stars [N, 3] added.

    Args:
        log: what was logged so far.
        before: the stars at one moment.
        after: the stars at the next.
        tracers_before: the tracers at the first of the moments.
        tracers_after: the tracers at the second.
        m: masses of the stars [N].
        radius: pericentres beyond it are not logged.

    Raises:
        ValueError: as `watched`.
    """
    name = "encounters.watched_tracers"
    stars = [_columns(name, "stars", moment) for moment in (before, after)]
    tracers = [_columns(name, "tracers", moment) for moment in (tracers_before, tracers_after)]
    m = _masses(name, m, stars[0].shape[1], radius)
    massless = jnp.zeros(tracers[0].shape[1], m.dtype)
    found = _closest(tracers, stars, massless, m, before.t, after.t, radius)
    return _written(log, found, found["any"])


def _columns(name: str, which: str, moment: Moment) -> Array:
    """Positions over velocities [6, N]: the kernel's layout."""
    ranges.numbers(f"{name}: t", moment.t, ())
    x = bodies.vectors(f"{name}: {which}, x", moment.x)
    v = bodies.vectors(f"{name}: {which}, v", moment.v)
    if x.ndim != 2 or x.shape != v.shape:
        shapes = f"x {list(x.shape)}, v {list(v.shape)}"
        raise ValueError(f"{name}: {which}, {shapes}; they must be [N, 3], both alike")
    return jnp.concatenate([jnp.asarray(x).T, jnp.asarray(v).T])


def _masses(name: str, m: Array, count: int, radius: Array | float) -> Array:
    ranges.numbers(f"{name}: radius", radius, (), above=0, infinite=True)
    return jnp.asarray(ranges.numbers(f"{name}: m", m, shape=(count,), least=0))


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


def _closest(
    moving: list[Array],
    stars: list[Array],
    m_moving: Array,
    m_stars: Array,
    start: Array | float,
    end: Array | float,
    radius: Array | float,
) -> dict[str, Array]:
    """For each body its closest encounter: the star, when, how near, how fast, and whether any."""
    span = end - start

    def of_one(body: tuple[Array, Array, Array]) -> dict[str, Array]:
        before, after = ([s[k] - b[k] for k in range(6)] for s, b in zip(stars, body[:2]))
        gm = m_stars + body[2]
        near, q = _pericentres(before, after, gm)
        passed = (_radial(before) < 0) & (_radial(after) >= 0) & ~_turns(before, gm, span)
        # a star is at no distance from itself
        q = jnp.where(passed & (_distance2(before) > 0), q, jnp.inf)
        star = jnp.argmin(q).astype(jnp.int32)
        state = [jnp.where(near[star], a[star], b[star]) for a, b in zip(after, before)]
        x, v = jnp.stack(state[:3]), jnp.stack(state[3:])
        wait, _ = kepler.pericentre_components(x, v, gm[star])
        wait = jnp.clip(jnp.where(near[star], span + wait, wait), 0, span)
        spin = jnp.sqrt(_spin(state))
        return {
            "star": star,
            "time": start + wait,
            "distance": q[star],
            "speed": spin / q[star],
            "any": q[star] < radius,
        }

    return lax.map(of_one, (moving[0].T, moving[1].T, m_moving), batch_size=16)


def _pericentres(before: list, after: list, gm: Array) -> tuple[Array, Array]:
    """Whether the later moment is nearer to the pericentre, and its distance from there."""
    near = jnp.abs(_radial(after)) * _speed2(before) < jnp.abs(_radial(before)) * _speed2(after)
    d = [jnp.where(near, a, b) for a, b in zip(after, before)]
    spin = _spin(d)
    r = jnp.sqrt(jnp.where(_distance2(d) > 0, _distance2(d), 1))
    e2 = 1 + (_speed2(d) - 2 * gm / r) * spin / (gm * gm)
    return near, spin / (gm * (1 + jnp.sqrt(jnp.maximum(e2, 0))))


def _turns(d: list, gm: Array, span: Array | float) -> Array:
    """Whether a pair is bound and turns more than once in the time."""
    r = jnp.sqrt(jnp.where(_distance2(d) > 0, _distance2(d), 1))
    beta = 2 * gm / r - _speed2(d)
    return (beta > 0) & (2 * np.pi * gm < span * jnp.maximum(beta, 0) ** 1.5)


def _written(log: Log, found: dict[str, Array], keep: Array) -> Log:
    """The log with what was found where `keep`; what finds no room is counted and dropped."""
    body = jnp.arange(keep.shape[0], dtype=jnp.int32)
    room = log.time.shape[0]
    place = log.count + jnp.cumsum(keep, dtype=jnp.int32) - 1
    place = jnp.where(keep, place, room)
    put = lambda column, new: column.at[place].set(new, mode="drop")
    return Log(
        time=put(log.time, found["time"]),
        body=put(log.body, body),
        star=put(log.star, found["star"]),
        distance=put(log.distance, found["distance"]),
        speed=put(log.speed, found["speed"]),
        count=log.count + jnp.sum(keep, dtype=jnp.int32),
    )


def _radial(d: list) -> Array:
    """Distance times its rate."""
    return dot(d[:3], d[3:])


def _distance2(d: list) -> Array:
    return dot(d[:3], d[:3])


def _speed2(d: list) -> Array:
    return dot(d[3:], d[3:])


def _spin(d: list) -> Array:
    """The square of the angular momentum."""
    h = cross(d[:3], d[3:])
    return dot(h, h)
