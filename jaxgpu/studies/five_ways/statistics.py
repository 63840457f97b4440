"""Means over seeds with confidence intervals, for the tables and figures of the study."""

import numpy as np


def mean_interval(samples: np.ndarray) -> np.ndarray:
    """Return mean over the last axis and 95 % confidence interval, by Student's t; [3, ...].

    >>> mean_interval(np.array([1.0, 2.0, 3.0])).round(3).tolist()
    [2.0, -0.484, 4.484]
    """
    from scipy.stats import t

    count = samples.shape[-1]
    mean = samples.mean(-1)
    reach = t.ppf(0.975, count - 1) * samples.std(-1, ddof=1) / np.sqrt(count)
    return np.stack([mean, mean - reach, mean + reach])


def format_interval(samples: np.ndarray) -> str:
    """Return the mean and its interval as text.

    >>> format_interval(np.array([1.0, 2.0, 3.0]))
    '2.000 (-0.484 to 4.484)'
    """
    mean, low, high = mean_interval(samples)
    return f"{mean:.3f} ({low:.3f} to {high:.3f})"


def difference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the mean of a - b, paired by seed, and its interval; [3].

    >>> difference(np.array([2.0, 3.0, 4.0]), np.array([1.0, 1.0, 1.0])).round(3).tolist()
    [2.0, -0.484, 4.484]
    """
    return mean_interval(a - b)
