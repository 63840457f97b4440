"""Touch a target with an arm of two links in a plane: Gymnasium's Reacher-v5, with its robot."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs.fields import number, pytree, size
from jaxgpu.physics.rigid.model import Model

from ...environment import register
from .robot import RewardTerms, Robot, State, distance, model_field, sum_squares


@register("reacher")
@pytree
class Reacher(Robot):
    """Reacher: minus the distance of tip and target in m, minus action^2; never terminates.

    Objectives, as in MoRobtrol: both terms, unweighted. Success is a tip within `tolerance`.

    >>> from jaxgpu import rl
    >>> rl.make("reacher").reset(jax.random.key(0))[1].shape
    (10,)
    """

    model: Model = model_field("reacher.xml")
    frame_skip: int = size(default=2, least=1)  # steps of the model per step of the task
    max_steps: Array | int = number(default=50, least=1, whole=True, unit="steps")  # [] steps
    reward_dist_weight: Array | float = number(default=1.0, least=0)  # [] 1/m
    reward_control_weight: Array | float = number(default=1.0, least=0)  # []
    tolerance: Array | float = number(default=0.01, above=0, unit="m")  # [] success threshold, m

    seen_bodies = {"tip": "fingertip", "target": "target"}

    def _sample_start(self, key: Array) -> tuple[Array, Array]:
        """Return joints within 0.1 rad of straight, and a target in a disc of radius 0.2 m."""
        place, noise = jax.random.split(key)
        qpos, qvel = self._sample_near_rest(noise, 1.0)
        u, turn = jax.random.uniform(place, (2,), qpos.dtype)
        angle = 2 * np.pi * turn
        target = 0.2 * jnp.sqrt(u) * jnp.stack([jnp.cos(angle), jnp.sin(angle)])
        rest = self.model.qpos0
        qpos = jnp.concatenate([rest[:2] + 0.1 * (qpos - rest)[:2], target])
        return qpos, jnp.concatenate([0.005 * qvel[:2], jnp.zeros_like(target)])

    def _observation_size(self) -> int:
        return 10

    def _observe(self, state: State) -> Array:
        """Return cos and sin of the angles, target, joint velocities, and vector target to tip."""
        angles, target = state.body.qpos[:2], state.body.qpos[2:]
        way = (state.seen["tip"] - state.seen["target"])[:2]
        return jnp.concatenate([jnp.cos(angles), jnp.sin(angles), target, state.body.qvel[:2], way])

    def _rewards(self, before: State, after: State, ctrl: Array) -> tuple[RewardTerms, list[Array]]:
        way, effort = distance(after.seen["tip"], after.seen["target"]), sum_squares(ctrl)
        parts = {
            "reward_dist": -self.reward_dist_weight * way,
            "reward_ctrl": -self.reward_control_weight * effort,
        }
        return parts, [-way, -effort]

    def _is_success(self, state: State) -> Array:
        return distance(state.seen["tip"], state.seen["target"]) < self.tolerance
