"""What one asks of a star cluster: its energy, its centre, the radii that hold its mass."""

import jax.numpy as jnp
from jax import Array, lax


def energy(points: Array, m: Array, softening: Array | float = 0.0) -> tuple[Array, Array]:
    """Kinetic and potential energy of stars at `points` [6, N] with masses `m` [N]; G = 1.

    A pass over pairs without storing them: O(N^2) time, O(N) memory.

    >>> kinetic, potential = energy(jnp.array([[0.0, 2], [0, 0], [0, 0]] * 2), jnp.array([1.0, 3]))
    >>> float(kinetic), float(potential)
    (6.0, -1.5)
    """
    v = points[3:]
    kinetic = jnp.sum(m * (v[0] * v[0] + v[1] * v[1] + v[2] * v[2])) / 2
    return kinetic, jnp.sum(m * potential(points, points, m, softening)) / 2


def potential(points: Array, stars: Array, m: Array, softening: Array | float = 0.0) -> Array:
    """Potential [K] at `points` [6, K] or [3, K] of stars at [6, N], but for one at the point."""
    d = [stars[k][:, None] - points[k][None] for k in range(3)]
    r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2]
    apart = r2 > 0
    u = lax.rsqrt(jnp.where(apart, r2 + softening * softening, 1))
    return -jnp.sum(jnp.where(apart, m[:, None] * u, 0), 0)


def core(points: Array, m: Array, neighbours: int = 6) -> tuple[Array, Array]:
    """Centre [3] and radius [] of the core, weighted by density.

    Casertano & Hut (1985), doi:10.1086/163589, eqs. II.3, II.6 and V.3 with the unbiased density
    from the distance of the sixth neighbour; the radius as NBODY6 weights it, with the density
    squared. O(N^2) memory: for up to some thousand stars.
    """
    x = points[:3]
    d2 = jnp.sum((x[:, :, None] - x[:, None]) ** 2, 0)
    near, index = lax.top_k(-d2, neighbours + 1)  # itself comes first
    enclosed = jnp.sum(m[index[:, 1:neighbours]], 1)  # neither itself nor the last
    density = enclosed / (-near[:, neighbours]) ** 1.5
    centre = jnp.sum(density[None] * x, 1) / jnp.sum(density)
    r2 = jnp.sum((x - centre[:, None]) ** 2, 0)
    weight = density * density
    return centre, jnp.sqrt(jnp.sum(weight * r2) / jnp.sum(weight))


def lagrangian_radii(points: Array, m: Array, centre: Array, fractions: Array) -> Array:
    """Radii [F] about `centre` [3] that hold the `fractions` [F] of the mass of the bodies given.

    Where the fraction falls between two bodies, the outer one's radius: no interpolation. Bodies
    without mass are counted by giving them equal `m`.
    """
    r = jnp.sqrt(jnp.sum((points[:3] - centre[:, None]) ** 2, 0))
    order = jnp.argsort(r)
    share = jnp.cumsum(m[order]) / jnp.sum(m)
    place = jnp.clip(jnp.searchsorted(share, fractions), 0, r.shape[0] - 1)
    return r[order][place]


def half_mass_relaxation_time(count: int, radius: Array | float) -> Array:
    """0.138 N r^1.5 / ln(0.11 N), for a cluster of mass 1 with G = 1.

    Spitzer (1987), eq. 2-63, with the Coulomb logarithm of Giersz & Heggie (1994).

    >>> round(float(half_mass_relaxation_time(1024, 0.7686)), 1)
    20.2
    """
    radius = jnp.asarray(radius)
    return 0.138 * count * radius * jnp.sqrt(radius) / jnp.log(0.11 * count)
