"""Masses, centres and inertias of simple solids, and of several welded into one."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxgpu.doors import explained
from jaxgpu.pytree import number
from jaxgpu.ranges import Range, numbers, refuse


@dataclass(frozen=True)
class Solid:
    """A rigid piece of matter."""

    mass: float = number(least=0, unit="kg")  # kg
    com: np.ndarray = number(unit="m")  # [3] centre of mass, m
    inertia: np.ndarray = number(unit="kg m^2")  # [3, 3] about the centre of mass, kg m^2

    def moved(self, R: np.ndarray, p: np.ndarray) -> "Solid":
        """Turned by R, then shifted by p."""
        return Solid(self.mass, p + R @ self.com, R @ self.inertia @ R.T)


@explained
def solid(kind: str, size: np.ndarray, mass: float | None, density: float) -> Solid:
    """A homogeneous solid about the origin, with MuJoCo's sizes.

    Args:
        kind: sphere (radius), box (half widths), ellipsoid (half axes), cylinder or capsule along z
            (radius, half length).
        size: as many as the kind needs, m.
        mass: kg, or None for density times volume.
        density: kg/m^3.

    Raises:
        ValueError: an unknown kind, too few sizes, or a size or mass that no body has.

    >>> solid("box", np.array([0.5, 0.5, 0.5]), 6.0, 1.0).inertia.diagonal().tolist()
    [1.0, 1.0, 1.0]
    """
    needs = {"sphere": 1, "box": 3, "ellipsoid": 3, "cylinder": 2, "capsule": 2}
    if kind not in needs:
        raise ValueError(f"solid: kind={kind!r}; use one of {', '.join(needs)}")
    size = np.asarray(numbers("solid: size", size))
    if size.ndim != 1 or size.size < needs[kind]:
        found = f"{size.size} sizes" if size.ndim == 1 else f"sizes of shape {list(size.shape)}"
        raise ValueError(f"solid: {found} for a {kind}; it needs {needs[kind]}")
    size = size[: needs[kind]].tolist()
    if min(size) <= 0:
        raise ValueError(f"solid: sizes {size} for a {kind}; they must be above 0")
    for name, x in (("mass", mass), ("density", density)):
        refuse(f"solid: {name}", x, Range(least=0, none=name == "mass", one=True))
    volume, moments = _SHAPES[kind](*size)
    mass = density * volume if mass is None else mass
    return Solid(mass, np.zeros(3), np.diag(mass * np.array(moments)))


@explained
def weld(parts: list[Solid]) -> dict[str, Any]:
    """Mass, centre and inertia of several solids as one, under the names of a `Link`'s fields.

    >>> import numpy as np
    >>> half = solid("box", np.array([0.5, 0.5, 0.5]), 6.0, 1.0)
    >>> weld([half, half])["mass"]
    12.0
    """
    mass = sum(part.mass for part in parts)
    weights = [part.mass / mass if mass else 0.0 for part in parts]
    com = sum((w * part.com for w, part in zip(weights, parts)), np.zeros(3))
    inertia = np.zeros((3, 3))
    for part in parts:  # the parallel-axis theorem
        r = part.com - com
        inertia += part.inertia + part.mass * (r @ r * np.eye(3) - np.outer(r, r))
    return {"mass": mass, "com": com, "inertia": inertia}


# of each shape: volume, and moments of inertia for a unit mass


def _ellipsoid(a: float, b: float, c: float) -> tuple[float, list[float]]:
    squares = np.square([a, b, c])
    return 4 / 3 * np.pi * a * b * c, list((squares.sum() - squares) / 5)


def _box(a: float, b: float, c: float) -> tuple[float, list[float]]:
    squares = np.square([a, b, c])
    return 8 * a * b * c, list((squares.sum() - squares) / 3)


def _cylinder(r: float, h: float) -> tuple[float, list[float]]:
    side = r * r / 4 + h * h / 3
    return 2 * np.pi * r * r * h, [side, side, r * r / 2]


def _capsule(r: float, h: float) -> tuple[float, list[float]]:
    middle, (side, _, spin) = _cylinder(r, h)
    caps = 4 / 3 * np.pi * r**3
    # a half ball's centre lies 3 r / 8 from its face: 2/5 r^2 + h^2 + 3/4 r h about the middle
    ends = 2 / 5 * r * r + h * h + 3 / 4 * r * h
    volume = middle + caps
    side = (middle * side + caps * ends) / volume
    return volume, [side, side, (middle * spin + caps * 2 / 5 * r * r) / volume]


_SHAPES = {
    "sphere": lambda r: _ellipsoid(r, r, r),
    "box": _box,
    "ellipsoid": _ellipsoid,
    "cylinder": _cylinder,
    "capsule": _capsule,
}
