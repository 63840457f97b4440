"""Operators have the distributions of their papers and keep the bounds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import assert_exports, check_program
from scipy import stats

from jaxgpu.evolution.multi.variation import SBX, PolynomialMutation, children
from jaxgpu.evolution.problem import Box


@jax.jit
def cross(key, a, b, box, crossover):
    return crossover(key, a, b, box)


@jax.jit
def mutate(key, x, box, mutation):
    return mutation(key, x, box)


WIDE = Box(np.full(2, -1e6, np.float32), np.full(2, 1e6, np.float32))
UNIT = Box(np.zeros(3, np.float32), np.ones(3, np.float32))
N = 20_000


def test_spread_of_unbounded_crossover_has_the_polynomial_density():
    # Far from the bounds, P(spread <= b) = b^(eta+1) / 2 below 1 and 1 - b^-(eta+1) / 2 above.
    eta = 3.0
    a, b = jnp.zeros((N, 2)), jnp.ones((N, 2))
    c, d = cross(jax.random.key(0), a, b, WIDE, SBX(eta, 1.0))
    np.testing.assert_allclose(c + d, 1, atol=1e-5)
    spread = np.abs(np.asarray(d - c)).ravel()
    crossed = spread[spread != 1]
    assert abs(len(crossed) / (2 * N) - 0.5) < 5 * np.sqrt(0.25 / (2 * N))

    def law(s):
        return np.where(s <= 1, s ** (eta + 1) / 2, 1 - np.maximum(s, 1) ** -(eta + 1) / 2)

    assert stats.kstest(crossed, law).pvalue > 1e-4


@pytest.mark.slow
def test_crossover_that_is_cut_puts_on_the_bounds_what_would_lie_beyond():
    # Parents are 0.8 apart, 0.1 from the bounds: spreads above 1.25 of half the variables go
    # outside.
    eta, a, b = 3.0, jnp.full((N, 2), 0.1), jnp.full((N, 2), 0.9)
    unit = Box(jnp.zeros(2), jnp.ones(2))
    beyond = 0.5 * 1.25 ** -(eta + 1)
    c, d = (
        np.asarray(x) for x in cross(jax.random.key(4), a, b, unit, SBX(eta, 1.0, bounded=False))
    )
    out = np.minimum(c, d) == 0
    np.testing.assert_array_equal(np.maximum(c, d) == 1, out)
    assert abs(out.mean() - 0.5 * beyond) < 5 * np.sqrt(0.5 * beyond / (2 * N))
    # The bounded form has the distribution of the unbounded children that are inside.
    c, d = (np.asarray(x) for x in cross(jax.random.key(4), a, b, unit, SBX(eta, 1.0)))
    spread = np.abs(d - c).ravel() / 0.8
    crossed = spread[np.abs(spread - 1) > 1e-6]

    def law(s):
        whole = np.where(s <= 1, s ** (eta + 1) / 2, 1 - np.maximum(s, 1) ** -(eta + 1) / 2)
        return whole / (1 - beyond)

    assert spread.max() < 1.25 and stats.kstest(crossed, law).pvalue > 1e-4


def test_children_of_a_crossed_pair_are_exchanged_half_the_time():
    a, b = jnp.zeros((N, 2)), jnp.ones((N, 2))
    c, d = cross(jax.random.key(1), a, b, WIDE, SBX(15.0, 1.0))
    crossed = np.asarray(jnp.abs(d - c) != 1)
    swapped = np.asarray(c > d)[crossed]
    assert abs(swapped.mean() - 0.5) < 5 * np.sqrt(0.25 / len(swapped))


def test_pairs_are_left_alone_with_the_given_probability():
    a, b = jnp.zeros((N, 2)), jnp.ones((N, 2))
    c, _ = cross(jax.random.key(2), a, b, WIDE, SBX(15.0, 0.4))
    alone = np.asarray((c == a).all(1)).mean()
    want = 0.6 + 0.4 * 0.25
    assert abs(alone - want) < 5 * np.sqrt(want * (1 - want) / N)


@pytest.mark.parametrize("at", [0.0, 0.02, 0.5, 1.0])
def test_mutation_follows_its_formula(at):
    # In Deb's bounded form, the sample u moves x by (v + (1 - v) room^(eta+1))^(1/(eta+1)) - 1.
    box, eta, p = Box(jnp.zeros(1), jnp.full(1, 2.0)), 5.0, 0.3
    x = jnp.full((N, 1), 2 * at)
    y = np.asarray(mutate(jax.random.key(3), x, box, PolynomialMutation(eta, p))).ravel()
    moved = y != 2 * at
    floor = 0.5 if at in (0.0, 1.0) else 1.0  # half the moves at a bound lead outside
    want = p * floor
    assert abs(moved.mean() - want) < 5 * np.sqrt(want * (1 - want) / N)
    u = np.random.default_rng(0).random(N)
    low = (2 * u + (1 - 2 * u) * (1 - at) ** (eta + 1)) ** (1 / (eta + 1)) - 1
    high = 1 - np.clip(2 - 2 * u + (2 * u - 1) * at ** (eta + 1), 0, None) ** (1 / (eta + 1))
    by_formula = np.clip(2 * at + 2 * np.where(u < 0.5, low, high), 0, 2)
    by_formula = by_formula[np.abs(by_formula - 2 * at) > 1e-6]
    assert stats.ks_2samp(y[np.abs(y - 2 * at) > 1e-6], by_formula).pvalue > 1e-4


@pytest.mark.slow
def test_children_stay_in_the_box_and_are_finite():
    rng = np.random.default_rng(0)
    box = Box(jnp.array([-1.0, 0.0, 5.0]), jnp.array([1.0, 1e-3, 5.0]))
    vary = jax.jit(children)
    for seed in range(5):
        corner = rng.integers(0, 2, (200, 3))
        x = jnp.where(corner == 1, box.upper[None], box.lower[None])
        y = vary(
            jax.random.key(seed), SBX(1.0, 1.0), PolynomialMutation(1.0, 1.0), x[:100], x[100:], box
        )
        assert ((y >= box.lower[None]) & (y <= box.upper[None])).all()


def test_conforms():
    a, b = np.random.default_rng(0).random((2, 8, 3)).astype(np.float32)
    cross_pair = lambda *pair: children(jax.random.key(0), SBX(), PolynomialMutation(), *pair, UNIT)
    check_program(cross_pair, a, b)
    assert_exports(cross_pair, a, b)


def test_each_child_has_the_room_to_its_own_bound():
    """No child is clipped if the parents are near one bound and far from the other."""
    for low, high in ((0.0, 10.0), (-9.0, 1.0)):  # parents at 0.4 and 0.6: near 0, near 1
        box = Box(jnp.full(2, low), jnp.full(2, high))
        pairs = jnp.full((N, 2), 0.4), jnp.full((N, 2), 0.6)
        made = np.stack(cross(jax.random.key(5), *pairs, box, SBX(1.0, 1.0)))
        assert low < made.min() and made.max() < high
        assert min(made.min() - low, high - made.max()) < 0.02, "the near bound is approached"
        assert made.max() - made.min() > 3, "the far side is not held by the near bound"
