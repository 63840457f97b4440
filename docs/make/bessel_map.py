"""Draw the error of log I_v(x) and log K_v(x) over the plane of v and x, for jaxgpu and peers.

    pip install python-flint tfp-nightly
    python docs/make/bessel_map.py [POINTS PER SIDE]

writes docs/pictures/bessel_map.svg. The reference is Arb's ball arithmetic, with the precision
doubled until the ball is 95 bits narrow: mpmath is wrong at some such points. The error is relative
to the combined effect of half an ulp in the result, in v and in x,

    E = |f - g| / (u (|g| + |x dg/dx| + |v dg/dv|)),    u = 2^-53.
"""

import io
import sys
from importlib import import_module
from pathlib import Path

import numpy as np

from jaxgpu.devices.precision import with_float64
from jaxgpu.numerics import log_iv, log_kv
from jaxgpu.render.palette import BLUE, GRAY, ORANGE, report_style
from jaxgpu.report.drawing import follow_page

PICTURE = Path(__file__).parents[1] / "pictures" / "bessel_map.svg"
EDGES = [0, 1, 2, 4, 16, 1e3, 1e6, 1e12, np.inf]
# errors up to 4 count as accurate and are blue, larger ones orange; both fade into the page
SHADES = [(BLUE, s) for s in (0.15, 0.4, 0.7)] + [(ORANGE, s) for s in (0.3, 0.47, 0.65, 0.82, 1)]


def exact(v: float, x: float) -> list:
    """Return log I, log K, and the denominator of E over u for each, as mpmath numbers."""
    flint, mpf = import_module("flint"), import_module("mpmath").mpf
    for precision in (192, 384, 768, 1536, 3072, 6144):
        flint.ctx.prec = precision
        order, at, nudge = flint.arb(v), flint.arb(x), flint.arb(2) ** -40
        here = _log_bessels(order, at)
        steep = [(a - b) / nudge for a, b in zip(_log_bessels(order * (1 + nudge), at), here)]
        above = [(a - b).exp() for a, b in zip(_log_bessels(order + 1, at), here)]
        slope = order + at * above[0], order - at * above[1]
        sizes = [abs(f) + abs(a) + abs(b) for f, a, b in zip(here, slope, steep)]
        if all(f.is_finite() and f.rel_accuracy_bits() > 95 for f in here):
            return [mpf(f.mid().str(30, radius=False)) for f in (*here, *sizes)]
    raise ArithmeticError(f"bessel_map: v={v}, x={x}; Arb needs more than 6144 bits; draw less")


def _log_bessels(v, x) -> tuple:
    return x.bessel_i(v, scaled=True).log() + x, x.bessel_k(v, scaled=True).log() - x


def peers(v: np.ndarray, x: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return log I and log K of each library at the points, in float64."""
    special = import_module("scipy.special")
    tfp = import_module("tensorflow_probability.substrates.jax")
    ours = with_float64(lambda: (np.asarray(log_iv(v, x)), np.asarray(log_kv(v, x))))()
    with np.errstate(all="ignore"):
        scipy = np.log(special.ive(v, x)) + x, np.log(special.kve(v, x)) - x

    def run_tfp():
        i, k = tfp.math.log_bessel_ive(v, x), tfp.math.log_bessel_kve(v, x)
        return np.asarray(i) + x, np.asarray(k) - x

    return {"jaxgpu": ours, "SciPy": scipy, "TFP": with_float64(run_tfp)()}


def errors(value: np.ndarray, reference: tuple, size: np.ndarray) -> np.ndarray:
    """Return E of each value; nan if the value is not finite."""
    mpf = import_module("mpmath").mpf
    apart = [float(abs(mpf(a) - b)) if np.isfinite(a) else np.nan for a, b in zip(value, reference)]
    return np.array(apart) / (2.0**-53 * size)


@report_style
def draw(side: np.ndarray, found: dict[str, list[np.ndarray]]) -> None:
    """Save the picture: one column per library, one row per function."""
    plt, colors = import_module("matplotlib.pyplot"), import_module("matplotlib.colors")
    scale = colors.ListedColormap([colors.to_rgba(*shade) for shade in SHADES])
    scale.set_bad(GRAY)
    norm = colors.BoundaryNorm(range(len(EDGES)), scale.N)
    drawing, axes = plt.subplots(2, 3, figsize=(9.5, 6), sharex=True, sharey=True)
    for column, (name, maps) in zip(axes.T, found.items()):
        for ax, error, function in zip(column, maps, ("log I", "log K")):
            level = np.searchsorted(EDGES, error, "right") - 1.0
            level[np.isnan(error)] = np.nan
            ax.pcolormesh(side, side, level, cmap=scale, norm=norm, rasterized=True)
            ax.set(xscale="log", yscale="log")
            missing, right = np.mean(np.isnan(error)), np.mean(error <= 4)
            ax.set_title(f"{name}: {function}\n{right:.1%} within 4, {missing:.0%} not finite")
    for ax in axes[1]:
        ax.set_xlabel("argument x")
    for ax in axes[:, 0]:
        ax.set_ylabel("order v")
    shades = import_module("matplotlib.cm").ScalarMappable(norm, scale)
    bar = drawing.colorbar(shades, ax=axes, ticks=range(len(EDGES)), shrink=0.8)
    bar.ax.set_yticklabels(["0", "1", "2", "4", "16", "$10^3$", "$10^6$", "$10^{12}$", "$\\infty$"])
    bar.set_label("E: error in units of what a half ulp does; grey: not finite")
    file = io.BytesIO()
    with import_module("matplotlib").rc_context({"svg.hashsalt": PICTURE.stem}):
        drawing.savefig(file, format="svg", dpi=120, metadata={"Date": None}, transparent=True)
    PICTURE.write_bytes(follow_page(file.getvalue()))


def main() -> None:
    """Compute the errors and draw the picture."""
    mpmath = import_module("mpmath")
    mpmath.mp.dps = 40
    points = int(sys.argv[1]) if len(sys.argv) > 1 else 72
    side = np.logspace(-6, 4, points)
    v, x = (a.ravel() for a in np.meshgrid(side, side, indexing="ij"))
    i, k, size_i, size_k = zip(*(exact(float(a), float(b)) for a, b in zip(v, x)))
    sizes = np.array(size_i, float), np.array(size_k, float)
    found = {
        name: [
            errors(a, b, size).reshape(points, points) for a, b, size in zip(pair, (i, k), sizes)
        ]
        for name, pair in peers(v, x).items()
    }
    draw(side, found)
    for name, maps in found.items():
        print(name, *(f"E at most {np.nanmax(error):.3g}" for error in maps))


if __name__ == "__main__":
    main()
