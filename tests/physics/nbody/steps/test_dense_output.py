"""The dense output of massive bodies, evaluated between its steps."""

import jax
import numpy as np
from field_shapes import check_shapes

from jaxgpu.physics.nbody.steps import radau
from jaxgpu.physics.nbody.steps.dense_output import DenseOutput

SPAN, STEPS = 3.0, 4


def circles(t):
    """Return two bodies on different circles at times `t` [T]: x, v, a [T, 2, 3]."""
    r, w = np.array([1.0, 2.5]), np.array([0.9, 0.4])
    angle = np.multiply.outer(np.asarray(t), w)
    ring = lambda c, s: np.stack([r * c, r * s, np.zeros_like(angle)], -1)
    c, s = np.cos(angle), np.sin(angle)
    return ring(c, s), ring(-w * s, w * c), ring(-w * w * c, -w * w * s)


def output():
    dt = SPAN / STEPS
    starts = dt * np.arange(STEPS)
    x, v, _ = circles(starts)
    a = circles(np.add.outer(starts, dt * radau.NODES))[2]
    return DenseOutput(x=x, v=v, a=a, dt=np.asarray(dt))


at = jax.jit(DenseOutput.evaluate)


def test_any_moment_is_as_good_as_the_starts_of_steps(x64):
    fraction = np.linspace(0, 1, 41)
    x, v = at(output(), fraction)
    want_x, want_v, _ = circles(SPAN * fraction)
    # The interpolation error is (w dt)^8 / 8! times the node polynomial, 2e-4 at most.
    bound = (0.9 * 0.75) ** 8 / 40320 * 2e-4
    assert np.abs(x - want_x).max() < bound
    assert np.abs(v - want_v).max() < 10 * bound


def test_steps_join(x64):
    seam = np.array([0.25, 0.5, 0.75])
    before, after = (at(output(), seam + side) for side in (-1e-13, 1e-13))
    for one, two in zip(before, after):
        np.testing.assert_allclose(one, two, atol=1e-11)


def test_shapes(x64):
    assert check_shapes(output()) == {"S": STEPS, "N": 2}
