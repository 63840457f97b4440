"""A stated answer of each function for every kind of odd input: docs/bessel.md has the table."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu import numerics
from tests.bessel_table import evaluate

LOGS = ["log_iv", "log_ive", "log_kv", "log_kve"]
NAMES = [*LOGS, "iv_ratio", "kv_ratio", "iv_ratio_inverse", "log_hyp0f1"]


@pytest.mark.parametrize("name", NAMES)
def test_numbers_that_have_no_answer_give_nan(name):
    v = np.array([np.nan, 1.5, 1.5, np.nan, 1.5, np.inf])
    x = np.array([0.5, np.nan, -0.5, np.nan, -np.inf, np.inf])
    got = evaluate(getattr(numerics, name), v, x, np.float32)
    assert np.isnan(got).all()


@pytest.mark.parametrize("name", [name for name in NAMES if name != "iv_ratio_inverse"])
def test_subnormal_arguments_count_as_zero(name):
    v, f = np.array([0.0, 0.5, 3.0, 30.0]) + (name == "log_hyp0f1"), getattr(numerics, name)
    tiny = np.float32(1e-40)
    np.testing.assert_array_equal(evaluate(f, v, tiny, np.float32), evaluate(f, v, 0.0, np.float32))


@pytest.mark.parametrize("name", NAMES)
def test_shapes_and_kinds_are_refused_in_one_sentence(name):
    f = getattr(numerics, name)
    sentence = rf"{name}: v has shape \(3,\), x has shape \(4,\); the shapes must broadcast; "
    with pytest.raises(ValueError, match=sentence):
        f(jnp.ones(3), jnp.ones(4))
    for bad in ("1", 1j, True, None):
        with pytest.raises(TypeError, match=f"{name}: x is .*; it must be real numbers; "):
            f(1.0, bad)


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_half_precisions_are_the_float32_answer_rounded(dtype):
    v = jnp.linspace(30, 60, 1024, dtype=dtype)
    x = jnp.linspace(0, 3, 1024, dtype=dtype)
    got = jax.jit(numerics.kv_ratio)(v, x)
    assert got.dtype == dtype
    whole = evaluate(numerics.kv_ratio, *(np.asarray(a, np.float32) for a in (v, x)), np.float32)
    np.testing.assert_array_equal(got, whole.astype(dtype))


def test_integers_take_the_dtype_of_the_other():
    whole, x = jnp.arange(1024), jnp.linspace(0.1, 9, 1024)
    got = jax.jit(numerics.log_kv)(whole, x)
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(got, jax.jit(numerics.log_kv)(whole.astype(x.dtype), x))
    assert jax.eval_shape(numerics.log_kv, 1, 2).dtype == jnp.float32


def test_empty_arrays_stay_empty():
    assert jax.eval_shape(numerics.log_iv, np.zeros(0), np.zeros((3, 0))).shape == (3, 0)
