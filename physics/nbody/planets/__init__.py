"""Planetary systems and tracers in them.

Read `integration` first (the function `integrate`); then `planetary` (accurate, relativistic) and
its `tracers`; `wisdom_holman` (fast over many orbits); `ensemble` (many small systems in parallel)
and its `lanes`; `ephemeris` (initial positions of the planets); and `encounters` (a log of close
encounters).
"""

from . import encounters, ensemble, ephemeris, integration, lanes, planetary, tracers, wisdom_holman
from .ensemble import Ensemble
from .integration import integrate
from .planetary import Planetary
from .wisdom_holman import WisdomHolman

__all__ = [
    "Ensemble",
    "Planetary",
    "WisdomHolman",
    "encounters",
    "ensemble",
    "ephemeris",
    "integrate",
    "integration",
    "lanes",
    "planetary",
    "tracers",
    "wisdom_holman",
]
