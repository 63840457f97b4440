"""What a mechanism is: links in a tree, each hung on its parent by one joint.

A revolute or prismatic joint has one coordinate and one velocity. A free joint has the seven
coordinates (x y z, unit quaternion w x y z) and six velocities (linear in the world's axes, angular
in the link's own), in the order of MuJoCo. Rows of velocities are called degrees of freedom, N in
all; there are L links and Q coordinates.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.pytree import pytree, static

COORDINATES = {"revolute": 1, "prismatic": 1, "free": 7}
FREEDOMS = {"revolute": 1, "prismatic": 1, "free": 6}


@dataclass(frozen=True)
class Link:
    """One body and the joint that holds it; SI units, angles in rad."""

    parent: int  # index of an earlier link, -1 for the world
    joint: str = "revolute"  # or "prismatic", "free"
    axis: Sequence[float] = (0.0, 0.0, 1.0)  # of the joint, in the link's frame; unused if free
    position: Sequence[float] = (0.0, 0.0, 0.0)  # of the link's frame in its parent's, m
    rotation: Any = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))  # link to parent, at q = 0
    mass: float = 1.0  # kg
    com: Sequence[float] = (0.0, 0.0, 0.0)  # centre of mass in the link's frame, m
    inertia: Any = ((0.0, 0.0, 0.0),) * 3  # about the centre of mass, link's axes, kg m^2
    armature: float = 0.0  # inertia of the motor's rotor, kg m^2 or kg
    damping: float = 0.0  # N m s/rad or N s/m
    stiffness: float = 0.0  # of a spring at rest at `rest`, N m/rad or N/m
    rest: float = 0.0
    lower: float = -np.inf  # limits of the coordinate
    upper: float = np.inf
    name: str = ""


@pytree
class Tree:
    """A mechanism as arrays, the leaves of which may be differentiated, or batched by `vmap`."""

    position: Array  # [L, 3] of a link's frame in its parent's, m
    rotation: Array  # [L, 3, 3] link to parent, at q = 0
    axis: Array  # [L, 3] of the joint, in the link's frame, unit length
    mass: Array  # [L] kg
    com: Array  # [L, 3] centre of mass in the link's frame, m
    inertia: Array  # [L, 3, 3] about the centre of mass, in the link's axes, kg m^2
    armature: Array  # [N] inertia added to each degree of freedom, kg m^2 or kg
    damping: Array  # [N] N m s/rad or N s/m
    stiffness: Array  # [N] of the springs, N m/rad or N/m; 0 on free joints
    rest: Array  # [N] where the springs are at rest, rad or m
    lower: Array  # [N] limits of the coordinates, rad or m
    upper: Array  # [N]
    gravity: Array  # [3] acceleration of free fall, m/s^2
    parent: tuple[int, ...] = static()
    joint: tuple[str, ...] = static()
    names: tuple[str, ...] = static()

    @property
    def coordinates(self) -> int:
        """Q, the length of `q`."""
        return sum(COORDINATES[joint] for joint in self.joint)

    @property
    def freedoms(self) -> int:
        """N, the length of `v`."""
        return sum(FREEDOMS[joint] for joint in self.joint)

    @property
    def link_of(self) -> np.ndarray:
        """The link that each degree of freedom moves, [N]."""
        return np.repeat(np.arange(len(self.joint)), [FREEDOMS[joint] for joint in self.joint])

    @property
    def ancestry(self) -> np.ndarray:
        """1 where degree of freedom j moves link l, [L, N]: all the topology there is."""
        above = np.eye(len(self.parent))
        for link, parent in enumerate(self.parent):
            if parent >= 0:
                above[link] += above[parent]
        return above[:, self.link_of]

    @property
    def starts(self) -> list[int]:
        """Index in `q` of the first coordinate of each link."""
        return np.cumsum([0, *(COORDINATES[joint] for joint in self.joint)])[:-1].tolist()

    @property
    def scalar(self) -> np.ndarray:
        """Index in `q` of each revolute or prismatic joint, in order."""
        pairs = zip(self.starts, self.joint)
        return np.array([start for start, joint in pairs if joint != "free"], int)

    @property
    def rest_position(self) -> np.ndarray:
        """q = 0, with unit quaternions: [Q]."""
        q = np.zeros(self.coordinates)
        for start, joint in zip(self.starts, self.joint):
            if joint == "free":
                q[start + 3] = 1.0
        return q


def assemble(
    links: Sequence[Link], gravity: Sequence[float] = (0.0, 0.0, -9.81), dtype: Any = jnp.float32
) -> Tree:
    """Make a `Tree` of `links`, parents before children.

    Raises:
        ValueError: an unknown joint, a parent that is not an earlier link, a zero axis, a negative
            mass, crossed limits, or no link at all.

    >>> assemble([Link(-1), Link(0, position=(0, 0, 1))]).freedoms
    2
    """
    if not links:
        raise ValueError("assemble: no links; give at least one")
    for i, link in enumerate(links):
        _check(i, link)

    def per_link(values: Any) -> Array:
        return jnp.asarray(np.array(values, float), dtype)

    def per_freedom(name: str, free: float) -> Array:
        values = [
            getattr(link, name) if link.joint != "free" else free
            for link in links
            for _ in range(FREEDOMS[link.joint])
        ]
        return jnp.asarray(np.array(values, float), dtype)

    axes = np.array([link.axis for link in links], float)
    return Tree(
        position=per_link([link.position for link in links]),
        rotation=per_link([link.rotation for link in links]),
        axis=per_link(axes / np.linalg.norm(axes, axis=1, keepdims=True)),
        mass=per_link([link.mass for link in links]),
        com=per_link([link.com for link in links]),
        inertia=per_link([link.inertia for link in links]),
        armature=per_freedom("armature", 0.0),
        damping=per_freedom("damping", 0.0),
        stiffness=per_freedom("stiffness", 0.0),
        rest=per_freedom("rest", 0.0),
        lower=per_freedom("lower", -np.inf),
        upper=per_freedom("upper", np.inf),
        gravity=per_link(list(gravity)),
        parent=tuple(link.parent for link in links),
        joint=tuple(link.joint for link in links),
        names=tuple(link.name for link in links),
    )


def _check(i: int, link: Link) -> None:
    """One sentence for each way in which a link can be wrong."""
    where = f"assemble: link {i} {link.name!r}".rstrip("' ").rstrip()
    if link.joint not in COORDINATES:
        raise ValueError(f"{where} has joint={link.joint!r}; use one of {', '.join(COORDINATES)}")
    if not -1 <= link.parent < i:
        raise ValueError(f"{where} has parent={link.parent}; name an earlier link, or -1")
    if link.joint == "free" and link.parent >= 0:
        raise ValueError(f"{where} is free but has parent={link.parent}; a free link has parent=-1")
    if link.joint != "free" and not np.any(link.axis):
        raise ValueError(f"{where} has axis={link.axis}; give a direction")
    if link.mass < 0:
        raise ValueError(f"{where} has mass={link.mass} kg; it must not be negative")
    if not link.lower < link.upper:
        raise ValueError(f"{where} has limits {link.lower}, {link.upper}; the first must be less")
