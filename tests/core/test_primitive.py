"""Declared primitives: batching, both modes, second order, and kernels per platform."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.devices.primitive import fill_zeros, is_constant, jvp_of, primitive

PLATFORMS = ("cpu", "cuda", "tpu")


# The values (s, c) = (sin(x) y, cos(x) y) are closed under all derivatives.
def sin_cos(x, y, *, shift):
    return [jnp.sin(x + shift) * y, jnp.cos(x + shift) * y]


def sin_cos_jvp(args, tangents, out, *, shift):
    (x, _), (dx, dy), (s, c) = args, tangents, out
    by_y = [None, None] if dy is None else turn(x, dy, shift=shift)
    if dx is None:
        return by_y
    by_x = [c * dx, -s * dx]
    return by_x if dy is None else [a + b for a, b in zip(by_x, by_y)]


def sin_cos_transpose(cts, args, *, shift):
    x, y = args
    assert y is None, "it is linear in y alone"
    return [x, sum(a * ct for a, ct in zip(sin_cos(x, jnp.ones_like(x), shift=shift), cts))]


turn = primitive(
    "turn",
    sin_cos,
    lambda x, y, shift: [x, x],
    several=True,
    jvp=sin_cos_jvp,
    transpose=sin_cos_transpose,
)
total = primitive(
    "total",
    lambda x, *, batch: x.sum(tuple(range(batch, x.ndim))),
    lambda x, batch: x.update(shape=x.shape[:batch]),
    batch=lambda size, x, batch: total(x, batch=batch + 1),
    jvp=jvp_of(lambda x, *, batch: x.sum(tuple(range(batch, x.ndim)))),
)
where = primitive(
    "where_it_runs",
    lambda x: x + 100,
    lambda x: x,
    kernels={"cpu": lambda x: x + 1, "cuda": lambda x: x + 2},
)
X, Y = jnp.array([0.3, -1.2, 2.0]), jnp.array([1.5, 0.2, -0.7])


def plain_sin_cos(x, y):
    return sin_cos(x, y, shift=0.5)


def bound_sin_cos(x, y):
    return turn(x, y, shift=0.5)


def assert_same(f, g, *args):
    for a, b in zip(jax.tree.leaves(f(*args)), jax.tree.leaves(g(*args)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)


def compare_all(how, *args):
    assert_same(how(bound_sin_cos), how(plain_sin_cos), *args)
    assert_same(jax.jit(how(bound_sin_cos)), how(plain_sin_cos), *args)


def test_values_and_both_modes_are_those_of_the_function():
    compare_all(lambda f: f, X, Y)
    compare_all(lambda f: lambda x, y, dx, dy: jax.jvp(f, (x, y), (dx, dy)), X, Y, Y, X)
    loss = lambda f: lambda x, y: (f(x, y)[0] * jnp.arange(3.0)).sum()
    compare_all(lambda f: jax.grad(loss(f), 1), X, Y)
    # A missing cotangent of the second result counts as zeros; nothing linear in x is stored.
    compare_all(lambda f: jax.vjp(lambda y: f(X, y), Y)[1], plain_sin_cos(X, Y))


@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0), (1, 0)])
def test_batches_along_any_axis_or_none(axes):
    lay = lambda a, axis: a if axis is None else jnp.stack([a, 2 * a], axis)
    compare_all(lambda f: jax.vmap(f, axes), lay(X, axes[0]), lay(Y, axes[1]))


def test_batching_of_its_own_sees_the_copies_first():
    x = jnp.arange(24.0).reshape(2, 3, 4)
    sums = jax.vmap(jax.vmap(lambda a: total(a, batch=0)), 1, 1)(x)
    np.testing.assert_array_equal(sums, x.sum(2))
    grown = jax.jvp(lambda a: total(a * a, batch=0), (x,), (jnp.ones_like(x),))[1]
    np.testing.assert_array_equal(grown, 2 * x.sum())


@pytest.mark.slow
def test_second_order_and_mixed_modes():
    loss = lambda f: lambda y: (f(X, y * y)[0] ** 2).sum()
    ways = [jax.hessian, lambda f: jax.jacrev(jax.jacrev(f)), lambda f: jax.jacfwd(jax.jacfwd(f))]
    all_modes = lambda f: jax.jit(lambda y: [way(loss(f))(y) for way in ways])
    assert_same(all_modes(bound_sin_cos), all_modes(plain_sin_cos), Y)


def test_each_platform_has_its_kernel_in_one_exported_program():
    assert float(where(jnp.float32(0))) == 1 == float(jax.jit(where)(jnp.float32(0)))
    for platform, added in zip(PLATFORMS, (1, 2, 100)):
        text = jax.export.export(jax.jit(where), platforms=[platform])(1.0).mlir_module()
        assert f"dense<{added:.6e}>" in text
    whole = jax.export.export(jax.jit(jax.vmap(where)), platforms=PLATFORMS)(jnp.zeros(2))
    assert whole.call(jnp.zeros(2)).tolist() == [1, 1]


def test_run_alone_it_is_compiled_once():
    traced = []
    f = primitive("counted", lambda x, *, n: traced.append(n) or x + n, lambda x, n: x)
    assert [float(f(jnp.float32(1), n=n)) for n in (2, 2, 3, 2)] == [3, 3, 4, 3]
    assert traced == [2, 3]


def test_missing_tangents_are_none_until_filled():
    assert is_constant([None, None]) and not is_constant([None, X])
    zeros, given = fill_zeros([None, Y], [X, X])
    np.testing.assert_array_equal(zeros, 0 * X)
    assert given is Y
    with pytest.raises(NotImplementedError):
        jax.jvp(where, (1.0,), (1.0,))
