"""Systems side by side: each has its own steps, and what rounding takes away is kept."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxgpu.physics.nbody.planets import Ensemble, lanes


def test_each_lane_covers_its_own_time_in_its_own_steps(x64):
    """Two circles of angular velocity 1, of unlike masses, and another time for each."""
    rule, part = Ensemble(dt=1.0, lanes=2), np.array([[-0.5, -0.2], [0.5, 0.8]])
    x, v = np.zeros((2, 2, 3, 2))
    x[:, 0], v[:, 1] = part, part
    span, m = np.array([0.7, 1.9]), np.array([[0.5, 0.8], [0.5, 0.2]])
    under_way = lambda now: ~jnp.all(lanes.finished(rule, now))

    @jax.jit
    def run(*given):
        start = lanes.loaded(*given, jnp.arange(2, dtype=jnp.int32))
        return lax.while_loop(under_way, partial(lanes.step, rule), start)

    end = run(x, v, m, span)
    np.testing.assert_allclose(end.x[:, 0], part * np.cos(span), atol=1e-13)
    np.testing.assert_allclose(end.x[:, 1], part * np.sin(span), atol=1e-13)
    np.testing.assert_allclose(end.v[:, 1], part * np.cos(span), atol=1e-13)
    np.testing.assert_array_equal(end.t, span)
    assert 1 < end.steps[0] < end.steps[1] < 40
    assert np.abs(end.low).max() < 1e-15 and end.low[0].any() and end.low[1].any()
