"""Primordial binaries: stars of a cluster replaced by pairs about the same centre of mass.

Semi-major axes are uniform in their logarithm (Opik 1924), eccentricities thermal, f(e) = 2e (Jeans
1919, Heggie 1975, doi:10.1093/mnras/173.3.729), orientation and phase random.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.devices import allocation
from jaxgpu.inputs import ranges
from jaxgpu.inputs.explanations import explain_errors, on_host

from ..orbits import elements
from ..orbits.elements import Elements
from ..validation import check_numbers, one_precision


@explain_errors
@on_host
@allocation.limit_memory
def binary_orbits(key: Array, count: int, a: tuple[float, float]) -> Elements:
    """Sample orbits [count] of binaries, in the default precision.

    Args:
        key: JAX random key.
        count: number of orbits.
        a: minimum and maximum semi-major axis.

    >>> orbit = binary_orbits(jax.random.key(0), 100, (1e-4, 1e-2))
    >>> bool(jnp.all((orbit.a >= 1e-4) & (orbit.a <= 1e-2)))
    True
    """
    ranges.numbers("binary_orbits: count", count, (), whole=True, least=0)
    a = tuple(np.asarray(ranges.numbers("binary_orbits: a", a, (2,), above=0)).tolist())
    if not a[0] <= a[1]:
        raise ValueError(
            f"binary_orbits: a {a}; must be the smallest and the largest, both positive"
        )
    axis, e, tilt, node, peri, mean = jax.random.uniform(key, (6, count))
    low, high = np.log(a)
    # with 1 - e below 1e-3 (0.2 % of thermal orbits) many pairs would merge into one star
    eccentricity = jnp.sqrt(e * (1 - 1e-3) ** 2)
    return Elements(
        a=jnp.exp(low + (high - low) * axis),
        e=eccentricity,
        i=jnp.arccos(1 - 2 * tilt),
        node=2 * jnp.pi * node,
        peri=2 * jnp.pi * peri,
        mean=2 * jnp.pi * mean,
    )


@explain_errors
def add_companions(
    x: Array, v: Array, m: Array, companions: Array, orbit: Elements
) -> tuple[Array, Array, Array]:
    """Return positions, velocities [N + B, 3] and masses [N + B], the first B stars being binaries.

    The centre of mass of star k and its companion, star N + k, has the position and velocity that
    star k had; G = 1.

    Args:
        x: positions [N, 3] of single stars.
        v: their velocities [N, 3].
        m: their masses [N], positive.
        companions: masses [B] of the second stars, positive; B is at most N.
        orbit: the relative orbits [B].

    >>> from jaxgpu.physics import nbody
    >>> x, v = nbody.plummer(jax.random.key(0), 64)
    >>> orbit = nbody.binary_orbits(jax.random.key(1), 8, (1e-4, 1e-3))
    >>> x, v, m = nbody.add_companions(x, v, jnp.full(64, 1 / 64), jnp.full(8, 1 / 64), orbit)
    >>> x.shape, m.shape  # the first eight have a companion each
    ((72, 3), (72,))
    """
    x = check_numbers("add_companions: x", x, shape=("N", 3))
    v = check_numbers("add_companions: v", v, shape=x.shape)
    m = check_numbers("add_companions: m", m, shape=x.shape[:1], above=0)
    companions = check_numbers("add_companions: companions", companions, shape=("B",), above=0)
    x, v, m, companions = one_precision("add_companions", x=x, v=v, m=m, companions=companions)
    count = companions.shape[0]
    ranges.numbers("add_companions: orbit.a", orbit.a, (count,), above=0)
    if count > m.shape[0]:
        raise ValueError(
            f"add_companions: {count} companions of {m.shape[0]} stars; give at most as many"
        )
    first, mass = m[:count], m[:count] + companions
    relative = elements.to_state(orbit, mass)

    def split(centre: Array, d: Array) -> Array:
        one = centre[:count] - (companions / mass)[:, None] * d
        two = centre[:count] + (first / mass)[:, None] * d
        return jnp.concatenate([one, centre[count:], two])

    x, v = split(x, relative[0]), split(v, relative[1])
    return x, v, jnp.concatenate([m, companions])
