"""float64 where it is requested, independent of the caller's flag."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.devices import precision
from jaxgpu.devices.precision import with_float64


@with_float64
def third(x):
    """Return x / 3 in float64, by a Python constant, a NumPy constant and a new array."""
    x = jnp.asarray(x).astype(jnp.float64)
    return (x + np.float64(1e-12) + jnp.full((), 1e-13)) / 3


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, jax.vmap], ids=["plain", "jit", "vmap"])
def test_same_bits_with_the_flag_off_and_on(wrap):
    x = np.linspace(1, 2, 5, dtype=np.float32)
    off = np.asarray(wrap(third)(x))
    with jax.enable_x64(True):
        on = np.asarray(wrap(third)(x))
    assert off.dtype == np.float64
    np.testing.assert_array_equal(off, on)
    np.testing.assert_allclose(
        off, (x.astype(np.float64) + 1.1e-12) / 3, rtol=4e-16
    )  # two roundings


def test_the_flag_is_left_alone_and_other_threads_do_not_see_it():
    seen = []

    @with_float64
    def look():
        thread = threading.Thread(target=lambda: seen.append(jnp.ones(()).dtype))
        thread.start()
        thread.join()
        return jnp.ones(()).dtype

    assert look() == jnp.float64 and seen == [jnp.float32]
    assert jnp.ones(()).dtype == jnp.float32


def test_gradients_pass_through_in_the_callers_dtype():
    g = jax.grad(lambda x: third(x).astype(jnp.float32))(jnp.float32(2))
    assert g.dtype == jnp.float32 and abs(float(g) - 1 / 3) < 1e-7


def test_scope_follows_the_widest_leaf():
    with precision.scope({"a": np.float64(1), "b": "text"}):
        assert jnp.ones(()).dtype == jnp.float64
    with precision.scope({"a": np.float32(1)}):
        assert jnp.ones(()).dtype == jnp.float32


def test_reassociation_keeps_infinities_and_nans():
    options = precision.reassociation()
    assert options, "this CPU backend is expected to know the options"
    inf, zero, nan = jnp.float32(jnp.inf), jnp.float32(0), jnp.float32(jnp.nan)
    f = jax.jit(
        lambda a, b, c: (jnp.isnan(a * b), jnp.isinf(a), jnp.isnan(c), 1 / a),
        compiler_options=options,
    )
    product, infinite, missing, inverse = f(inf, zero, nan)
    assert product and infinite and missing and inverse == 0


def test_options_that_this_compiler_does_not_know_are_not_used(monkeypatch):
    monkeypatch.setitem(precision._OPTIONS, "cpu", {"xla_cpu_no_such_option": True})
    precision.options.cache_clear()
    assert precision.reassociation() == {}
    precision.options.cache_clear()


def test_each_platform_has_options_of_its_own():
    assert precision.platform() == "cpu"
    assert precision.options("cpu") == precision.reassociation()
    assert list(precision.options("cuda")) == ["xla_gpu_enable_command_buffer"]
    assert precision.options("tpu") == precision.options("rocm") == {}


def test_a_marked_step_carries_the_options():
    marked = precision.allow_reassociation(third)
    assert precision.options_of(marked) == precision.options("cpu")
    assert precision.options_of(third) is None
    assert marked.__doc__ == third.__doc__


@pytest.mark.parametrize("dtype", [3, "fast", np.nan, {"a": 1}, ["a", "b"], jnp.int32])
def test_the_smallest_number_is_one_of_a_floating_type(dtype):
    with pytest.raises(TypeError, match="^precision.safe_tiny: dtype=.*; it must be a floating"):
        precision.safe_tiny(dtype)
