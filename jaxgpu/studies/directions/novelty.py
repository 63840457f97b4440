"""Novelty detection: the log likelihood as a test for vectors of an unknown class.

Ten distributions, one per digit, are fitted to half of the images. Leaving one out gives a model of
the other nine digits, which scores the other half of the images, including the left-out digit. The
tiles of a photograph are a far easier test.
"""

import jax.numpy as jnp
import numpy as np

from jaxgpu.numerics import Mixture, VonMisesFisher
from jaxgpu.render.palette import BLUE, GRAY, ORANGE, report_style
from jaxgpu.report import Figure, Headline, Table, figure

from .part import Part


def study(sets: dict[int, np.ndarray], strange: dict[int, np.ndarray], labels: np.ndarray) -> Part:
    """Separate each digit, and the photograph, from the learned digits."""
    learnt = np.arange(len(labels)) % 2 == 0
    asked = labels[~learnt]
    rows, shown = [], {}
    for d, x in sets.items():
        ten = _fit_per_digit(x[learnt], labels[learnt])
        known, far = np.asarray(ten.joint(x[~learnt])), np.asarray(ten.joint(strange[d]))
        plain = x[~learnt] @ np.asarray(ten.mean_directions).T
        by_digit = [_novelty_auroc(known, asked, c) for c in range(10)]
        cosine = [_novelty_auroc(plain, asked, c) for c in range(10)]
        photograph = auroc(_log_likelihood(known), _log_likelihood(far))
        rows.append([d, *by_digit, float(np.mean(by_digit)), float(np.mean(cosine)), photograph])
        shown[d] = known, far
    columns = ["d", *(f"new: {c}" for c in range(10)), "mean", "mean, by the largest cosine"]
    caption = (
        "Area under the receiver operating characteristic: probability that a vector of a learned "
        "digit has a higher likelihood than one of the excluded digit, or of a photograph"
    )
    return Part(
        [_picture(shown, rows, asked)],
        [Table(caption, [*columns, "new: photograph"], rows, digits=3)],
        [_finding(rows)],
        headlines=[
            Headline(
                f"area under the ROC curve, excluded digit (mean), {row[0]} dimensions",
                row[11],
                f"{row[12]:.2f} by the maximum cosine; chance level 0.5",
            )
            for row in rows[-1:]
        ],
    )


def auroc(inside: np.ndarray, outside: np.ndarray) -> float:
    """Return the probability that a score of `inside` exceeds one of `outside`; ties count half.

    >>> auroc(np.array([2.0, 3.0]), np.array([1.0, 2.0]))
    0.875
    """
    from scipy.stats import rankdata

    ranks = rankdata(np.concatenate([inside, outside]))[: len(inside)]
    above = ranks.sum() - len(inside) * (len(inside) + 1) / 2
    return float(above / (len(inside) * len(outside)))


def _fit_per_digit(x: np.ndarray, labels: np.ndarray) -> Mixture:
    """Fit one component per digit, all with the same weight."""
    classes = [VonMisesFisher.fit(x[labels == c]) for c in range(10)]
    return Mixture(
        jnp.stack([one.mean_direction for one in classes]),
        jnp.stack([one.concentration for one in classes]),
        jnp.full(10, -np.log(10), x.dtype),
    )


def _log_likelihood(joint: np.ndarray) -> np.ndarray:
    """Return the log likelihood of the mixture of the given columns."""
    return np.logaddexp.reduce(joint.astype(np.float64), 1)


def _novelty_auroc(scores: np.ndarray, asked: np.ndarray, digit: int) -> float:
    others = np.delete(scores, digit, 1)
    # For cosines the maximum is the score. In high dimensions it also dominates log likelihoods.
    score = others.max(1) if scores.max() <= 1 else _log_likelihood(others)
    return auroc(score[asked != digit], score[asked == digit])


def _finding(rows: list[list]) -> str:
    listed = ", ".join(f"{row[11]:.2f} (by cosines {row[12]:.2f}) in {row[0]}" for row in rows)
    far = min(row[13] for row in rows)
    worst, digit, d = min((area, c, row[0]) for row in rows for c, area in enumerate(row[1:11]))
    return (
        f"An excluded digit is detected with an area under the ROC curve of {listed} dimensions "
        f"(mean over ten digits), a photograph with at least {far:.3f}. The hardest is {digit} in "
        f"{d} dimensions, {worst:.2f}."
    )


@report_style
def _picture(shown: dict, rows: list[list], asked: np.ndarray) -> Figure:
    import matplotlib.pyplot as plt

    drawing, axes = plt.subplots(1, 3, figsize=(9.3, 2.9))
    d = min(shown)
    known, far = shown[d]
    easy, hard = (int(pick(rows[0][1:11])) for pick in (np.argmax, np.argmin))
    for ax, digit in zip(axes, (easy, hard)):
        score = _log_likelihood(np.delete(known, digit, 1)) / d
        groups = {"learned digits": score[asked != digit]}
        groups |= {
            f"{digit}, excluded": score[asked == digit],
            "photograph": _log_likelihood(far) / d,
        }
        low, high = np.quantile(np.concatenate(list(groups.values())), [0.002, 1])
        edges = np.linspace(low, high, 45)
        for (name, values), colour in zip(groups.items(), (GRAY, ORANGE, BLUE)):
            ax.hist(
                values,
                edges,
                density=True,
                histtype="stepfilled",
                alpha=0.6,
                color=colour,
                label=name,
            )
        ax.set(yticks=[], xlabel=f"log density / dimension, {d} dimensions", ylabel="density")
        ax.legend()
    for row, marker in zip(rows, "os^"):
        axes[2].plot(range(10), row[1:11], marker, label=f"{row[0]} dimensions")
    axes[2].axhline(0.5, color=GRAY, lw=0.8, zorder=0)
    axes[2].set(xticks=range(10), xlabel="excluded digit", ylabel="area under the ROC curve")
    axes[2].legend()
    return figure(
        drawing,
        "Log likelihood under a mixture of nine digits: test images of these digits, of the "
        "excluded digit, and tiles of a photograph, for the easiest (left) and the hardest "
        "(middle) digit. Right: area under the ROC curve for each excluded digit.",
    )
