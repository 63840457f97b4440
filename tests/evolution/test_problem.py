"""Evaluating a problem: shapes, constraints and failures."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.evolution.problem import Box, Problem, box, check_box, check_problem, outcome


def test_objectives_and_violations_have_their_shapes():
    function = lambda x: (jnp.stack([x[0], x[1], x[0] * x[1]]), x[0] - 0.5)
    problem = Problem(box(0.0, 1.0, 2), function, 3)
    x = jnp.array([[0.2, 0.5], [0.75, 0.5]])
    f, violation = jax.jit(lambda x: problem.evaluate(x))(x)
    np.testing.assert_allclose(f, [[0.2, 0.5, 0.1], [0.75, 0.5, 0.375]], rtol=1e-6)
    np.testing.assert_allclose(violation, [0, 0.25])


@pytest.mark.parametrize("where", ["objective", "violation"])
def test_a_failed_evaluation_is_infinitely_bad(where):
    bad = lambda x: jnp.where(x[0] > 0.5, jnp.nan, 1.0)
    function = lambda x: (x * (bad(x) if where == "objective" else 1), bad(x) - 2)
    problem = Problem(box(0.0, 1.0, 2), function, 2)
    f, violation = problem.evaluate(jnp.array([[0.2, 0.5], [0.7, 0.5]]))
    assert np.isfinite(f[0]).all() and violation[0] == 0
    assert np.isinf(f[1]).all() and violation[1] == jnp.inf


def test_a_violation_of_another_type_is_taken_as_a_float_or_refused():
    x = jnp.array([0.2, 0.5])
    for given in (2, np.int32(2), jnp.int32(2), 2.0):
        f, violation = outcome(lambda x, given=given: (x, given), x)
        assert f.dtype == violation.dtype == jnp.float32 and violation == 2
    with pytest.raises(TypeError, match="violation is of type complex64; it must be real"):
        outcome(lambda x: (x, x[0].astype(complex)), x)
    with pytest.raises(ValueError, match=r"violation has shape \[2\]; it must be one number"):
        outcome(lambda x: (x, x), x)


def test_a_problem_is_made_ready_only_where_its_bounds_are_no_floats():
    fine = Problem(box(0.0, 1.0, 2), jnp.sum)
    assert check_problem("f", fine) is fine
    made = check_problem("f", Problem(Box(np.zeros(2, int), [1, 2]), jnp.sum))
    assert made.box.lower.dtype == made.box.upper.dtype == jnp.float32
    np.testing.assert_array_equal(made.box.upper, [1, 2])


def test_bounds_are_leaves():
    wide = jax.vmap(lambda upper: box(0.0, 1.0, 3).upper * upper)(jnp.arange(1.0, 3))
    np.testing.assert_array_equal(wide[:, 0], [1, 2])


def test_a_variable_may_have_one_value():
    fixed = check_box("box", Box(np.float32([1, 0]), np.float32([1, 2])))
    np.testing.assert_array_equal([fixed.lower, fixed.upper], [[1, 0], [1, 2]])


def test_another_number_of_objectives_is_named():
    problem = Problem(box(0.0, 1.0, 2), lambda x: x, 3)
    with pytest.raises(ValueError, match="returns 2 objectives; the problem declares 3"):
        problem.evaluate(jnp.zeros((4, 2)))


def test_bounds_of_two_types_have_the_wider_one(x64):
    mixed = Box(jnp.zeros(2, jnp.float32), jnp.ones(2, jnp.float64))
    assert check_box("box", mixed).lower.dtype == jnp.float64
    whole = Box(np.zeros(2, int), jnp.ones(2, jnp.float32))
    assert check_box("box", whole).lower.dtype == check_box("box", whole).upper.dtype == jnp.float32
