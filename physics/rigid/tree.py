"""What a mechanism is: links in a tree, each hung on its parent by one joint.

A revolute or prismatic joint has one coordinate and one velocity. A free joint has the seven
coordinates (x y z, unit quaternion w x y z) and six velocities (linear in the world's axes, angular
in the link's own), in the order of MuJoCo. Rows of velocities are called degrees of freedom, N in
all; there are L links and Q coordinates.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from jaxgpu.doors import explained
from jaxgpu.geometry import rotations
from jaxgpu.pytree import number, pytree, static
from jaxgpu.ranges import check, numbers

from .links import COORDINATES, DOFS, Link, check_link


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
    parent: tuple[int, ...] = static()  # of each link, the index of its parent, -1 for the world
    joint: tuple[str, ...] = static()  # of each link: "revolute", "prismatic" or "free"
    names: tuple[str, ...] = static()  # of the links

    @property
    def nq(self) -> int:
        """The number Q of coordinates, MuJoCo's nq."""
        return sum(COORDINATES[joint] for joint in self.joint)

    @property
    def nv(self) -> int:
        """The number N of degrees of freedom, MuJoCo's nv."""
        return sum(DOFS[joint] for joint in self.joint)

    @property
    def link_of(self) -> np.ndarray:
        """The link that each degree of freedom moves, [N]."""
        return np.repeat(np.arange(len(self.joint)), [DOFS[joint] for joint in self.joint])

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
            place = [self.position[i], rotations.from_matrix(self.rotation[i])]
            parts += place if free else [jnp.zeros(1, self.mass.dtype)]
        return jnp.concatenate(parts)


@explained
def assemble(
    links: Sequence[Link], gravity: Sequence[float] = (0.0, 0.0, -9.81), dtype: Any = jnp.float32
) -> Tree:
    """The `Tree` of `links`, parents before children.

    Masses, inertias and all other numbers of links may be traced, as under `grad` or `vmap`; what
    is traced is not held against its range.

    Raises:
        ValueError: an unknown joint, a parent that is not an earlier link, a zero axis, a rotation
            that is none, a mass or an inertia that no body has, crossed limits, springs or limits
            on a free link, a number that is not finite, or no link at all.

    >>> assemble([Link(-1), Link(0, position=(0, 0, 1))]).nv
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

    def per_link(values: Sequence[Any]) -> Array:
        if _traced(values):  # under `jit` or `grad`: what is traced stays a leaf of the tree
            return jnp.stack([jnp.asarray(value, dtype) for value in values])
        return jnp.asarray(np.array(values, float), dtype)

    def per_dof(name: str) -> Array:
        return per_link([getattr(link, name) for link in links for _ in range(DOFS[link.joint])])

    axes = [(0.0, 0.0, 1.0) if link.joint == "free" else link.axis for link in links]
    return Tree(
        position=per_link([link.position for link in links]),
        rotation=per_link([link.rotation for link in links]),
        axis=per_link([_unit(axis) for axis in axes]),
        mass=per_link([link.mass for link in links]),
        com=per_link([link.com for link in links]),
        inertia=per_link([link.inertia for link in links]),
        armature=per_dof("armature"),
        damping=per_dof("damping"),
        stiffness=per_dof("stiffness"),
        rest=per_dof("rest"),
        lower=per_dof("lower"),
        upper=per_dof("upper"),
        gravity=jnp.asarray(gravity, dtype),
        parent=tuple(int(link.parent) for link in links),
        joint=tuple(link.joint for link in links),
        names=tuple(link.name for link in links),
    )


def check_tree(name: str, tree: Tree) -> None:
    """Raise one sentence, which begins with `name`, if the arrays of `tree` cannot be."""
    check(name, tree)
    L, N = len(tree.parent), tree.nv
    shapes: dict[str, tuple[int, ...]] = {"mass": (L,), "gravity": (3,)}
    shapes |= dict.fromkeys(("position", "axis", "com"), (L, 3))
    shapes |= dict.fromkeys(("rotation", "inertia"), (L, 3, 3))
    shapes |= dict.fromkeys(("armature", "damping", "stiffness", "rest", "lower", "upper"), (N,))
    for field, shape in shapes.items():
        got = list(jnp.shape(getattr(tree, field)))
        if got != list(shape):
            raise ValueError(f"{name}: Tree.{field} has shape {got}; it must be {list(shape)}")


def _traced(values: Any) -> bool:
    return any(isinstance(x, Tracer) for x in jax.tree.leaves(values))


def _unit(axis: Any) -> Any:
    """The direction [3] of length one; scaled first, so that no square overflows."""
    if _traced(axis):
        return axis / jnp.linalg.norm(axis)
    axis = np.asarray(axis, float)
    axis = axis / np.abs(axis).max()
    return axis / np.linalg.norm(axis)
