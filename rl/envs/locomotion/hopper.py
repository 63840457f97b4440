"""Hop forward on one leg: Gymnasium's Hopper-v5, with its robot.

Erez, Tassa & Todorov (2012), Infinite-horizon model predictive control for nonlinear periodic
tasks with contacts, Robotics: Science and Systems VII.
"""

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import pytree
from jaxgpu.physics.rigid.model import Model

from ...environment import register
from .robot import RewardTerms, State, model_field, sum_squares
from .runner import UprightRunner


@register("hopper")
@pytree
class Hopper(UprightRunner):
    """Hopper: forward velocity plus 1 while upright, minus 0.001 action^2.

    Objectives, as in MoRobtrol, each plus 1: velocity, height gained in dm, minus action^2.

    >>> import jax
    >>> from jaxgpu import rl
    >>> rl.make("hopper").reset(jax.random.key(0))[1].shape
    (11,)
    """

    model: Model = model_field("hopper.xml")

    def _rewards(self, before: State, after: State, ctrl: Array) -> tuple[RewardTerms, list[Array]]:
        parts = self._upright_reward_terms(before, after, ctrl)
        bonus = parts["reward_survive"]
        rise = after.body.qpos[1] - self.model.qpos0[1]
        return parts, [
            parts["reward_forward"] + bonus,
            10 * rise + bonus,
            bonus - sum_squares(ctrl),
        ]

    def _is_healthy(self, state: State) -> Array:
        """Return whether z > 0.7 m, |tilt| < 0.2 rad, and all other states are within 100."""
        z, angle = state.body.qpos[1], state.body.qpos[2]
        others = jnp.concatenate([state.body.qpos[2:], state.body.qvel])
        return (z > 0.7) & (jnp.abs(angle) < 0.2) & jnp.all(jnp.abs(others) < 100)
