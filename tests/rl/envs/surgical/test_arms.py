"""The arms: lengths of STAR's links, and steps within the range that tasks work in."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.rl.envs.surgical.arms import ECM, PSM, STAR
from jaxgpu.rl.envs.surgical.kinematics import forward_kinematics, frame_origins


def test_star_reaches_down_and_its_links_have_their_lengths(x64):
    """Upright it is 0.36 + 0.42 + 0.40 + 0.126 + 0.30 m high; at work its tool points down."""
    tip = jax.jit(lambda q: forward_kinematics(STAR, q))
    np.testing.assert_allclose(tip(jnp.zeros(7))[0], [0, 0, 1.606], atol=1e-14)
    low, high = STAR.working_range(jnp.float64)
    _, R = tip((low + high) / 2)
    np.testing.assert_allclose(R[:, 2], [0, 0, -1], atol=1e-14)
    part = np.random.default_rng(0).random(7)
    q = jnp.array(np.array(STAR.lower) + (np.array(STAR.upper) - np.array(STAR.lower)) * part)
    points = jax.jit(lambda q: frame_origins(STAR, q))(q)
    lengths = np.linalg.norm(np.diff(points, axis=0), axis=1)
    np.testing.assert_allclose(lengths, [0, 0.42, 0, 0.4, 0, 0.126, 0.3], atol=1e-14)
    np.testing.assert_allclose(points[-1], tip(q)[0])


@pytest.mark.parametrize("arm", [PSM, ECM, STAR], ids=["psm", "ecm", "star"])
def test_a_step_is_a_share_of_the_working_range_which_it_does_not_leave(arm):
    low, high = map(np.asarray, arm.working_range(jnp.float32))
    assert (np.array(arm.lower) <= low).all() and (high <= np.array(arm.upper)).all()
    middle = jnp.asarray((low + high) / 2)
    part = jnp.linspace(-1, 1, arm.joints)
    after = arm.moved(middle, part, 0.1)
    np.testing.assert_allclose(arm.normalised(after), 0.2 * part, atol=2e-6)
    np.testing.assert_allclose(arm.moved(middle, 5 + part, 0.9), high, rtol=1e-6)
    np.testing.assert_allclose(arm.normalised(jnp.asarray(low)), -1, atol=1e-6)
