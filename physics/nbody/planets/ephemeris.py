"""Positions and velocities of the Sun, the planets and Pluto, from JPL's ephemeris DE440.

Park, Folkner, Williams & Boggs (2021), doi:10.3847/1538-3881/abd414. Barycentric positions in the
axes of the ICRF, in astronomical units and days of barycentric dynamical time.
"""

import csv
from dataclasses import dataclass
from importlib import resources

import numpy as np

from jaxgpu.inputs import ranges

from .. import validation

AU = 149597870.7  # km
J2000 = 2451545.0  # Julian date of 2000 January 1, 12 h
OBLIQUITY = np.deg2rad(84381.448 / 3600)  # inclination of the J2000 ecliptic to the equator


@dataclass(frozen=True)
class Ephemeris:
    """State of the Sun, eight planets (the Earth with the Moon) and Pluto at one time."""

    names: tuple[str, ...]  # N names, the Sun first
    gm: np.ndarray  # [N] gravitational parameter, AU^3 / day^2
    x: np.ndarray  # [N, 3] position, AU
    v: np.ndarray  # [N, 3] velocity, AU / day


def de440(jd: float) -> Ephemeris:
    """Return the ten bodies at Julian date `jd` (TDB), which must be one of the stored dates.

    Stored dates: J2000 and 10, 50 and 100 Julian years after it.

    Raises:
        ValueError: another date.

    >>> de440(J2000).names[3]
    'EMB'
    >>> round(float(np.linalg.norm(de440(J2000).x[1] - de440(J2000).x[0])), 4)  # Mercury, AU
    0.4665
    """
    ranges.numbers("ephemeris.de440: jd", jd, (), unit="days")
    text = resources.files("jaxgpu.physics.nbody").joinpath("data/de440.csv").read_text()
    rows = list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
    here = [row for row in rows if float(row["jd"]) == jd]
    if not here:
        known = ", ".join(sorted({row["jd"] for row in rows}))
        raise ValueError(f"de440: no entry for Julian date {jd}; the package holds {known}")
    number = lambda *keys: np.array([[float(row[key]) for key in keys] for row in here])
    return Ephemeris(
        names=tuple(row["body"] for row in here),
        gm=number("gm")[:, 0],
        x=number("x", "y", "z"),
        v=number("vx", "vy", "vz"),
    )


def to_ecliptic(vector: np.ndarray) -> np.ndarray:
    """Convert components [..., 3] from the ICRF axes to the axes of the J2000 ecliptic.

    Raises:
        ValueError: another shape, a component that is not finite.

    >>> pole = to_ecliptic(np.array([0, -np.sin(OBLIQUITY), np.cos(OBLIQUITY)]))
    >>> bool(np.abs(pole - [0, 0, 1]).max() < 1e-15)
    True
    """
    return _rotate_about_x("ephemeris.to_ecliptic", vector, OBLIQUITY)


def to_equatorial(vector: np.ndarray) -> np.ndarray:
    """Convert components [..., 3] from the axes of the J2000 ecliptic to the ICRF axes.

    Raises:
        ValueError: as `to_ecliptic`.
    """
    return _rotate_about_x("ephemeris.to_equatorial", vector, -OBLIQUITY)


def _rotate_about_x(name: str, vector: np.ndarray, angle: float) -> np.ndarray:
    """Return the components in axes rotated about the x axis, which points to the equinox."""
    c, s = np.cos(angle), np.sin(angle)
    x, y, z = np.moveaxis(np.asarray(validation.check_vectors(f"{name}: vector", vector)), -1, 0)
    return np.stack([x, c * y + s * z, c * z - s * y], -1)
