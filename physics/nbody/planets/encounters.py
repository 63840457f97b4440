"""A log of close encounters with fixed capacity, updated between two moments of any integration.

If two bodies approach each other at the first moment and recede at the second, a pericentre lies in
between, however brief it was. Its distance is that of the two-body orbit through the closer of the
two moments. This is exact for a flyby without perturbation by a third body. Bound pairs that
complete more than one orbit between the moments are binaries and are not logged. O(N K) time for K
bodies, O(N) memory.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.geometry.vectors import cross, dot
from jaxgpu.inputs import ranges
from jaxgpu.inputs.explanations import explain_errors
from jaxgpu.inputs.fields import number, pytree

from .. import validation
from ..orbits import kepler


@pytree
class Moment:
    """Positions and velocities of bodies at one time."""

    t: Array | float = number()  # [] time
    x: Array = number()  # [N, 3] position
    v: Array = number()  # [N, 3] velocity


@pytree
class Log:
    """Encounters so far, in the order of the time intervals in which they occurred."""

    time: Array  # [C] time of the pericentre
    body: Array  # [C] int32: index of the body
    star: Array  # [C] int32: index of the star it encountered
    distance: Array  # [C] pericentre distance
    speed: Array  # [C] relative speed at the pericentre
    count: Array  # [] int32: encounters so far; those after the first C are dropped


def empty_log(capacity: int, like: Array) -> Log:
    """Return a log with capacity for `capacity` encounters, in the dtype of `like`."""
    ranges.numbers("encounters.empty_log: capacity", capacity, (), whole=True, least=1)
    none, index = jnp.zeros(capacity, like.dtype), jnp.zeros(capacity, jnp.int32)
    return Log(time=none, body=index, star=index, distance=none, speed=none, count=jnp.int32(0))


@explain_errors
def log_stars(log: Log, before: Moment, after: Moment, m: Array, radius: Array | float) -> Log:
    """Add to the log all encounters among stars that are closer than `radius`.

    Args:
        log: the log so far.
        before: the stars at one moment.
        after: the stars at the next.
        m: masses [N].
        radius: maximum pericentre distance that is logged.

    Of several encounters of one star between the moments, the closest is logged.

    Raises:
        ValueError: inconsistent shapes, values not finite, a negative mass, a radius not positive.
    """
    name = "encounters.log_stars"
    stars = [_check_moment(name, "stars", moment) for moment in (before, after)]
    m = _check_masses(name, m, stars[0].shape[1], radius)
    found = _closest_encounters(stars, stars, m, m, before.t, after.t, radius)
    # if two stars are each other's closest encounter, only the first one is logged
    body = jnp.arange(m.shape[0], dtype=jnp.int32)
    partner = found["star"]
    mutual = (partner[partner] == body) & found["any"][partner]
    return _append_encounters(log, found, found["any"] & ~(mutual & (partner < body)))


@explain_errors
def log_tracers(
    log: Log,
    before: Moment,
    after: Moment,
    tracers_before: Moment,
    tracers_after: Moment,
    m: Array,
    radius: Array | float,
) -> Log:
    """Add to the log all encounters of tracers [M, 3] with stars [N, 3].

    Args:
        log: the log so far.
        before: the stars at one moment.
        after: the stars at the next.
        tracers_before: the tracers at the first of the moments.
        tracers_after: the tracers at the second.
        m: masses of the stars [N].
        radius: maximum pericentre distance that is logged.

    Raises:
        ValueError: as `log_stars`.
    """
    name = "encounters.log_tracers"
    stars = [_check_moment(name, "stars", moment) for moment in (before, after)]
    tracers = [_check_moment(name, "tracers", moment) for moment in (tracers_before, tracers_after)]
    m = _check_masses(name, m, stars[0].shape[1], radius)
    massless = jnp.zeros(tracers[0].shape[1], m.dtype)
    found = _closest_encounters(tracers, stars, massless, m, before.t, after.t, radius)
    return _append_encounters(log, found, found["any"])


def _check_moment(name: str, which: str, moment: Moment) -> Array:
    """Return checked positions over velocities [6, N], the layout of the kernel."""
    ranges.numbers(f"{name}: t", moment.t, ())
    x = validation.check_vectors(f"{name}: {which}, x", moment.x)
    v = validation.check_vectors(f"{name}: {which}, v", moment.v)
    if x.ndim != 2 or x.shape != v.shape:
        shapes = f"x {list(x.shape)}, v {list(v.shape)}"
        raise ValueError(f"{name}: {which}, {shapes}; both must be [N, 3]")
    return jnp.concatenate([jnp.asarray(x).T, jnp.asarray(v).T])


def _check_masses(name: str, m: Array, count: int, radius: Array | float) -> Array:
    ranges.numbers(f"{name}: radius", radius, (), above=0, infinite=True)
    return jnp.asarray(ranges.numbers(f"{name}: m", m, shape=(count,), least=0))


def table(log: Log) -> dict[str, np.ndarray]:
    """Return the log as arrays on the host, without its unused capacity.

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


