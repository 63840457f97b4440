"""What tests of continuum physics share: a number of steps as one program, and filled slots."""

import jax
import numpy as np


@jax.jit
def forward(scene, state, steps=1000):
    """The state after `steps` steps; their number does not change the program."""
    return jax.lax.fori_loop(0, steps, lambda _, s: scene.step(s), state)


def positions(particles):
    """Positions [N, D] of the filled slots, m."""
    return np.asarray(particles.x)[np.asarray(particles.active)]


def velocities(particles):
    """Velocities [N, D] of the filled slots, m/s."""
    return np.asarray(particles.v)[np.asarray(particles.active)]
