"""What a mechanism is: links in a tree, each hung on its parent by one joint.

A revolute or prismatic joint has one coordinate and one velocity. A free joint has the seven
coordinates (x y z, unit quaternion w x y z) and six velocities (linear in the world's axes, angular
in the link's own), in the order of MuJoCo. Rows of velocities are called degrees of freedom, N in
all; there are L links and Q coordinates.
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.pytree import number, pytree, static
from jaxgpu.ranges import check, numbers

from .links import COORDINATES, FREEDOMS, Link, check_link


@pytree
class Tree:
    """A mechanism as arrays, the leaves of which may be differentiated, or batched by `vmap`."""

    position: Array = number(unit="m")  # [L, 3] of a link's frame in its parent's, m
    rotation: Array = number()  # [L, 3, 3] link to parent, at q = 0
    axis: Array = number()  # [L, 3] of the joint, in the link's frame, unit length
    mass: Array = number(least=0, unit="kg")  # [L] kg
    com: Array = number(unit="m")  # [L, 3] centre of mass in the link's frame, m
    inertia: Array = number()  # [L, 3, 3] about the centre of mass, in the link's axes, kg m^2
    armature: Array = number(least=0)  # [N] inertia added to each freedom, kg m^2 or kg
    damping: Array = number(least=0)  # [N] N m s/rad or N s/m
    stiffness: Array = number(least=0)  # [N] of the springs, N m/rad or N/m; 0 on free joints
    rest: Array = number()  # [N] where the springs are at rest, rad or m
    lower: Array = number(infinite=True)  # [N] limits of the coordinates, rad or m
    upper: Array = number(infinite=True)  # [N]
    gravity: Array = number(unit="m/s^2")  # [3] acceleration of free fall, m/s^2
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
    def rest_position(self) -> Array:
        """Where the mechanism begins: q = 0, free links where their frames were put, [Q]."""
        parts = []
        for i, joint in enumerate(self.joint):
            free = joint == "free"
            place = [self.position[i], _quaternion(self.rotation[i])]
            parts += place if free else [jnp.zeros(1, self.mass.dtype)]
        return jnp.concatenate(parts)


def assemble(
    links: Sequence[Link], gravity: Sequence[float] = (0.0, 0.0, -9.81), dtype: Any = jnp.float32
) -> Tree:
    """The `Tree` of `links`, parents before children.

    Raises:
        ValueError: an unknown joint, a parent that is not an earlier link, a zero axis, a rotation
            that is none, a mass or an inertia that no body has, crossed limits, springs or limits
            on a free link, a number that is not finite, or no link at all.

    >>> assemble([Link(-1), Link(0, position=(0, 0, 1))]).freedoms
    2
    """
    if not isinstance(links, list | tuple) or not all(isinstance(a, Link) for a in links):
        raise TypeError("assemble: links is not a list of `Link`; give one, in square brackets")
    if not links:
        raise ValueError("assemble: no links; give at least one")
    for i, link in enumerate(links):
        check_link(f"assemble: link {i} {link.name!r}".rstrip("' ").rstrip(), i, link)
    gravity = numbers("assemble: gravity", gravity, (3,), unit="m/s^2")
    if not jnp.issubdtype(dtype, jnp.floating):
        raise TypeError(f"assemble: dtype={dtype!r}; it must be a floating type; use jnp.float32")

    def per_link(values: Any) -> Array:
        return jnp.asarray(np.array(values, float), dtype)

    def per_freedom(name: str) -> Array:
        values = [getattr(link, name) for link in links for _ in range(FREEDOMS[link.joint])]
        return jnp.asarray(np.array(values, float), dtype)

    axes = np.array([(0, 0, 1) if a.joint == "free" else a.axis for a in links], float)
    axes = axes / np.abs(axes).max(1, keepdims=True)
    return Tree(
        position=per_link([link.position for link in links]),
        rotation=per_link([link.rotation for link in links]),
        axis=per_link(axes / np.linalg.norm(axes, axis=1, keepdims=True)),
        mass=per_link([link.mass for link in links]),
        com=per_link([link.com for link in links]),
        inertia=per_link([link.inertia for link in links]),
        armature=per_freedom("armature"),
        damping=per_freedom("damping"),
        stiffness=per_freedom("stiffness"),
        rest=per_freedom("rest"),
        lower=per_freedom("lower"),
        upper=per_freedom("upper"),
        gravity=per_link(gravity),
        parent=tuple(int(link.parent) for link in links),
        joint=tuple(link.joint for link in links),
        names=tuple(link.name for link in links),
    )


def check_tree(name: str, tree: Tree) -> None:
    """Raise one sentence, which begins with `name`, if the arrays of `tree` cannot be."""
    check(name, tree)
    L, N = len(tree.parent), tree.freedoms
    shapes: dict[str, tuple[int, ...]] = {"mass": (L,), "gravity": (3,)}
    shapes |= dict.fromkeys(("position", "axis", "com"), (L, 3))
    shapes |= dict.fromkeys(("rotation", "inertia"), (L, 3, 3))
    shapes |= dict.fromkeys(("armature", "damping", "stiffness", "rest", "lower", "upper"), (N,))
    for field, shape in shapes.items():
        got = list(jnp.shape(getattr(tree, field)))
        if got != list(shape):
            raise ValueError(f"{name}: Tree.{field} has shape {got}; it must be {list(shape)}")


def _quaternion(R: Array) -> Array:
    """The unit quaternion (w x y z) of a rotation matrix, its largest component positive."""
    (a, b, c), (d, e, f), (g, h, i) = R
    outer = jnp.array(  # 4 q q^T
        [
            [1 + a + e + i, h - f, c - g, d - b],
            [h - f, 1 + a - e - i, b + d, c + g],
            [c - g, b + d, 1 - a + e - i, f + h],
            [d - b, c + g, f + h, 1 - a - e + i],
        ]
    )
    row = outer[jnp.argmax(jnp.diagonal(outer))]
    return row / jnp.sqrt(jnp.sum(row * row))
