"""Readings of MuJoCo's sensors, and forces of contacts on bodies.

`readings` evaluates the sensors of a file by type; `frames` has poses, velocities and accelerations
of the frames they are attached to, `forces` the contact and joint forces on bodies, `touch` the
touch sensors. `models.sensors` lists the supported sensors.
"""

from .forces import contact_forces

__all__ = ["contact_forces"]
