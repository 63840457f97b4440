"""Figure of the study: fronts before and after, nozzles at work, hypervolume over cost."""

from typing import Any

import numpy as np

from jaxgpu.render.palette import BAND, BLUE, GRAY, GREEN, INK, ORANGE, report_style

from .nozzle import JOINTS, PLANE, TANK, WALL

EVOLVED_COLOR = BLUE
REFINED_COLORS = (ORANGE, GREEN)  # of the refinements, in order
NAMES = "ABC"  # labels of the three nozzles


def _front(f: np.ndarray) -> np.ndarray:
    """Return the non-dominated members [K, 2], sorted by their first objective."""
    f = f[np.argsort(f[:, 0], kind="stable")]
    return f[f[:, 1] <= np.minimum.accumulate(f[:, 1])]


@report_style
def overview(
    before: np.ndarray,
    after: np.ndarray,
    alone: np.ndarray,
    chosen: list[int],
    oil: np.ndarray,
    designs: np.ndarray,
    curves: dict[str, tuple[np.ndarray, np.ndarray]],
) -> Any:
    """Draw the figure with its three panels in two rows.

    Args:
        before, after: objectives [N, 2] of members before and after the refinement.
        alone: objectives [N, 2] of evolution alone, at the same cost.
        chosen: indices of the three members shown at work.
        oil: their particles [3, N, 2], m.
        designs: their half widths [3, D], m.
        curves: cost [T] in episodes and hypervolume [T, seeds] of each method.
    """
    import matplotlib.pyplot as plt

    drawing = plt.figure(figsize=(9.3, 6.6))
    rows: Any = drawing.subfigures(2, 1, height_ratios=[1, 1.05])
    left, right = rows[0].subplots(1, 2)
    _fronts(left, before, after, alone)
    for i, name in zip(chosen, NAMES):
        left.annotate(name, after[i], (5, 5), textcoords="offset points", weight="bold")
    _volumes(right, curves)
    for axes, x, widths, name in zip(rows[1].subplots(1, 3), oil, designs, NAMES):
        nozzle(axes, x, widths)
        axes.set_title(name)
    return drawing


def _fronts(axes: Any, before: np.ndarray, after: np.ndarray, alone: np.ndarray) -> None:
    span = np.ptp(after, 0)
    span = np.where(span > 0, span, 1)  # of a front with a single point
    moved = np.abs(after - before) / span
    i = int(np.argmax(moved.max(1)))
    near = axes.inset_axes((0.56, 0.36, 0.42, 0.34))
    for panel in (axes, near):
        panel.plot(*before.T, "o", mfc="none", color=GRAY, ms=5, label="before refinement")
        for a, b in zip(before, after):
            if np.any(a != b):
                shown = {"arrowstyle": "->", "color": INK, "lw": 0.8, "shrinkA": 2, "shrinkB": 2}
                panel.annotate("", b, a, arrowprops=shown, annotation_clip=True)
        panel.plot(*after.T, "o", color=REFINED_COLORS[0], ms=5, label="after refinement")
        panel.plot(*_front(alone).T, "x", color=EVOLVED_COLOR, ms=5, label="evolution alone")
    middle, room = (before[i] + after[i]) / 2, max(1.5 * moved[i].max(), 1e-3) * span
    near.set_xlim(middle[0] - room[0], middle[0] + room[0])
    near.set_ylim(middle[1] - room[1], middle[1] + room[1])
    near.tick_params(labelsize=7)
    axes.indicate_inset_zoom(near, edgecolor=GRAY)
    axes.set_xlabel("fraction of oil retained")
    axes.set_ylabel("rms width of the jet, mm")
    axes.legend(loc="upper right")


def _volumes(axes: Any, curves: dict[str, tuple[np.ndarray, np.ndarray]]) -> None:
    for (name, (spent, covered)), colour in zip(curves.items(), (EVOLVED_COLOR, *REFINED_COLORS)):
        drawn = {"color": colour, "label": name, "marker": "" if len(spent) > 9 else "o", "ms": 4}
        axes.plot(spent, np.median(covered, 1), **drawn)
        area = {"color": colour, "alpha": BAND, "lw": 0}
        axes.fill_between(spent, covered.min(1), covered.max(1), **area)
    axes.set_xlabel("cost, episodes without gradient")
    axes.set_ylabel("hypervolume")
    lowest = min(np.median(covered[len(covered) // 6]) for _, covered in curves.values())
    axes.set_ylim(lowest - 0.03, None)
    axes.legend(loc="lower right")


def nozzle(axes: Any, x: np.ndarray, widths: np.ndarray) -> None:
    """Draw oil, m, in a nozzle of these half widths; the axes are in cm."""
    axes.plot(*(100 * x.T), "o", color=BLUE, ms=1.6, mew=0)
    joints = 100 * np.array([TANK[0], *widths])
    heights = 100 * np.array([TANK[1], *JOINTS])
    axes.set_aspect("equal")
    axes.set(xlim=(-9, 9), ylim=(2, 37), xlabel="cm")
    drawing = axes.figure
    drawing.canvas.draw()
    points = 72 / drawing.dpi * axes.transData.transform([(0, 200 * WALL), (0, 0)])[:, 1]
    for side in (-1, 1):
        axes.plot(
            side * joints,
            heights,
            color=INK,
            lw=float(points[0] - points[1]),
            solid_capstyle="round",
            solid_joinstyle="round",
        )
    axes.axhline(100 * PLANE, color=GRAY, lw=0.8, ls="--")
