"""Invalid directions raise if their values are visible, and never give a number otherwise."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import vonmises_fisher

from jaxgpu.numerics import VonMisesFisher
from jaxgpu.numerics.sphere.arguments import check_lengths, tolerance
from jaxgpu.numerics.sphere.mixture import Mixture, fit_mixture, spherical_kmeans
from jaxgpu.numerics.sphere.sampling import sample_vmf
from jaxgpu.studies.directions import features

KEY = jax.random.key(0)
NORTH = np.array([0.0, 0.0, 1.0], np.float32)


def rows(seed=0, count=50, d=24):
    """Make unit vectors around a random direction, with another concentration for each seed.

    From 24 dimensions on (52 in float64) the programs of the Bessel functions are short.
    """
    rng = np.random.default_rng(seed)
    return features.unit(rng.normal(size=(count, d)) + rng.uniform(0, 2, d) * np.arange(d) / 2)


def bad_rows(how):
    x = rows()
    if how == "nan":
        x[17, 3] = np.nan
    elif how == "inf":
        x[17, 3] = -np.inf
    elif how == "half as long":
        x *= 0.5
    elif how == "one is too long":
        x[-1] *= 1.001
    else:
        x = np.random.default_rng(1).normal(size=(50, 24))
    return x


SPOILT = ("nan", "inf", "half as long", "one is too long", "raw")


@pytest.mark.parametrize("how", SPOILT)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fit_refuses_what_scipy_refuses(how, dtype):
    """Former results: 0.0 and e1 for one nan, 3.1 instead of 10.1 for halves, nan for raw rows."""
    x = bad_rows(how).astype(dtype)
    with pytest.raises(ValueError):
        vonmises_fisher.fit(x.astype(np.float64))
    said = "fit: x holds nan or inf" if how in ("nan", "inf") else "fit: x has lengths? .*norm"
    with pytest.raises(ValueError, match=said):
        VonMisesFisher.fit(x)
    with pytest.raises(ValueError, match=f"fit_mixture: {said[5:]}"):
        fit_mixture(x, 3, KEY)
    with pytest.raises(ValueError, match=f"spherical_kmeans: {said[5:]}"):
        spherical_kmeans(x, 3, KEY)


@pytest.mark.slow
def test_fit_answers_as_scipy_does():
    for seed in range(3):
        x = rows(seed, d=52)
        want = vonmises_fisher.fit(x)
        got = VonMisesFisher.fit(x)
        np.testing.assert_allclose(got.concentration, want[1], rtol=1e-10)
        np.testing.assert_allclose(got.mean_direction, want[0], rtol=1e-10)


def test_nan_that_cannot_be_seen_comes_out_as_nan():
    x, good = (a.astype(np.float32) for a in (bad_rows("nan"), rows()))
    weights = np.ones(50, np.float32)
    weights[3] = np.nan
    every = jax.jit(lambda *a: jax.vmap(VonMisesFisher.fit)(*map(jnp.stack, a)))
    fit = every((x, good, good), (np.ones(50, np.float32), np.ones(50, np.float32), weights))
    np.testing.assert_array_equal(np.isnan(fit.concentration), [True, False, True])
    assert np.isnan(fit.mean_direction[0]).all()


@pytest.mark.parametrize("d", [2, 8192, 131072])
def test_rows_normalised_in_their_own_precision_pass(d):
    """Normalise float32 by the worst order of summation, left to right, and halves as JAX does."""
    x = np.random.default_rng(d).normal(size=(24, d)).astype(np.float32)
    left = np.cumsum(x * x, 1, dtype=np.float32)[:, -1:]
    check_lengths("x", x / np.sqrt(left))
    normalised = jax.jit(lambda h: h / jnp.sqrt(jnp.sum(h * h, 1, keepdims=True)))
    for half in (jnp.float16, jnp.bfloat16):
        # float16 can represent sums up to 65504.
        h = np.asarray(normalised((x if d < 65536 else x / 8).astype(half)))
        off = np.abs(np.linalg.norm(h.astype(np.float64), axis=1) - 1).max()
        assert 1e-5 < off < tolerance(half, d)
        check_lengths("x", h)
    with pytest.raises(ValueError, match="within [14]e-05"):  # what they are in float32 is not unit
        check_lengths("x", h.astype(np.float32))


@pytest.mark.slow
@pytest.mark.parametrize("half", [jnp.float16, jnp.bfloat16])
def test_half_precisions_are_fitted_in_float32(half):
    """The square of a mean of 1e-4 is 0 in float16, which gave concentration 0.0."""
    rng = np.random.default_rng(2)
    near = features.unit(rng.normal(size=(4000, 64)) + 0.05 * rng.normal(size=64))
    want = VonMisesFisher.fit(near)
    got = VonMisesFisher.fit(jnp.asarray(near, half))
    assert got.concentration.dtype == half
    np.testing.assert_allclose(float(got.concentration), want.concentration, rtol=0.02)
    north = np.eye(1, 64, dtype=np.float32)[0]
    p = VonMisesFisher(north.astype(half), np.asarray(829.0, half))  # 829^2 overflows float16
    want = VonMisesFisher(north, np.float32(p.concentration))
    eps = float(jnp.finfo(half).eps)
    np.testing.assert_allclose(float(p.entropy()), want.entropy(), rtol=eps)
    np.testing.assert_allclose(
        float(p.log_prob(north.astype(half))), want.log_prob(north), rtol=eps
    )


def test_vectors_that_are_all_the_same_are_so_in_float32_too():
    """Rounding may make their mean longer than 1, where the inverse ratio returns nan."""
    for seed in range(20):
        x = rows(seed, 1).astype(np.float32).repeat(5, 0)
        assert VonMisesFisher.fit(x).concentration > 1e5


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        (np.full(50, np.nan), "weights=nan at .0.; it must be"),
        (-np.ones(50), "weights=-1 at .0.; it must be"),
        (np.zeros(50), "weights add up to 0; "),
        (np.full(50, 3e38), "weights add up to inf; "),
        (np.ones(49), r"weights has shape \(49,\), x has 50 rows"),
        (["a"] * 50, "weights=.*; it must be"),
        (np.full(50, 1j), "weights=.*; it must be"),
    ],
)
def test_weights_that_are_none(weights, said):
    with pytest.raises((ValueError, TypeError), match=f"fit: {said}"):
        VonMisesFisher.fit(rows().astype(np.float32), weights)


@pytest.mark.slow
def test_lists_integers_and_mixed_dtypes_are_what_they_stand_for():
    x = rows().astype(np.float32)
    np.testing.assert_array_equal(
        VonMisesFisher.fit(x.tolist(), [1, 2] * 25).concentration,
        VonMisesFisher.fit(x, np.array([1.0, 2.0] * 25)).concentration,
    )
    north = np.eye(1, 24, dtype=np.float32)[0]
    p, q = VonMisesFisher([1] + 23 * [0], 2), VonMisesFisher(north, np.float32(2))
    for f in (
        lambda p: p.entropy(),
        lambda p: p.mean,
        lambda p: p.log_prob(np.eye(2, 24, dtype=int).tolist()),
        lambda p: p.kl_divergence(q),
    ):
        got = f(p)
        assert got.dtype == np.float32
        np.testing.assert_array_equal(got, f(q))
    assert p.log_prob(north.astype(np.float64)).dtype == np.float32
    wide = VonMisesFisher(north.astype(np.float64), 2.0)
    with jax.numpy_dtype_promotion("standard"):
        assert wide.log_prob(north).dtype == np.float64


P = VonMisesFisher(NORTH, np.float32(2))
METHODS = {
    "resultant": lambda p: p.resultant_length,
    "mean": lambda p: p.mean,
    "log_normalizer": lambda p: p.log_normalizer(),
    "log_prob": lambda p: p.log_prob(NORTH),
    "entropy": lambda p: p.entropy(),
    "kl_divergence": lambda p: P.kl_divergence(p),
    "fisher_information": lambda p: p.fisher_information(),
    "sample": lambda p: p.sample(KEY, 2),
}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize(
    ("m", "k", "said"),
    [
        (NORTH, np.nan, "concentration=nan; it must be"),
        (NORTH, -1.0, "concentration=-1; it must be"),
        (NORTH, "much", "concentration='much'; it must be"),
        (NORTH, np.ones(2), r"concentration has shape \[2\]; it must be \[\]"),
        (2 * NORTH, 1.0, "mean_direction has length 2; they must be 1 within"),
        (NORTH * np.nan, 1.0, "mean_direction holds nan"),
        (NORTH[None], 1.0, r"mean_direction has shape \(1, 3\); it must be \[d\]"),
        (NORTH[2:], 1.0, r"mean_direction has shape \(1,\); it must be \[d\]"),
        ("north", 1.0, "mean_direction is <U.; it must be real numbers"),
    ],
)
def test_every_method_refuses_a_distribution_that_is_none(name, m, k, said):
    with pytest.raises((ValueError, TypeError), match=f"{name}: {said}"):
        METHODS[name](VonMisesFisher(m, k))


def test_points_that_are_not_on_the_sphere():
    for x, said in [
        (2 * NORTH, "x has length 2; "),
        (NORTH * np.nan, "x holds nan"),
        (np.eye(4, dtype=np.float32), r"x has shape \(4, 4\); it must be \[..., 3\]"),
        ("north", "x is <U.; "),
        (1j * NORTH, "x is complex64; "),
    ]:
        with pytest.raises((ValueError, TypeError), match=f"log_prob: {said}"):
            P.log_prob(x)
    with pytest.raises(ValueError, match="kl_divergence: dimensions 3 and 4"):
        P.kl_divergence(VonMisesFisher(np.eye(4, dtype=np.float32)[0], 1.0))


def test_means_keys_and_counts():
    with pytest.raises(ValueError, match="from_mean: mean has length 1.2"):
        VonMisesFisher.from_mean(1.2 * NORTH)
    with pytest.raises(ValueError, match="from_mean: mean holds nan"):
        VonMisesFisher.from_mean(np.nan * NORTH)
    assert VonMisesFisher.from_mean([1] + 23 * [0]).concentration == np.inf
    with pytest.raises(TypeError, match=r"sample: key is 0; .* pass jax.random.key\(seed\)"):
        sample_vmf(0, NORTH, 1.0, 2)
    for count in (-1, 2.5, np.nan, "two", None, True):
        with pytest.raises((ValueError, TypeError), match="sample: count=.*; it must be"):
            P.sample(KEY, count)
    assert P.sample(KEY, 0).shape == (0, 3)
    assert jax.jit(lambda key: P.sample(key, 2))(KEY).shape == (2, 3)  # P is a constant there


def test_mixtures_that_are_none():
    x, two = np.eye(24, dtype=np.float32), np.log(np.float32([0.5, 0.5]))
    good = Mixture(x[:2], np.float32([3, 0]), two)
    assert np.isfinite(good.log_prob(x)).all() and good.responsibilities(x.tolist()).shape == (
        24,
        2,
    )
    for wrong, said in [
        (Mixture(2 * x[:2], good.concentrations, two), "mean_directions has lengths? "),
        (Mixture(x[:2], np.float32([3, -1]), two), "concentrations=-1 at .1."),
        (Mixture(x[:2], np.float32([3, np.nan]), two), "concentrations=nan at .1."),
        (Mixture(x[:2], good.concentrations, np.zeros(2)), "the sum of exp.log_weights. is 2; "),
        (Mixture(x, good.concentrations, two), r"mean_directions \[24, 24\], conc"),
    ]:
        for f in (wrong.joint, wrong.log_prob, wrong.responsibilities):
            with pytest.raises(ValueError, match=said):
                f(x)
    for bad in (2 * x, x[0], x[:, :2], x * np.nan):
        with pytest.raises(ValueError, match="joint: x "):
            good.joint(bad)
    for components in (0, -1, 25, 2.5, np.nan, "two"):
        with pytest.raises((ValueError, TypeError), match="fit_mixture: .*; .* must be"):
            fit_mixture(x, components, KEY)
    with pytest.raises(TypeError, match="fit_mixture: key is 7; "):
        fit_mixture(x, 2, 7)
    with pytest.raises(ValueError, match="fit_mixture: steps=-1; it must be"):
        fit_mixture(x, 2, KEY, steps=-1)
