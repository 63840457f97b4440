"""Charts of the results, one per domain, for light and dark pages: `python -m benchmarks.charts`.

Each bar is a peer: the ratio of its time to jaxgpu's, on a logarithmic axis that starts at 1, with
the range that the quartiles of both allow. The charts, and a page that includes them, are written
to docs/charts, which is not committed.
"""

from pathlib import Path
from typing import Any

from benchmarks import record

FOLDER = Path(__file__).parents[1] / "docs" / "charts"
# for each domain: prefixes of the names of its entries
PILLARS = {
    "N-body": ("solar-system", "star-cluster", "precise-cluster", "scatterings"),
    "Matter": ("continuum ",),
    "Rigid bodies": ("rigid",),
    "Evolution": ("NSGA", "seeds", "CMA-ES", "contributions"),
    "Numerics": ("log_", "directions"),
    "Learning": ("cartpole", "ppo", "surgical/star"),
}
# colors of a peer that is slower than jaxgpu, of a faster peer, of text and of the grid
COLORS = {
    "light": {"slower": "#0f766e", "faster": "#b45309", "text": "#1f2937", "grid": "#d1d5db"},
    "dark": {"slower": "#2dd4bf", "faster": "#fbbf24", "text": "#e5e7eb", "grid": "#4b5563"},
}
WIDTH, LINE, TEXT = 700 / 96, 24 / 96, 12 * 0.75  # inches of 96 pixels; 12 pixels in points


def bars(found: dict[str, dict[str, Any]], beginnings: tuple[str, ...]) -> list[tuple]:
    """Return label, ratio and range of every peer in the entries with these name prefixes."""
    made = []
    for name, row in found.items():
        if name.startswith(beginnings):
            ours, *others = row["results"]
            for one in others:
                if not one["name"].startswith(("jaxgpu", "value", "without")):
                    low = one["wall"][0] / ours["wall"][2]
                    high = one["wall"][2] / ours["wall"][0]
                    share = record.ratio(row, one) / (one["wall"][1] / ours["wall"][1])
                    label = f"{name} · {one['name']}"
                    made.append((label, record.ratio(row, one), share * low, share * high))
    return made


def draw(pillar: str, found: list[tuple], theme: str, file: Path) -> None:
    """Draw one chart as SVG, with text as text elements of 12 pixels."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FuncFormatter, NullFormatter

    tone = COLORS[theme]
    style: dict[Any, Any] = {"svg.fonttype": "none", "font.size": TEXT, "svg.hashsalt": "jaxgpu"}
    style |= {"font.family": "sans-serif", "text.color": tone["text"]}
    style |= {f"{axis}tick.color": tone["text"] for axis in "xy"}
    with plt.rc_context(style):
        height = LINE * (len(found) + 3)
        figure, axes = plt.subplots(figsize=(WIDTH, height))
        edge = LINE / height
        figure.subplots_adjust(0.57, 1.9 * edge, 0.94, 1 - 0.6 * edge)
        for at, (_, ratio, low, high) in enumerate(found):
            colour = tone["slower" if ratio >= 1 else "faster"]
            axes.barh(at, ratio - 1, left=1, height=0.55, color=colour)
            axes.plot([low, high], [at, at], color=tone["text"], linewidth=1)
            far = max(high, ratio, 1.0)
            axes.text(1.08 * far, at, f"{ratio:.3g}", va="center", ha="left")
        axes.set_yticks(range(len(found)), [label for label, *_ in found])
        axes.set_xscale("log")
        least = min(0.5, *(low for _, _, low, _ in found))
        axes.set_xlim(0.8 * least, 3 * max(high for *_, high in found))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_ylim(len(found) - 0.4, -0.6)
        axes.set_xlabel("runtime of the other package / runtime of jaxgpu", color=tone["text"])
        axes.axvline(1, color=tone["text"], linewidth=1)
        axes.grid(axis="x", color=tone["grid"], linewidth=0.5)
        axes.set_axisbelow(True)
        axes.tick_params(which="both", length=0)
        for side in axes.spines.values():
            side.set_visible(False)
        figure.savefig(file, transparent=True, metadata={"Date": None})
        plt.close(figure)


def write(folder: Path = FOLDER) -> None:
    """Draw all charts, and write the page that includes them."""
    folder.mkdir(exist_ok=True)
    found, lines = record.rows(), []
    for pillar, beginnings in PILLARS.items():
        lines += [f"## {pillar}", ""]
        rows = [row for name, row in found.items() if name.startswith(beginnings)]
        if not (chosen := bars(found, beginnings)):
            lines += ["The record has no entries yet.", ""]
            continue
        for theme in COLORS:
            name = f"{pillar.lower().replace(' ', '-')}-{theme}.svg"
            draw(pillar, chosen, theme, folder / name)
            lines += [f"```{{image}} charts/{name}", f":alt: {pillar}: runtimes relative to jaxgpu"]
            lines += [f":class: only-{theme}", "```", ""]
        lines += ["; ".join(dict.fromkeys(map(record.provenance, rows))) + ".", ""]
    (folder / "charts.md").write_text("\n".join(lines))


if __name__ == "__main__":
    write()
