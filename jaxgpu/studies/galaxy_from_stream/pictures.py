"""Figures of the study. Functions that need matplotlib import it."""

from typing import Any

import numpy as np

from jaxgpu.render.palette import BAND, BLUE, GRAY, INK, ORANGE, SERIES, report_style

from .galaxy import HIGH, LOW, SYMBOLS
from .measures import RADII, Posteriors, circular_speeds
from .sky import ACROSS
from .streams import NAMES

QUANTILES = (0.16, 0.5, 0.84)


@report_style
def streams(rows: np.ndarray, places: np.ndarray, tracks: tuple[np.ndarray, ...]) -> Any:
    """Plot the stars of two streams, their tracks and the fit.

    Args:
        rows: [S, N, 6] observed coordinates of the stars.
        places: [S, B] positions along the streams, degrees.
        tracks: tracks of the stars, their errors, and tracks of the fit; [S, B, 5] each.
    """
    import matplotlib.pyplot as plt

    drawing, panels = plt.subplots(3, len(rows), figsize=(9.2, 5.6), sharex="col")
    seen, error, fit = tracks
    for s, name in enumerate(NAMES):
        for k, label in enumerate(ACROSS):
            axes = panels[k, s]
            stars, bars = (rows[s, :, 0], rows[s, :, k + 1]), (seen[s, :, k], error[s, :, k])
            axes.plot(*stars, ".", color=GRAY, ms=4.5, alpha=0.8, mew=0, label="stars")
            axes.errorbar(
                places[s], *bars, fmt="o", color=INK, ms=3, lw=1, capsize=2, label="track"
            )
            axes.plot(places[s], fit[s, :, k], "-", color=ORANGE, label="fit")
            reach = 1.3 * np.abs(places[s]).max()
            axes.set_xlim(-reach, reach)
            near = rows[s, np.abs(rows[s, :, 0]) < reach, k + 1]
            axes.set_ylim(*np.percentile(near, [0.5, 99.5]))
            if s == 0:
                axes.set_ylabel(label)
        panels[0, s].set_title(name)
        panels[-1, s].set_xlabel("along the stream, degrees")
    panels[1, 1].legend()
    drawing.align_ylabels()
    return drawing


@report_style
def corner(found: Posteriors, k: int) -> Any:
    """Plot the posterior of one mock: marginals, and regions of 68 and 95 % of every pair."""
    import matplotlib.pyplot as plt
    from scipy.stats import gaussian_kde

    x, truth = found.samples[k], found.truth[k]
    count = x.shape[1]
    drawing, panels = plt.subplots(count, count, figsize=(6.6, 6.6), squeeze=False)
    deviation, mean = found.deviation[k], found.mean[k]
    ends = np.stack(
        [np.maximum(mean - 3.6 * deviation, LOW), np.minimum(mean + 3.6 * deviation, HIGH)]
    )
    for i in range(count):
        for j in range(count):
            axes = panels[i, j]
            if j > i:
                axes.set_visible(False)
                continue
            axes.set_xlim(*ends[:, j])
            if i == j:
                grid = np.linspace(ends[0, i], ends[1, i], 120)
                density = gaussian_kde(x[:, i])(grid)
                axes.fill_between(grid, density, color=BLUE, alpha=BAND, lw=0)
                axes.plot(grid, density, color=BLUE)
                axes.set_ylim(0, None)
                axes.set_yticks([])
                axes.spines["left"].set_visible(False)
            else:
                _regions(axes, x[:, [j, i]], ends[:, [j, i]])
                axes.axhline(truth[i], color=ORANGE, lw=1)
                axes.set_ylim(*ends[:, i])
            axes.axvline(truth[j], color=ORANGE, lw=1)
            axes.locator_params(nbins=4)
            if i == count - 1:
                axes.set_xlabel(SYMBOLS[j])
            else:
                axes.set_xticklabels([])
            if j == 0 and i > 0:
                axes.set_ylabel(SYMBOLS[i])
            elif i != j:
                axes.set_yticklabels([])
    drawing.align_labels()
    return drawing


