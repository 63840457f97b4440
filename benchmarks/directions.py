"""Concentration of feature vectors (von Mises-Fisher), compared with SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from scipy.stats import vonmises_fisher

from benchmarks import limits
from benchmarks.harness import Contender, Entry
from jaxgpu.devices.precision import with_float64
from jaxgpu.numerics import VonMisesFisher
from jaxgpu.studies.directions import features


def entries() -> list[Entry]:
    """Return data that SciPy can fit (three coordinates of the tokens), and data it cannot."""
    tokens, (images, _) = features.tokens(), features.digits()
    few = features.unit(tokens[:, :3])
    return [
        _entry("tokens, first 3 coordinates", few),
        _entry("all-MiniLM-L6-v2 tokens", tokens),
        _entry("MNIST images", images),
    ]


def _entry(name: str, x: np.ndarray) -> Entry:
    fit, data = with_float64(jax.jit(VonMisesFisher.fit)), with_float64(jnp.asarray)(x)
    return Entry(
        name=f"directions: {name}",
        work=f"maximum-likelihood fit of {len(x)} unit vectors in {x.shape[1]} dimensions",
        contenders=[
            Contender("jaxgpu", lambda: {"concentration": float(fit(data).concentration)}),
            Contender(
                f"SciPy {scipy.__version__}", lambda: {"concentration": _scipy_concentration(x)}
            ),
        ],
        amount=len(x),
        unit="vectors",
        limit=limits.bytes_per_second() / (8 * x.shape[1]),  # every value is read once
    )


def _scipy_concentration(x: np.ndarray) -> float:
    with np.errstate(all="ignore"):
        return float(vonmises_fisher.fit(x)[1])
