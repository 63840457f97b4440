"""Two streams on different orbits, as observed from the Sun, and the tracks of their stars.

One is the stream of the globular cluster Palomar 5. The other is on the orbit of GD-1 (Koposov, Rix
& Hogg 2010, doi:10.1088/0004-637X/712/1/260, with the values of Bovy 2014,
doi:10.1088/0004-637X/795/1/95), on which a cluster is placed. Positions and velocities of the
clusters are known.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs.fields import number, pytree
from jaxgpu.physics.nbody import units
from jaxgpu.physics.nbody.models import globulars

from .sky import frame, observe, track
from .spray import Spray

NAMES = "Palomar 5", "GD-1"
MASS = 2e4  # of each cluster, solar masses
AGES = 1.5, 2.0  # kpc / (km/s)
PLACES = (-7.5, -5.0, -2.5, 2.5, 5.0, 7.5), (-25.0, -15.0, -5.0, 5.0, 15.0, 25.0)  # degrees
WIDTHS = 1.5, 4.0  # degrees
# of GD-1: galpy's R, vR, vT, z, vz in units of 8 kpc and 220 km/s, and the angle from the Sun
_GD1 = 1.56148083, 0.35081535, -1.15481504, 0.88719443, -0.47713334, 0.12019596


@pytree
class Errors:
    """Standard deviations of observations."""

    distance: float = number(default=0.05, above=0)  # of a star, relative to its distance
    radial: float = number(default=2.0, above=0, unit="km/s")  # of a star
    proper: float = number(default=0.1, above=0, unit="mas/yr")  # of a star, per direction

    def star_errors(self, distance: Array) -> Array:
        """Return the errors [..., 5] of stars at distances [...], in the columns of a track."""
        one = jnp.ones_like(distance)
        proper = self.proper * one
        radial = self.radial * one
        return jnp.stack([0 * one, self.distance * distance, radial, proper, proper], -1)


@pytree
class Streams:
    """Model and observation of several streams; leaves have a leading axis [S]."""

    spray: Spray  # its gm and age are [S]
    axes: Array  # [S, 3, 3] sky axes along each stream
    here: Array  # [S, 6] position and velocity of each cluster, kpc and km/s
    places: Array  # [S, B] positions of the track along the stream, degrees
    width: Array  # [S] width of the track's weights, degrees
    errors: Errors

    @property
    def age(self) -> Array:
        """Ages [S] of the oldest stars."""
        return jnp.asarray(self.spray.age)

    def stars(self, theta: Array, draws: Array) -> Array:
        """Return the observed coordinates [S, N, 6] of stars, without errors.

        Args:
            theta: [4] parameters of the Galaxy.
            draws: [S, N, 6] random numbers of the stars.
        """

        def observe_stream(spray: Spray, axes: Array, here: Array, draws: Array) -> Array:
            return observe(axes, spray.stars(theta, here, draws).astype(draws.dtype))

        return jax.vmap(observe_stream)(self.spray, self.axes, self.here, draws)

    def tracks(self, rows: Array) -> Array:
        """Return the tracks [S, B, 5] of observed coordinates [S, N, 6]."""
        return jax.vmap(track)(rows, self.places, self.width)

    def add_errors(self, rows: Array, key: Array) -> Array:
        """Add observational errors to the coordinates [S, N, 6]."""
        noise = jax.random.normal(key, (*rows.shape[:-1], 5), rows.dtype)
        return rows.at[..., 1:].add(noise * self.errors.star_errors(rows[..., 2]))


def two_streams(steps: int, errors: Errors, dtype: str = "float32") -> Streams:
    """Return the streams of Palomar 5 and GD-1.

    Args:
        steps: steps of a star's orbit.
        errors: observational errors.
        dtype: dtype of the orbits.
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
    """Return a Galactocentric position and velocity [6] on the orbit of GD-1, kpc and km/s.

    >>> gd1().round(1).tolist()
    [-12.4, 1.5, 7.1, -107.1, -243.0, -105.0]
    """
    far, outward, ahead, height, rise, angle = _GD1
    c, s = np.cos(angle), np.sin(angle)
    x = 8 * np.array([-far * c, far * s, height])
    v = 220 * np.array([ahead * s - outward * c, ahead * c + outward * s, rise])
    return np.concatenate([x, v])
