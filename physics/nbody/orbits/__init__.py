"""Two isolated bodies: their motion and their orbital elements.

Read `universal` first, the common solver of Kepler's equation; then `kepler` (motion over any
time), `elements` (orbital elements) and `ks` (regular variables for close pairs).
"""

from . import elements, kepler, ks, universal
from .elements import Elements

__all__ = ["Elements", "elements", "kepler", "ks", "universal"]
