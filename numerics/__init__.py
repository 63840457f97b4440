"""Special functions and the distributions that rest on them."""

from .bessel.bessel import log_iv, log_ive, log_kv, log_kve
from .bessel.bessel_ratio import iv_ratio, iv_ratio_inverse, kv_ratio
from .bessel.hypergeometric import log_hyp0f1
from .sphere.von_mises_fisher import VonMisesFisher

__all__ = [
    "VonMisesFisher",
    "iv_ratio",
    "iv_ratio_inverse",
    "kv_ratio",
    "log_hyp0f1",
    "log_iv",
    "log_ive",
    "log_kv",
    "log_kve",
]
