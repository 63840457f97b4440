"""One body of a mechanism with its joint, and what no body can be."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from jaxgpu.pytree import number, pytree, size, static
from jaxgpu.ranges import check

COORDINATES = {"revolute": 1, "prismatic": 1, "free": 7}
DOFS = {"revolute": 1, "prismatic": 1, "free": 6}
_IDENTITY = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


@pytree
class Link:
    """One body and the joint that holds it; SI units, angles in rad. Its numbers are leaves."""

    parent: int = size(least=-1)  # index of an earlier link, -1 for the world
    joint: str = static(default="revolute")  # or "prismatic", "free"
    axis: Sequence[float] = number(default=(0.0, 0.0, 1.0))  # [3] of the joint, in the link's frame
    position: Sequence[float] = number(
        default=(0.0, 0.0, 0.0), unit="m"
    )  # [3] of its frame in the parent's
    rotation: Any = number(default=_IDENTITY)  # [3, 3] link to parent, at q = 0
    mass: float = number(default=1.0, least=0, unit="kg")  # of the body
    com: Sequence[float] = number(
        default=(0.0, 0.0, 0.0), unit="m"
    )  # [3] centre of mass in its frame
    inertia: Any = number(
        default=((0.0,) * 3,) * 3, unit="kg m^2"
    )  # [3, 3] about com, in the link's axes
    armature: float = number(default=0.0, least=0)  # inertia of the motor's rotor, kg m^2 or kg
    damping: float = number(default=0.0, least=0)  # N m s/rad or N s/m
    stiffness: float = number(default=0.0, least=0)  # of a spring at rest at `rest`, N m/rad or N/m
    rest: float = number(default=0.0)  # coordinate where the spring is at rest, rad or m
    lower: float = number(default=-np.inf, infinite=True)  # least coordinate, rad or m
    upper: float = number(default=np.inf, infinite=True)  # largest coordinate, rad or m
    name: str = static(default="")  # by which the link is found; "" where nobody asks


_SCALARS = ("mass", "armature", "damping", "stiffness", "rest", "lower", "upper")
_SHAPES: dict[str, tuple[int, ...]] = {"parent": (), **{name: () for name in _SCALARS}}
_SHAPES |= {"axis": (3,), "position": (3,), "com": (3,), "rotation": (3, 3), "inertia": (3, 3)}
_ROUNDING = 1e-4  # how far a rotation may be from orthonormal: four digits of a cosine


def check_link(where: str, i: int, link: Link) -> None:
    """Raise one sentence, which begins with `where`, if `link`, the i-th, cannot be."""
    if link.joint not in COORDINATES:
        raise ValueError(f"{where} has joint={link.joint!r}; use one of {', '.join(COORDINATES)}")
    values = {name: _array(where, link, name) for name in _SHAPES}
    traced = {name for name, value in values.items() if value is None}
    if not -1 <= link.parent < i:
        raise ValueError(f"{where} has parent={link.parent}; name an earlier link, or -1")
    if link.joint == "free" and link.parent >= 0:
        raise ValueError(f"{where} is free but has parent={link.parent}; a free link has parent=-1")
    if link.joint != "free" and "axis" not in traced and not np.any(link.axis):
        raise ValueError(f"{where} has axis={link.axis}; give a direction")
    if "mass" not in traced and link.mass < 0:
        raise ValueError(f"{where} has mass={link.mass} kg; it must not be negative")
    check(where, link)
    if not traced & {"lower", "upper"} and not link.lower < link.upper:
        raise ValueError(f"{where} has limits {link.lower}, {link.upper}; the first must be less")
    if link.joint == "free":
        for name, unset in (("stiffness", 0), ("rest", 0), ("lower", -np.inf), ("upper", np.inf)):
            if values[name] is None or values[name] != unset:
                given = "a traced number" if values[name] is None else f"{values[name]:g}"
                raise ValueError(
                    f"{where} is free but has {name}={given}; springs and limits act on revolute "
                    "and prismatic joints; leave it out"
                )
    R, inertia = values["rotation"], values["inertia"]
    if R is not None and (np.abs(R @ R.T - np.eye(3)).max() > _ROUNDING or np.linalg.det(R) < 0):
        raise ValueError(
            f"{where} has rotation={R.tolist()}; it must be orthonormal with determinant 1"
        )
    if inertia is not None:
        _check_inertia(where, inertia)


def _array(where: str, link: Link, name: str) -> np.ndarray | None:
    """A field as an array of real numbers of its shape; None where it is traced."""
    value, shape = getattr(link, name), _SHAPES[name]
    if any(isinstance(x, Tracer) for x in jax.tree.leaves(value)):
        if np.shape(value) != shape:
            raise ValueError(f"{where} has {name} of shape {list(np.shape(value))}; {_want(shape)}")
        return None
    try:
        a = np.asarray(value)
    except ValueError:
        a = np.array(None)
    if a.dtype.kind not in ("iu" if name == "parent" else "iuf"):
        raise TypeError(
            f"{where} has {name}={value!r}; it must be of real numbers".replace("\n", "")
        )
    if a.shape != shape:
        raise ValueError(f"{where} has {name} of shape {list(a.shape)}; {_want(shape)}")
    return a


def _want(shape: tuple[int, ...]) -> str:
    return f"it must be of shape {list(shape)}"


def _check_inertia(where: str, I: np.ndarray) -> None:
    """No body has an inertia without symmetry, or beyond the triangle inequality."""
    slack = 1e-5 * np.abs(I).max()  # float32
    if np.abs(I - I.T).max() > slack:
        raise ValueError(f"{where} has inertia={I.tolist()}; it must be symmetric")
    a, b, c = np.linalg.eigvalsh(I)
    if a < -slack or a + b < c - slack:
        raise ValueError(
            f"{where} has an inertia with the principal moments {a:g}, {b:g} and {c:g} kg m^2; "
            "none may be negative, nor exceed the sum of the other two"
        )
