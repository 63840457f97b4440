"""Quality of gradients and of paired differences, from the data of all windows."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .gradients import WindowResult

type Statistic = Callable[[np.ndarray, np.ndarray], np.ndarray]

DRAWS = 2000  # bootstrap samples of the plans


@dataclass(frozen=True)
class Quality:
    """Statistics by window length, H of them: the value and its 95 % confidence interval."""

    exact: np.ndarray  # [H, 3] cosine of a gradient to that of the smoothed gain
    discounted: np.ndarray  # [H, 3] the same of a discounted gradient
    averaged: np.ndarray  # [H, 3] the same of the mean of all gradients at shifted plans
    spread_of_gradients: np.ndarray  # [H, 3] variance over the smoothed one's squared norm
    spread_of_pairs: np.ndarray  # [H, 3] the same of a paired difference
    norms: np.ndarray  # [H, 3] median and quartiles of the gradients' norms


def quality(seen: WindowResult, windows: int) -> Quality:
    """Compute the statistics from all windows of all plans, [P windows, ...], sorted by plan."""
    flat = lambda a, lead: np.asarray(a, float).reshape(
        -1, windows, *a.shape[1:lead], _row_size(a, lead)
    )
    exact, discounted = (flat(a, 1) for a in (seen.exact, seen.discounted))  # [P, H, D]
    shifted, pairs = (flat(a, 2) for a in (seen.shifted, seen.differences))  # [P, H, N, D]
    slope = pairs.mean(2)
    halves = (half.mean(2) for half in np.split(pairs, 2, 2))
    # The halves have independent noise, so their product is an unbiased squared norm.
    square = np.sum(np.prod(list(halves), 0), -1)
    cosine = lambda g: _interval(_cosine, np.sum(_normalize(g) * slope, -1), square)
    spread = lambda a: _interval(_ratio, np.sum(a.var(2, ddof=1), -1), square)
    norms = np.linalg.norm(exact, axis=-1)
    return Quality(
        exact=cosine(exact),
        discounted=cosine(discounted),
        averaged=cosine(shifted.mean(2)),
        spread_of_gradients=spread(shifted),
        spread_of_pairs=spread(pairs),
        norms=np.quantile(norms, (0.5, 0.25, 0.75), axis=0).T,
    )


def _row_size(a: np.ndarray, lead: int) -> int:
    return int(np.prod(a.shape[lead:]))


def _normalize(g: np.ndarray) -> np.ndarray:
    norm = np.linalg.norm(g, axis=-1, keepdims=True)
    return g / np.where(norm > 0, norm, 1)


def _cosine(along: np.ndarray, square: np.ndarray) -> np.ndarray:
    """Return the cosine of unit gradients to the smoothed one; with noise it may exceed 1."""
    return along.mean(0) / np.sqrt(_mean_square(square))


def _ratio(noise: np.ndarray, square: np.ndarray) -> np.ndarray:
    return noise.mean(0) / _mean_square(square)


def _mean_square(square: np.ndarray) -> np.ndarray:
    """Return the mean squared norm of the smoothed gradient, NaN where noise hides it."""
    mean = square.mean(0)
    return np.where(mean > 0, mean, np.nan)


def _interval(of: Statistic, value: np.ndarray, square: np.ndarray) -> np.ndarray:
    """Return a statistic of the plans [P, H] and its bootstrap interval: [H, 3].

    It is NaN where noise hides the smoothed gradient in more than one of twenty bootstrap samples.
    """
    plans = len(value)
    picks = np.random.default_rng(0).integers(0, plans, (DRAWS, plans))
    drawn = np.stack([of(value[pick], square[pick]) for pick in picks])
    hidden = np.isnan(drawn).mean(0) > 0.05
    known = np.where(np.isnan(drawn), np.inf, drawn)
    low, high = np.quantile(known, (0.025, 0.975), axis=0, method="nearest")
    ends = np.stack([of(value, square), low, high], -1)
    return np.where(hidden[:, None], np.nan, ends)
