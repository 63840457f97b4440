"""Hop forward on one leg: gymnasium's Hopper-v5, on its robot.

Erez, Tassa & Todorov (2012), Infinite-horizon model predictive control for nonlinear periodic
tasks with contacts, Robotics: Science and Systems VII.
"""

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import pytree
from jaxgpu.physics.rigid.model import Model

from ...environment import register
from .robot import Parts, State, robot, square
from .runner import UprightRunner


@register("hopper")
@pytree
class Hopper(UprightRunner):
    """Speed forward, 1 for being upright, less 0.001 times the action's square.

    Objectives, as in MoRobtrol: speed, height above the start in dm, and thrift, each with the 1.

    >>> import jax
    >>> from jaxgpu import rl
    >>> rl.make("hopper").reset(jax.random.key(0))[1].shape
    (11,)
    """

    model: Model = robot("hopper.xml")

    def _rewards(self, before: State, after: State, ctrl: Array) -> tuple[Parts, list[Array]]:
        parts = self._upright_parts(before, after, ctrl)
        bonus = parts["reward_survive"]
        rise = after.body.qpos[1] - self.model.qpos0[1]
        return parts, [parts["reward_forward"] + bonus, 10 * rise + bonus, bonus - square(ctrl)]

    def _healthy(self, state: State) -> Array:
        """Higher than 0.7 m, within 0.2 rad of upright, and no number of 100 or more."""
        z, angle = state.body.qpos[1], state.body.qpos[2]
        others = jnp.concatenate([state.body.qpos[2:], state.body.qvel])
        return (z > 0.7) & (jnp.abs(angle) < 0.2) & jnp.all(jnp.abs(others) < 100)
