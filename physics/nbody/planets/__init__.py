"""Planetary systems, and tracers in them.

Read `integration` first, the one call; then `planetary`, accurate and with relativity, and
`tracers` within it; `wisdom_holman`, fast for many turns; `ensemble`, many small systems at once,
and its `lanes`; `ephemeris`, where the planets are; and `encounters`, a log of close ones.
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
