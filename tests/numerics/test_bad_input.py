"""A stated answer of each function for every kind of odd input: docs/bessel.md has the table."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bessel_table import evaluate

from jaxgpu import numerics

LOGS = ["log_iv", "log_ive", "log_kv", "log_kve"]
NAMES = [*LOGS, "iv_ratio", "kv_ratio", "iv_ratio_inverse", "log_hyp0f1"]
ARGUMENTS = {"iv_ratio_inverse": "vr", "log_hyp0f1": "bz"}


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
    v, x = ARGUMENTS.get(name, "vx")
    sentence = rf"{name}: {v} has shape \(3,\), {x} has shape \(4,\); the shapes must broadcast; "
    with pytest.raises(ValueError, match=sentence):
        f(jnp.ones(3), jnp.ones(4))
    for bad in ("1", 1j, True, None):
        with pytest.raises(TypeError, match=f"{name}: {x} is .*; it must be real numbers; "):
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


@pytest.mark.parametrize("name", NAMES)
def test_lists_are_the_arrays_they_stand_for(name):
    f = getattr(numerics, name)
    v, x = [[1.0], [2.5]], [0.25, 0.5, 0.75]
    got = f(v, x)
    assert got.dtype == jnp.float32 and got.shape == (2, 3)
    np.testing.assert_array_equal(got, f(np.float32(v), np.float32(x)))


@pytest.mark.parametrize(
    ("name", "far"),
    [("log_iv", -np.inf), ("log_kv", np.inf), ("iv_ratio", 0), ("kv_ratio", np.inf)],
)
def test_an_order_beyond_the_largest_float_is_infinite(name, far):
    """1e39 has no float32: the coefficients overflowed in Python, where infinity did not."""
    for v in (1e39, 10**39, 10**400, np.inf):
        assert getattr(numerics, name)(v, 1.0) == far
    large = getattr(numerics, name)(np.float64(1e300), np.float64(1.0))
    assert large.dtype == np.float64 and not np.isnan(large)


def test_the_inverse_has_no_answer_where_the_order_has_none():
    got = numerics.iv_ratio_inverse(np.float32([np.nan, -2, -0.7]), np.float32([[0], [0.5], [1]]))
    assert np.isnan(got).all()
    assert numerics.iv_ratio_inverse(np.inf, np.float32(0.5)) == np.inf


def test_the_inverse_stays_where_its_answer_is_up_to_the_last_digits():
    """Rounding carried a step of Newton's from 5e7 to 33: r = 1 - 2^-24 in seven dimensions."""
    v = np.float32([-0.5, -0.3, 0, 0.5, 2.5, 20, 400])[:, None]
    r = 1 - np.float32(2.0**-24) * np.arange(1, 65, dtype=np.float32)
    got = np.asarray(numerics.iv_ratio_inverse(v, r), np.float64)
    want = (v + 0.5) / (1 - np.float64(r))  # to first order in 1 - r
    assert np.isfinite(got).all() and (got > 0).all()
    inside = (v[:, 0] >= 0.5) & (v[:, 0] < 100)
    assert (got[inside] > 0.49 * want[inside]).all() and (got[inside] < 5 * want[inside]).all()
