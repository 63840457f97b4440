"""Conversion from N-body units, in which G = 1, to solar masses, parsecs, km/s and million years.

Heggie & Mathieu (1986), doi:10.1007/BFb0116419. Constants: IAU 2015 resolution B3 for the Sun's GM,
IAU 2012 B2 for the parsec, Julian years.
"""

import math

from jaxgpu.inputs import ranges
from jaxgpu.inputs.fields import number, pytree

GM_SUN = 1.3271244e11  # GM of the Sun, km^3 / s^2
PARSEC = 3.0856775814913673e13  # km
MYR = 1e6 * 365.25 * 86400  # s
G = GM_SUN / PARSEC  # pc (km/s)^2 / solar mass: 0.0043009


@pytree
class Scale:
    """The N-body units of mass and length; all other units follow from G = 1."""

    mass: float = number(baked=True, above=0, one=True, unit="solar masses")  # unit of mass
    length: float = number(baked=True, above=0, one=True, unit="pc")  # unit of length

    def __post_init__(self):
        ranges.check("Scale", self)

    @property
    def velocity(self) -> float:
        """The N-body unit of velocity in km/s.

        >>> round(Scale(mass=1000.0, length=1.0).velocity, 4)
        2.0739
        """
        return math.sqrt(G * self.mass / self.length)

    @property
    def time(self) -> float:
        """The N-body unit of time in Myr.

        >>> round(Scale(mass=1000.0, length=1.0).time, 4)
        0.4715
        """
        return self.length * PARSEC / self.velocity / MYR
