"""Special functions and the distributions that rest on them.

Reading order: `bessel` has the logarithms of Bessel functions and their kin, `sphere` the
distributions of directions above them, `covariance` the Matern covariance; `arguments` says how all
are given numbers.
"""

from .bessel import (
    iv_ratio,
    iv_ratio_inverse,
    kv_ratio,
    log_hyp0f1,
    log_iv,
    log_ive,
    log_kv,
    log_kve,
)
from .covariance import matern
from .sphere import Mixture, MixtureFit, VonMisesFisher, fit_mixture, spherical_kmeans

__all__ = [
    "Mixture",
    "MixtureFit",
    "VonMisesFisher",
    "fit_mixture",
    "iv_ratio",
    "iv_ratio_inverse",
    "kv_ratio",
    "log_hyp0f1",
    "log_iv",
    "log_ive",
    "log_kv",
    "log_kve",
    "matern",
    "spherical_kmeans",
]
