"""Figures of the study: interactive fronts, and hypervolumes over evaluations."""

from typing import Any

import numpy as np

from jaxgpu.render import Points, View
from jaxgpu.render.palette import BAND, BLUE, ORANGE, report_style
from jaxgpu.report import Figure, view

OURS, THEIRS = BLUE, ORANGE


def fronts(
    axes: tuple[str, str, str], ours: np.ndarray, theirs: np.ndarray, caption: str
) -> Figure:
    """Return an interactive view of both fronts [K, 3]."""
    sets = (
        Points("jaxgpu", ours[None].astype(float), OURS),
        Points("pymoo", theirs[None].astype(float), THEIRS, hollow=True),
    )
    return view(View(sets, axes=axes), caption)


@report_style
def volumes(
    titles: list[str],
    ours: list[np.ndarray],
    theirs: list[np.ndarray],
    evaluations: int,
) -> Any:
    """Plot medians and quartiles over seeds of [seeds, measurements], one panel per race."""
    import matplotlib.pyplot as plt

    drawing, panels = plt.subplots(1, len(titles), figsize=(9.3, 3))
    for panel, title, mine, other in zip(panels, titles, ours, theirs):
        for values, color, name, style in (
            (mine, OURS, "jaxgpu", "-"),
            (other, THEIRS, "pymoo", "--"),
        ):
            low, half, high = np.percentile(values, [25, 50, 75], axis=0)
            spent = evaluations * np.arange(1, len(half) + 1) / 1000
            panel.fill_between(spent, low, high, color=color, alpha=BAND, linewidth=0)
            panel.plot(spent, half, style, color=color, label=name)
        top = max(mine.max(), other.max())
        start = min(
            np.median(mine, 0)[len(mine[0]) // 10], np.median(other, 0)[len(other[0]) // 10]
        )
        panel.set_ylim(top - 1.6 * (top - start), top + 0.06 * (top - start))
        panel.set(title=title, xlabel="evaluations, thousands")
        panel.grid()
    panels[0].set_ylabel("hypervolume")
    panels[-1].legend(loc="lower right")
    return drawing
