"""Three bodies as rows or as columns: what cannot be told apart is refused, and can be said."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.physics.nbody import layout
from jaxgpu.physics.nbody.layout import Columns, Rows

X = np.random.default_rng(0).normal(size=(3, 3))


def test_the_square_is_refused_and_what_is_said_is_taken():
    for door in (layout.rows, layout.columns):
        for given in (X, jnp.asarray(X), X.tolist(), np.ones((3, 4, 3))):
            with pytest.raises(ValueError, match=r"init: x has shape .*, which can be read both"):
                door("init: x", given)
    np.testing.assert_array_equal(layout.rows("x", Rows(X)), X)
    np.testing.assert_array_equal(layout.columns("x", Columns(X)), X)
    with jax.enable_x64(True):
        np.testing.assert_array_equal(layout.rows("x", Columns(X)), X.T)
        np.testing.assert_array_equal(layout.columns("x", Rows(X)), X.T)
    np.testing.assert_array_equal(layout.like(Rows(X), jnp.asarray(X)), jnp.asarray(X).T)
    with pytest.raises(ValueError, match=r"\[6, 6\], which can be read both ways"):
        layout.columns("stars", np.ones((6, 6)), 6)


def test_any_other_number_needs_no_word():
    assert layout.rows("x", np.ones((5, 3))).shape == (5, 3)
    assert layout.columns("x", np.ones((3, 5))).shape == (3, 5)
    assert layout.columns("x", [1.0, 2, 3]).shape == (3,)
    assert layout.columns("x", np.ones((3, 0))).shape == (3, 0)
    assert layout.columns("stars", np.ones((6, 3)), 6).shape == (6, 3)
    assert layout.columns("x", Rows(np.ones((4, 2, 3)))).shape == (3, 4, 2)
    with pytest.raises(
        ValueError, match=r"x has shape \[5, 3\]; it must be \[3, N\]; say layout.R"
    ):
        layout.columns("x", np.ones((5, 3)))
    with pytest.raises(ValueError, match=r"x has shape \[3, 5\]; it must be \[N, 3\]"):
        layout.columns("x", Rows(np.ones((3, 5))))
    with pytest.raises(ValueError, match="x=nan at"):
        layout.columns("x", Rows(np.full((3, 3), np.nan)))


def test_traced_arrays_pass_with_and_without_the_word():
    square = jnp.asarray(X)
    same = jax.jit(lambda x: layout.columns("x", x))
    np.testing.assert_array_equal(same(square), square)
    np.testing.assert_array_equal(same(Rows(square)), square.T)
