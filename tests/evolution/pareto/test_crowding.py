"""Crowding distance against the paper's procedure, front by front."""

import jax
import numpy as np
import pytest

from jaxgpu.evolution import pareto
from jaxgpu.evolution.pareto import crowding_distance

RANKS, CROWDING = jax.jit(pareto.ranks), jax.jit(crowding_distance)


def crowding_by_definition(f):
    """Compute the distances of one front by section III-B of the paper."""
    d = np.zeros(len(f))
    for k in range(f.shape[1]):
        order = np.argsort(f[:, k], kind="stable")
        span = f[order[-1], k] - f[order[0], k]
        d[order[[0, -1]]] = np.inf
        for i in range(1, len(f) - 1):
            if span > 0:
                d[order[i]] += (f[order[i + 1], k] - f[order[i - 1], k]) / span
    return d


@pytest.mark.parametrize("m", [2, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("seed", range(3))
def test_matches_the_procedure_in_every_front(m, seed):
    f = np.random.default_rng(seed).random((200, m)).astype(np.float32)
    rank = np.asarray(RANKS(f))
    got = np.asarray(CROWDING(f, rank))
    for front in range(rank.max() + 1):
        # Each subtraction, the division and each of the m sums is rounded once.
        want = crowding_by_definition(f[rank == front].astype(float))
        np.testing.assert_allclose(got[rank == front], want, rtol=1e-6 * m, atol=1e-6 * m)


def test_copies_and_a_flat_objective_gain_nothing():
    f = np.float32([[0, 1], [0.5, 1], [0.5, 1], [0.5, 1], [1, 1]])
    got = np.asarray(CROWDING(f, np.zeros(5, np.int32)))
    assert got[2] == 0 and np.isfinite(got).sum() == 3


def test_infinite_objectives_leave_the_rest_finite():
    f = np.float32([[0, 1], [np.inf, np.inf], [0.5, 0.5], [1, 0], [np.inf, np.inf]])
    got = np.asarray(CROWDING(f, np.array([0, 1, 0, 0, 1], np.int32)))
    assert not np.isnan(got).any()
    assert got[2] == 2
