"""Houses for robots that carry things: drawn from statistics of households, as arrays.

Read `house` first (a `House`: boxes, surfaces, and where to walk), then `houses`, which draws
them: `plan` (rooms, doors and windows), `floor` (where a robot may stand), `furnish` (furniture,
placed so that all of it can be reached) and `clutter` (small things on it). `furnishings` has the
published statistics, `pieces` what is placed at once, `templates` the parts of a piece, `rows`
tables of fixed length, `colours` what they look like. `geodesic` measures ways over the floor, and
`approach` those of a hand to a thing.

Then come two rooms: `robot`, Fetch among boxes, and `tasks`, what it is to do there.
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
