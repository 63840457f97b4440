"""Ten globular clusters of the Milky Way with mass, King structure and orbit.

Sources are named in data/globulars.csv. Galactocentric axes: x from the Sun's side through the
centre, y along the Sun's rotation, z to the north Galactic pole; right-handed.
"""

import csv
from dataclasses import dataclass
from importlib import resources

import jax
import numpy as np

from jaxgpu.devices.precision import with_float64

from . import king_models

_concentration = jax.jit(lambda depth: king_models.profile(depth).concentration)
_PER_MAS = 4.740470463533349  # km/s per milliarcsecond per year at one kpc
_POLE_RA, _POLE_DEC, _NODE = np.deg2rad([192.85948, 27.12825, 122.93192])  # Galactic, J2000


@dataclass(frozen=True)
class Globular:
    """Catalogue data of one globular cluster."""

    name: str  # as in catalogues
    alias: str  # "" if it has none
    mass: float  # solar masses
    core: float  # core radius, pc
    half: float  # half-light radius, pc
    tidal: float  # tidal radius, pc
    ra: float  # degrees, J2000
    dec: float  # degrees
    distance: float  # kpc
    pm_ra: float  # proper motion in ra, mas/yr, times the cosine of dec
    pm_dec: float  # proper motion in dec, mas/yr
    radial: float  # radial velocity, km/s

    @property
    def concentration(self) -> float:
        """King concentration, log10 of tidal over core radius."""
        return float(np.log10(self.tidal / self.core))

    @property
    @with_float64
    def depth(self) -> float:
        """Central potential W0 of the King model with this concentration."""
        low, high = 0.1, 16.0
        for _ in range(40):
            middle = (low + high) / 2
            looser = float(_concentration(middle)) < self.concentration
            low, high = (middle, high) if looser else (low, middle)
        return (low + high) / 2


def names() -> list[str]:
    """Return the names of the available clusters.

    >>> names()[0], len(names())
    ('NGC 104', 10)
    """
    return [row["name"] for row in _rows()]


def load(name: str) -> Globular:
    """Return the cluster with the given name or alias.

    >>> load("47 Tuc").distance
    4.52
    """
    normalise = lambda text: text.replace(" ", "").lower()
    for row in _rows():
        if normalise(name) in (normalise(row["name"]), normalise(row["alias"])) and name:
            numbers = {key: float(row[key]) for key in row if key not in ("name", "alias")}
            return Globular(row["name"], row["alias"], **numbers)
    raise ValueError(f"load: no cluster {name!r}; there are {', '.join(names())}")


def galactocentric(
    cluster: Globular,
    radius: float = 8.0,
    height: float = 0.0208,
    sun: tuple[float, float, float] = (11.1, 232.24, 7.25),
) -> tuple[np.ndarray, np.ndarray]:
    """Return position and velocity [3] about the centre of the Galaxy, kpc and km/s.

    Args:
        cluster: a globular cluster.
        radius: distance of the Sun from the axis of the Galaxy, kpc.
        height: height of the Sun above the Galactic plane, kpc.
        sun: velocity of the Sun, towards the centre, along the rotation and to the north; the
            circular speed of 220 km/s and the motion of Schoenrich, Binney & Dehnen (2010),
            doi:10.1111/j.1365-2966.2010.16253.x, by default.
    """
    ra, dec = np.deg2rad([cluster.ra, cluster.dec])
    away = np.array([np.cos(dec) * np.cos(ra), np.cos(dec) * np.sin(ra), np.sin(dec)])
    east = np.array([-np.sin(ra), np.cos(ra), 0])
    north = np.array([-np.sin(dec) * np.cos(ra), -np.sin(dec) * np.sin(ra), np.cos(dec)])
    motion = cluster.pm_ra * east + cluster.pm_dec * north
    v = cluster.radial * away + _PER_MAS * cluster.distance * motion
    to = galactic_axes()
    x, v = to @ (cluster.distance * away), to @ v
    # the Sun is above the plane, so the direction to the centre points slightly below it
    far = np.hypot(radius, height)
    c, s = radius / far, height / far
    level = np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    x = level @ (x - np.array([far, 0, 0]))
    return x, level @ v + np.array(sun)


def galactic_axes() -> np.ndarray:
    """Return the rotation [3, 3] from J2000 equatorial to Galactic axes; x points to the centre.

    Perryman et al. (1997), The Hipparcos and Tycho Catalogues, vol. 1, sect. 1.5.3.
    """

    def rotation_z(angle: float) -> np.ndarray:
        c, s = np.cos(angle), np.sin(angle)
        return np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])

    c, s = np.sin(_POLE_DEC), np.cos(_POLE_DEC)
    tilt = np.array([[1, 0, 0], [0, c, s], [0, -s, c]])
    return rotation_z(np.pi / 2 - _NODE) @ tilt @ rotation_z(_POLE_RA + np.pi / 2)


def _rows() -> list[dict[str, str]]:
    text = resources.files("jaxgpu.physics.nbody").joinpath("data/globulars.csv").read_text()
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
