"""The needle: a manual plan picks it, and its wire."""

import jax
import numpy as np
from rl_waypoints import play, wrap_jaw

from jaxgpu import rl

ENV = rl.make("surgical/needle-pick")


def test_a_plan_by_hand_picks_every_needle():
    def waypoints(state):
        yaw, over = wrap_jaw(state.object_yaw), state.position + np.array([0, 0, 0.01])
        at = [np.append(x, yaw) for x in (over, state.position, state.position, state.goal)]
        return [np.append(x, jaw) for x, jaw in zip(at, (1, 1, -1, -1))]

    success, states = play(ENV, waypoints)
    assert success.all()
    first, last = states[0], states[-1]
    assert not np.asarray(first.held).any() and np.asarray(last.held).all()


def test_the_wire_is_half_a_circle_through_the_place():
    state = jax.tree.map(np.asarray, jax.jit(ENV.reset)(jax.random.key(0))[0])
    wire = np.asarray(jax.jit(ENV.wire)(state))
    centre = state.position + 0.02 * np.array(
        [np.cos(state.object_yaw), np.sin(state.object_yaw), 0]
    )
    np.testing.assert_allclose(np.linalg.norm(wire - centre, axis=1), 0.02, rtol=1e-5)
    np.testing.assert_allclose(wire[6], state.position, atol=1e-7)
