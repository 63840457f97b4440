"""Materials: constitutive laws, which return stress and update internal variables.

To read: `liquid`, `elastic` and `plastic` (the laws); `polar` (stretch by invariants), `spectral`
(laws and return maps in principal stretches, with `decomposition` and first derivatives),
`curvature` (their second derivatives) and `forms` (JAX primitives with these derivatives).
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
