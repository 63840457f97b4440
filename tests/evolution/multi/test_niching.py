"""One pass of sorts selects with the same distribution as the sequential procedure of the paper."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import assert_exports, check_program
from scipy import stats

from jaxgpu.evolution.multi.niching import fill_niches

NICHE = np.array([0, 0, 0, 1, 1, 2, 2, 2, 3, 4])
DISTANCE = np.array([0.3, 0.1, 0.2, 0.5, 0.4, 0.1, 0.3, 0.2, 0.9, 0.1])
CANDIDATE = np.array([1, 1, 1, 1, 1, 1, 1, 1, 1, 0], bool)
TAKEN = np.array([0, 1, 1, 0, 0])
MANY = jax.jit(jax.vmap(fill_niches, (0, None, None, None, None, None)))
ONE = jax.jit(fill_niches)


def sequential(rng, count):
    """Select members exactly by algorithm 4 of Deb & Jain (2014)."""
    taken, left, picked = TAKEN.copy(), CANDIDATE.copy(), set()
    while len(picked) < count:
        open_ = [j for j in range(5) if (left & (NICHE == j)).any()]
        fewest = min(taken[j] for j in open_)
        j = rng.choice([j for j in open_ if taken[j] == fewest])
        members = np.flatnonzero(left & (NICHE == j))
        i = members[DISTANCE[members].argmin()] if taken[j] == 0 else rng.choice(members)
        picked.add(int(i))
        left[i], taken[j] = False, taken[j] + 1
    return frozenset(picked)


def arguments():
    return (
        jnp.asarray(NICHE, jnp.int32),
        jnp.asarray(DISTANCE, jnp.float32),
        jnp.asarray(TAKEN, jnp.int32),
        jnp.asarray(CANDIDATE),
    )


@pytest.mark.parametrize("count", [1, 3, 5, 7])
def test_same_distribution_as_the_sequential_procedure(count):
    trials = 2000
    keys = jax.random.split(jax.random.key(count), trials)
    masks = MANY(keys, *arguments(), jnp.int32(count))
    ours = [frozenset(np.flatnonzero(mask).tolist()) for mask in np.asarray(masks)]
    rng = np.random.default_rng(count)
    paper = [sequential(rng, count) for _ in range(trials)]
    assert set(map(len, ours)) == {count}
    outcomes = sorted(set(ours) | set(paper), key=sorted)
    table = np.array([[list(s).count(o) for o in outcomes] for s in (ours, paper)])
    common = table.sum(0) >= 20
    table = np.concatenate([table[:, common], table[:, ~common].sum(1, keepdims=True)], axis=1)
    table = table[:, table.sum(0) > 0]
    if table.shape[1] > 1:
        assert stats.chi2_contingency(table).pvalue > 1e-4  # four tests; fails once in 2500


def test_only_candidates_and_exactly_as_many_as_asked():
    for count in range(10):
        mask = np.asarray(ONE(jax.random.key(0), *arguments(), jnp.int32(count)))
        assert mask.sum() == count and not mask[~CANDIDATE].any()


def test_further_members_are_those_with_the_most_room():
    room = jnp.array([1.0, 5, 2, 9, 1.5, 3, 7, 4, 1, 8])
    mask = np.asarray(ONE(jax.random.key(0), *arguments(), jnp.int32(7), room))
    # Select the nearest members of the empty directions 0 and 3, then the roomiest of 0, 1 and 2.
    # Of 0, 4 and 7, which would be third in a direction, select the two roomiest.
    np.testing.assert_array_equal(np.flatnonzero(mask), [1, 2, 3, 4, 6, 7, 8])


def test_conforms():
    check_program(fill_niches, jax.random.key(0), *arguments(), jnp.int32(4))
    assert_exports(fill_niches, jax.random.key(0), *arguments(), jnp.int32(4))
