"""Input sets are accepted as users pass them, or rejected with the position of the error."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.evolution.indicators import expected_utility
from jaxgpu.evolution.indicators.arguments import check_points, check_vector, check_vectors, promote


def test_lists_and_whole_numbers_are_sets():
    assert check_points("f", [[1, 2], [3, np.inf]]).dtype == jnp.float32
    assert check_vector("r", [1, 2], jnp.zeros((3, 2), jnp.bfloat16)).dtype == jnp.bfloat16
    a, b = promote(jnp.zeros((1, 2), jnp.bfloat16), jnp.zeros((1, 2)))
    assert a.dtype == b.dtype == jnp.float32


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda f: check_points("f", f * np.nan), r"^f=nan at \[0, 0\]; it must be a number"),
        (lambda f: check_points("f", -np.inf + f), r"^f=-inf at \[0, 0\]; it must be a number"),
        (lambda f: check_points("f", f[:0]), r"^f has shape \[0, 2\]; it must be \[points, obj"),
        (
            lambda f: check_points("f", f.astype(complex)),
            "^f is of type complex64; it must be real",
        ),
        (lambda f: check_points("f", "front"), "^f is a value of type str; it must be a number"),
        (lambda f: check_vector("r", [1.0], f), r"^r has shape \[1\]; f needs \[2\]"),
        (
            lambda f: check_vectors("w", [[1.0, -1.0]], f, least=0),
            r"^w=-1 at \[0, 1\]; it must be a finite",
        ),
        (
            lambda f: check_vectors("w", [1.0, 1.0], f),
            r"^w has shape \[2\]; it must be \[rows, 2\]",
        ),
        (
            lambda f: expected_utility(f, 3, [0, 0], [1, 1]),
            "^expected_utility: key=3; it must be a key",
        ),
    ],
)
def test_what_is_no_set_gets_one_sentence(call, said):
    with pytest.raises((TypeError, ValueError), match=said):
        call(np.ones((3, 2)))


def test_a_failed_point_is_left_to_the_compiled_program():
    f = jnp.array([[jnp.nan, 0.0]])
    assert jax.jit(lambda f: check_points("f", f))(f).shape == (1, 2)
    assert check_points("f", f, nan=True).shape == (1, 2)
