"""Mixtures fitted without labels, compared with the labels."""

import time

import jax
import numpy as np

from jaxgpu.numerics import Mixture, fit_mixture, spherical_kmeans
from jaxgpu.render.palette import alpha_colormap, report_style
from jaxgpu.report import Figure, Headline, Table, figure

from .part import Part

_COLUMNS = ["features", "d", "initial purity", "purity", "fraction with responsibility > 0.99"]
_COLUMNS += ["gain in mean log density", "concentrations", "seconds, with compilation"]


def study(sets: dict[int, np.ndarray], images: np.ndarray, labels: np.ndarray, options) -> Part:
    """Fit a mixture to each set of features, and to the pixels."""
    key, rows, found = jax.random.key(options.seed), [], {}
    for d, x in {images.shape[1]: images.astype(np.float32), **sets}.items():
        start = time.perf_counter()
        fit = fit_mixture(x, options.components, key, steps=options.steps)
        mixture, history = fit.mixture, fit.history
        seconds = time.perf_counter() - start
        share = np.asarray(mixture.responsibilities(x))
        begun = np.asarray(spherical_kmeans(x, options.components, key).responsibilities(x))
        found[d] = mixture, share
        rows.append(
            [
                "pixels" if d == images.shape[1] else "activations",
                d,
                purity(labels, begun.argmax(1)),
                purity(labels, share.argmax(1)),
                float(np.mean(share.max(1) > 0.99)),
                float(history[-1] - history[0]),
                f"{mixture.concentrations.min():.0f} to {mixture.concentrations.max():.0f}",
                seconds,
            ]
        )
    best = max(found, key=lambda d: purity(labels, found[d][1].argmax(1)))
    mixture, share = found[best]
    caption = f"Mixtures of {options.components} components, fitted to {len(labels)} digits"
    return Part(
        [_components(mixture, share, best, images, labels)],
        [Table(caption, _COLUMNS, rows, digits=4)],
        [_finding(rows, options.components)],
        headlines=[
            Headline(
                f"purity of {options.components} components without labels, {best} dimensions",
                max(row[3] for row in rows),
                f"{rows[0][3]:.2f} from the pixels",
            )
        ],
    )


def purity(labels: np.ndarray, found: np.ndarray) -> float:
    """Return the fraction of vectors whose label is the most common one in their cluster.

    >>> purity(np.array([0, 0, 1, 1]), np.array([2, 2, 2, 0]))
    0.75
    """
    table = np.zeros((labels.max() + 1, found.max() + 1))
    np.add.at(table, (labels, found), 1)
    return float(table.max(0).sum() / len(labels))


def _finding(rows: list[list], components: int) -> str:
    pixels, *activations = [(row[1], row[3]) for row in rows]
    listed = ", ".join(f"{share:.0%} in {d}" for d, share in activations)
    return (
        f"{components} components without labels mostly have a single digit: purity {listed} "
        f"dimensions of activations, {pixels[1]:.0%} from the pixels. In so many dimensions nearly "
        "every vector belongs to a single component, and few change it after the start."
    )


@report_style
def _components(
    mixture: Mixture, share: np.ndarray, d: int, images: np.ndarray, labels: np.ndarray
) -> Figure:
    """Plot the mean image of each component."""
    import matplotlib.pyplot as plt

    count = share.sum(0)
    by_digit = share.T @ np.eye(10)[labels] / np.maximum(count, 1e-9)[:, None]
    order = np.lexsort((-by_digit.max(1), by_digit.argmax(1)))
    rows = -(-len(order) // 10)
    drawing, axes = plt.subplots(rows, 10, figsize=(9.3, 1.2 * rows))
    for ax in np.ravel(axes):
        ax.axis("off")
    for ax, j in zip(np.ravel(axes), order):
        ax.imshow((share[:, j] @ images).reshape(28, 28), cmap=alpha_colormap())
        digit = by_digit[j].argmax()
        ax.set_title(f"{digit}: {by_digit[j, digit]:.0%} of {count[j]:.0f}", fontsize=8.25)
    return figure(
        drawing,
        f"Mean image of each component of the mixture in {d} dimensions, with its most common "
        "digit, the fraction of that digit, and the number of its images.",
    )
