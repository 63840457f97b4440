"""Push a cylinder to a goal with an arm of seven joints: Gymnasium's Pusher-v5, with its robot."""

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import number, pytree
from jaxgpu.physics.rigid.model import Model

from ...environment import register
from ...spaces import Box
from .robot import RewardTerms, Robot, State, distance, model_field, sum_squares

_TRIES = 32  # of placing the object; all fail with probability 1e-13


@register("pusher")
@pytree
class Pusher(Robot):
    """Pusher: minus the distances object to goal, half tip to object, and an action cost.

    The cost is 0.1 action^2; never terminates. Objectives, as in MoRobtrol: near, distance and
    control, unweighted. Success is an object within `tolerance`.

    >>> from jaxgpu import rl
    >>> rl.make("pusher").reset(jax.random.key(0))[1].shape
    (23,)
    """

    model: Model = model_field("pusher_v5.xml")
    max_steps: Array | int = number(default=100, least=1, whole=True, unit="steps")  # [] steps
    reward_near_weight: Array | float = number(default=0.5, least=0)  # [] 1/m
    reward_dist_weight: Array | float = number(default=1.0, least=0)  # [] 1/m
    reward_control_weight: Array | float = number(default=0.1, least=0)  # []
    tolerance: Array | float = number(default=0.05, above=0, unit="m")  # [] success threshold, m

    seen_bodies = {"tip": "tips_arm", "object": "object", "goal": "goal"}

    @property
    def action_space(self) -> Box:
        """Box of the actuators' torques, N m."""
        return Box(-2.0, 2.0, (self.model.layout.nu,))

    def _sample_start(self, key: Array) -> tuple[Array, Array]:
        """Return the arm at rest, and the object to its left, at least 0.17 m from the goal."""
        place, speed = jax.random.split(key)
        rest, layout = self.model.qpos0, self.model.layout
        corner, sides = jnp.array([-0.3, -0.2], rest.dtype), jnp.array([0.3, 0.4], rest.dtype)
        tries = corner[None] + sides[None] * jax.random.uniform(place, (_TRIES, 2), rest.dtype)
        far = jnp.sum(tries * tries, 1) > 0.17**2
        found = tries[jnp.argmax(far)]
        qvel = 0.005 * jax.random.uniform(speed, (layout.nv - 4,), rest.dtype, -1, 1)
        zero = jnp.zeros(2, rest.dtype)
        return jnp.concatenate([rest[:-4], found, zero]), jnp.concatenate([qvel, zero, zero])

    def _observation_size(self) -> int:
        return 23

    def _observe(self, state: State) -> Array:
        """Return angles and velocities of the arm, and positions of tip, object and goal."""
        arm = [state.body.qpos[:7], state.body.qvel[:7]]
        return jnp.concatenate([*arm, *(state.seen[name] for name in ("tip", "object", "goal"))])

    def _rewards(self, before: State, after: State, ctrl: Array) -> tuple[RewardTerms, list[Array]]:
        seen, effort = after.seen, sum_squares(ctrl)
        near, way = (distance(seen["object"], seen[name]) for name in ("tip", "goal"))
        parts = {
            "reward_dist": -self.reward_dist_weight * way,
            "reward_ctrl": -self.reward_control_weight * effort,
            "reward_near": -self.reward_near_weight * near,
        }
        return parts, [-near, -way, -effort]

    def _is_success(self, state: State) -> Array:
        return distance(state.seen["object"], state.seen["goal"]) < self.tolerance
