"""Balance two poles on a cart: Gymnasium's InvertedDoublePendulum-v5, with its robot."""

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs.fields import number, pytree
from jaxgpu.physics.rigid import forward
from jaxgpu.physics.rigid.model import Model

from ...environment import register
from .robot import Measurements, RewardTerms, Robot, State, healthy_bonus, model_field


@register("inverted-double-pendulum")
@pytree
class InvertedDoublePendulum(Robot):
    """Double pendulum: 10 while the tip is above 1 m, minus position and velocity penalties.

    The penalties are 0.01 x^2 + (z - 2)^2 of the tip, and 0.001 and 0.005 times the squared joint
    velocities. Objectives, as in MoRobtrol: 10 minus the one penalty, and 10 minus the other.

    >>> import jax
    >>> from jaxgpu import rl
    >>> rl.make("inverted-double-pendulum").reset(jax.random.key(0))[1].shape
    (9,)
    """

    model: Model = model_field("inverted_double_pendulum.xml")
    healthy_reward: Array | float = number(default=10.0)  # []
    reset_noise_scale: Array | float = number(default=0.1, least=0)  # [] m, rad and per s

    def _sample_start(self, key: Array) -> tuple[Array, Array]:
        return self._sample_near_rest(key, self.reset_noise_scale, normal=True)

    def _measure(self, d: forward.Dynamics) -> Measurements:
        sites, body = self.model.sites, np.array(self.model.layout.site_body)
        tip = d.where.to_world(body, sites.pos)[0][:, 0]
        return {"tip": tip, "constraint": d.constraint[0]}

    def _initial_measurements(self, body: forward.State) -> Measurements:
        return self._measure(self.model.forward(body))

    def _observation_size(self) -> int:
        return 9

    def _observe(self, state: State) -> Array:
        """Return cart, sin, cos of the angles; velocities, constraint force, both clipped to 10."""
        qpos, force = state.body.qpos, jnp.clip(state.seen["constraint"], -10, 10)
        speed = jnp.clip(state.body.qvel, -10, 10)
        return jnp.concatenate([qpos[:1], jnp.sin(qpos[1:]), jnp.cos(qpos[1:]), speed, force[None]])

    def _rewards(self, before: State, after: State, ctrl: Array) -> tuple[RewardTerms, list[Array]]:
        x, _, z = after.seen["tip"]
        _, v1, v2 = after.body.qvel
        bonus = healthy_bonus(self._is_healthy(after), self.healthy_reward)
        parts = {
            "reward_survive": bonus,
            "distance_penalty": -(0.01 * x**2 + (z - 2) ** 2),
            "velocity_penalty": -(1e-3 * v1**2 + 5e-3 * v2**2),
        }
        return parts, [bonus + parts["distance_penalty"], bonus + parts["velocity_penalty"]]

    def _is_healthy(self, state: State) -> Array:
        """Return whether the tip is above 1 m."""
        return state.seen["tip"][2] > 1
