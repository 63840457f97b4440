"""Distances between sets, against moocore 0.3.2 and hand-made sets."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import gradients_are_finite

from jaxgpu.evolution import indicators

# Values of moocore 0.3.2 on the sets of `sets` (float64); gd is its igd with the sets exchanged.
MOOCORE = {
    2: {
        "igd": 0.02150413118715193,
        "igd_plus": 0.01738351190353694,
        "gd": 0.1484844343528537,
        "epsilon": 0.03648157606277806,
        "epsilon_ratio": 1.672990058524899,
    },
    4: {
        "igd": 0.1897555835762961,
        "igd_plus": 0.13345133661841813,
        "gd": 0.23661804606823003,
        "epsilon": 0.22465627513905748,
        "epsilon_ratio": 18.810789213115815,
    },
}


def sets(m):
    x = np.abs(np.random.default_rng(m).normal(size=({2: 400, 4: 80}[m], m)))
    f = x / np.linalg.norm(x, axis=1, keepdims=True)
    f *= 1 + 0.3 * np.random.default_rng(m + 50).random((len(f), 1))
    x = np.abs(np.random.default_rng(m + 100).normal(size=(60, m)))
    return f, x / np.linalg.norm(x, axis=1, keepdims=True)


@pytest.mark.parametrize("m", [2, 4])
@pytest.mark.parametrize("name", ["igd", "igd_plus", "gd", "epsilon", "epsilon_ratio"])
def test_matches_moocore(x64, name, m):
    indicator = jax.jit(getattr(indicators, name))
    f, front = sets(m)
    np.testing.assert_allclose(indicator(f, front), MOOCORE[m][name], rtol=1e-12)
    single = indicator(f.astype(np.float32), front.astype(np.float32))
    np.testing.assert_allclose(single, MOOCORE[m][name], rtol=1e-5)


def test_gd_plus_by_definition(x64):
    f, front = sets(4)
    want = np.linalg.norm(np.maximum(f[:, None] - front[None], 0), axis=2).min(1).mean()
    np.testing.assert_allclose(jax.jit(indicators.gd_plus)(f, front), want)


def test_a_dominating_set_is_at_no_plus_distance():
    front = np.float32([[0, 1], [1, 0]])
    names = "igd_plus", "gd_plus", "epsilon", "igd"
    of_all = jax.jit(lambda f: [getattr(indicators, name)(f, front) for name in names])
    *plus, plain = of_all(front - np.float32(0.5))
    assert plus == [0, 0, -0.5] and plain > 0.7


def test_spacing_by_definition(x64):
    f, _ = sets(4)
    d = np.abs(f[:, None] - f[None]).sum(2) + 9 * np.eye(len(f))
    spacing = jax.jit(indicators.spacing)
    np.testing.assert_allclose(spacing(f), d.min(1).std(ddof=1))
    assert spacing(np.eye(2)) == 0
    with pytest.raises(ValueError, match="spacing: f has one point; it must have two or more"):
        indicators.spacing(jnp.ones((1, 2)))


def test_nan_points_are_infinitely_far():
    front, f = np.float32([[0, 1], [1, 0]]), np.float32([[0, 1], [np.nan, 0]])
    names = "igd", "igd_plus", "epsilon"
    all_distances = lambda f: [getattr(indicators, name)(f, front) for name in names]
    with_nan, without = jax.jit(lambda f: (all_distances(f), all_distances(f[:1])))(f)
    assert with_nan == without
    np.testing.assert_allclose(
        all_distances(f), without, rtol=1e-6
    )  # where values are looked at, too


def test_gradient_is_finite_where_points_meet():
    front, names = np.float32([[0, 1], [1, 0]]), ("igd", "igd_plus", "gd_plus")
    slopes = jax.jit(lambda f: [jax.grad(getattr(indicators, n))(f, front) for n in names])(front)
    assert np.isfinite(slopes).all()


def test_gradients_are_finite():
    f, front = (np.float32(s[:30]) for s in sets(4))
    gradients_are_finite(lambda f: (indicators.igd(f, front), indicators.spacing(f)), (f,), (0,))


def test_sets_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match="sets of shapes"):
        indicators.igd(jnp.zeros((3, 2)), jnp.zeros((3, 3)))
