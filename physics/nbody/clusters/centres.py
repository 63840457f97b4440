"""Bound pairs of stars as one body: what counts where a cluster is weighed and who leaves it.

A hard binary is one body for the cluster: its orbit's energy is no part of the cluster's, and its
members' speed about each other takes neither of them away. Found as mutual nearest neighbours that
are bound and that nothing else pulls apart, and that again among the bodies found, for triples and
quadruples. O(N^2) time, O(N) memory.
"""

import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.inputs.fields import pytree

_ROUNDS = 3  # up to eight stars in one body
_TIDE = 0.1  # at most, of all others at the apocentre, over the attraction
_ROWS = 64  # of the table of distances, at a time


@pytree
class Centres:
    """The bodies of a cluster, a pair or a multiple one of them, in the places of stars."""

    x: Array  # [6, N] position and velocity
    m: Array  # [N] mass; 0 in the places of stars that are counted with another
    keeper: Array  # [N] int32: the place that each star is counted in
    bond: Array  # [] energy of the orbit, twice and positive, of the last two that were joined

    @property
    def count(self) -> Array:
        """How many bodies [] there are."""
        return jnp.sum(self.m > 0, dtype=jnp.int32)

    def of_stars(self) -> Array:
        """Position and velocity [6, N] of the body that each star belongs to."""
        return jnp.take(self.x, self.keeper, axis=1)


def singles(x: Array, m: Array) -> Centres:
    """Every star at `x` [6, N] of mass m [N] a body of its own."""
    return Centres(x, m, jnp.arange(m.shape[0], dtype=jnp.int32), jnp.zeros((), x.dtype))


def joined(bodies: Centres, softening: Array | float = 0.0) -> Centres:
    """The bodies, those that are bound to each other made one."""

    def go(carry: tuple[Array, Centres]) -> tuple[Array, Centres]:
        turn, old = carry
        new = _paired(old, softening)
        return jnp.where(new.count < old.count, turn + 1, _ROUNDS), new

    start = jnp.int32(0), bodies
    return lax.while_loop(lambda carry: carry[0] < _ROUNDS, go, start)[1]


def virial_radius(bodies: Centres) -> Array:
    """M^2 / 2 |W| [] of the bodies; of one alone, what its last two had on their mean orbit."""
    alive = jnp.where(bodies.m > 0, bodies.m, 0)

    def potential(one: tuple[Array, Array]) -> Array:
        x, m = one
        r2 = _squares(bodies.x, x)
        u = jnp.where(r2 > 0, lax.rsqrt(jnp.where(r2 > 0, r2, 1)), 0)
        return m * jnp.sum(alive * u)

    twice = jnp.sum(lax.map(potential, (bodies.x[:3].T, alive), batch_size=_ROWS))
    energy = jnp.where(bodies.count > 1, twice / 2, bodies.bond)
    return jnp.sum(alive) ** 2 / (2 * energy)


def _paired(old: Centres, softening: Array | float) -> Centres:
    """A round: mutual nearest neighbours that are bound and little disturbed become one."""
    place = jnp.arange(old.m.shape[0], dtype=jnp.int32)
    other, pull = lax.map(lambda one: _around(old, *one), (old.x.T, place), batch_size=_ROWS)
    mutual = (jnp.take(other, other) == place) & (old.m > 0) & (other != place)
    m, n = old.m, jnp.take(old.m, other)
    d = jnp.take(old.x, other, axis=1) - old.x
    r2, v2 = (d[k] * d[k] + d[k + 1] * d[k + 1] + d[k + 2] * d[k + 2] for k in (0, 3))
    r, along = jnp.sqrt(jnp.where(mutual, r2, 1)), jnp.sum(d[:3] * d[3:], 0)
    h = v2 / 2 - (m + n) / jnp.sqrt(r * r + softening * softening)
    bound = mutual & (h < 0)
    total = jnp.where(bound, m + n, 1)
    a = total / (2 * jnp.where(bound, -h, 1))
    far = a * (1 + jnp.sqrt((1 - r / a) ** 2 + along * along / (total * a)))
    tide = 2 * jnp.maximum(pull, jnp.take(pull, other)) * far**3 / total
    first = bound & (tide < _TIDE) & (place < other)
    second = jnp.take(first, other) & mutual & (other < place)
    part = jnp.where(first, n / total, 0)
    x = old.x + part[None] * d
    mass = jnp.where(first, m + n, jnp.where(second, 0, m))
    keeper = jnp.take(jnp.where(second, other, place), old.keeper)
    bond = jnp.max(jnp.where(first, m * n / a, 0))
    return Centres(x, mass, keeper, jnp.where(jnp.any(first), bond, old.bond))


def _around(bodies: Centres, x: Array, place: Array) -> tuple[Array, Array]:
    """The nearest body to that at `x` [6], and sum m / d^3 of all but the two."""
    r2 = jnp.where(bodies.m > 0, _squares(bodies.x, x), jnp.inf).at[place].set(jnp.inf)
    nearest = jnp.argmin(r2).astype(jnp.int32)
    nearest = jnp.where(jnp.isfinite(r2[nearest]), nearest, place)
    r2 = r2.at[nearest].set(jnp.inf)
    near = jnp.isfinite(r2) & (r2 > 0)
    u2 = jnp.where(near, 1 / jnp.where(near, r2, 1), 0)
    return nearest, jnp.sum(bodies.m * u2 * jnp.sqrt(u2))


def _squares(x: Array, place: Array) -> Array:
    """Squared distances [N] of bodies at `x` [6, N] from a place [3 or 6]."""
    d = [x[k] - place[k] for k in range(3)]
    return d[0] * d[0] + d[1] * d[1] + d[2] * d[2]
