"""Ice cream: the nozzle's flow, placement as demonstrated, and a stable heap."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matter_checks import places, play

from jaxgpu import rl

ENV = rl.make("matter/ice-cream-static")


@pytest.mark.slow
def test_laying_as_shown_returns_one_and_small_errors_little_less():
    demo = jnp.asarray(ENV.goal.demo)
    played, (shown, still, near, random) = play(ENV, demo, 0 * demo, 0.9 * demo)
    assert abs(shown - 1) < 1e-4 and abs(still) < 1e-4 and random < 0.5 < near < 1
    ends = [jax.tree.map(lambda a: a[-1], states).matter.bodies[0] for states, _ in played]
    (x, full), (y, _) = places(ends[0]), places(ends[2])
    # A layer of 8 particles arrives every 25 ms, the first one immediately, and none is rejected.
    assert full.sum() == 8 * 72
    loss = ((x - y) ** 2).sum(0)[full].mean()
    np.testing.assert_allclose(played[2][1]["loss"][-1], loss, rtol=1e-3)
    # The heap is on the wafer and higher than its width at half of its height.
    assert x[0, full].min() > 0.018 and x[0, full].max() < 0.078
    assert x[1, full].max() > 0.05 and x[1, full].min() > 0.008


def test_the_nozzle_gives_a_full_jet_and_the_plan_is_the_spiral_that_was_drawn():
    """A jet of 60 mm/s gives 1.5 mm per 25 ms; the narrowing, rising spiral takes 1.8 s."""
    scene, demo = ENV.simulation, np.asarray(ENV.goal.demo, float)
    (source,) = scene.sources
    np.testing.assert_allclose(source.interval, 0.025, rtol=1e-6)
    np.testing.assert_allclose(source.v, [0, -0.06], rtol=1e-6)
    assert np.shape(source.x) == (8, 2) and scene.bodies[0].capacity == 8 * 73  # of 1.8 s and one
    np.testing.assert_allclose(np.diff(np.asarray(source.x)[:, 0]), 0.0015, rtol=1e-4)
    t = np.arange(1, 46) / 45
    path = np.cumsum(demo, 0) * 0.15 * 0.04 + np.array([0.015, 0.0])
    across = 0.015 * (1 - 0.9 * t) * np.cos(5 * np.pi * t)
    np.testing.assert_allclose(path, np.stack([across, 0.03 * t], 1), atol=1e-7)
    nozzle = np.asarray(scene.colliders[0].x) + path - np.array([0.015, 0.0])
    lower, upper = (np.asarray(a) for a in (ENV.workspace.lower, ENV.workspace.upper))
    np.testing.assert_allclose(upper, [0.096 - 0.02, 0.108 - 0.012], rtol=1e-6)
    assert np.abs(demo).max() <= 1 and (lower <= nozzle).all() and (nozzle <= upper).all()
