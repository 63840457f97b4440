"""Plots and video of clusters and tracers. Functions that need matplotlib import it."""

from typing import Any

import numpy as np

from jaxgpu import report
from jaxgpu.render.palette import BAND, BLUE, GRAY, OCHRE, ORANGE, SERIES, report_style
from jaxgpu.report import Figure

from .measures import FRACTIONS, running_median

_KINDS = {"heavy": ("heavy stars", ORANGE), "light": ("light stars", OCHRE)}
_KINDS |= {"tracers": ("tracers", BLUE)}
_HAZE, _STARS = (0.34, 0.55, 0.75), (1.0, 0.84, 0.59)


def video(frames: np.ndarray, stars: int, times: np.ndarray, unit: float, radius: str) -> Figure:
    """Make a video of a cluster from above, with stars over tracers; frames [T, 3, N + M]."""
    import matplotlib.pyplot as plt
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    centred = frames - np.median(frames[:, :, :stars], axis=2, keepdims=True)
    drawing = plt.figure(figsize=(4.8, 4.8), dpi=100, facecolor="black")
    axes, canvas = drawing.add_axes((0, 0, 1, 1)), FigureCanvasAgg(drawing)
    images = []
    for at, t in list(zip(centred, times))[:: max(1, len(frames) // 60)]:
        axes.clear()
        axes.set(xlim=(-4, 4), ylim=(-4, 4))
        axes.axis("off")
        for bodies, size, ink in ((at[:, stars:], 2.2, _HAZE), (at[:, :stars], 4.0, _STARS)):
            axes.plot(bodies[0], bodies[1], ".", ms=size, color=ink, mew=0)
        label = f"{t * unit:.1f} Myr"
        axes.text(0.03, 0.03, label, color="white", transform=axes.transAxes, size=9)
        canvas.draw()
        images.append(np.asarray(canvas.buffer_rgba())[..., :3].copy())
    plt.close(drawing)
    return report.video(
        np.stack(images),
        f"Cluster with a half-mass radius of {radius} in the tidal field: stars (warm) and "
        "tracers (blue). The frame is eight virial radii wide.",
        seconds=0.09,
    )


@report_style
def radii(history: dict[str, np.ndarray], times: np.ndarray, of: dict[str, np.ndarray]) -> Any:
    """Plot Lagrangian radii of heavy stars, light stars and tracers over their initial values."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter

    drawing, grid = plt.subplots(3, len(of), figsize=(9.3, 6.2), sharex=True, sharey="row")
    for column, (name, runs) in zip(grid.T, of.items()):
        column[0].set_title(name if name == "isolated" else f"{name}, tidal field")
        for axes, k in zip(column, reversed(range(len(FRACTIONS)))):
            for kind, (label, colour) in _KINDS.items():
                r = running_median(history[kind][:, runs, k] / history[kind][:1, runs, k])
                axes.semilogy(times, r.mean(1), color=colour, label=label)
                if len(runs) > 1:
                    axes.fill_between(times, r.min(1), r.max(1), color=colour, alpha=BAND, lw=0)
            axes.axhline(1, color=GRAY, lw=0.7, ls=":")
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter(NullFormatter())
    for axes, fraction in zip(grid[:, 0], reversed(FRACTIONS)):
        axes.set_ylabel(f"r{100 * fraction:.0f} / initial value")
    for axes in grid[-1]:
        axes.set_xlabel("time, N-body units")
    grid[0, 0].legend()
    return drawing


@report_style
def escapes(
    history: dict[str, np.ndarray], times: np.ndarray, of: dict[str, np.ndarray], count: int
) -> Any:
    """Plot the core radius, and the fraction of escaped tracers, by density."""
    import matplotlib.pyplot as plt

    drawing, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.4))
    for (name, runs), colour in zip(of.items(), SERIES):
        core, gone = running_median(history["core"][:, runs]), history["gone"][:, runs] / count
        left.semilogy(times, core.mean(1), color=colour, label=name)
        right.plot(times, gone.mean(1), color=colour, label=name)
        for axes, q in ((left, core), (right, gone)):
            if len(runs) > 1:
                axes.fill_between(times, q.min(1), q.max(1), color=colour, alpha=BAND, lw=0)
    left.set_ylabel("core radius, virial radii")
    right.set_ylabel("fraction of escaped tracers")
    for axes in (left, right):
        axes.set_xlabel("time, N-body units")
    right.legend()
    return drawing
