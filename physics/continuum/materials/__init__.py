"""Materials: stress from the velocity gradient, and the internal variables they carry.

To read: `liquid`, `elastic` and `plastic` (the laws); `polar` (stretch by invariants), `spectral`
(laws and return maps in principal stretches, with `decompose` and first derivatives), `curvature`
(their second derivatives) and `forms` (how JAX is told of them).
"""

from .elastic import Corotated, NeoHookean, lame
from .liquid import HerschelBulkley, Liquid
from .plastic import DruckerPrager, PlasticState, Snow, VonMises

__all__ = [
    "Corotated",
    "DruckerPrager",
    "HerschelBulkley",
    "Liquid",
    "NeoHookean",
    "PlasticState",
    "Snow",
    "VonMises",
    "lame",
]
