"""`minimize` finds known optima of mixed spaces and known fronts."""

import functools
import time

import jax.numpy as jnp
import numpy as np
import pytest
from conformance import no_compile

from jaxgpu.evolution import (
    Boolean,
    Categorical,
    Integer,
    Permutation,
    Real,
    minimize,
    multi,
    single,
    solve,
)
from jaxgpu.evolution.multi import das_dennis
from jaxgpu.evolution.problems import dtlz
from jaxgpu.evolution.solve import Solution
from jaxgpu.runs.loop import Timing

MIXED = {"x": Real(-4.0, 4.0, (2,)), "n": Integer(0, 20), "k": Categorical(4), "b": Boolean()}


def mixed_loss(p):
    bowl = jnp.sum((p["x"] - jnp.array([1.0, -2.0])) ** 2)
    whole = (p["n"] - 13).astype(jnp.float32) ** 2
    return bowl + whole + jnp.where(p["k"] == 2, 0.0, 1.0) + jnp.where(p["b"], 0.0, 3.0)


def schaffer(x):
    """Return Schaffer's objectives and the violation of x >= 1/2."""
    return jnp.stack([x**2, (x - 2) ** 2]), 0.5 - x


@pytest.mark.slow
def test_a_mixed_space_from_five_seeds():
    for seed in range(5):
        found = minimize(mixed_loss, MIXED, 12000, seed=seed)
        assert found.f < 1e-4, (seed, found.f)
        assert found.x["n"] == 13 and found.x["k"] == 2 and found.x["b"]
        np.testing.assert_allclose(found.x["x"], [1, -2], atol=1e-2)


@pytest.mark.slow
def test_an_order_is_found_by_differential_evolution():
    want = jnp.array([3, 1, 4, 0, 2, 5])
    spec = single.LSHADE(8000, pop_size=60)

    def f(order):
        return jnp.sum(jnp.abs(order - want)).astype(jnp.float32)

    found = minimize(f, Permutation(6), 10000, algorithm=spec)
    np.testing.assert_array_equal(found.x, want)


@functools.cache
def front():
    return minimize(schaffer, Real(-10.0, 10.0), 6000)


@pytest.mark.slow
def test_two_objectives_give_a_feasible_front():
    # The front is f2 = (2 - sqrt f1)^2, 1/4 <= f1 <= 4.
    found = front()
    assert len(found.f) >= 40 and (found.violation == 0).all()
    assert found.f[:, 0].min() >= 0.25 and found.f[:, 0].min() < 0.27
    np.testing.assert_allclose(found.f[:, 1], (2 - np.sqrt(found.f[:, 0])) ** 2, atol=1e-3)
    assert found.x.shape == (len(found.f),)


def bowl(p):
    return jnp.sum((p["x"] - 1.0) ** 2) + jnp.where(p["k"] == 2, 0.0, 1.0)


def bowl_in(low, seed, **options):
    space = {"x": Real(low, 4.0, (2,)), "k": Categorical(3)}
    return minimize(bowl, space, 400, seed=seed, algorithm=single.SNES(10), **options)


@pytest.mark.slow
def test_a_second_call_compiles_nothing_and_costs_next_to_nothing():
    """Bounds and seed are operands, so that the program is the same for any of them."""
    bowl_in(-4.0, 0)
    with no_compile():
        began = time.process_time()
        found = bowl_in(-3.0, 1)
        spent = time.process_time() - began
    assert spent < 0.1 + found.timing.run, spent  # s; 2 s where each call compiled
    assert found.f < 0.01 and found.timing.compile == 0


@pytest.mark.slow
def test_the_history_begins_before_the_first_generation_and_a_search_may_end_by_itself():
    found = bowl_in(-4.0, 2)
    f = found.history["f"]
    assert f.shape == (41,) and np.isinf(f[0]) and (np.diff(f) <= 0).all() and f[-1] == found.f
    measured = {"f": lambda s: s.best.f, "sigma": lambda s: s.sigma}
    measure = lambda state: {name: of(state) for name, of in measured.items()}
    near = bowl_in(-4.0, 2, until=lambda state: state.best.f < 0.5, measure=measure)
    count, rows = near.timing.steps, near.history
    assert 0 < count < 40 and rows["f"][-1] < 0.5 <= rows["f"][-2]
    np.testing.assert_array_equal(rows["f"], f[: count + 1])
    assert rows["sigma"].shape == (count + 1, 5) and (rows["sigma"][0] == 0.2).all()


@pytest.mark.slow
def test_a_solution_is_shown_in_a_few_lines():
    for found in (bowl_in(-4.0, 0), front()):
        assert 3 <= len(repr(found).splitlines()) <= 15 and "feasible" in repr(found)
    many = {f"x{i}": Real(0.0, 1.0, (30,)) for i in range(40)}
    found = minimize(lambda p: p["x0"][0] ** 2, many, 60, algorithm=single.PSO(6))
    assert len(repr(found).splitlines()) <= 15


