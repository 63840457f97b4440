"""Bound pairs of stars merged into single bodies, for virial radii and escapes.

A hard binary is one body for the cluster. The energy of its orbit is not part of the cluster's, and
the mutual velocity of its members makes neither of them escape. Pairs are mutual nearest neighbours
that are bound and that the tide of the others does not disrupt. The search is repeated on the
resulting bodies, for triples and quadruples. O(N^2) time, O(N) memory.
"""

import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.inputs.fields import pytree

_ROUNDS = 3  # merges up to eight stars into one body
_TIDE = 0.1  # maximum tide of all others at the apocentre, over the mutual attraction
_ROWS = 64  # rows of the distance matrix computed at a time


@pytree
class MergedBodies:
    """Bodies of a cluster, with each bound pair or multiple as one body, in the slots of stars."""

    x: Array  # [6, N] position and velocity
    m: Array  # [N] mass; 0 in the slots of stars that were merged into another
    keeper: Array  # [N] int32: the slot of the body that each star belongs to
    bond: Array  # [] m1 m2 / a of the last merger: twice its binding energy

    @property
    def count(self) -> Array:
        """Number of bodies []."""
        return jnp.sum(self.m > 0, dtype=jnp.int32)

    def body_states(self) -> Array:
        """Return position and velocity [6, N] of the body that each star belongs to."""
        return jnp.take(self.x, self.keeper, axis=1)


def singles(x: Array, m: Array) -> MergedBodies:
    """Return every star at `x` [6, N] of mass m [N] as a separate body."""
    return MergedBodies(x, m, jnp.arange(m.shape[0], dtype=jnp.int32), jnp.zeros((), x.dtype))


def merge_bound(bodies: MergedBodies, softening: Array | float = 0.0) -> MergedBodies:
    """Merge bodies that are bound to each other."""

    def merge_round(carry: tuple[Array, MergedBodies]) -> tuple[Array, MergedBodies]:
        turn, old = carry
        new = _merge_once(old, softening)
        return jnp.where(new.count < old.count, turn + 1, _ROUNDS), new

    start = jnp.int32(0), bodies
    return lax.while_loop(lambda carry: carry[0] < _ROUNDS, merge_round, start)[1]


def virial_radius(bodies: MergedBodies) -> Array:
    """Return M^2 / 2 |W| [] of the bodies; a single one uses the mean orbit of its last merger."""
    alive = jnp.where(bodies.m > 0, bodies.m, 0)

    def potential(one: tuple[Array, Array]) -> Array:
        x, m = one
        r2 = _squared_distances(bodies.x, x)
        u = jnp.where(r2 > 0, lax.rsqrt(jnp.where(r2 > 0, r2, 1)), 0)
        return m * jnp.sum(alive * u)

    twice = jnp.sum(lax.map(potential, (bodies.x[:3].T, alive), batch_size=_ROWS))
    energy = jnp.where(bodies.count > 1, twice / 2, bodies.bond)
    return jnp.sum(alive) ** 2 / (2 * energy)


def _merge_once(old: MergedBodies, softening: Array | float) -> MergedBodies:
    """Merge mutual nearest neighbours that are bound and weakly perturbed, for one round."""
    place = jnp.arange(old.m.shape[0], dtype=jnp.int32)
    other, pull = lax.map(
        lambda one: _nearest_and_tide(old, *one), (old.x.T, place), batch_size=_ROWS
    )
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
    return MergedBodies(x, mass, keeper, jnp.where(jnp.any(first), bond, old.bond))


def _nearest_and_tide(bodies: MergedBodies, x: Array, place: Array) -> tuple[Array, Array]:
    """Return the nearest body to that at `x` [6], and the sum of m / d^3 over all but the two."""
    r2 = jnp.where(bodies.m > 0, _squared_distances(bodies.x, x), jnp.inf).at[place].set(jnp.inf)
    nearest = jnp.argmin(r2).astype(jnp.int32)
    nearest = jnp.where(jnp.isfinite(r2[nearest]), nearest, place)
    r2 = r2.at[nearest].set(jnp.inf)
    near = jnp.isfinite(r2) & (r2 > 0)
    u2 = jnp.where(near, 1 / jnp.where(near, r2, 1), 0)
    return nearest, jnp.sum(bodies.m * u2 * jnp.sqrt(u2))


def _squared_distances(x: Array, place: Array) -> Array:
    """Return squared distances [N] of bodies at `x` [6, N] from a position [3 or 6]."""
    d = [x[k] - place[k] for k in range(3)]
    return d[0] * d[0] + d[1] * d[1] + d[2] * d[2]
