"""What a mechanism measures: MuJoCo's sensors, and the forces of contacts on bodies.

`read` takes the sensors of a file, kind by kind; `frames` are places, velocities and accelerations
of what carries them, `forces` those of contacts and joints on bodies, `touch` the sensors of touch.
Which sensors there are stands in `models.sensors`.
"""

from .forces import contact_forces

__all__ = ["contact_forces"]
