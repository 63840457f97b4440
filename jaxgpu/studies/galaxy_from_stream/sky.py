"""Observed coordinates from the Sun: positions along a stream, and the means of its track.

A stream's frame is a great circle through its cluster along the cluster's motion, corrected for the
Sun's. The columns are: angle along and across, degrees; distance, kpc; radial velocity, km/s;
proper motion along and across, mas/yr, including the Sun's motion.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

SUN = np.array([-8.0, 0.0, 0.0208])  # kpc; the x axis points from the Sun to the Galactic centre
MOTION = np.array([11.1, 232.24, 7.25])  # km/s, Schoenrich, Binney & Dehnen (2010)
PER_MAS = 4.740470463533349  # km/s per mas/yr at 1 kpc
ACROSS = "across, degrees", "distance, kpc", "radial velocity, km/s"
COLUMNS = *ACROSS, "proper motion along, mas/yr", "across, mas/yr"


def frame(x: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return the axes [3, 3] as rows: towards a cluster, along its transverse motion, and the pole.

    Args:
        x, v: [3] of the cluster about the Galactic centre, kpc and km/s.
    """
    away = (x - SUN) / np.linalg.norm(x - SUN)
    along = v - (v @ away) * away
    along = along / np.linalg.norm(along)
    return np.stack([away, along, np.cross(away, along)])


def observe(axes: Array | np.ndarray, stars: Array) -> Array:
    """Return observed coordinates [..., 6] of Galactocentric positions and velocities [..., 6]."""
    x = _rotate(axes, [stars[..., i] - SUN[i] for i in range(3)])
    v = _rotate(axes, [stars[..., 3 + i] - MOTION[i] for i in range(3)])
    flat = jnp.sqrt(x[0] ** 2 + x[1] ** 2)
    r = jnp.sqrt(flat**2 + x[2] ** 2)
    radial = (x[0] * v[0] + x[1] * v[1] + x[2] * v[2]) / r
    along = (x[0] * v[1] - x[1] * v[0]) / flat
    across = (v[2] * flat - x[2] * (x[0] * v[0] + x[1] * v[1]) / flat) / r
    angles = jnp.rad2deg(jnp.arctan2(x[1], x[0])), jnp.rad2deg(jnp.arctan2(x[2], flat))
    return jnp.stack([*angles, r, radial, along / (PER_MAS * r), across / (PER_MAS * r)], -1)


def track(rows: Array, places: Array, width: Array) -> Array:
    """Return the track [B, 5] of stars [N, 6] at positions [B], by local linear fits.

    At each position a line is fitted to the stars by weighted least squares, with weights that
    decrease to exp(-1/2) at a distance of `width`, degrees. The track is the line's value there, so
    it is a smooth function of the stars and nearly independent of their distribution along it. The
    square of width / 4 is added to the variance of the positions, to regularize fits to few stars.
    """
    gap = (rows[None, :, 0] - places[:, None]) / width  # [B, N]
    weights = jax.nn.softmax(-0.5 * gap**2, axis=1)
    mean = lambda q: jnp.sum(weights * q, 1)
    lean = mean(gap)
    spread = mean(gap**2) - lean**2 + 0.25**2
    # weight of a star in the line's value at the position
    shares = weights * (1 - (lean / spread)[:, None] * (gap - lean[:, None]))
    return jnp.matmul(shares, rows[:, 1:], precision="highest")


def _rotate(axes: Array | np.ndarray, x: list[Array]) -> list[Array]:
    """Return the components of vectors along the axes (rows)."""
    return [axes[i, 0] * x[0] + axes[i, 1] * x[1] + axes[i, 2] * x[2] for i in range(3)]