def _regions(axes: Any, x: np.ndarray, ends: np.ndarray) -> None:
    """Draw the smallest regions that contain 68 and 95 % of samples [M, 2]."""
    from scipy.stats import gaussian_kde

    across, up = (np.linspace(ends[0, i], ends[1, i], 70) for i in range(2))
    grid = np.stack(np.meshgrid(across, up), -1)
    density = gaussian_kde(x.T)(grid.reshape(-1, 2).T).reshape(70, 70)
    order = np.sort(density.ravel())[::-1]
    inside = np.cumsum(order) / order.sum()
    levels = [order[np.searchsorted(inside, share)] for share in (0.95, 0.68)]
    for level in levels:  # the inner one is filled twice
        axes.contourf(across, up, density, [level, np.inf], colors=[BLUE], alpha=BAND)
    axes.contour(across, up, density, levels, colors=[BLUE], linewidths=1)


@report_style
def calibration(found: Posteriors) -> Any:
    """Plot estimates over truths of each parameter, and the distribution of the truths' ranks."""
    import matplotlib.pyplot as plt

    drawing, panels = plt.subplots(2, 4, figsize=(9.2, 4.6), height_ratios=[1.1, 1])
    for j, axes in enumerate(panels[0]):
        ends = np.quantile(found.samples[:, :, j], (0.16, 0.84), axis=1)
        middle = found.mean[:, j]
        bars = np.abs(ends - middle)
        axes.plot([LOW[j], HIGH[j]], [LOW[j], HIGH[j]], "-", color=GRAY, lw=0.8)
        axes.errorbar(found.truth[:, j], middle, bars, fmt="o", color=BLUE, ms=3, lw=1)
        axes.set(xlim=(LOW[j], HIGH[j]), ylim=(LOW[j], HIGH[j]), title=SYMBOLS[j], xlabel="truth")
        axes.locator_params(nbins=4)
    panels[0, 0].set_ylabel("posterior mean")
    for j, axes in enumerate(panels[1]):
        _ranks(axes, found.rank[:, j], SERIES[0])
        axes.set_xlabel("rank of the truth")
    panels[1, 0].set_ylabel("cumulative fraction of mocks")
    return drawing


def _ranks(axes: Any, rank: np.ndarray, colour: str) -> None:
    """Plot the cumulative distribution of ranks over the pointwise 95 % band of uniform ones."""
    from scipy.stats import binom

    count = len(rank)
    grid = np.linspace(0, 1, 201)
    low, high = (binom.ppf(q, count, grid) / count for q in (0.025, 0.975))
    axes.fill_between(grid, low, high, color=GRAY, alpha=BAND, lw=0)
    axes.plot([0, 1], [0, 1], "-", color=GRAY, lw=0.8)
    steps = np.concatenate([[0], np.sort(rank), [1]])
    axes.step(steps, np.append(np.arange(count + 1) / count, 1), where="post", color=colour)
    axes.set(xlim=(0, 1), ylim=(0, 1))


@report_style
def speeds(found: Posteriors, k: int) -> Any:
    """Plot the circular speed of one mock, and its uncertainty in all of them."""
    import matplotlib.pyplot as plt

    drawing, (left, right) = plt.subplots(1, 2, figsize=(9.2, 2.9))
    known = circular_speeds(found.samples)
    prior = np.random.default_rng(0).uniform(LOW, HIGH, (2000, 4))
    before = circular_speeds(prior)
    low, high = np.percentile(before, [16, 84], axis=0)
    left.fill_between(RADII, low, high, color=GRAY, alpha=BAND, lw=0, label="prior")
    low, middle, high = np.quantile(known[k], QUANTILES, axis=0)
    left.fill_between(RADII, low, high, color=BLUE, alpha=2 * BAND, lw=0)
    left.plot(RADII, middle, color=BLUE, label="posterior")
    left.plot(RADII, circular_speeds(found.truth[k]), "--", color=ORANGE, label="truth")
    left.set(xlabel="radius, kpc", ylabel="circular speed, km/s", xlim=(RADII[0], RADII[-1]))
    left.legend()
    error = known.std(1) / known.mean(1)
    right.plot(RADII, 100 * error.T, color=BLUE, lw=0.6, alpha=0.5)
    right.plot(RADII, 100 * np.median(error, 0), color=BLUE, label="posteriors, median (thick)")
    right.plot(RADII, 100 * before.std(0) / before.mean(0), color=GRAY, label="prior")
    right.set(xlabel="radius, kpc", ylabel="error of the speed, %", xlim=(RADII[0], RADII[-1]))
    right.set_yscale("log")
    right.set_ylim(top=40)  # space for the legend above the prior
    right.yaxis.set_major_formatter("{x:g}")
    right.legend(loc="upper right", ncols=2)
    return drawing
