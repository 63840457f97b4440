"""Kinematics, inertia and unconstrained forces of a mechanism.

Read `poses` first, then `inertia` (axes, velocities, the mass matrix), `fluid` (drag and lift),
`forces` (springs, dampers and all other passive forces) and `actuators`.
"""

from .inertia import Motion
from .poses import Poses

__all__ = ["Motion", "Poses"]
