"""One distribution per set of features, compared with the results of other libraries."""

import time
from importlib import import_module

import numpy as np

from jaxgpu.devices.precision import with_float64
from jaxgpu.numerics import VonMisesFisher
from jaxgpu.render.palette import GRAY, ORANGE, alpha_colormap, report_style
from jaxgpu.report import Figure, Table, figure
from jaxgpu.runs.loop import Timing

from .part import Part

_TFP = "tensorflow_probability.substrates.jax"
# results where it is not installed, tfp-nightly 0.26.0.dev20261027, by set and vectors
_RECORDED = {
    ("MNIST images", 5000): 1698.24666963,
    ("MiniLM tokens", 30522): 598.754188074,
    ("2048 activations", 1000): 7198.42555520,
    ("8192 activations", 1000): 33397.8260069,
    ("32768 activations", 1000): 157188.307294,
}


def study(sets: dict[str, np.ndarray], images: np.ndarray, labels: np.ndarray, compare: bool):
    """Fit every set, and the images of every digit."""
    fits, timing = {}, {}
    for name, x in sets.items():
        fits[name], timing[name] = _timed_fit(x)
    rows = [_row(name, x, fits[name]) for name, x in sets.items()]
    columns = ["set", "vectors", "d", "mean length R", "concentration", "A(concentration) - R"]
    columns += ["estimate of Banerjee et al.", "mean log density"]
    tables = [Table("Maximum-likelihood fits", columns, rows, digits=6)]
    classes = [VonMisesFisher.fit(images[labels == c]) for c in range(10)]
    findings = _findings(rows, classes)
    if compare:
        answers = [_comparison_row(name, x, fits[name]) for name, x in sets.items()]
        tables.append(_comparison_table(answers))
        findings.append(_comparison_finding(answers))
    largest = f"{max(x.shape[1] for x in sets.values())} activations"
    chosen = {name: timing[name] for name in ("MNIST images", largest)}
    return Part([_marginals(sets, fits), _means(classes)], tables, findings, chosen)


def _comparison_table(answers: list[list]) -> Table:
    recorded = "" if _is_installed(_TFP) else ", its densities recorded with 0.26.0.dev20261027"
    return Table(
        "Comparison for the same vectors: fitted concentrations, and mean log densities of the "
        f"jaxgpu fit (ours). TFP is TensorFlow Probability, which has no fit{recorded}.",
        ["set", "our fit", "SciPy's fit", "our density", "SciPy's density", "TFP's density"],
        answers,
        digits=7,
    )


def _findings(rows: list[list], classes: list[VonMisesFisher]) -> list[str]:
    kappa = {row[0]: row[4] for row in rows}
    alone = [float(one.concentration) for one in classes]
    return [
        f"Fitted concentrations are {kappa['MNIST images']:.3f} for the images (784 dimensions), "
        f"{kappa['MiniLM tokens']:.4f} for the tokens (384), and {min(alone):.0f} to "
        f"{max(alone):.0f} for single digits."
    ]


def _comparison_finding(answers: list[list]) -> str:
    wrong = sum(abs(row[2] / row[1] - 1) > 1e-3 for row in answers)
    apart = [max(abs(row[i] / row[3] - 1) for row in answers) for i in (4, 5)]
    return (
        f"SciPy's fitted concentration differs by more than 0.1 % in {wrong} of {len(answers)} "
        "sets: its search starts where its Bessel functions underflow. For the jaxgpu fit, log "
        f"densities agree to {apart[0]:.0e} (relative) with SciPy and to {apart[1]:.0e} with "
        "TensorFlow Probability."
    )


def _timed_fit(x: np.ndarray) -> tuple[VonMisesFisher, Timing]:
    start = time.perf_counter()
    VonMisesFisher.fit(x).concentration.block_until_ready()
    middle = time.perf_counter()
    fit = VonMisesFisher.fit(x)
    fit.concentration.block_until_ready()
    again = time.perf_counter() - middle
    return fit, Timing(max(0.0, middle - start - again), again, 1)


def _row(name: str, x: np.ndarray, fit: VonMisesFisher) -> list:
    mean = x.mean(0)
    length, d = float(np.linalg.norm(mean)), x.shape[1]
    estimate = length * (d - length**2) / (1 - length**2)
    residual = float(fit.resultant_length) - length
    row = [name, len(x), d, length, float(fit.concentration), residual, estimate]
    return [*row, _mean_log_density(fit, mean)]


