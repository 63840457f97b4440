"""Draw a dam break and collapsing columns of sand, with the experiments' data points.

    PYTHONPATH=tests/helpers python docs/make/collapse.py [dam] [sand]

writes docs/pictures/dam_break.svg and column_collapse.svg in half a minute and four minutes on one
core. The experiments and their simulations are shared with the tests: `collapse_experiments`.
"""

import io
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
from collapse_experiments import (
    COLUMNS,
    FRONT,
    HEIGHT,
    best_delay,
    column,
    dam_break,
    laws,
    measures,
)

from jaxgpu.render.palette import BLUE, GRAY, INK, ORANGE, SERIES, report_style
from jaxgpu.report.drawing import follow_page

PICTURES = Path(__file__).parents[1] / "pictures"


@report_style
def draw_dam() -> None:
    """Draw front and height over time, at three resolutions."""
    drawing, (left, right) = _make_panels(2)
    for cells, style in ((8, ":"), (16, "--"), (32, "-")):
        time, front, _ = dam_break(cells, 5, 3.4)
        error, lag = best_delay(time, front)
        raw = np.mean(np.interp(FRONT[0], time, front) / FRONT[1] - 1)
        left.plot(time, front, style, color=BLUE, label=f"{cells} cells a width")
        print(f"{cells} cells: front {raw:+.1%}; after a delay of {lag:.2f}: {error:.1%}")
    left.plot(time + lag, front, color=ORANGE, label=f"32 cells, {lag:.2f} later")
    left.plot(*FRONT, "o", ms=4, color=INK, mfc="none", label="Martin & Moyce, table 2")
    left.set(xlabel="t √(2g / a)", ylabel="front x / a", xlim=(0, 3.5), ylim=(1, 4.7))
    for cells, style in ((8, ":"), (16, "--")):
        time, _, top = dam_break(cells, 19, 10.6)
        time = time / np.sqrt(2)
        right.plot(time, top, style, color=BLUE, label=f"{cells} cells a width")
        error = np.abs(np.interp(HEIGHT[0], time, top) - HEIGHT[1]).mean()
        print(f"{cells} cells: height off by {error:.3f} on average")
    right.plot(*HEIGHT, "o", ms=4, color=INK, mfc="none", label="Martin & Moyce, table 6")
    right.set(xlabel="t √(g / a)", ylabel="height at the wall / 2a", xlim=(0, 7.5), ylim=(0, 1))
    _save(drawing, (left, right), "dam_break")


@report_style
def draw_sand() -> None:
    """Draw the deposits of four columns, and their run-outs and heights with the fitted laws."""
    drawing, (left, right) = _make_panels(2)
    for which, colour, name, kink in ((0, INK, "run-out", 2.3), (1, GRAY, "height", 1.15)):
        for low, high in ((0.3, kink - 1e-6), (kink, 6)):  # the branches do not meet
            right.loglog((low, high), [laws(a)[which] for a in (low, high)], color=colour)
        right.plot([], [], color=colour, label=f"{name}, Lube et al.")
    for (aspect, cells), colour in zip(COLUMNS, SERIES):
        print(f"a = {aspect:g}: run-out {laws(aspect)[0]:.2f}, height {laws(aspect)[1]:.2f} by law")
        for n, size in ((cells // 2, 3), (cells, 6)):
            points = column(aspect, n)
            run, deep, high = measures(points, n)
            print(f"  {n} cells: run-out {run:.3f}, {deep:.3f} two grains deep, height {high:.3f}")
            right.loglog(aspect, deep, "o", color=colour, ms=size)
            right.loglog(aspect, high, "^", mfc="none", color=colour, ms=size)
        edges = np.arange(0, points[:, 0].max() + 2 / cells, 2 / cells)
        at = np.digitize(points[:, 0], edges)
        filled = np.unique(at)
        top = [points[at == i, 1].max() + 0.25 / cells for i in filled]
        left.plot(edges[filled - 1] + 1 / cells, top, color=colour, label=f"a = {aspect:g}")
    for n in (40, 80):
        run, deep, _ = measures(column(1.0, n, None), n)
        print(f"a = 1 without grains, {n} cells: {run:.3f}, {deep:.3f} two grains deep")
    left.set(xlabel="x / L", ylabel="y / L", xlim=(0, None), ylim=(0, None))
    right.plot([], [], "o", color=GRAY, label="run-out, two grains deep")
    right.plot([], [], "^", mfc="none", color=GRAY, label="height (small: half the cells)")
    right.set(xlabel="a = height / width at the start", ylabel="run-out / L, height / L")
    plain = import_module("matplotlib.ticker")
    for axis, ticks in ((right.xaxis, (0.3, 0.5, 1, 2, 4, 6)), (right.yaxis, (0.3, 0.5, 1, 2, 4))):
        axis.set_major_locator(plain.FixedLocator(ticks))
        axis.set_major_formatter(plain.FormatStrFormatter("%g"))
        axis.set_minor_locator(plain.NullLocator())
    _save(drawing, (left, right), "column_collapse")


def _make_panels(panels: int):
    plots = import_module("matplotlib.figure")
    drawing = plots.Figure(figsize=(4.6 * panels, 3.6))
    return drawing, drawing.subplots(1, panels)


def _save(drawing, axes, name: str) -> None:
    for ax in axes:
        ax.legend()
    file = io.BytesIO()
    with import_module("matplotlib").rc_context({"svg.hashsalt": name}):
        drawing.savefig(file, format="svg", dpi=120, metadata={"Date": None}, transparent=True)
    (PICTURES / f"{name}.svg").write_bytes(follow_page(file.getvalue()))


if __name__ == "__main__":
    for wanted in sys.argv[1:] or ("dam", "sand"):
        {"dam": draw_dam, "sand": draw_sand}[wanted]()
