"""Primordial binaries: stars of a cluster replaced by pairs about the same centre of mass.

Semi-major axes uniform in their logarithm (Opik 1924), eccentricities thermal, f(e) = 2e (Jeans
1919, Heggie 1975, doi:10.1093/mnras/173.3.729), any orientation and phase.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu import ranges

from .. import layout
from ..bodies import one_precision
from ..orbits import elements
from ..orbits.elements import Elements


def orbits(key: Array, count: int, a: tuple[float, float]) -> Elements:
    """Orbits [count] of binaries, in the default precision.

    Args:
        key: of the draw.
        count: how many.
        a: smallest and largest semi-major axis.
    """
    ranges.numbers("orbits: count", count, (), whole=True, least=0)
    a = tuple(np.asarray(ranges.numbers("orbits: a", a, (2,), above=0)).tolist())
    if not a[0] <= a[1]:
        raise ValueError(f"orbits: a {a}; must be the smallest and the largest, both positive")
    axis, e, tilt, *angles = jax.random.uniform(key, (6, count))
    low, high = np.log(a)
    turns = (2 * jnp.pi * angle for angle in angles)
    # 1 - e below 1e-3 would put many a pair into one star; thermal orbits have 0.2 % of those
    round_ = jnp.sqrt(e * (1 - 1e-3) ** 2)
    return Elements(jnp.exp(low + (high - low) * axis), round_, jnp.arccos(1 - 2 * tilt), *turns)


def paired(points: Array, m: Array, companions: Array, orbit: Elements) -> tuple[Array, Array]:
    """Positions and velocities [6, N + B] and masses [N + B] with the first B stars made pairs.

    The centre of mass of star k and its companion, which is star N + k, is where star k was and
    moves as it did; G = 1.

    Args:
        points: positions over velocities [6, N] of single stars.
        m: their masses [N], positive.
        companions: masses [B] of the second stars, positive; B is at most N.
        orbit: the relative orbits [B].
    """
    points = layout.columns("paired: points", points, 6)
    m = ranges.numbers("paired: m", m, points.shape[1:], above=0)
    companions = ranges.numbers("paired: companions", companions, ("B",), above=0)
    points, m, companions = one_precision("paired", points=points, m=m, companions=companions)
    count = companions.shape[0]
    ranges.numbers("paired: orbit.a", orbit.a, (count,), above=0)
    if count > m.shape[0]:
        raise ValueError(f"paired: {count} companions of {m.shape[0]} stars; give at most as many")
    first, both = m[:count], m[:count] + companions
    d = jnp.concatenate([q.T for q in elements.to_state(orbit, both)])
    centre = points[:, :count]
    stars = jnp.concatenate([centre - (companions / both)[None] * d, points[:, count:]], 1)
    seconds = centre + (first / both)[None] * d
    return jnp.concatenate([stars, seconds], 1), jnp.concatenate([m, companions])
