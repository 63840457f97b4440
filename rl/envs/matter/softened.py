"""A task whose tool is felt ahead of its surface: to plan on, not to be scored on."""

import dataclasses

from jax import Array

from jaxgpu.physics.continuum import Soft

from .task import Matter


def softened(env: Matter, length: Array | float, rate: Array | float = 100.0) -> Matter:
    """The task with soft contact of its first tool, as FluidLab plans (arXiv:2303.02346).

    States are the same, so that a plan found here is played in `env`.

    Args:
        env: any task of matter.
        length: how far ahead the tool is felt, m; a cell or two.
        rate: how firmly, 1/s; see `continuum.Soft`.
    """
    led, *others = env.scene.colliders
    tools = (dataclasses.replace(led, soft=Soft(length, rate)), *others)
    return dataclasses.replace(env, scene=dataclasses.replace(env.scene, colliders=tools))
