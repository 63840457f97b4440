"""Diagnostics of a star cluster: energy, density centre, Lagrangian radii and bound pairs.

Stars are at x [N, 3] with velocities v [N, 3] and masses m [N]; G = 1.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.inputs import ranges
from jaxgpu.inputs.calls import defer_check
from jaxgpu.inputs.explanations import explain_errors
from jaxgpu.inputs.fields import pytree

from .. import validation


@explain_errors
def energy(x: Array, v: Array, m: Array, softening: Array | float = 0.0) -> tuple[Array, Array]:
    """Return kinetic and potential energy of stars at x, v [N, 3] with masses m [N].

    A pass over pairs without storing them: O(N^2) time, O(N) memory.

    >>> x = v = jnp.array([[0.0, 0, 0], [2.0, 0, 0]])
    >>> kinetic, potential = energy(x, v, jnp.array([1.0, 3]))
    >>> float(kinetic), float(potential)
    (6.0, -1.5)
    """
    x, v, m = _check_moving_stars("diagnostics.energy", x, v, m)
    ranges.numbers("diagnostics.energy: softening", softening, (), least=0)
    kinetic = jnp.sum(m * (v[0] * v[0] + v[1] * v[1] + v[2] * v[2])) / 2
    return kinetic, jnp.sum(m * _potential(x, x, m, softening)) / 2


@explain_errors
def potential(points: Array, x: Array, m: Array, softening: Array | float = 0.0) -> Array:
    """Return the potential [K] at `points` [K, 3] of stars at x [N, 3], except one at the point.

    >>> potential(jnp.zeros((1, 3)), jnp.array([[2.0, 0, 0], [4, 0, 0]]), jnp.ones(2))
    Array([-0.75], dtype=float32)
    """
    name = "diagnostics.potential"
    points = validation.check_numbers(f"{name}: points", points, shape=("K", 3)).T
    x, m = _check_stars(name, x, m)
    ranges.numbers(f"{name}: softening", softening, (), least=0)
    points, x, m = validation.one_precision(name, points=points, x=x, m=m)
    return _potential(points, x, m, softening)


def _check_stars(name: str, x: Array, m: Array) -> tuple[Array, Array]:
    """Return checked positions [3, N], components first, and masses [N] of stars at x [N, 3]."""
    x = validation.check_numbers(f"{name}: x", x, shape=("N", 3))
    m = validation.check_numbers(f"{name}: m", m, least=0)
    if m.shape != x.shape[:1] or not m.size:
        shapes = f"x {list(x.shape)}, m {list(m.shape)}"
        raise ValueError(f"{name}: {shapes}; must be [N, 3] and [N], with at least one star")
    x, m = validation.one_precision(name, x=x, m=m)
    return x.T, m


def _check_moving_stars(name: str, x: Array, v: Array, m: Array) -> tuple[Array, Array, Array]:
    """Return checked positions and velocities [3, N], components first, and masses [N]."""
    x, m = _check_stars(name, x, m)
    v = validation.check_numbers(f"{name}: v", v, shape=(m.shape[0], 3))
    x, v, m = validation.one_precision(name, x=x, v=v, m=m)
    return x, v.T, m


def _potential(points: Array, stars: Array, m: Array, softening: Array | float) -> Array:
    """Return the potential [K] at `points` [3, K] of stars at [3, N]."""
    d = [stars[k][:, None] - points[k][None] for k in range(3)]
    r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2]
    apart = r2 > 0
    u = lax.rsqrt(jnp.where(apart, r2 + softening * softening, 1))
    return -jnp.sum(jnp.where(apart, m[:, None] * u, 0), 0)


@explain_errors
def core(x: Array, m: Array, neighbours: int = 6) -> tuple[Array, Array]:
    """Return density centre [3] and core radius [] of stars at x [N, 3].

    Casertano & Hut (1985), doi:10.1086/163589, eqs. II.3, II.6 and V.3 with the unbiased density
    from the distance of the sixth neighbour. The radius is weighted with the squared density, as in
    NBODY6. O(N^2) time, O(N) memory.

    >>> from jaxgpu.physics import nbody
    >>> x, _ = nbody.plummer(jax.random.key(0), 500)
    >>> centre, radius = jax.jit(core)(x, jnp.full(500, 1 / 500))
    >>> float(radius) < 0.6, float(jnp.linalg.norm(centre)) < 0.2
    (True, True)
    """
    x, m = _check_stars("diagnostics.core", x, m)
    ranges.numbers("diagnostics.core: neighbours", neighbours, (), whole=True, least=2)
    if x.shape[1] <= neighbours:
        raise ValueError(
            f"diagnostics.core: {x.shape[1]} stars; there must be more than neighbours={neighbours}"
        )
    validation.check_distinct("diagnostics.core: x", x.T)

    def find_neighbours(place: Array) -> tuple[Array, Array]:
        d = x - place[:, None]
        return lax.top_k(-(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]), neighbours + 1)

    near, index = lax.map(find_neighbours, x.T, batch_size=64)  # the star itself comes first
    enclosed = jnp.sum(m[index[:, 1:neighbours]], 1)  # excludes the star itself and the last one
    density = enclosed / (-near[:, neighbours]) ** 1.5
    centre = jnp.sum(density[None] * x, 1) / jnp.sum(density)
    r2 = jnp.sum((x - centre[:, None]) ** 2, 0)
    weight = (density / jnp.max(density)) ** 2  # normalised: squares could underflow
    return centre, jnp.sqrt(jnp.sum(weight * r2) / jnp.sum(weight))


@explain_errors
def lagrangian_radii(x: Array, m: Array, centre: Array, fractions: Array) -> Array:
    """Return the radii [F] about `centre` [3] that enclose mass `fractions` [F] of x [N, 3].

    If the fraction falls between two bodies, the radius is that of the outer one, without
    interpolation. For bodies without mass, pass equal `m` to use the fraction of their number.

    >>> x = jnp.array([[1.0, 0, 0], [2, 0, 0], [3, 0, 0], [4, 0, 0]])
    >>> lagrangian_radii(x, jnp.ones(4), jnp.zeros(3), jnp.array([0.25, 0.5]))
    Array([1., 2.], dtype=float32)
    """
    x, m = _check_stars("diagnostics.lagrangian_radii", x, m)
    centre, fractions = _check_centre("diagnostics.lagrangian_radii", centre, fractions, x)
    defer_check(_refuse_massless, m)
    return _lagrangian_radii(x, m, centre, fractions)


def _refuse_massless(m: Array) -> None:
    if not np.asarray(m).any():
        raise ValueError("diagnostics.lagrangian_radii: all m are 0; give equal m to count stars")


def _check_centre(name: str, centre: Array, fractions: Array, x: Array) -> tuple[Array, Array]:
    centre = validation.check_numbers(f"{name}: centre", centre, shape=(3,))
    fractions = validation.check_numbers(
        f"{name}: fractions", fractions, shape=("F",), least=0, most=1
    )
    return jnp.asarray(centre, x.dtype), jnp.asarray(fractions, x.dtype)


def _lagrangian_radii(x: Array, m: Array, centre: Array, fractions: Array) -> Array:
    """Return the Lagrangian radii [F] about a centre of bodies at x [3, N]."""
    r = jnp.sqrt(jnp.sum((x - centre[:, None]) ** 2, 0))
    order = jnp.argsort(r)
    share = jnp.cumsum(m[order]) / jnp.sum(m)
    place = jnp.clip(jnp.searchsorted(share, fractions), 0, r.shape[0] - 1)
    return r[order][place]


@explain_errors
def class_radii(
    x: Array, m: Array, centre: Array, fractions: Array, edges: Array
) -> tuple[Array, Array]:
    """Return Lagrangian radii [C, F] of each mass class, and its number of stars [C].

    Args:
        x: positions [N, 3].
        m: masses [N].
        centre: point from which radii are measured [3].
        fractions: fractions [F] of the mass of the class.
        edges: ascending limits [C + 1]; class c contains edges[c] <= m < edges[c + 1].

    The radii of an empty class are nan.

    >>> x = jnp.array([[1.0, 0, 0], [2, 0, 0], [3, 0, 0], [4, 0, 0]])
    >>> m = jnp.array([5.0, 5, 1, 1])
    >>> jax.jit(class_radii)(x, m, jnp.zeros(3), jnp.array([0.5]), jnp.array([0.0, 2, 9]))
    (Array([[3.],
           [1.]], dtype=float32), Array([2, 2], dtype=int32))
    """
    name = "diagnostics.class_radii"
    x, m = _check_stars(name, x, m)
    centre, fractions = _check_centre(name, centre, fractions, x)
    edges = validation.check_numbers(f"{name}: edges", edges, shape=("C + 1",), infinite=True)
    defer_check(partial(_refuse_order, name), edges)

    def radii_of_class(low: Array, high: Array) -> tuple[Array, Array]:
        inside = (m >= low) & (m < high)
        radii = _lagrangian_radii(x, jnp.where(inside, m, 0), centre, fractions)
        return jnp.where(jnp.any(inside), radii, jnp.nan), jnp.sum(inside, dtype=jnp.int32)

    return jax.vmap(radii_of_class)(edges[:-1], edges[1:])


def _refuse_order(name: str, edges: Array) -> None:
    if not (np.diff(np.asarray(edges)) > 0).all():
        raise ValueError(f"{name}: edges={np.asarray(edges).tolist()}; they must ascend")


@explain_errors
def half_mass_relaxation_time(
    count: int, radius: Array | float, mass: Array | float = 1.0, coulomb: float = 0.11
) -> Array:
    """Return 0.138 N r^1.5 / (sqrt(M) ln(gamma N)), with G = 1.

    Spitzer (1987), eq. 2-63, with the Coulomb logarithm of Giersz & Heggie (1994),
    doi:10.1093/mnras/268.1.257: gamma = 0.11 for equal masses.

    Args:
        count: number of stars N, above 1 / gamma.
        radius: half-mass radius r.
        mass: total mass of the stars.
        coulomb: gamma; 0.02 suits a spectrum of masses (Giersz & Heggie 1996).

    >>> round(float(half_mass_relaxation_time(1024, 0.7686)), 1)
    20.2
    """
    name = "half_mass_relaxation_time"
    ranges.numbers(f"{name}: count", count, (), above=0)
    ranges.numbers(f"{name}: coulomb", coulomb, (), above=0)
    ranges.numbers(f"{name}: radius", radius, above=0)
    ranges.numbers(f"{name}: mass", mass, above=0)
    if coulomb * count <= 1:
        raise ValueError(
            f"half_mass_relaxation_time: count {count}; must exceed 1 / gamma = {1 / coulomb:.1f}; "
            "so few stars do not relax"
        )
    radius, mass = jnp.asarray(radius), jnp.asarray(mass)
    return 0.138 * count * radius * jnp.sqrt(radius / mass) / np.log(coulomb * count)


@pytree
class Budget:
    """Energy of a cluster by its parts; G = 1."""

    kinetic: Array  # [] kinetic energy of the motions about the centre of mass
    bulk: Array  # [] kinetic energy of the centre of mass
    potential: Array  # [] potential energy of all pairs of stars
    outside: Array  # [] energy of the stars in an external potential
    binaries: Array  # [] kinetic and potential energy of the relative motion in bound pairs

    @property
    def total(self) -> Array:
        """Total energy; `binaries` is not added, being a part of the other terms."""
        return self.kinetic + self.bulk + self.potential + self.outside

    @property
    def virial_ratio(self) -> Array:
        """Kinetic energy over the absolute potential energy: 1/2 in equilibrium."""
        return self.kinetic / jnp.abs(self.potential)


@explain_errors
def budget(
    x: Array,
    v: Array,
    m: Array,
    softening: Array | float = 0.0,
    outside: Array | None = None,
) -> Budget:
    """Return the energy of stars by its parts.

    Args:
        x: positions [N, 3].
        v: velocities [N, 3].
        m: masses [N].
        softening: softening length; 0 for none.
        outside: external potential [N] at each star; none by default.

    O(N^2) time; O(N) memory.

    >>> x = jnp.array([[0.0, 0, 0], [2, 0, 0]])
    >>> spent = budget(x, jnp.zeros((2, 3)), jnp.array([1.0, 3]))
    >>> float(spent.kinetic), float(spent.potential)
    (0.0, -1.5)
    """
    pairs = bound_pairs(x, v, m)
    kinetic, inner = energy(x, v, m, softening)
    _, v, m = _check_moving_stars("diagnostics.budget", x, v, m)
    if outside is not None:
        outside = validation.check_numbers("diagnostics.budget: outside", outside, shape=m.shape)
    mass = jnp.sum(m)
    mean = jnp.sum(m[None] * v, 1) / mass
    bulk = mass * jnp.sum(mean * mean) / 2
    part = jnp.zeros_like(m) if outside is None else m * outside
    return Budget(
        kinetic=kinetic - bulk,
        bulk=bulk,
        potential=inner,
        outside=jnp.sum(part),
        binaries=jnp.sum(pairs.energy),
    )


@pytree
class Pairs:
    """Bound pairs, each entered at its first star; zeros elsewhere."""

    partner: Array  # [N] int32: the other star; N where there is none
    energy: Array  # [N] energy of the relative motion, negative
    a: Array  # [N] semi-major axis
    e: Array  # [N] eccentricity


@explain_errors
def bound_pairs(x: Array, v: Array, m: Array) -> Pairs:
    """Find pairs of mutual nearest neighbours that are bound, in O(N^2) time and O(N) memory.

    >>> x = jnp.array([[0.0, 0, 0], [0.1, 0, 0], [9.0, 0, 0]])
    >>> v = jnp.array([[0.0, -1, 0], [0, 1, 0], [0, 0, 0]])
    >>> found = jax.jit(bound_pairs)(x, v, jnp.ones(3))
    >>> found.partner.tolist(), float(found.a[0].round(3))
    ([1, 3, 3], 0.0560000017285347)
    """
    x, v, m = _check_moving_stars("diagnostics.bound_pairs", x, v, m)
    count = m.shape[0]
    near = _nearest_star(x, x)
    index = jnp.arange(count, dtype=jnp.int32)
    d = jnp.concatenate([x[:, near] - x, v[:, near] - v])
    r = jnp.sqrt(jnp.sum(d[:3] * d[:3], 0))
    gm = m + m[near]
    specific = jnp.sum(d[3:] * d[3:], 0) / 2 - gm / r
    pair = (near[near] == index) & (index < near) & (specific < 0)
    a = -gm / (2 * jnp.where(pair, specific, -1))
    radial = jnp.sum(d[:3] * d[3:], 0)
    e2 = (1 - r / a) ** 2 + radial * radial / (gm * a)
    zero = lambda q: jnp.where(pair, q, 0)
    energies = zero(m * m[near] / gm * specific)
    e = jnp.sqrt(jnp.where(pair, e2, 1))
    return Pairs(jnp.where(pair, near, count), energies, zero(a), zero(e))


@explain_errors
def nearest_star(points: Array, x: Array) -> Array:
    """Return the index [K] of the star in x [N, 3] nearest to each point [K, 3], except one at it.

    >>> nearest_star(jnp.zeros((1, 3)), jnp.array([[3.0, 0, 0], [1, 0, 0], [0, 0, 0]]))
    Array([1], dtype=int32)
    """
    points = validation.check_numbers("diagnostics.nearest: points", points, shape=("K", 3))
    x = validation.check_numbers("diagnostics.nearest: x", x, shape=("N", 3))
    if not x.size:
        raise ValueError(f"diagnostics.nearest: x {list(x.shape)}; must be [N, 3], N above 0")
    return _nearest_star(points.T, x.T)


def _nearest_star(points: Array, x: Array) -> Array:
    """Return the index [K] of the star at [3, N] nearest to each point [3, K], except one at it."""

    def find_nearest(place: Array) -> Array:
        d = x - place[:, None]
        r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2]
        return jnp.argmin(jnp.where(r2 > 0, r2, jnp.inf)).astype(jnp.int32)

    return lax.map(find_nearest, points.T, batch_size=64)
