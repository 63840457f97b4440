"""Vectors as tuples and as array rows agree with NumPy; lengths have zero slope at zero."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.geometry import rows, vectors

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(2, 5, 3)).astype(np.float32)


@pytest.mark.parametrize(
    "name, want",
    [
        ("dot", (A * B).sum(1)),
        ("cross", np.cross(A, B)),
        ("length", np.linalg.norm(A, axis=1)),
        ("unit", A / np.linalg.norm(A, axis=1)[:, None]),
    ],
)
def test_tuples_and_rows_agree_with_numpy(name, want):
    two = name in ("dot", "cross")
    arrays = (A, B) if two else (A,)
    by_rows = getattr(rows, name)(*map(jnp.asarray, arrays))
    by_tuples = getattr(vectors, name)(*(tuple(jnp.asarray(a.T)) for a in arrays))
    np.testing.assert_allclose(by_rows, want, rtol=2e-6, atol=1e-6)
    stacked = jnp.stack(by_tuples, 1) if isinstance(by_tuples, tuple) else by_tuples
    np.testing.assert_allclose(stacked, want, rtol=2e-6, atol=1e-6)


def test_at_zero_the_slopes_of_length_are_zero():
    @jax.jit
    def slopes(a):
        unit = lambda a: jnp.stack(vectors.unit(tuple(a)))
        lengths = [jax.grad(f)(a) for f in (rows.length, lambda a: vectors.length(tuple(a)))]
        return *lengths, jax.jacfwd(unit)(a)

    for slope in slopes(np.zeros(3, np.float32)):
        np.testing.assert_array_equal(slope, 0)
