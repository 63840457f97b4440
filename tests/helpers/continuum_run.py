"""Helpers for continuum tests: steps as one program, fast compilation, filled slots."""

from functools import partial

import jax
import numpy as np

# compilation of a program of a few steps takes longer than its run
UNOPTIMIZED = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
}
jit_unoptimized = partial(jax.jit, compiler_options=UNOPTIMIZED)


@jax.jit
def forward(scene, state, steps=1000):
    """Return the state after `steps` steps; their number does not change the program."""
    return jax.lax.fori_loop(0, steps, lambda _, s: scene.step(s), state)


def positions(particles):
    """Return the positions [N, D] of the filled slots, m."""
    return np.asarray(particles.x)[np.asarray(particles.active)]


def velocities(particles):
    """Return the velocities [N, D] of the filled slots, m/s."""
    return np.asarray(particles.v)[np.asarray(particles.active)]
