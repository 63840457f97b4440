"""What is seen from the Sun: stars in coordinates along a stream, and the means of its track.

A stream's frame is a great circle through its cluster, along the cluster's motion freed of the
Sun's. Columns of what is seen are: angle along and across, degrees; distance, kpc; radial velocity,
km/s; proper motion along and across, mas/yr, the Sun's motion included.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

SUN = np.array([-8.0, 0.0, 0.0208])  # kpc; x from the Sun's side through the centre
MOTION = np.array([11.1, 232.24, 7.25])  # km/s, Schoenrich, Binney & Dehnen (2010)
PER_MAS = 4.740470463533349  # km/s of a mas/yr at one kpc
ACROSS = "across, degrees", "distance, kpc", "radial velocity, km/s"
COLUMNS = *ACROSS, "proper motion along, mas/yr", "across, mas/yr"


def frame(x: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Axes [3, 3] in rows: to a cluster, along its motion at right angles to that, and the pole.

    Args:
        x, v: [3] of the cluster about the Galaxy's centre, kpc and km/s.
    """
    away = (x - SUN) / np.linalg.norm(x - SUN)
    along = v - (v @ away) * away
    along = along / np.linalg.norm(along)
    return np.stack([away, along, np.cross(away, along)])


def seen(axes: Array | np.ndarray, stars: Array) -> Array:
    """What is seen [..., 6] of places and velocities [..., 6] about the Galaxy's centre."""
    x = _turned(axes, [stars[..., i] - SUN[i] for i in range(3)])
    v = _turned(axes, [stars[..., 3 + i] - MOTION[i] for i in range(3)])
    flat = jnp.sqrt(x[0] ** 2 + x[1] ** 2)
    r = jnp.sqrt(flat**2 + x[2] ** 2)
    radial = (x[0] * v[0] + x[1] * v[1] + x[2] * v[2]) / r
    along = (x[0] * v[1] - x[1] * v[0]) / flat
    across = (v[2] * flat - x[2] * (x[0] * v[0] + x[1] * v[1]) / flat) / r
    angles = jnp.rad2deg(jnp.arctan2(x[1], x[0])), jnp.rad2deg(jnp.arctan2(x[2], flat))
    return jnp.stack([*angles, r, radial, along / (PER_MAS * r), across / (PER_MAS * r)], -1)


def track(rows: Array, places: Array, width: Array) -> Array:
    """The track [B, 5] of what is seen [N, 6] at places [B] along a stream: local straight lines.

    At each place a line is fitted to the stars by least squares, with weights that fall by
    exp(-1/2) within `width`, degrees; the track is the line's value there. So the track is a
    smooth function of where stars are, and how they are spread along it hardly moves it. A
    quarter of a width squared is added to the stars' spread, so that few stars give no wild line.
    """
    gap = (rows[None, :, 0] - places[:, None]) / width  # [B, N]
    weights = jax.nn.softmax(-0.5 * gap**2, axis=1)
    mean = lambda q: jnp.sum(weights * q, 1)
    lean = mean(gap)
    spread = mean(gap**2) - lean**2 + 0.25**2
    # a star's share in the line's value at the place
    shares = weights * (1 - (lean / spread)[:, None] * (gap - lean[:, None]))
    return jnp.matmul(shares, rows[:, 1:], precision="highest")


def _turned(axes: Array | np.ndarray, x: list[Array]) -> list[Array]:
    """Components of vectors along the axes in rows."""
    return [axes[i, 0] * x[0] + axes[i, 1] * x[1] + axes[i, 2] * x[2] for i in range(3)]
