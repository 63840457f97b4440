"""Walk forward on four legs: Gymnasium's Ant-v5, with its robot.

Schulman, Moritz, Levine, Jordan & Abbeel (2016), arXiv:1506.02438.
"""

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import number, pytree
from jaxgpu.physics.rigid import forward
from jaxgpu.physics.rigid.model import Model
from jaxgpu.physics.rigid.sensors import contact_forces

from ...environment import register
from .robot import Measurements, RewardTerms, Robot, State, healthy_bonus, model_field, sum_squares


@register("ant")
@pytree
class Ant(Robot):
    """Ant: forward velocity plus 1 while healthy, minus 0.5 action^2 and a contact cost.

    Objectives: forward velocity plus healthy reward, and the sum of both costs.

    >>> import jax
    >>> from jaxgpu import rl
    >>> rl.make("ant").reset(jax.random.key(0))[1].shape
    (105,)
    """

    model: Model = model_field("ant.xml")
    forward_reward_weight: Array | float = number(default=1.0)  # [] s/m
    ctrl_cost_weight: Array | float = number(default=0.5, least=0)  # []
    contact_cost_weight: Array | float = number(default=5e-4, least=0)  # [] per N^2 and (N m)^2
    healthy_reward: Array | float = number(default=1.0)  # []
    reset_noise_scale: Array | float = number(default=0.1, least=0)  # [] m, rad and per s

    def _sample_start(self, key: Array) -> tuple[Array, Array]:
        return self._sample_near_rest(key, self.reset_noise_scale, normal=True)

    def _measure(self, d: forward.Dynamics) -> Measurements:
        forces = jnp.clip(contact_forces(self.model, d), -1, 1)
        return {"place": d.where.pos[:2, 1], "contact": forces}

    def _initial_measurements(self, body: forward.State) -> Measurements:
        where = self.model.poses(body)
        forces = jnp.zeros((self.model.layout.nbody, 6), where.pos.dtype)
        return {"place": where.pos[:2, 1], "contact": forces}

    def _observation_size(self) -> int:
        layout = self.model.layout
        return layout.nq - 2 + layout.nv + 6 * (layout.nbody - 1)

    def _observe(self, state: State) -> Array:
        """Return qpos without x and y, qvel, and contact forces clipped to 1 N and 1 N m."""
        forces = state.seen["contact"][1:].ravel()
        return jnp.concatenate([state.body.qpos[2:], state.body.qvel, forces])

    def _rewards(self, before: State, after: State, ctrl: Array) -> tuple[RewardTerms, list[Array]]:
        speed = (after.seen["place"][0] - before.seen["place"][0]) / self._dt()
        parts = {
            "reward_forward": self.forward_reward_weight * speed,
            "reward_ctrl": -self.ctrl_cost_weight * sum_squares(ctrl),
            "reward_contact": -self.contact_cost_weight * sum_squares(after.seen["contact"]),
            "reward_survive": healthy_bonus(self._is_healthy(after), self.healthy_reward),
        }
        gains = parts["reward_forward"] + parts["reward_survive"]
        return parts, [gains, parts["reward_ctrl"] + parts["reward_contact"]]

    def _is_healthy(self, state: State) -> Array:
        """Return whether the height is in 0.2 ... 1 m and the state is finite."""
        qpos, qvel = state.body.qpos, state.body.qvel
        finite = jnp.all(jnp.isfinite(qpos)) & jnp.all(jnp.isfinite(qvel))
        return finite & (qpos[2] >= 0.2) & (qpos[2] <= 1.0)
