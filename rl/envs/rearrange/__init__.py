"""Houses for robots that carry objects, generated from household statistics as arrays.

Read `house` first (a `House`: boxes, surfaces, and navigable cells), then `houses`, which generates
them: `plan` (rooms, doors and windows), `floor` (where a robot may stand), `furnish` (furniture,
placed so that all of it can be reached) and `clutter` (small objects on it). `furnishings` has the
published statistics, `pieces` the units of placement, `templates` the parts of furniture, `rows`
tables of fixed length, `colours` the appearance. `geodesic` measures paths over the floor,
`approach` paths of a hand to an object.

Two subpackages follow: `robot`, Fetch among boxes, and `tasks`, the environments.
"""

from . import furnishings, geodesic, houses
from .house import House, Kind, Objects, Surfaces

__all__ = [
    "House",
    "Kind",
    "Objects",
    "Surfaces",
    "furnishings",
    "geodesic",
    "houses",
]
