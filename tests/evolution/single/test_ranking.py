"""Weights by rank: equal candidates share their weight, failures are last."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu.evolution.problem import Problem, box
from jaxgpu.evolution.single.ranking import init_best, sample_center, update_best, utilities


def share_weights(f, violation, weights):
    """Compute by definition: the mean weight of the ranks that equal candidates occupy."""
    keys = list(zip(violation, f))
    ranked = sorted(keys)
    return [np.mean([w for w, k in zip(weights, ranked) if k == key]) for key in keys]


def test_equal_candidates_share_their_weights(x64):
    of_ranks, rng = jax.jit(utilities), np.random.default_rng(0)
    for _ in range(20):
        f, violation = rng.integers(0, 3, 12).astype(float), rng.integers(0, 2, 12).astype(float)
        f[rng.random(12) < 0.2] = np.inf
        weights = rng.normal(size=12)
        got = of_ranks(f[:, None], violation, weights)
        np.testing.assert_allclose(
            got, share_weights(f, violation, weights), rtol=1e-12, atol=1e-14
        )


def test_a_failed_candidate_is_never_the_best():
    best = init_best(Problem(box(0.0, 1.0, 2), lambda x: x[:1]))
    x = jax.random.uniform(jax.random.key(0), (3, 2))
    f = jnp.array([[jnp.inf], [4.0], [2.0]])
    best = update_best(best, x, f, jnp.array([jnp.inf, 0.0, 0.5]))
    assert best.f == 4 and (best.x == x[1]).all() and best.violation == 0
    assert update_best(best, x, f + 1, jnp.array([jnp.inf, 0.0, 0.5])).f == 4


def test_points_about_the_middle_fill_the_shrunken_box():
    x = sample_center(jax.random.key(0), box(-2.0, 6.0, 500), 0.5)
    assert 0 <= x.min() < 0.2 and 3.8 < x.max() <= 4