def _mean_log_density(fit: VonMisesFisher, mean: np.ndarray) -> float:
    """Return the mean log density: it is linear in x, so the mean vector suffices."""
    along = float(np.sum(mean * np.asarray(fit.mean_direction)))
    return float(fit.concentration) * along - float(fit.log_normalizer())


def _comparison_row(name: str, x: np.ndarray, fit: VonMisesFisher) -> list:
    mean = x.mean(0)
    found, density = _scipy(x, fit)
    ours = float(fit.concentration), _mean_log_density(fit, mean)
    return [name, ours[0], found, ours[1], density, _tfp((name, len(x)), mean, fit)]


def _scipy(x: np.ndarray, fit: VonMisesFisher) -> tuple[float, float]:
    """Return SciPy's concentration, and its mean log density of the vectors for our fit."""
    law = import_module("scipy.stats").vonmises_fisher
    m = np.asarray(fit.mean_direction)
    with np.errstate(all="ignore"):
        density = law(m / np.linalg.norm(m), float(fit.concentration)).logpdf(x)
        return float(law.fit(x)[1]), float(np.mean(density))


def _tfp(name: tuple[str, int], mean: np.ndarray, fit: VonMisesFisher) -> float:
    """Return TFP's mean log density of the vectors for our fit."""
    if not _is_installed(_TFP):
        return _RECORDED.get(name, float("nan"))
    law = import_module(_TFP).distributions.VonMisesFisher
    m, k = np.asarray(fit.mean_direction), np.asarray(fit.concentration)
    return float(with_float64(lambda: law(m, k).log_prob(mean))())


def _is_installed(module: str) -> bool:
    try:
        import_module(module)
    except ImportError:
        return False
    return True


@report_style
def _marginals(sets: dict, fits: dict) -> Figure:
    """Plot the distributions of cosines to the mean direction, of data and fits."""
    import matplotlib.pyplot as plt
    from scipy.special import gammaln

    rows = -(-len(sets) // 3)
    drawing, axes = plt.subplots(rows, 3, figsize=(9.2, 2.3 * rows), squeeze=False)
    for ax in axes.flat[len(sets) :]:
        ax.set_visible(False)
    for ax, (name, x) in zip(axes.flat, sets.items()):
        fit, d = fits[name], x.shape[1]
        cosine = x @ np.asarray(fit.mean_direction)
        heights, _, _ = ax.hist(cosine, 40, density=True, color=GRAY, alpha=0.6, label="data")
        width = 8 * cosine.std()
        low, high = max(-0.999, cosine.mean() - width), min(0.999, cosine.mean() + width)
        t = np.linspace(low, high, 2000)
        ring = np.log(2) + (d - 1) / 2 * np.log(np.pi) - gammaln((d - 1) / 2)  # area of a parallel
        log_p = float(fit.concentration) * t - float(fit.log_normalizer()) + ring
        p = np.exp(log_p + (d - 3) / 2 * np.log1p(-t * t))
        ax.plot(t, p, color=ORANGE, label="fit")
        ax.set(title=name, yscale="log", ylim=(heights[heights > 0].min() / 2, 9 * p.max()))
        ax.set_xlim(cosine.mean() - 5 * cosine.std(), min(1, cosine.mean() + 5 * cosine.std()))
    for ax in axes[:, 0]:
        ax.set_ylabel("density")
    axes[0, 0].legend(loc="upper left")
    drawing.supxlabel("cosine to the mean direction", fontsize=9)
    return figure(
        drawing,
        "Distribution of the cosine to the mean direction, data and fit. A single concentration "
        "gives too narrow a distribution for each set, increasingly so in higher dimensions: for "
        "instance, the images of ten digits are a mixture.",
    )


@report_style
def _means(classes: list[VonMisesFisher]) -> Figure:
    """Plot the mean directions of the digits, as images."""
    import matplotlib.pyplot as plt

    drawing, axes = plt.subplots(1, 10, figsize=(9.2, 1.3))
    for ax, fit in zip(axes, classes):
        ax.imshow(np.asarray(fit.mean_direction).reshape(28, 28), cmap=alpha_colormap())
        ax.axis("off")
        ax.set_title(f"{float(fit.concentration):.0f}")
    return figure(drawing, "Mean direction of each digit's images, with the concentration.")
