"""Distances between sets, against moocore 0.3.2 and hand-made sets."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import check

from jaxgpu.evolution import indicators

# moocore 0.3.2 on the sets of `sets` (float64); gd is its igd with the sets exchanged
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
    np.testing.assert_allclose(indicators.gd_plus(jnp.asarray(f), jnp.asarray(front)), want)


def test_a_dominating_set_is_at_no_plus_distance():
    front = jnp.array([[0.0, 1.0], [1.0, 0.0]])
    assert indicators.igd_plus(front - 0.5, front) == 0
    assert indicators.gd_plus(front - 0.5, front) == 0
    assert indicators.epsilon(front - 0.5, front) == -0.5
    assert indicators.igd(front - 0.5, front) > 0.7


def test_spacing_by_definition(x64):
    f, _ = sets(4)
    d = np.abs(f[:, None] - f[None]).sum(2) + 9 * np.eye(len(f))
    np.testing.assert_allclose(indicators.spacing(jnp.asarray(f)), d.min(1).std(ddof=1))
    assert indicators.spacing(jnp.array([[0.0, 1.0], [1.0, 0.0]])) == 0
    with pytest.raises(ValueError, match="spacing: one point; it must be two or more"):
        indicators.spacing(jnp.ones((1, 2)))


def test_nan_points_are_infinitely_far():
    front = jnp.array([[0.0, 1.0], [1.0, 0.0]])
    f = jnp.array([[0.0, 1.0], [jnp.nan, 0.0]])
    for name in ("igd", "igd_plus", "epsilon"):
        indicator = getattr(indicators, name)
        assert indicator(f, front) == indicator(f[:1], front)


@pytest.mark.parametrize("name", ["igd", "igd_plus", "gd_plus"])
def test_gradient_is_finite_where_points_meet(name):
    front = jnp.array([[0.0, 1.0], [1.0, 0.0]])
    slope = jax.grad(getattr(indicators, name))(front, front)
    assert np.isfinite(slope).all()


@pytest.mark.slow
def test_conforms():
    f, front = (jnp.float32(s[:30]) for s in sets(4))
    check(indicators.igd, f, front, differentiable=(0,))
    check(indicators.spacing, f, differentiable=(0,))


def test_sets_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match="sets of shapes"):
        indicators.igd(jnp.zeros((3, 2)), jnp.zeros((3, 3)))
