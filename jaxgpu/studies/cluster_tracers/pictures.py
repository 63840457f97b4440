"""Pictures of clusters and their tracers. matplotlib is imported where it is needed."""

import base64
import io
from typing import Any

import numpy as np

from jaxgpu.report import Figure

from .measures import FRACTIONS, smooth

_KINDS = {"heavy": ("heavy stars", "#c8553d"), "light": ("light stars", "#9aa5b1")}
_KINDS |= {"tracers": ("tracers", "#1b2a41")}
_INKS = ((86, 140, 190), (255, 214, 150), (255, 255, 255))
_DENSITIES = ("#1b2a41", "#c8553d", "#d9a441", "#5b8e7d")


def film(frames: np.ndarray, stars: int, times: np.ndarray, unit: float, radius: str) -> Figure:
    """A cluster from above: tracers as haze, stars on it; frames [T, 3, N + M]."""
    import matplotlib.pyplot as plt
    from PIL import Image

    centred = frames - np.median(frames[:, :, :stars], axis=2, keepdims=True)
    paint = Image.new("P", (1, 1))
    # shades of the three colours: a palette of Pillow's own choice loses them in the black
    paint.putpalette([int(f * c) for c3 in _INKS for f in np.linspace(0, 1, 32) for c in c3])
    drawing = plt.figure(figsize=(4.6, 4.6), facecolor="black")
    axes = drawing.add_axes((0, 0, 1, 1))
    images = []
    for at, t in list(zip(centred, times))[:: max(1, len(frames) // 60)]:
        axes.clear()
        axes.set(xlim=(-4, 4), ylim=(-4, 4))
        axes.axis("off")
        for bodies, size, ink in ((at[:, stars:], 2.2, _INKS[0]), (at[:, :stars], 4.0, _INKS[1])):
            axes.plot(bodies[0], bodies[1], ".", ms=size, color=np.divide(ink, 255), mew=0)
        label = f"{t * unit:.1f} Myr"
        axes.text(0.03, 0.03, label, color="white", transform=axes.transAxes, size=11)
        file = io.BytesIO()
        drawing.savefig(file, format="png", dpi=100, facecolor="black")
        frame = Image.open(file).convert("RGB")
        images.append(frame.quantize(palette=paint, dither=Image.Dither.NONE))
    plt.close(drawing)
    file = io.BytesIO()
    first, *rest = images
    first.save(file, format="GIF", save_all=True, append_images=rest, duration=90, loop=0)
    caption = (
        f"The cluster of {radius} in the tide, eight virial radii across: stars (warm) and "
        "tracers (blue)."
    )
    return Figure(caption, "image/gif", base64.b64encode(file.getvalue()).decode())


def radii(history: dict[str, np.ndarray], times: np.ndarray, of: dict[str, np.ndarray]) -> Any:
    """Lagrangian radii of heavy stars, light stars and tracers, over their first values."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter

    drawing, grid = plt.subplots(3, len(of), figsize=(10.4, 7), sharex=True, sharey="row")
    for column, (name, runs) in zip(grid.T, of.items()):
        column[0].set_title(name if name == "alone" else f"{name}, in the tide", size=10)
        for axes, k in zip(column, reversed(range(len(FRACTIONS)))):
            for kind, (label, colour) in _KINDS.items():
                r = smooth(history[kind][:, runs, k] / history[kind][:1, runs, k])
                axes.semilogy(times, r.mean(1), color=colour, lw=1.5, label=label)
                axes.fill_between(times, r.min(1), r.max(1), color=colour, alpha=0.15, lw=0)
            axes.axhline(1, color="k", lw=0.5, ls=":")
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter(NullFormatter())
            axes.spines[["top", "right"]].set_visible(False)
    for axes, fraction in zip(grid[:, 0], reversed(FRACTIONS)):
        axes.set_ylabel(f"r{100 * fraction:.0f} over its first value")
    for axes in grid[-1]:
        axes.set_xlabel("time, N-body units")
    grid[0, 0].legend(frameon=False, fontsize=8)
    drawing.tight_layout()
    return drawing


def escapes(
    history: dict[str, np.ndarray], times: np.ndarray, of: dict[str, np.ndarray], count: int
) -> Any:
    """Core radius, and the share of tracers that escaped, by density."""
    import matplotlib.pyplot as plt

    drawing, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.8))
    for (name, runs), colour in zip(of.items(), _DENSITIES):
        core, gone = smooth(history["core"][:, runs]), history["gone"][:, runs] / count
        left.semilogy(times, core.mean(1), color=colour, lw=1.5, label=name)
        right.plot(times, gone.mean(1), color=colour, lw=1.5, label=name)
        for axes, q in ((left, core), (right, gone)):
            axes.fill_between(times, q.min(1), q.max(1), color=colour, alpha=0.15, lw=0)
    left.set_ylabel("core radius, virial radii")
    right.set_ylabel("share of tracers that escaped")
    for axes in (left, right):
        axes.set_xlabel("time, N-body units")
        axes.spines[["top", "right"]].set_visible(False)
    right.legend(frameon=False, fontsize=8)
    drawing.tight_layout()
    return drawing
