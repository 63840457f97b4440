"""Distributions of directions: von Mises-Fisher, and mixtures of von Mises-Fisher distributions.

Reading order: `von_mises_fisher` has density, fit and entropy, `sampling` its random samples, and
`mixture` the mixtures and their fit. `arguments` checks unit vectors, weights and keys.
"""

from .mixture import Mixture, MixtureFit, fit_mixture, spherical_kmeans
from .von_mises_fisher import VonMisesFisher

__all__ = ["Mixture", "MixtureFit", "VonMisesFisher", "fit_mixture", "spherical_kmeans"]
