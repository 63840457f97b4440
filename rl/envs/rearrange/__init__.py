"""Houses for robots that carry objects, generated from household statistics as arrays.

Read `house` first (a `House`: boxes, surfaces, and navigable cells), then `houses`, which generates
them: `floor_plan` (rooms, doors and windows), `floor` (where a robot may stand), `placement`
(furniture, placed so that all of it can be reached) and `clutter` (small objects on it).
`furnishings` has the published statistics, `pieces` the units of placement, `templates` the parts
of furniture, `padded_table` tables of fixed length, `colors` the appearance. `geodesic` measures
paths over the floor, `hand_paths` paths of a hand to an object.

Two subpackages follow: `robot`, Fetch among boxes, and `tasks`, the environments.
"""

from . import furnishings, geodesic, houses
from .house import BoxType, House, Objects, Surfaces

__all__ = [
    "House",
    "BoxType",
    "Objects",
    "Surfaces",
    "furnishings",
    "geodesic",
    "houses",
]
