"""Helpers of the tests of continuum physics: steps as one program, cheap ones, filled slots."""

from functools import partial

import jax
import numpy as np

# the compiler works longer on a program of a few steps than the program does
UNOPTIMIZED = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
}
jit_unoptimized = partial(jax.jit, compiler_options=UNOPTIMIZED)


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