def _closest_encounters(
    moving: list[Array],
    stars: list[Array],
    m_moving: Array,
    m_stars: Array,
    start: Array | float,
    end: Array | float,
    radius: Array | float,
) -> dict[str, Array]:
    """Find the closest encounter of each body: star, time, distance, speed, and whether any."""
    span = end - start

    def find_closest(body: tuple[Array, Array, Array]) -> dict[str, Array]:
        before, after = ([s[k] - b[k] for k in range(6)] for s, b in zip(stars, body[:2]))
        gm = m_stars + body[2]
        near, q = _pericentres(before, after, gm)
        passed = (
            (_radial_product(before) < 0)
            & (_radial_product(after) >= 0)
            & ~_completes_orbit(before, gm, span)
        )
        # a star at zero distance is the body itself
        q = jnp.where(passed & (_distance2(before) > 0), q, jnp.inf)
        star = jnp.argmin(q).astype(jnp.int32)
        state = [jnp.where(near[star], a[star], b[star]) for a, b in zip(after, before)]
        x, v = jnp.stack(state[:3]), jnp.stack(state[3:])
        wait, _ = kepler.pericenter_components(x, v, gm[star])
        wait = jnp.clip(jnp.where(near[star], span + wait, wait), 0, span)
        spin = jnp.sqrt(_angular_momentum2(state))
        return {
            "star": star,
            "time": start + wait,
            "distance": q[star],
            "speed": spin / q[star],
            "any": q[star] < radius,
        }

    return lax.map(find_closest, (moving[0].T, moving[1].T, m_moving), batch_size=16)


def _pericentres(before: list, after: list, gm: Array) -> tuple[Array, Array]:
    """Return whether the later moment is closer to the pericentre, and its distance from there."""
    near = jnp.abs(_radial_product(after)) * _speed2(before) < jnp.abs(
        _radial_product(before)
    ) * _speed2(after)
    d = [jnp.where(near, a, b) for a, b in zip(after, before)]
    spin = _angular_momentum2(d)
    r = jnp.sqrt(jnp.where(_distance2(d) > 0, _distance2(d), 1))
    e2 = 1 + (_speed2(d) - 2 * gm / r) * spin / (gm * gm)
    return near, spin / (gm * (1 + jnp.sqrt(jnp.maximum(e2, 0))))


def _completes_orbit(d: list, gm: Array, span: Array | float) -> Array:
    """Return whether a pair is bound and completes more than one orbit in the time."""
    r = jnp.sqrt(jnp.where(_distance2(d) > 0, _distance2(d), 1))
    beta = 2 * gm / r - _speed2(d)
    return (beta > 0) & (2 * np.pi * gm < span * jnp.maximum(beta, 0) ** 1.5)


def _append_encounters(log: Log, found: dict[str, Array], keep: Array) -> Log:
    """Append the encounters selected by `keep`; count but drop those beyond the capacity."""
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


def _radial_product(d: list) -> Array:
    """Return the product of distance and radial velocity."""
    return dot(d[:3], d[3:])


def _distance2(d: list) -> Array:
    return dot(d[:3], d[:3])


def _speed2(d: list) -> Array:
    return dot(d[3:], d[3:])


def _angular_momentum2(d: list) -> Array:
    """Return the squared specific angular momentum."""
    h = cross(d[:3], d[3:])
    return dot(h, h)
