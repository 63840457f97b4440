"""Where a mechanism is, how fast it moves, and what moves it.

Read `poses` first, then `inertia` (axes, velocities, the mass matrix), `fluid` (drag and lift),
`forces` (springs, dampers, and all that acts without a motor) and `actuators`.
"""

from .inertia import Motion
from .poses import Poses

__all__ = ["Motion", "Poses"]
