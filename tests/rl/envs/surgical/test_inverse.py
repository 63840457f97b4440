"""Joints of the PSM for a place of its tip: back from the chain of rotations, at any posture."""

import conformance
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from jaxgpu.rl.envs.surgical import inverse
from jaxgpu.rl.envs.surgical.arms import PSM, place


def test_joints_are_those_that_the_tip_came_from(x64):
    """All joints over their whole range but the last 3 cm of a withdrawn insertion."""
    low, high = np.array(PSM.lower), np.array(PSM.upper)
    low[2], low[3], high[3] = 0.03, -3.1, 3.1  # a turn more of the roll is the same place
    q = low + (high - low) * np.random.default_rng(0).random((500, 6))
    back = jax.jit(jax.vmap(lambda q: inverse.joints(*place(PSM, q))))(jnp.asarray(q))
    np.testing.assert_allclose(back, q, atol=1e-11)


@pytest.mark.slow
def test_derivatives_are_those_of_finite_differences(x64):
    tip, R = place(PSM, jnp.array([0.3, -0.2, 0.12, 0.5, 0.6, -0.3]))
    # differences over 1e-6 m err by its square times (1 / 9 mm)^3, the wrist's third derivative
    check_grads(jax.jit(lambda x: inverse.joints(x, R)), (tip,), order=1, rtol=1e-5, atol=1e-5)


def test_conforms():
    tip, R = place(PSM, jnp.array([0.3, -0.2, 0.12, 0.5, 0.6, -0.3]))
    conformance.check_program(inverse.joints, tip, R)
    conformance.exports(inverse.joints, tip, R)
