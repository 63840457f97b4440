"""Figures of the study. Functions that need matplotlib import it."""

from typing import Any

import jax
import numpy as np

from jaxgpu.render.palette import BLUE, GRAY, INK, ORANGE, alpha_colormap, report_style

_SIDES = (("inner", BLUE), ("outer", ORANGE))


@report_style
def sky(options: Any, fits: Any, theory: np.ndarray, middle: int) -> Any:
    """Plot two maps of all directions for one cluster size, with the first seed's mixture."""
    import matplotlib.pyplot as plt

    drawing = plt.figure(figsize=(9.2, 3.0))
    pick = jax.tree.map(lambda a: a[middle], fits)
    shown = ((pick.directions, pick.mixture), (pick.fixed, pick.still))
    for k, (x, mixture) in enumerate(shown):
        axes = drawing.add_subplot(1, 2, k + 1, projection="mollweide")
        first = jax.tree.map(lambda a: a[0], mixture)
        longitude, latitude, density = _density(first)
        axes.contourf(longitude, latitude, density, 24, cmap=alpha_colormap(ORANGE))
        away = x[pick.gone]
        axes.plot(*_angles(away), ".", color=BLUE, ms=1.6, mew=0, alpha=0.6)
        if k == 0:
            axes.plot(*_angles(theory[middle, 0, 0]), "x", color=INK, ms=8, mew=1.6)
        axes.grid(True)
        axes.set_xticks(np.radians([-90, 0, 90]), ["", "", ""])
        axes.set_yticks([])
        axes.set_title(("axes rotating with the orbit", "fixed axes")[k])
    return drawing


def _angles(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.arctan2(x[:, 1], x[:, 0]), np.arcsin(np.clip(x[:, 2], -1, 1))


def _density(mixture: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    longitude, latitude = np.linspace(-np.pi, np.pi, 181), np.linspace(-np.pi / 2, np.pi / 2, 91)
    along, up = np.meshgrid(longitude, latitude)
    x = np.stack([np.cos(up) * np.cos(along), np.cos(up) * np.sin(along), np.sin(up)], -1)
    density = np.exp(np.asarray(mixture.log_prob(x.reshape(-1, 3)))).reshape(along.shape)
    return longitude, latitude, density


@report_style
def tails(options: Any, fits: Any, bent: np.ndarray) -> Any:
    """Plot angles minus theory [densities, seeds, 2], concentrations and fractions by size."""
    import matplotlib.pyplot as plt

    drawing, panels = plt.subplots(1, 3, figsize=(9.2, 2.9))
    values = (bent, fits.mixture.concentrations, 100 * np.exp(fits.mixture.log_weights))
    labels = ("theory minus fit, degrees", "concentration", "fraction of escapers, %")
    places = np.arange(len(options.radii))
    for axes, value, label in zip(panels, values, labels):
        for k, (side, colour) in enumerate(_SIDES):
            at = places + (k - 0.5) * 0.24
            y = value[..., k]
            axes.plot(np.repeat(at, y.shape[1]), y.ravel(), ".", color=colour, alpha=0.35, ms=5)
            if y.shape[1] > 1:
                error = y.std(1, ddof=1) / np.sqrt(y.shape[1])
                axes.errorbar(at, y.mean(1), error, fmt="o", ms=4.5, color=colour, capsize=3)
            axes.plot([], [], "o", ms=4.5, color=colour, label=f"{side} tail")
        axes.set(ylabel=label, xlabel="half-mass radius, pc")
        axes.set_xticks(places, [f"{radius:g}" for radius in options.radii])
    panels[0].axhline(0, color=GRAY, lw=0.8, ls=":")
    panels[1].set_ylim(bottom=0)
    panels[2].set_ylim(bottom=0)
    panels[0].legend()
    return drawing
