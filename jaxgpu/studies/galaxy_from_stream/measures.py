"""What weighted samples say: moments, ranks of the truth, coverage, circular speeds."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from .galaxy import galaxy, of_shares
from .weigh import Found

LEVELS = 0.68, 0.95
RADII = np.linspace(5.0, 30.0, 26)  # kpc


@dataclass(frozen=True)
class Posteriors:
    """Those of K mocks, of the Galaxy's F = 4 numbers in their units."""

    truth: np.ndarray  # [K, F]
    samples: np.ndarray  # [K, M, F]
    weights: np.ndarray  # [K, M], which sum to one
    mean: np.ndarray  # [K, F]
    deviation: np.ndarray  # [K, F]
    rank: np.ndarray  # [K, F] the weight of samples below the truth

    @property
    def pull(self) -> np.ndarray:
        """How many standard deviations [K, F] a mean is above the truth."""
        return (self.mean - self.truth) / self.deviation

    def covered(self, level: float) -> np.ndarray:
        """Whether the central interval of a level holds the truth, [K, F] bool."""
        return np.abs(self.rank - 0.5) < level / 2


def posteriors(found: Found) -> Posteriors:
    """Moments and ranks of all mocks."""
    truth = np.asarray(of_shares(found.truth))
    samples = np.asarray(of_shares(found.samples))
    weights = np.full(samples.shape[:2], 1 / samples.shape[1])
    mean = np.einsum("km,kmf->kf", weights, samples)
    square = np.einsum("km,kmf->kf", weights, (samples - mean[:, None]) ** 2)
    return Posteriors(
        truth=truth,
        samples=samples,
        weights=weights,
        mean=mean,
        deviation=np.sqrt(square),
        rank=np.einsum("km,kmf->kf", weights, samples < truth[:, None]),
    )


def binomial(count: int, of: int, level: float = 0.95) -> tuple[float, float]:
    """The interval of a share that was seen `count` times in `of`: Clopper & Pearson (1934).

    >>> [round(end, 3) for end in binomial(14, 20)]
    [0.457, 0.881]
    """
    from scipy.stats import beta

    low = beta.ppf((1 - level) / 2, count, of - count + 1) if count else 0.0
    high = beta.ppf((1 + level) / 2, count + 1, of - count) if count < of else 1.0
    return float(low), float(high)


def quantiles(x: np.ndarray, weights: np.ndarray, shares: tuple[float, ...]) -> np.ndarray:
    """Quantiles [Q, ...] of weighted samples x [M, ...].

    >>> quantiles(np.arange(4.0), np.full(4, 0.25), (0.5,)).tolist()
    [1.5]
    """
    flat = x.reshape(len(x), -1)
    found = []
    for column in flat.T:
        order = np.argsort(column)
        below = np.cumsum(weights[order]) - weights[order] / 2
        found.append(np.interp(shares, below, column[order]))
    return np.stack(found, -1).reshape(len(shares), *x.shape[1:])


def circular_speeds(theta: np.ndarray) -> np.ndarray:
    """Circular speeds [..., R] at `RADII` in the plane of galaxies of parameters [..., 4], km/s."""

    def one(theta: jax.Array) -> jax.Array:
        x = jnp.stack([jnp.asarray(RADII), 0 * RADII, 0 * RADII], -1)
        return jnp.sqrt(-RADII * galaxy(theta).pull(x)[:, 0])

    flat = jax.vmap(one)(jnp.asarray(theta.reshape(-1, 4)))
    return np.asarray(flat).reshape(*theta.shape[:-1], len(RADII))