def test_of_many_variables_nine_are_shown():
    timing = Timing(compile=1.0, run=2.0, steps=3)
    x = {name: np.zeros(3) for name in "abcdefghijkl"}
    half, none = np.float32(0.5), np.float32(0)
    found = Solution(None, {}, timing, failed=0, objective=None, x=x, f=half, violation=none)
    lines = found.summary()
    assert lines[9].startswith("  x['i']") and lines[10] == "  and 3 more", lines


def test_too_few_evaluations_are_named():
    with pytest.raises(ValueError, match="evaluations=9; one generation takes 8"):
        minimize(lambda x: jnp.sum(x * x), Real(-1.0, 1.0, (5,)), 9)


def test_the_shape_of_the_bounds_is_the_shape_of_the_variable():
    target = jnp.array([0.2, 0.8])
    found = minimize(
        lambda x: jnp.sum((x - target) ** 2),
        Real(jnp.zeros(2), jnp.ones(2)),
        600,
        algorithm=single.PSO(6),
    )
    np.testing.assert_allclose(found.x, target, atol=1e-2)


def test_bounds_the_wrong_way_round_are_refused():
    with pytest.raises(ValueError, match="lower=1, upper=0; lower must not be above upper"):
        minimize(lambda x: (x - 0.3) ** 2, Real(1.0, 0.0), 300)


@pytest.mark.parametrize(
    "function, said",
    [
        (lambda x: np.sin(np.asarray(x)), "TracerArrayConversionError.; write it with jax.numpy"),
        (lambda x: x if x > 0 else -x, "TracerBoolConversionError.; write it with jax.numpy"),
        (lambda x: float(x), "ConcretizationTypeError.; write it with jax.numpy"),
        (lambda x: x.astype(jnp.complex64), "f is of type complex64; it must be real"),
        (lambda x: {"f": x}, "f is a value of type dict; it must be a number"),
        (lambda x: None, "f is None; it must be a number"),
        (lambda x: (x, x, x), "it returns a tuple of 3; it must be f or .f, violation."),
        (lambda x: (x, jnp.stack([x, x])), r"violation has shape \[2\]; it must be one number"),
        (3.0, "problem: function=3.0; it must be a function"),
    ],
)
def test_a_function_that_cannot_be_minimised_gets_one_sentence(function, said):
    with pytest.raises((TypeError, ValueError), match=said):
        minimize(function, Real(0.0, 1.0), 300)


@pytest.mark.slow
def test_nan_is_counted_and_all_nan_is_an_error():
    quick = {1: single.PSO(6), 2: multi.MOEAD(das_dennis(2, 5), 2)}
    for m, spec in quick.items():
        with pytest.raises(ValueError, match="none of 60 evaluations .* 60 gave nan; "):
            f = lambda x, m=m: jnp.full(m, jnp.nan) * x
            minimize(f, Real(0.0, 1.0), 60, algorithm=spec)
    found = minimize(
        lambda x: jnp.where(x < 0.5, jnp.nan, x), Real(0.0, 1.0), 300, algorithm=quick[1]
    )
    assert 0 < found.failed < 300 and 0.5 <= found.x < 0.6 and found.feasible


def test_what_is_infeasible_everywhere_says_so():
    with pytest.warns(RuntimeWarning, match="none of 60 evaluations is feasible; .*violation=1"):
        found = minimize(lambda x: (x, 1 + x), Real(0.0, 1.0), 60, algorithm=single.PSO(6))
    assert not found.feasible and found.violation == 1


@pytest.mark.slow
def test_a_front_of_whole_numbers_holds_different_points():
    def f(n):  # all 343 points are Pareto-optimal
        place = (49 * n[0] + 7 * n[1] + n[2]).astype(jnp.float32)
        return jnp.stack([place, -place])

    found = minimize(f, Integer(0, 6, (3,)), 2500)
    assert len(np.unique(found.x, axis=0)) == len(found.f) == 100


def test_many_objectives_are_sought_along_directions_that_are_not_all_edge():
    spec = solve._default_algorithm(dtlz.dtlz2(5))
    # On an edge some weight is 0; formerly all 72 directions were on edges.
    inside = (np.asarray(spec.ref_dirs.w) > 0).all(1)
    assert isinstance(spec, multi.NSGA3) and inside.mean() > 0.3, inside.mean()


def test_directions_say_how_many_members_there_are():
    assert multi.NSGA3(das_dennis(3, 50)).batch_size == 1328
    assert multi.NSGA3(das_dennis(3, 12)).batch_size == 92
