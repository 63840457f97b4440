"""Imitation of a demonstration: the loss by hand, its return, ice cream and latte art."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu.physics.continuum import Body, Grid, Liquid, Scene
from jaxgpu.rl.envs.matter import MatchGoal

KEY = jax.random.key(0)


def test_the_loss_is_the_mean_square_distance_from_the_places_shown():
    """Two drops have three and two particles, which plans move by given shifts."""
    rng = np.random.default_rng(0)
    x = [rng.uniform(0.3, 0.7, (n, 2)).astype(np.float32) for n in (3, 2)]
    bodies = tuple(Body(jnp.asarray(a), Liquid(), 1e-4) for a in x)
    start = Scene(bodies, Grid(0.1, (10, 10))).init()

    def shift_state(state, shift, t):
        move = lambda b: b.replace(x=b.x + jnp.stack([jnp.asarray(s) for s in shift])[None])
        return dataclasses.replace(state, bodies=tuple(move(b) for b in state.bodies), t=t)

    def play(actions, measure):
        places = jnp.cumsum(actions, 0)
        return jax.lax.map(lambda s: measure(shift_state(start, tuple(s), jnp.float32(0))), places)

    demo = np.float32([[0.1, 0.0], [0.0, 0.2], [0.0, 0.0]])
    goal = MatchGoal(demo, frame=0.5, tolerance=0.3, bodies=(0, 1))
    reference = goal.reference(start, play)
    # The demonstration's distances from the start are 0.1 once, then (0.1, 0.2) twice.
    np.testing.assert_allclose(goal.baseline(start, reference), (0.01 + 0.05 + 0.05) / 3, rtol=1e-5)
    # The offsets are (0.1, -0.15) once, then (0.1, 0.05) twice; 0.3 of 0.0367 is 0.011.
    for t, want, won in ((0.5, 0.0325, False), (1.0, 0.0125, False), (1.5, 0.0125, False)):
        at = shift_state(start, (0.0, 0.15), jnp.float32(t))
        np.testing.assert_allclose(goal.loss(at, reference), want, rtol=1e-4)
        assert goal.success(at, reference) == won
    assert goal.success(shift_state(start, (0.05, 0.15), jnp.float32(1.5)), reference)
    # Absent particles do not count, neither in the state nor in the demonstration.
    first, second = start.bodies
    gone = dataclasses.replace(start, bodies=(first, second.replace(m=0.0, x=second.x + 0.1)))
    far = shift_state(gone, (0.0, 0.15), jnp.float32(1.0))
    np.testing.assert_allclose(goal.loss(far, reference), 0.0125, rtol=1e-4)
