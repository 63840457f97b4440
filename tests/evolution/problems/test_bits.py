"""Knapsacks and landscapes against their definitions, item by item and bit by bit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import check_program
from field_shapes import check_shapes

from jaxgpu.evolution import protocol
from jaxgpu.evolution.multi import NSGA2
from jaxgpu.evolution.problems.bits import KnapsackData, knapsack, knapsack_data, landscape, mnk


def repair_greedily(instance, packed):
    """Repair as Zitzler & Thiele (1999): remove the least worthy item until every sack closes."""
    profit, weight, capacity = (np.asarray(part) for part in vars(instance).values())
    packed = set(np.flatnonzero(packed))
    while any((row[list(packed)]).sum() > top for row, top in zip(weight, capacity)):
        worth = {j: max(profit[:, j] / weight[:, j]) for j in packed}
        least = min(worth.values())
        packed.remove(max(j for j in packed if worth[j] == least))
    return [-row[list(packed)].sum() for row in profit]


def test_repair_leaves_out_what_the_greedy_procedure_does():
    instance = knapsack_data(40, 3, seed=3)
    assert float(instance.weight.min()) >= 10 and float(instance.profit.max()) <= 100
    x = np.random.default_rng(0).random((30, 40)) < np.linspace(0.3, 1, 30)[:, None]
    f, violation = jax.jit(knapsack(instance).evaluate)(np.float32(x))
    np.testing.assert_array_equal(f, [repair_greedily(instance, row) for row in x])
    assert (violation == 0).all()


def test_without_repair_the_overweight_is_the_violation():
    instance = KnapsackData(
        jnp.array([[5.0, 7.0, 9.0]]), jnp.array([[1.0, 2.0, 4.0]]), jnp.array([4.0])
    )
    f, violation = knapsack(instance, repair=False).evaluate(jnp.array([[0.5, 1, 0.4], [1, 1, 1]]))
    np.testing.assert_array_equal(f, [[-12], [-21]])
    np.testing.assert_array_equal(violation, [0, 3 / 4])
    # Two items that fill the sack completely fit.
    brim = KnapsackData(jnp.array([[5.0, 6.0]]), jnp.array([[1.0, 3.0]]), jnp.array([4.0]))
    np.testing.assert_array_equal(knapsack(brim).function(jnp.ones(2)), [-11])


@pytest.mark.slow
def test_a_knapsack_of_one_sack_is_solved():
    # Dynamic programming over integer weights is exact.
    instance = knapsack_data(24, 1, seed=1)
    profit, weight = (np.asarray(p[0], int) for p in (instance.profit, instance.weight))
    top = int(instance.capacity[0])
    value = np.zeros(top + 1, int)
    for p, w in zip(profit, weight):
        value[w:] = np.maximum(value[w:], value[: top + 1 - w] + p)
    run = lambda key: protocol.evolve(NSGA2(pop_size=40), knapsack(instance), key, 60)
    members = jax.jit(jax.vmap(run))(jax.random.split(jax.random.key(0), 5)).population
    best = -np.asarray(members.f).min(axis=(1, 2))
    assert best.max() == value.max() and best.min() >= 0.98 * value.max(), (best, value.max())


def test_a_landscape_is_the_mean_of_its_tables(x64):
    instance = landscape(12, 3, 2, seed=5)
    check_shapes(instance)
    partners, table = np.asarray(instance.partners), np.asarray(instance.table)
    x = np.random.default_rng(0).random((8, 12))
    f, _ = mnk(instance).evaluate(jnp.asarray(x))
    for row, got in zip(x >= 0.5, np.asarray(f)):
        for i in range(2):
            total = 0.0
            for j in range(12):
                own, others = row[j], row[partners[i, j]]
                word = "".join(str(int(b)) for b in [own, *others[::-1]])
                total += table[i, j, int(word, 2)]
                assert j not in partners[i, j] and len(set(partners[i, j])) == 3
            assert abs(got[i] + total / 12) < 1e-15


@pytest.mark.slow
def test_conforms():
    x = jnp.float32(np.random.default_rng(0).random(20))
    for problem in (knapsack(knapsack_data(20, 2)), mnk(landscape(20, 4, 2))):
        assert problem.function(x).dtype == jnp.float32
        check_program(problem.function, x)


def test_sizes_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match="bits=5, interactions=5"):
        landscape(5, 5)
    with pytest.raises(ValueError, match="items=0"):
        knapsack_data(0, 2)
