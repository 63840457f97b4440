"""What tests of continuum physics share: a number of steps as one program."""

import jax

from jaxgpu.physics.continuum import step


@jax.jit
def forward(scene, state, steps=1000):
    """The state after `steps` steps; their number does not change the program."""
    return jax.lax.fori_loop(0, steps, lambda _, s: step(scene, s), state)
