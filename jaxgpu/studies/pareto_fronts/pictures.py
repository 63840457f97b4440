"""Pictures of the study: fronts to be turned by hand, and volumes over evaluations."""

import base64
import json
from importlib import resources
from typing import Any

import numpy as np

from jaxgpu.report import Figure
from jaxgpu.report.palette import BAND, BLUE, ORANGE, styled

OURS, THEIRS = BLUE, ORANGE


def viewer(
    axes: tuple[str, str, str], fronts: dict[str, np.ndarray], box: np.ndarray, caption: str
) -> Figure:
    """A page in which the fronts [K, 3] can be turned; ours first. The box is [2, 3]."""
    colors = dict(zip(fronts, (OURS, THEIRS)))
    data = {
        "axes": axes,
        "low": box[0].astype(float).tolist(),
        "high": box[1].astype(float).tolist(),
        "sets": [
            {
                "name": name,
                "color": colors[name],
                "hollow": name != next(iter(fronts)),
                "points": np.round(points.astype(float), 6).tolist(),
            }
            for name, points in fronts.items()
        ],
    }
    page = resources.files("jaxgpu.studies.pareto_fronts").joinpath("viewer.html").read_text()
    # "<" could end the script
    page = page.replace('"@DATA@"', json.dumps(data).replace("<", "\\u003c"))
    return Figure(caption, "text/html", base64.b64encode(page.encode()).decode())


@styled
def volumes(
    titles: list[str],
    ours: list[np.ndarray],
    theirs: list[np.ndarray],
    evaluations: int,
) -> Any:
    """Medians and quartiles over the seeds, [seeds, measurements] for each race."""
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
