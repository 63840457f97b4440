"""Two bodies alone: where they go, and what their orbit is.

Read `universal` first, the one solver of Kepler's equation; then `kepler`, motion over any time;
`elements`, orbits by their elements; and `ks`, regular variables for pairs that nearly meet.
"""

from . import elements, kepler, ks, universal
from .elements import Elements

__all__ = ["Elements", "elements", "kepler", "ks", "universal"]
