"""Statistics of posterior samples: moments, ranks of the truth, coverage, circular speeds."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from .galaxy import from_fractions, galaxy
from .inference import MockResults

LEVELS = 0.68, 0.95
RADII = np.linspace(5.0, 30.0, 26)  # kpc


@dataclass(frozen=True)
class Posteriors:
    """Posteriors of K mocks, of the F = 4 parameters of the Galaxy in their units."""

    truth: np.ndarray  # [K, F]
    samples: np.ndarray  # [K, M, F]
    mean: np.ndarray  # [K, F]
    deviation: np.ndarray  # [K, F]
    rank: np.ndarray  # [K, F] fraction of samples below the truth

    @property
    def pull(self) -> np.ndarray:
        """Deviations [K, F] of the means from the truth, in posterior standard deviations."""
        return (self.mean - self.truth) / self.deviation

    def is_covered(self, level: float) -> np.ndarray:
        """Return a mask [K, F] of truths within the central interval of a level."""
        return np.abs(self.rank - 0.5) < level / 2


def posteriors(found: MockResults) -> Posteriors:
    """Return moments and ranks of all mocks."""
    truth = np.asarray(from_fractions(found.truth))
    samples = np.asarray(from_fractions(found.samples))
    return Posteriors(
        truth=truth,
        samples=samples,
        mean=samples.mean(1),
        deviation=samples.std(1),
        rank=np.mean(samples < truth[:, None], 1),
    )


def binomial(count: int, of: int, level: float = 0.95) -> tuple[float, float]:
    """Return the confidence interval of the fraction `count` / `of`: Clopper & Pearson (1934).

    >>> [round(end, 3) for end in binomial(14, 20)]
    [0.457, 0.881]
    """
    from scipy.stats import beta

    low = beta.ppf((1 - level) / 2, count, of - count + 1) if count else 0.0
    high = beta.ppf((1 + level) / 2, count + 1, of - count) if count < of else 1.0
    return float(low), float(high)


def circular_speeds(theta: np.ndarray) -> np.ndarray:
    """Return circular speeds [..., R] at `RADII` in the plane, km/s, for parameters [..., 4]."""

    def speeds_of_galaxy(theta: jax.Array) -> jax.Array:
        x = jnp.stack([jnp.asarray(RADII), 0 * RADII, 0 * RADII], -1)
        return jnp.sqrt(-RADII * galaxy(theta).pull(x)[:, 0])

    flat = jax.vmap(speeds_of_galaxy)(jnp.asarray(theta.reshape(-1, 4)))
    return np.asarray(flat).reshape(*theta.shape[:-1], len(RADII))
