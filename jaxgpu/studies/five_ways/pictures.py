"""Figures of the study. Functions that need matplotlib import it."""

from typing import Any

import numpy as np

from jaxgpu.render.palette import BAND, BLUE, GRAY, GREEN, INK, OCHRE, ORANGE, PURPLE, report_style

from .gradient_quality import Quality
from .race import Race
from .statistics import mean_interval

COLORS = {"PPO": BLUE, "SHAC": ORANGE, "ES": GREEN, "Adam": PURPLE, "CEM": OCHRE}
LABELS = {
    "PPO": "PPO",
    "SHAC": "SHAC",
    "ES": "ES",
    "Adam": "Adam through the episode",
    "CEM": "CEM",
}
DASHES = {"PPO": "-", "SHAC": "-", "ES": "-", "Adam": "--", "CEM": "--"}  # plans are dashed


@report_style
def curves(race: Race, seconds: float, episodes: int) -> Any:
    """Plot returns over simulated time and over CPU time, and the final ones on new initial states.

    Args:
        race: results of all methods.
        seconds: duration of an episode.
        episodes: number at which all methods are compared.
    """
    import matplotlib.pyplot as plt

    drawing, (left, middle, right) = plt.subplots(
        1, 3, figsize=(9.6, 3.5), width_ratios=[1, 1, 0.8], sharey=True
    )
    for name, curve in race.curves.items():
        simulated = curve.episodes <= episodes
        _plot_curve(left, name, curve.episodes[simulated] * seconds, curve.returns[simulated])
        begun = curve.episodes > 0
        _plot_curve(middle, name, curve.episodes[begun] * race.price[name], curve.returns[begun])
    for axes in (left, middle):
        _plot_fixed(axes, race)
    left.set_xlabel("simulated time per seed, s")
    left.set_ylabel("return per episode")
    middle.set_xlabel("CPU time per seed, s")
    middle.set_xscale("log")
    known = [*race.own.values(), *race.new.values(), *race.fixed.values()]
    least, most = min(map(np.min, known)), max(map(np.max, known))
    # An early candidate of ES may spill everything, and its interval would dominate the axis.
    left.set_ylim(least - 0.25 * (most - least), most + 0.15 * (most - least))
    _plot_transfer(right, race)
    for axes, letter in zip((left, middle, right), "abc"):
        axes.set_title(letter, loc="left", weight="bold")
    drawing.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=5)
    return drawing


def _plot_curve(axes: Any, name: str, x: np.ndarray, returns: np.ndarray) -> None:
    drawn = {"color": COLORS[name], "label": LABELS[name], "ls": DASHES[name]}
    mean, low, high = mean_interval(returns)
    axes.plot(x, mean, **drawn)
    axes.fill_between(x, low, high, color=COLORS[name], alpha=BAND, lw=0)


def _plot_fixed(axes: Any, race: Race) -> None:
    for (name, returns), style in zip(race.fixed.items(), (":", "-.", (0, (1, 3)))):
        axes.axhline(returns.mean(), color=GRAY, lw=0.9, ls=style, label=name)


def _plot_transfer(axes: Any, race: Race) -> None:
    """Plot the returns of each seed, on the initial states of the curves and on new ones."""
    for i, name in enumerate(race.own):
        own, new = race.own[name], race.new[name]
        for a, b in zip(own, new):
            axes.plot([i - 0.17, i + 0.17], [a, b], color=COLORS[name], lw=0.6)
        axes.plot(np.full(len(own), i - 0.17), own, "o", ms=4, color=COLORS[name])
        axes.plot(np.full(len(new), i + 0.17), new, "o", ms=4, mfc="none", color=COLORS[name])
    axes.plot([], [], "o", ms=4, color=INK, label="training states")
    axes.plot([], [], "o", ms=4, mfc="none", color=INK, label="new states")
    axes.set_xticks(range(len(race.own)), list(race.own))
    axes.legend(loc="lower right")


@report_style
def gradients(windows: list[int], found: Quality, discount: float, frame: float) -> Any:
    """Plot the accuracy of gradients and the noise of both estimates, by window.

    Args:
        windows: frames of each window, [H].
        found: statistics of each window.
        discount: discount of the discounted gradient.
        frame: duration of a frame, s.
    """
    import matplotlib.pyplot as plt

    drawing, (left, middle, right) = plt.subplots(1, 3, figsize=(9.6, 3.2))
    x = frame * np.array(windows)
    for values, colour, label, nudge in (
        (found.exact, ORANGE, "exact gradient", 0.97),
        (found.discounted, PURPLE, f"discounted by {discount:g}", 1.0),
        (found.averaged, BLUE, "mean at perturbed plans", 1.03),
    ):
        _plot_bars(left, nudge * x, values, colour, label)
    left.axhline(0, color=GRAY, lw=0.7)
    left.set_ylim(-0.6, 1.3)
    left.set_ylabel("cosine to the smoothed gradient")
    left.legend(loc="lower left")
    _plot_bars(middle, 0.98 * x, found.spread_of_gradients, ORANGE, "one gradient")
    _plot_bars(middle, 1.02 * x, found.spread_of_pairs, GREEN, "one pair of episodes")
    middle.set_yscale("log")
    middle.set_ylabel("variance / squared norm")
    middle.legend(loc="upper left")
    _plot_bars(right, x, found.norms, ORANGE, "")
    right.set_yscale("log")
    right.set_ylabel("norm of the exact gradient")
    for axes, letter in zip((left, middle, right), "abc"):
        axes.set_xscale("log", base=2)
        axes.set_xticks(x, [f"{a:g}" for a in x], rotation=45)
        axes.minorticks_off()
        axes.set_xlabel("window, s")
        axes.set_title(letter, loc="left", weight="bold")
    return drawing


def _plot_bars(axes: Any, x: np.ndarray, values: np.ndarray, colour: str, label: str) -> None:
    middle, low, high = values.T
    reach = [np.maximum(middle - low, 0), np.maximum(high - middle, 0)]
    axes.errorbar(x, middle, reach, fmt="o-", ms=4, lw=1.2, capsize=2, color=colour, label=label)
