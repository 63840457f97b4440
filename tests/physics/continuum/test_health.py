"""The report on a gradient against motions whose adjoint is known."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from continuum_run import jit_unoptimized

from jaxgpu.physics.continuum import Body, Grid, Liquid, Scene, examine
from jaxgpu.physics.continuum.health import GradientHealth

FRAMES, RATE = 8, 0.4


@pytest.mark.slow
def test_growth_and_the_frame_that_breaks(x64):
    """Velocity times e^RATE per frame: dloss/dv is e^(RATE k) with k frames left."""
    x = np.array([[0.4, 0.5], [0.9, 0.5]])
    scene = Scene((Body(x, Liquid(), 1e-4, v=(1e-3, 0.0)),), Grid(0.1, (16, 16)), dt=1e-3)

    def drive(scene, state, control):
        body = state.bodies[0]
        # The square root has no slope at zero, which is the control in the broken frame.
        faster = body.v * jnp.exp(RATE + 0 * jnp.sqrt(control * body.x[:, :1]))
        body = body.replace(v=faster)
        return scene, dataclasses.replace(state, bodies=(body,))

    speed = lambda state, _: jnp.sum(state.bodies[0].v[:, 0])
    run = jit_unoptimized(lambda c: examine(scene, scene.init(), c, drive, speed, substeps=2))
    for fault in (-1, 3):
        controls = np.where(np.arange(FRAMES) == fault, 0.0, 1.0)
        value, slope, health = run(controls)
        assert int(health.broken_frame) == fault
        np.testing.assert_array_equal(np.asarray(health.broken) > 0, np.arange(FRAMES) <= fault)
        sound = slice(fault + 1, None)
        left = np.arange(FRAMES, 0, -1)
        # Each of the two particles is coupled only to itself.
        exact = 2**0.5 * np.exp(RATE * left)
        np.testing.assert_allclose(health.v[sound], exact[sound], rtol=1e-9)
        if fault < 0:
            np.testing.assert_allclose(health.growth, RATE / 2e-3, rtol=1e-9)
            # Both particles move alike, and no control accelerates them.
            np.testing.assert_allclose(value, 2e-3 * np.exp(RATE * FRAMES), rtol=1e-9)
            np.testing.assert_allclose(slope, 0, atol=1e-12)
            assert np.abs(health.x).max() < 1e-6 * health.v.min()


def test_the_last_frame_that_breaks_is_told_and_none_where_all_hold():
    health = GradientHealth(
        x=jnp.ones(4), v=jnp.ones(4), broken=jnp.zeros(4), span=jnp.float32(1.0)
    )
    assert health.broken_frame == -1
    assert dataclasses.replace(health, broken=jnp.array([2.0, 0, 3, 0])).broken_frame == 2
