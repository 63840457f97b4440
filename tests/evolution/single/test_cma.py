"""CMA-ES follows the tutorial's equations numerically, and is invariant under rotations."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import ortho_group

from jaxgpu.evolution import single
from jaxgpu.evolution.problem import Problem, box
from jaxgpu.evolution.single import cma
from jaxgpu.evolution.single.adaptation import normal_length, rates

# pycma 4.5.0: population, dimension, c_1, c_mu, c_c, mu_eff, first two and last two weights.
PYCMA = [
    (8, 5, 0.047292304159400896, 0.04785904960298242, 0.4501995579928079, 2.600178826113179)
    + (0.5299301844787793, 0.28571428571428575, -0.6228965671385451, -0.8111493520260593),
    (40, 10, 0.014388542820040108, 0.12424101011712729, 0.3155196710809971, 11.309482088932262)
    + (0.16712470149808076, 0.1287718140693217, -0.058851594790162415, -0.061168354566886525),
    (24, 20, 0.0043410655798363056, 0.02207089767098388, 0.1761479424234654, 7.026375557592152)
    + (0.24470488689697079, 0.17754941364211127, -0.16256090950007218, -0.1739071217985148),
]


def test_rates_are_those_of_pycma(x64):
    make_rates = lambda n, want: rates(n, want[0], want[1], jnp.float64)
    # In an array with more slots the weights do not change, and nothing is added.
    both = jax.jit(
        lambda: [(make_rates(w[0], w), make_rates(w[0] + 9, w).weights) for w in PYCMA]
    )()
    for want, (got, wide) in zip(PYCMA, both):
        w = got.weights
        got = [got.one, got.mu, got.path, got.mu_eff, *w[np.array([0, 1, -2, -1])]]
        np.testing.assert_allclose(got, want[2:], rtol=1e-12)
        np.testing.assert_allclose(wide, np.append(w, np.zeros(9)), rtol=1e-12)


UPDATE = jax.jit(cma.update, static_argnums=6)


def hansen_update(s, x, f):
    """Compute one generation by equations 8 to 47 of Hansen (2016), in loops; `s` is a dict."""
    lam, n = x.shape
    raw = np.log((lam + 1) / 2) - np.log(np.arange(1, lam + 1))
    plus, minus = raw[raw >= 0], raw[raw < 0]
    mu_eff = plus.sum() ** 2 / (plus**2).sum()
    mu_neg = minus.sum() ** 2 / (minus**2).sum()
    c_c = (4 + mu_eff / n) / (n + 4 + 2 * mu_eff / n)
    c_1 = 2 / ((n + 1.3) ** 2 + mu_eff)
    c_mu = min(1 - c_1, 2 * (0.25 + mu_eff + 1 / mu_eff - 2) / ((n + 2) ** 2 + mu_eff))
    alpha = min(1 + c_1 / c_mu, 1 + 2 * mu_neg / (mu_eff + 2), (1 - c_1 - c_mu) / (n * c_mu))
    w = [r / plus.sum() if r >= 0 else alpha * r / -minus.sum() for r in raw]
    c_s = (mu_eff + 2) / (n + mu_eff + 5)
    d_s = 1 + 2 * max(0, np.sqrt((mu_eff - 1) / (n + 1)) - 1) + c_s
    values, axes = np.linalg.eigh(s["C"])
    root = axes @ np.diag(values**-0.5) @ axes.T
    if s["factor"] == "cholesky":
        root = np.linalg.inv(np.linalg.cholesky(s["C"]))
    y = (x[np.argsort(f)] - s["m"]) / (20 * s["sigma"])
    step = sum(w[i] * y[i] for i in range(lam) if w[i] > 0)
    s["m"] = s["m"] + 20 * s["sigma"] * step
    s["ps"] = (1 - c_s) * s["ps"] + np.sqrt(c_s * (2 - c_s) * mu_eff) * root @ step
    s["g"] += 1
    length = np.linalg.norm(s["ps"])
    norm = normal_length(n)
    fair = length / np.sqrt(1 - (1 - c_s) ** (2 * s["g"])) < (1.4 + 2 / (n + 1)) * norm
    s["pc"] = (1 - c_c) * s["pc"] + fair * np.sqrt(c_c * (2 - c_c) * mu_eff) * step
    keep = 1 + (1 - fair) * c_1 * c_c * (2 - c_c) - c_1 - c_mu * sum(w)
    new = keep * s["C"] + c_1 * np.outer(s["pc"], s["pc"])
    for i in range(lam):
        scale = 1 if w[i] >= 0 else n / np.linalg.norm(root @ y[i]) ** 2
        new = new + c_mu * w[i] * scale * np.outer(y[i], y[i])
    s["C"] = new
    s["sigma"] *= np.exp(c_s / d_s * (length / norm - 1))


@pytest.mark.parametrize("length", [0.5, 9.0])
def test_a_generation_is_that_of_the_tutorial_also_where_the_path_is_long_and_waits(x64, length):
    """Candidates are given in the order of their ranks."""
    s = {"m": np.zeros(7), "sigma": 0.05, "C": np.eye(7), "pc": np.ones(7), "g": 0}
    s |= {"ps": length * np.arange(1.0, 8.0) / np.sqrt(140), "factor": "cholesky"}
    shape = cma.isotropic_shape(jnp.zeros(7), jnp.asarray(0.05))
    shape = dataclasses.replace(shape, step_path=jnp.asarray(s["ps"]), path=jnp.ones(7))
    x = np.random.default_rng(2).normal(size=(12, 7))
    learn = rates(12, 12.0, 7, jnp.float64)
    given = jnp.asarray(x), learn.weights, jnp.maximum(learn.weights, 0)
    shape = UPDATE(shape, box(-10.0, 10.0, 7), learn, *given, True)
    hansen_update(s, x, np.arange(12))
    np.testing.assert_allclose(shape.covariance, s["C"], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(shape.path, s["pc"], rtol=1e-9)
    np.testing.assert_allclose(shape.sigma, s["sigma"], rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("factor", ["eigenvectors", "cholesky"])
def test_a_run_is_that_of_the_tutorial(x64, factor):
    # The box is so wide that no candidate reaches its bounds. With 7 and 12, c_mu is not small and
    # the eigenvectors are recomputed in every generation, as in the loops.
    spec = single.CMAES(12, 0.05, 0.2, factor)
    problem = Problem(box(-10.0, 10.0, 7), lambda x: x[:1])
    state = jax.jit(lambda key: spec.init(key, problem))(jax.random.key(0))
    ask, tell = jax.jit(single.CMAES.ask), jax.jit(single.CMAES.tell)
    zero = np.zeros(7)
    s = {"m": np.array(state.shape.mean), "sigma": 0.05, "C": np.eye(7), "ps": zero, "pc": zero}
    s |= {"g": 0, "factor": factor}
    for i in range(40):
        x = np.asarray(ask(spec, state, jax.random.key(i)))
        f = (10 ** np.linspace(0, 4, 7) * (x - 0.3) ** 2).sum(1)
        hansen_update(s, x, f)
        state = tell(spec, state, x, f[:, None], np.zeros(12))
    np.testing.assert_allclose(state.shape.mean, s["m"], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(state.shape.sigma, s["sigma"], rtol=1e-9)
    scale = np.abs(s["C"]).max()
    np.testing.assert_allclose(state.shape.covariance, s["C"], rtol=0, atol=1e-9 * scale)


def test_it_does_not_see_rotations(x64):
    turn = ortho_group.rvs(4, random_state=1)
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4))
    wide = box(-1e6, 1e6, 4)
    shape = cma.isotropic_shape(jnp.asarray(rng.normal(size=4)), 1e-6)
    path, step_path = jnp.asarray(rng.normal(size=(2, 4)))
    covariance, axes, lengths = cma._factorize_eigen(jnp.asarray(root @ root.T))
    shape = dataclasses.replace(
        shape, path=path, step_path=step_path, covariance=covariance, axes=axes, lengths=lengths
    )
    turned = cma._factorize_eigen(turn @ covariance @ turn.T)
    other = dataclasses.replace(
        shape,
        mean=turn @ shape.mean,
        path=turn @ path,
        step_path=turn @ step_path,
        covariance=turned[0],
        axes=turned[1],
        lengths=turned[2],
    )
    learn = rates(9, 9, 4, jnp.float64)
    x = jnp.asarray(rng.normal(size=(9, 4)))
    update = jax.jit(cma.update)
    one = update(shape, wide, learn, x, learn.weights, jnp.maximum(learn.weights, 0))
    two = update(other, wide, learn, x @ turn.T, learn.weights, jnp.maximum(learn.weights, 0))
    np.testing.assert_allclose(two.mean, turn @ one.mean, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(two.sigma, one.sigma, rtol=1e-10)
    np.testing.assert_allclose(two.covariance, turn @ one.covariance @ turn.T, rtol=1e-9)


def test_bad_populations_are_named():
    with pytest.raises(ValueError, match="CMAES: pop_size=3; it must be at least 4"):
        single.CMAES(3)
    with pytest.raises(ValueError, match="factor='qr'; it must be 'eigenvectors' or 'cholesky'"):
        single.CMAES(8, factor="qr")
    with pytest.raises(ValueError, match="Restarts: batch_size=8, doublings=-1"):
        single.Restarts(8, -1)
    two = Problem(box(0.0, 1.0, 3), lambda x: x[:2], 2)
    with pytest.raises(ValueError, match="has 2 objectives; it must have 1"):
        single.CMAES(8).init(jax.random.key(0), two)
