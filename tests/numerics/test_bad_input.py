"""Results of each function for every type of invalid input; docs/bessel.md has the table."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bessel_table import evaluate, family

from jaxgpu import numerics
from jaxgpu.runs.saving import identity

LOGS = ["log_iv", "log_ive", "log_kv", "log_kve"]
NAMES = [*LOGS, "iv_ratio", "kv_ratio", "iv_ratio_inverse", "log_hyp0f1"]
ARGUMENTS = {"iv_ratio_inverse": "vr", "log_hyp0f1": "bz"}


def values(name, v, x):
    """Return a function's float32 values, by the programs of test_logarithms.py if possible."""
    for kind in "ik":
        if name in (f"log_{kind}v", f"log_{kind}ve"):
            return evaluate(family(kind), v, x, np.float32)[name]
        if name == f"{kind}v_ratio":
            return evaluate(family(kind), v, x, np.float32)[f"ratio_{kind}"]
    return evaluate(getattr(numerics, name), v, x, np.float32)


@pytest.mark.parametrize("name", NAMES)
def test_numbers_that_have_no_answer_give_nan(name):
    v = np.array([np.nan, 1.5, 1.5, np.nan, 1.5, np.inf])
    x = np.array([0.5, np.nan, -0.5, np.nan, -np.inf, np.inf])
    assert np.isnan(values(name, v, x)).all()


@pytest.mark.parametrize("name", [name for name in NAMES if name != "iv_ratio_inverse"])
def test_subnormal_arguments_count_as_zero(name):
    v = np.array([0.0, 0.5, 3.0, 30.0]) + (name == "log_hyp0f1")
    np.testing.assert_array_equal(values(name, v, np.float32(1e-40)), values(name, v, 0.0))


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
    """The orders are concrete values, for which the programs are short."""
    v, x = (np.asarray(np.linspace(*ends, 1024), dtype) for ends in ((30, 60), (0, 3)))
    wide = v.astype(np.float32)
    both = jax.jit(
        lambda x: (numerics.kv_ratio(v, x), numerics.kv_ratio(wide, x.astype("float32")))
    )
    got, whole = both(x)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, whole.astype(dtype))


def test_integers_take_the_dtype_of_the_other():
    whole, x = np.arange(30, 1054), np.linspace(0.1, 9, 1024, dtype=np.float32)
    both = jax.jit(lambda x: [numerics.log_kv(v, x) for v in (whole, whole.astype(np.float32))])
    got, want = both(x)
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(got, want)
    assert jax.eval_shape(numerics.log_kv, 1, 2).dtype == jnp.float32


def test_empty_arrays_stay_empty():
    assert jax.eval_shape(numerics.log_iv, np.zeros(0), np.zeros((3, 0))).shape == (3, 0)


@pytest.mark.parametrize("name", NAMES)
def test_lists_are_the_arrays_they_stand_for(name):
    f, v, x = getattr(numerics, name), [[1.0], [2.5]], [0.25, 0.5, 0.75]
    pairs = (v, x), (jnp.asarray(v), jnp.asarray(x))
    given, arrays = (jax.make_jaxpr(lambda pair=pair: f(*pair))() for pair in pairs)
    assert identity.program_digest(given) == identity.program_digest(arrays)
    (out,) = given.out_avals
    assert out.dtype == jnp.float32 and out.shape == (2, 3)


FAR = {"log_iv": -np.inf, "log_kv": np.inf, "iv_ratio": 0, "kv_ratio": np.inf}


def test_an_order_beyond_the_largest_float_is_infinite():
    """1e39 is not a float32 value: the coefficients overflowed in Python, but not at infinity."""
    orders, wide = (1e39, 10**39, 10**400, np.inf), (np.float64(1e300), np.float64(1.0))
    f = {name: getattr(numerics, name) for name in FAR}
    for name, found in jax.jit(lambda: {n: [f[n](v, 1.0) for v in orders] for n in f})().items():
        assert found == [FAR[name]] * 4
    for large in jax.jit(lambda: [f[name](*wide) for name in f])():
        assert large.dtype == np.float64 and not np.isnan(large)


def test_the_inverse_has_no_answer_where_the_order_has_none():
    v, r = np.array([np.nan, -2, -0.7, np.inf]), np.array([[0], [0.5], [1]])
    got = values("iv_ratio_inverse", v, r)
    assert np.isnan(got[:, :3]).all() and got[1, 3] == np.inf


def test_the_inverse_stays_where_its_answer_is_up_to_the_last_digits():
    """Rounding moved a Newton step from 5e7 to 33 at r = 1 - 2^-24 in seven dimensions."""
    v = np.float32([-0.5, -0.3, 0, 0.5, 2.5, 20, 400])[:, None]
    r = 1 - np.float32(2.0**-24) * np.arange(1, 65, dtype=np.float32)
    got = values("iv_ratio_inverse", v, r).astype(np.float64)
    want = (v + 0.5) / (1 - np.float64(r))  # to first order in 1 - r
    assert np.isfinite(got).all() and (got > 0).all()
    inside = (v[:, 0] >= 0.5) & (v[:, 0] < 100)
    assert (got[inside] > 0.49 * want[inside]).all() and (got[inside] < 5 * want[inside]).all()
