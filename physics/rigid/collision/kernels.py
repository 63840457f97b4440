"""The table of collision kernels by the types of the two shapes.

Two convex shapes that are not in the table use `convex`, regardless of their types: pairs of all
such types are one batch.
"""

from collections.abc import Callable
from typing import NamedTuple

from . import height_field, sdf_contacts
from .box_box import box_box
from .boxes import capsule_box, sphere_box
from .cylinders import capsule_cylinder
from .flat_faces import FACE_CONTACTS
from .hull import CONVEX_TYPES
from .planes import plane_box, plane_capsule, plane_cylinder, plane_ellipsoid, plane_sphere
from .round_shapes import capsule_capsule, sphere_capsule, sphere_cylinder, sphere_sphere
from .shape import Collision

# MuJoCo's geom types; shape 1 of a pair has the earlier type
GEOM_TYPES = ("plane", "hfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh", "sdf")


class Kernel(NamedTuple):
    """A collision function of two types of shapes."""

    touch: Callable[..., Collision]  # takes a `Shape` of each type
    points: int  # rows of the result


CONVEX_PAIR = ("convex", "convex")  # two convex shapes without a kernel for their types
PLANE_MESH = ("plane", "mesh")

KERNELS: dict[tuple[str, str], Kernel] = {
    ("plane", "sphere"): Kernel(plane_sphere, 1),
    ("plane", "capsule"): Kernel(plane_capsule, 2),
    ("plane", "ellipsoid"): Kernel(plane_ellipsoid, 1),
    ("plane", "cylinder"): Kernel(plane_cylinder, 4),
    ("plane", "box"): Kernel(plane_box, 4),
    ("sphere", "sphere"): Kernel(sphere_sphere, 1),
    ("sphere", "capsule"): Kernel(sphere_capsule, 1),
    ("sphere", "cylinder"): Kernel(sphere_cylinder, 1),
    ("sphere", "box"): Kernel(sphere_box, 1),
    ("capsule", "capsule"): Kernel(capsule_capsule, 2),
    ("capsule", "cylinder"): Kernel(capsule_cylinder, 2),
    ("capsule", "box"): Kernel(capsule_box, 2),
    ("box", "box"): Kernel(box_box, 8),
}


def batch_types(one: str, two: str) -> tuple[str, str]:
    """Return the batch that a pair of shapes of two types is in."""
    if (one, two) == ("plane", "sdf"):
        return PLANE_MESH  # a plane cannot enter a hollow
    own = (one, two) in KERNELS
    return CONVEX_PAIR if not own and one in CONVEX_TYPES and two in CONVEX_TYPES else (one, two)


def num_contacts(
    pair: tuple[str, str], window: tuple[int, int] = (1, 1), most: int = 1
) -> int | None:
    """Return the number of contacts that a pair of a batch may have, None if it is unknown.

    With a height field it is at most `most`, for a window of the given numbers of cells.
    """
    if pair[0] == "hfield" and pair[1] in height_field.COLLIDING_TYPES:
        return height_field.num_contacts(pair[1], window, most)
    if pair in (CONVEX_PAIR, PLANE_MESH):
        return FACE_CONTACTS
    if pair[1] == "sdf" and pair[0] in sdf_contacts.SAMPLED_TYPES:
        return sdf_contacts.num_contacts(pair[0])
    return KERNELS[pair].points if pair in KERNELS else None
