"""What gradients and differences of pairs are worth, from what was found at the windows."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .gradients import Look

type Statistic = Callable[[np.ndarray, np.ndarray], np.ndarray]

DRAWS = 2000  # of the plans, for intervals


@dataclass(frozen=True)
class Quality:
    """By the length of a window, H of them: the value, and the ends of its interval of 95 %."""

    exact: np.ndarray  # [H, 3] cosine of a gradient to the slope of the smoothed gain
    discounted: np.ndarray  # [H, 3] of a discounted one
    averaged: np.ndarray  # [H, 3] of the mean of all gradients at shifted plans
    spread_of_gradients: np.ndarray  # [H, 3] variance of one, over the square of the slope
    spread_of_pairs: np.ndarray  # [H, 3] the same of one pair's difference
    norms: np.ndarray  # [H, 3] median of the gradients' norms, and their quartiles


def quality(seen: Look, windows: int) -> Quality:
    """From the findings of all windows of all plans, [P windows, ...], those of a plan together."""
    flat = lambda a, lead: np.asarray(a, float).reshape(
        -1, windows, *a.shape[1:lead], _size(a, lead)
    )
    exact, discounted = (flat(a, 1) for a in (seen.exact, seen.discounted))  # [P, H, D]
    shifted, pairs = (flat(a, 2) for a in (seen.shifted, seen.differences))  # [P, H, N, D]
    slope = pairs.mean(2)
    halves = (half.mean(2) for half in np.split(pairs, 2, 2))
    # the halves share no noise, so that their product is the square of the slope without bias
    square = np.sum(np.prod(list(halves), 0), -1)
    cosine = lambda g: _interval(_cosine, np.sum(_unit(g) * slope, -1), square)
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


def _size(a: np.ndarray, lead: int) -> int:
    return int(np.prod(a.shape[lead:]))


def _unit(g: np.ndarray) -> np.ndarray:
    norm = np.linalg.norm(g, axis=-1, keepdims=True)
    return g / np.where(norm > 0, norm, 1)


def _cosine(along: np.ndarray, square: np.ndarray) -> np.ndarray:
    """Of gradients of length 1 to the slope, all plans together; within -1 ... 1 but for noise."""
    return along.mean(0) / np.sqrt(_known(square))


def _ratio(noise: np.ndarray, square: np.ndarray) -> np.ndarray:
    return noise.mean(0) / _known(square)


def _known(square: np.ndarray) -> np.ndarray:
    """The mean square of the slope; nan where noise hides it."""
    mean = square.mean(0)
    return np.where(mean > 0, mean, np.nan)


def _interval(of: Statistic, value: np.ndarray, square: np.ndarray) -> np.ndarray:
    """A statistic of the plans [P, H], and the interval of bootstraps of it: [H, 3].

    It is nan where noise hides the slope in one of twenty bootstraps.
    """
    plans = len(value)
    picks = np.random.default_rng(0).integers(0, plans, (DRAWS, plans))
    drawn = np.stack([of(value[pick], square[pick]) for pick in picks])
    hidden = np.isnan(drawn).mean(0) > 0.05
    known = np.where(np.isnan(drawn), np.inf, drawn)
    low, high = np.quantile(known, (0.025, 0.975), axis=0, method="nearest")
    ends = np.stack([of(value, square), low, high], -1)
    return np.where(hidden[:, None], np.nan, ends)
