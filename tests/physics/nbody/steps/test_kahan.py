"""Compensated sums keep terms that a single number would round off."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu.physics.nbody.steps import kahan


def test_a_million_small_terms_are_not_lost():
    """Each is below half an ulp of the sum, and on its own would change nothing."""
    term = jnp.float32(1e-8)
    start = jnp.float32(1.0), jnp.float32(0.0)
    step = lambda _, pair: kahan.add(*pair, term)
    high, low = jax.jit(lambda pair: jax.lax.fori_loop(0, 1_000_000, step, pair))(start)
    assert abs(float(high) + float(low) - (1 + 1e6 * float(term))) < 1e-7
    assert np.float32(1) + np.float32(1e-8) == 1
