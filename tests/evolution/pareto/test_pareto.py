"""Fronts agree with the definition for every algorithm, size, tie and infinity."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import assert_exports, check_program
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from jaxgpu.evolution import pareto
from jaxgpu.evolution.pareto import chains, fronts2, fronts3, order


def fronts_by_definition(f):
    """Peel off fronts by all n^2 comparisons, with no code in common with the package."""
    f = np.asarray(f, float)
    beats = (f[:, None] <= f[None]).all(-1) & (f[:, None] < f[None]).any(-1)  # row beats column
    front, level, left = np.full(len(f), -1), 0, beats.sum(0)  # how many beat each
    while (front < 0).any():
        now = (left == 0) & (front < 0)
        front[now], left, level = level, left - beats[now].sum(0), level + 1
    return front


RANKS = jax.jit(pareto.ranks, static_argnames="stop")

ties = st.one_of(st.integers(-1, 2).map(float), st.sampled_from([np.inf, -np.inf, -0.0]))


@pytest.mark.parametrize("m", [1, 2, 3, pytest.param(6, marks=pytest.mark.slow)])
@given(data=st.data())
@settings(deadline=None, max_examples=25)
def test_ranks_match_the_definition_on_tied_and_infinite_values(m, data):
    f = data.draw(hnp.arrays(np.float32, (13, m), elements=ties))
    want = fronts_by_definition(f)
    np.testing.assert_array_equal(RANKS(f), want)
    if m == 2:
        np.testing.assert_array_equal(jax.jit(fronts2.ranks2, static_argnums=1)(f, 13), want)
    if m == 3:
        np.testing.assert_array_equal(jax.jit(fronts3.ranks3, static_argnums=1)(f, 13), want)


def clouds(n, m, rng):
    """Make sets: random, spherical, collinear, on a coarse grid with copies, with infinities."""
    x = rng.random((n, m))
    sphere = x / np.linalg.norm(x, axis=1, keepdims=True)
    grid = rng.integers(0, 6, (n, m)).astype(float)
    infinite = np.where(rng.random((n, m)) < 0.02, rng.choice([-np.inf, np.inf], (n, m)), x)
    line = np.linspace(0, 1, n)[:, None] * np.where(np.arange(m) % 2, 1, -1)
    return {"random": x, "sphere": sphere, "grid": grid, "inf": infinite, "line": line}


@pytest.mark.parametrize(
    "m,n",
    [
        (1, 1500),
        (2, 1),
        pytest.param(2, 1500, marks=pytest.mark.slow),
        pytest.param(3, 1500, marks=pytest.mark.slow),
        (4, 65),
        (7, 600),
        pytest.param(10, 90, marks=pytest.mark.slow),
    ],
)
def test_ranks_match_the_definition_on_clouds(n, m):
    for name, f in clouds(n, m, np.random.default_rng(n + m)).items():
        f = f.astype(np.float32)
        np.testing.assert_array_equal(RANKS(f), fronts_by_definition(f), name)


def test_every_block_of_places_keeps_the_order_of_the_second_objective():
    """Check blocks of 64, blocks longer than a row, and shorter ones."""
    size, depth = 1 << 14, 8
    q = np.random.default_rng(0).permutation(size).astype(np.int32)
    short, long = jax.jit(fronts3._partitions, static_argnums=1)(q, depth)
    found = [np.asarray(row).reshape(-1, size >> k) for k, row in enumerate(long)]
    found += [np.asarray(rows) for rows in short]
    assert len(found) == depth and len(short) > 1
    for rows in found:
        length = rows.shape[1]
        want = [q[q // length == block] for block in range(len(rows))]
        np.testing.assert_array_equal(rows, want)


@pytest.mark.slow
@pytest.mark.parametrize("n", [64, 4097])
def test_the_three_algorithms_agree_where_blocks_end(n):
    chain, two, three = (
        jax.jit(chains.chain_ranks),
        jax.jit(fronts2.ranks2, static_argnums=1),
        jax.jit(fronts3.ranks3, static_argnums=1),
    )
    for name, f in clouds(n, 3, np.random.default_rng(n)).items():
        f = f.astype(np.float32)
        want = chain(f)
        np.testing.assert_array_equal(three(f, n), want, name)
        want = chain(f[:, :2])
        np.testing.assert_array_equal(two(f[:, :2], n), want, name)


@pytest.mark.parametrize("n,m", [(1, 3), (40, 5), pytest.param(2100, 5, marks=pytest.mark.slow)])
def test_the_form_for_accelerators_gives_the_ranks_of_the_form_for_cpus(n, m):
    tiles, waves = jax.jit(chains.ranks_by_tiles), jax.jit(chains.ranks_by_waves)
    for name, f in clouds(n, m, np.random.default_rng(n)).items():
        f = f[np.lexsort(f.T[::-1])]
        same = np.append(False, (f[1:] == f[:-1]).all(1))
        given = order.sort_keys(f.astype(np.float32)), np.cumsum(~same, dtype=np.int32)
        np.testing.assert_array_equal(waves(*given), tiles(*given), name)


def test_no_loop_of_the_form_for_accelerators_is_nested_in_one_over_tiles():
    keys, group = jnp.zeros((65536, 5), jnp.uint32), jnp.zeros(65536, jnp.int32)
    loops = jax.make_jaxpr(chains.ranks_by_waves)(keys, group).pretty_print().count("scan[")
    assert loops == 1


@pytest.mark.slow
def test_float64_values_one_ulp_apart_are_told_apart(x64):
    a = np.array([1.0, 1.0, 1.0])
    for n in (3, 1600):
        f = np.tile(np.stack([a, np.nextafter(a, 2), np.nextafter(a, 0)]), (n // 3 + 1, 1))
        want = np.tile([1, 2, 0], n // 3 + 1)
        np.testing.assert_array_equal(RANKS(f), want)


@pytest.mark.parametrize(
    "n,m", [*(pytest.param(*s, marks=pytest.mark.slow) for s in ((1200, 2), (1500, 3))), (300, 4)]
)
def test_ranks_up_to_stop_are_exact_and_the_rest_are_behind(n, m):
    f = np.random.default_rng(m).random((n, m)).astype(np.float32)
    exact = np.asarray(RANKS(f))
    for stop in (1, n // 3):
        got = np.asarray(RANKS(f, stop=stop))
        cut = np.sort(exact)[stop - 1]
        np.testing.assert_array_equal(got[exact <= cut], exact[exact <= cut])
        assert (got[exact > cut] > cut).all()


@pytest.mark.parametrize("n", [40, 1500])
def test_nan_never_wins_and_never_spreads(n):
    rng = np.random.default_rng(n)
    f = rng.random((n, 3)).astype(np.float32)
    broken = rng.random(n) < 0.3
    spoilt = np.where(broken[:, None] & (np.arange(3) == rng.integers(3)), np.nan, f)
    got = np.asarray(RANKS(spoilt))
    np.testing.assert_array_equal(got[~broken], fronts_by_definition(f[~broken]))
    assert got[broken].min() == got[~broken].max() + 1


@pytest.mark.parametrize("n", [2000])
def test_the_feasibility_rule(n):
    rng = np.random.default_rng(n)
    f = rng.random((n, 2)).astype(np.float32)
    violation = np.maximum(rng.integers(-3, 5, n), 0).astype(np.float32)
    got = np.asarray(RANKS(f, violation))
    ok = violation == 0
    np.testing.assert_array_equal(got[ok], fronts_by_definition(f[ok]))
    np.testing.assert_array_equal(got[~ok], got[ok].max() + violation[~ok].astype(int))
    none = np.asarray(RANKS(f, violation + 1))
    np.testing.assert_array_equal(none, violation.astype(int))


@pytest.mark.slow
@pytest.mark.parametrize("m", [2, 3, 5])
def test_memory_is_log_n_words_per_point(m):
    shape = jax.ShapeDtypeStruct((1 << 18, m), jnp.float32)
    used = jax.jit(pareto.ranks).lower(shape).compile().memory_analysis().temp_size_in_bytes
    assert used <= (1 << 18) * 320  # bytes per point; a dense bool matrix has 262,144


@pytest.mark.slow
@pytest.mark.parametrize("n,m", [(1500, 3), (70, 5)])
def test_conforms(n, m):
    f = np.random.default_rng(0).random((2, n, m)).astype(np.float32)
    violation = np.maximum(f[:, :, 0] - 0.5, 0)
    check_program(pareto.ranks, f[0], violation[0])
    assert_exports(pareto.ranks, f[0], violation[0])
    batch = jax.jit(jax.vmap(pareto.ranks))(f, violation)
    np.testing.assert_array_equal(batch[1], RANKS(f[1], violation[1]))


def test_dominates_is_strict():
    a = np.float32([[1, 2]] * 3)
    got = jax.jit(jax.vmap(pareto.dominates))(a, a + np.float32([[0, 0], [0, 1], [-1, 1]]))
    np.testing.assert_array_equal(got, [False, True, False])


def test_wrong_shapes_are_named():
    with pytest.raises(ValueError, match="ranks: f has shape"):
        pareto.ranks(jnp.zeros(3))
    with pytest.raises(ValueError, match="violation has shape"):
        pareto.ranks(jnp.zeros((3, 2)), jnp.zeros(2))
