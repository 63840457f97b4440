"""API cases of `jaxgpu.numerics`."""

import jax
import numpy as np
from api_cases import ApiCase

from jaxgpu import numerics
from jaxgpu.numerics import Mixture, VonMisesFisher, fit_mixture, matern, spherical_kmeans
from jaxgpu.numerics.sphere import sampling
from jaxgpu.studies.directions import features

X = np.array([0.5, 1.0, 30.0], np.float32)
KEY = jax.random.key(0)
NORTH = np.array([0.0, 0.0, 1.0], np.float32)
ROWS = np.array([[0.6, 0.8, 0], [0, 0.6, 0.8], [0, 0, 1], [1, 0, 0]], np.float32)
P = VonMisesFisher(NORTH, np.float32(2))
MIXTURE = Mixture(ROWS[:2], np.float32([3, 1]), np.log(np.float32([0.5, 0.5])))

# orders may have either sign; an argument below 0 gives nan
REAL = ("x: wrong length", "x: empty", "v: zero", "v: negative", "v: empty")
ENDS = ("x: zero", "x: negative", "x: inf", "x: -inf", "v: inf", "v: -inf")
TURNED = ("x: negative", "x: wrong length", "x: narrow")


# Bessel functions are accurate over the range of float64, outside float32's, where their limits
# are distinguished; on a TPU they are wrong near these limits
def special(f, first="v", second="x", x=X):
    """Return the case of a function of two numbers with the given argument names."""
    attack_names = lambda words: tuple(
        {"v": first, "x": second}[word[0]] + word[1:] for word in words
    )
    return ApiCase(
        f"numerics.{f.__name__}",
        lambda **given: f(given[first], given[second]),
        {first: np.float32(2.5), second: x},
        right=attack_names(REAL),
        limits=attack_names((*ENDS, "v: zero", "v: negative")),
        nan_passes=(first, second),
        beyond=f is not numerics.iv_ratio_inverse,
    )


CASES = [
    special(numerics.log_iv),
    special(numerics.log_ive),
    special(numerics.log_kv),
    special(numerics.log_kve),
    special(numerics.iv_ratio),
    special(numerics.kv_ratio),
    special(numerics.iv_ratio_inverse, "v", "r", np.array([0.1, 0.5, 0.9], np.float32)),
    special(numerics.log_hyp0f1, "b", "z"),
    ApiCase(
        "numerics.matern",
        matern,
        {"r": X, "smoothness": np.float32(1.5), "length": np.float32(2)},
        right=("r: wrong length", "r: empty", "r: zero", "smoothness: empty", "length: empty"),
        limits=("r: negative", "r: inf", "r: -inf")
        + tuple(
            f"{name}: {kind}"
            for name in ("smoothness", "length")
            for kind in ("inf", "-inf", "zero", "negative")
        ),
        nan_passes=("r", "smoothness", "length"),
        beyond=True,
    ),
    ApiCase(
        "numerics.VonMisesFisher.fit",
        VonMisesFisher.fit,
        {"x": ROWS, "weights": np.array([1, 2, 3, 4], np.float32)},
        right=(*TURNED, "weights: None"),
        normalised=("x",),
    ),
    ApiCase(
        "numerics.VonMisesFisher.from_mean",
        VonMisesFisher.from_mean,
        {"mean": NORTH / 2},
        right=("mean: zero", "mean: negative", "mean: wrong length"),
    ),
    ApiCase(
        "numerics.VonMisesFisher.log_prob",
        lambda p, x: p.log_prob(x),
        {"p": P, "x": ROWS},
        right=("x: negative", "x: empty", "x: wrong length"),
        limits=("p.concentration: inf",),
        normalised=("x",),
        beyond=True,
    ),
    ApiCase(
        "numerics.VonMisesFisher.entropy",
        lambda p: p.entropy(),
        {"p": P},
        limits=("p.concentration: inf",),
        beyond=True,
    ),
    ApiCase(
        "numerics.VonMisesFisher.kl_divergence",
        lambda p, q: p.kl_divergence(q),
        {"p": P, "q": P},
        limits=("p.concentration: inf", "q.concentration: inf"),
        beyond=True,
    ),
    ApiCase(
        "numerics.sphere.sampling.sample_vmf",  # another dtype gives other samples
        lambda **given: np.linalg.norm(sampling.sample_vmf(**given), axis=1),
        {"key": KEY, "mean_direction": NORTH, "concentration": np.float32(2), "count": 3},
        right=(
            "mean_direction: negative",
            "count: zero",
            "concentration: zero",
            "concentration: inf",
        ),
        normalised=("mean_direction",),
        free=("key",),
        host="makes a start in NumPy, once",
    ),
    ApiCase(
        "numerics.fit_mixture",  # the next case tests the vectors
        lambda components, steps: fit_mixture(ROWS, components, KEY, steps=steps).mixture,
        {"components": 2, "steps": 2},
        right=("steps: zero",),
    ),
    ApiCase(
        "numerics.spherical_kmeans",
        spherical_kmeans,
        {"x": ROWS, "components": 2, "key": KEY, "rounds": 3},
        right=TURNED,
        normalised=("x",),
        free=("key",),
        beyond=True,  # jax.random.categorical samples above finfo.tiny, 0 in float32
    ),
    ApiCase(
        "numerics.Mixture.log_prob",
        lambda mixture, x: mixture.log_prob(x),
        {"mixture": MIXTURE, "x": ROWS},
        right=("x: negative", "x: empty", "x: wrong length"),
        normalised=("x",),
        beyond=True,
    ),
    ApiCase(
        "numerics.Mixture.em_step",
        lambda mixture, x, weights: mixture.em_step(x, weights),
        {"mixture": MIXTURE, "x": ROWS, "weights": np.ones(len(ROWS), np.float32)},
        right=(*TURNED, "weights: None"),
        normalised=("x",),
        beyond=True,
    ),
    ApiCase(
        "numerics.features.unit",
        features.unit,
        {"x": ROWS},
        right=("x: negative", "x: wrong length", "x: narrow", "x: transposed", "x: not normalised"),
        normalised=("x",),
        host="makes a start in NumPy, once",
    ),
]
