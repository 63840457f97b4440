"""Conversion and validation of arguments: accepted inputs, results and errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.numerics.arguments import broadcast, known_min, prepare


@pytest.mark.parametrize(
    "v, x, dtype",
    [
        (1, 2, "float32"),
        (1, 2.0, "float32"),
        (np.int64(3), jnp.float32(2), "float32"),
        (jnp.arange(3), jnp.float32(2), "float32"),
        (jnp.float16(1), 2.0, "float16"),
        (jnp.bfloat16(1), 2, "bfloat16"),
        (np.float64(1), 2.0, "float64"),
        (1, np.array([2.0]), "float64"),
        ([1, 2], [2.0, 3.0], "float32"),
        (1, [[2.0]], "float32"),
        ([np.float64(1)], 2.0, "float64"),
        ([jnp.float16(1), jnp.float16(2)], 2.0, "float16"),
        (10**400, 2.0, "float32"),
    ],
)
def test_the_result_has_the_dtype_of_the_arguments(v, x, dtype):
    order, argument, result = prepare("f", v, x)
    assert result.name == dtype
    assert order.dtype == argument.dtype == np.promote_types(result, np.float32)
    assert order.shape == argument.shape == np.broadcast_shapes(np.shape(v), np.shape(x))


def test_float64_is_not_rounded_on_the_way_in():
    order, argument, _ = prepare("f", 1 / 3, np.array([1e300, 0.1]))
    assert np.asarray(order)[0] == 1 / 3 and np.asarray(argument).tolist() == [1e300, 0.1]


@pytest.mark.parametrize(
    "bad", ["1", 1j, True, None, np.array([1j]), ["a"], [1j], [True], [[1.0], []], np.longdouble(1)]
)
def test_refuses_what_is_not_a_number(bad):
    with pytest.raises(TypeError, match="f: x is .*; it must be real numbers; "):
        prepare("f", 1.0, bad)


def test_refuses_shapes_that_do_not_broadcast():
    with pytest.raises(ValueError, match=r"f: v has shape \(3,\), x has shape \(4,\); "):
        prepare("f", np.ones(3), np.ones(4))


def test_sees_values_but_not_traced_ones():
    assert known_min(24) == 24 and known_min(np.array([30.0, 25.0])) == 25
    for unknown in (np.array([30.0, np.nan]), np.array([]), jnp.float32(30), np.nan):
        assert known_min(unknown) == -np.inf


def test_three_arguments_share_a_shape_and_a_dtype():
    """The length of `matern` lost digits where the distance had a lower precision."""
    some = {"r": np.ones((3, 1), np.float32), "v": [1, 2], "length": np.float64(2)}
    with jax.numpy_dtype_promotion("standard"):
        values, result = broadcast("f", some)
    assert result == np.float64 and {a.shape for a in values} == {(3, 2)}
    with pytest.raises(ValueError, match=r"f: r has shape \(3, 1\), .*, length has shape \(4,\); "):
        broadcast("f", some | {"length": np.ones(4)})
