"""Two streams on unlike orbits, as they are seen from the Sun, and the tracks of their stars.

One is the stream of the globular cluster Palomar 5, the other lies on the orbit of GD-1 (Koposov,
Rix & Hogg 2010, doi:10.1088/0004-637X/712/1/260, in the numbers of Bovy 2014,
doi:10.1088/0004-637X/795/1/95), on which a cluster is put. Places and velocities of
the clusters are known.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs.fields import number, pytree
from jaxgpu.physics.nbody import units
from jaxgpu.physics.nbody.models import globulars

from .sky import frame, seen, track
from .spray import Spray

NAMES = "Palomar 5", "GD-1"
MASS = 2e4  # of either cluster, solar masses
AGES = 1.5, 2.0  # kpc / (km/s)
PLACES = (-7.5, -5.0, -2.5, 2.5, 5.0, 7.5), (-25.0, -15.0, -5.0, 5.0, 15.0, 25.0)  # degrees
WIDTHS = 1.5, 4.0  # degrees
# galpy's R, vR, vT, z, vz in units of 8 kpc and 220 km/s, and the angle from the Sun, of GD-1
_GD1 = 1.56148083, 0.35081535, -1.15481504, 0.88719443, -0.47713334, 0.12019596


@pytree
class Errors:
    """Standard deviations, as shares of the distance, in km/s and in mas/yr."""

    distance: float = number(default=0.05, above=0)  # of a star, share of its distance
    radial: float = number(default=2.0, above=0, unit="km/s")  # of a star
    proper: float = number(default=0.1, above=0, unit="mas/yr")  # of a star, in either direction

    def of_stars(self, distance: Array) -> Array:
        """[..., 5] of stars at a distance [...], in the columns of a track."""
        one = jnp.ones_like(distance)
        proper = self.proper * one
        radial = self.radial * one
        return jnp.stack([0 * one, self.distance * distance, radial, proper, proper], -1)


@pytree
class Streams:
    """How several streams are made and seen; leaves have a stream an entry."""

    spray: Spray  # gm and age [S]
    axes: Array  # [S, 3, 3] of the sky along each
    here: Array  # [S, 6] place and velocity of each cluster, kpc and km/s
    places: Array  # [S, B] of the means along the stream, degrees
    width: Array  # [S] of their weights, degrees
    errors: Errors

    @property
    def age(self) -> Array:
        """[S] of the oldest stars."""
        return jnp.asarray(self.spray.age)

    def stars(self, theta: Array, draws: Array) -> Array:
        """What is seen [S, N, 6] of stars without errors.

        Args:
            theta: [4] of the Galaxy.
            draws: [S, N, 6], what is by chance.
        """

        def one(spray: Spray, axes: Array, here: Array, draws: Array) -> Array:
            return seen(axes, spray.stars(theta, here, draws).astype(draws.dtype))

        return jax.vmap(one)(self.spray, self.axes, self.here, draws)

    def tracks(self, rows: Array) -> Array:
        """Means [S, B, 5] of what is seen [S, N, 6]."""
        return jax.vmap(track)(rows, self.places, self.width)

    def observed(self, rows: Array, key: Array) -> Array:
        """What is seen [S, N, 6], with errors."""
        noise = jax.random.normal(key, (*rows.shape[:-1], 5), rows.dtype)
        return rows.at[..., 1:].add(noise * self.errors.of_stars(rows[..., 2]))


def two_streams(steps: int, errors: Errors, dtype: str = "float32") -> Streams:
    """Palomar 5's and that of GD-1.

    Args:
        steps: of a star's orbit.
        errors: of what is seen.
        dtype: of the orbits.
    """
    pal5 = np.concatenate(globulars.galactocentric(globulars.load("Pal 5")))
    here = np.stack([pal5, gd1()])
    axes = np.stack([frame(row[:3], row[3:]) for row in here])
    gm = np.full(2, units.G * 1e-3 * MASS)
    return Streams(
        spray=Spray(gm=jnp.asarray(gm), age=jnp.array(AGES), steps=steps, dtype=dtype),
        axes=jnp.asarray(axes),
        here=jnp.asarray(here),
        places=jnp.array(PLACES),
        width=jnp.array(WIDTHS),
        errors=errors,
    )


def gd1() -> np.ndarray:
    """Place and velocity [6] on the orbit of GD-1, kpc and km/s, about the Galaxy's centre.

    >>> gd1().round(1).tolist()
    [-12.4, 1.5, 7.1, -107.1, -243.0, -105.0]
    """
    far, outward, ahead, height, rise, angle = _GD1
    c, s = np.cos(angle), np.sin(angle)
    x = 8 * np.array([-far * c, far * s, height])
    v = 220 * np.array([ahead * s - outward * c, ahead * c + outward * s, rise])
    return np.concatenate([x, v])
