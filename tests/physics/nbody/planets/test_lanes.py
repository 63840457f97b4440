"""Systems in parallel: each has its own steps, and compensated sums keep rounding errors."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from conformance import avals
from jax import lax

from jaxgpu.physics.nbody.planets import Ensemble, lanes

RULE = Ensemble(dt=1.0, lanes=2)
PART, SPAN = np.array([[-0.5, -0.2], [0.5, 0.8]]), np.array([0.7, 1.9])


def start_lanes():
    """Make two circles of angular velocity 1, of unlike masses, with separate times."""
    x, v = np.zeros((2, 2, 3, 2))
    x[:, 0], v[:, 1] = PART, PART
    m = np.array([[0.5, 0.8], [0.5, 0.2]])
    given = (jnp.asarray(q) for q in (x, v, m, SPAN, np.arange(2, dtype=np.int32)))
    return lanes.init_lanes(*given)


def test_a_step_keeps_the_types_of_its_lanes_so_that_it_can_be_looped(x64):
    start = jax.eval_shape(start_lanes)
    assert avals(jax.eval_shape(partial(lanes.step, RULE), start)) == avals(start)


def test_each_lane_covers_its_own_time_in_its_own_steps(x64):
    is_running = lambda now: ~jnp.all(lanes.is_finished(RULE, now))

    @partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
    def run():
        return lax.while_loop(is_running, partial(lanes.step, RULE), start_lanes())

    end = run()
    np.testing.assert_allclose(end.x[:, 0], PART * np.cos(SPAN), atol=1e-13)
    np.testing.assert_allclose(end.x[:, 1], PART * np.sin(SPAN), atol=1e-13)
    np.testing.assert_allclose(end.v[:, 1], PART * np.cos(SPAN), atol=1e-13)
    np.testing.assert_array_equal(end.t, SPAN)
    assert 1 < end.steps[0] < end.steps[1] < 40
    assert np.abs(end.low).max() < 1e-15 and end.low[0].any() and end.low[1].any()


def test_the_first_step_is_one_wherever_the_system_is(x64):
    """The step is a hundredth of the closest pair's fall time, sqrt(d^3 / gm), for any origin."""
    x = jnp.zeros((3, 3, 2)).at[1, 0].set(jnp.array([4.0, 0.25])).at[2, 1].set(100.0)
    m = jnp.array([[0.7, 1.5], [0.3, 2.5], [0.0, 0.0]])
    span, owner = jnp.full(2, 50.0), jnp.arange(2, dtype=jnp.int32)
    for away in (0.0, 30.0):
        start = lanes.init_lanes(x + away, jnp.zeros_like(x), m, span, owner)
        np.testing.assert_allclose(start.dt, [0.08, 0.000625], rtol=1e-12)
    still = lanes.init_lanes(x, jnp.zeros_like(x), m, jnp.array([1e-3, 50.0]), owner)
    np.testing.assert_allclose(still.dt, [1e-3, 0.000625])  # no longer than the remaining time
