"""Base classes of running tasks: reward for velocity along x, cost of the action."""

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import number, pytree, size

from .robot import RewardTerms, Robot, State, healthy_bonus, sum_squares


@pytree
class Runner(Robot):
    """Running task of a robot whose coordinates start with its position."""

    forward_reward_weight: Array | float = number(default=1.0)  # [] s/m
    ctrl_cost_weight: Array | float = number(default=0.1, least=0)  # []

    unobserved = 1  # number of leading coordinates to omit: x, or x and y

    def _observation_size(self) -> int:
        layout = self.model.layout
        return layout.nq - self.unobserved + layout.nv

    def _observe(self, state: State) -> Array:
        """Return the observed coordinates, and velocities."""
        return jnp.concatenate([state.body.qpos[self.unobserved :], state.body.qvel])

    def _rewards(self, before: State, after: State, ctrl: Array) -> tuple[RewardTerms, list[Array]]:
        parts = self._reward_terms(self._forward_velocity(before, after), ctrl)
        return parts, [*parts.values()]

    def _forward_velocity(self, before: State, after: State) -> Array:
        return (after.body.qpos[0] - before.body.qpos[0]) / self._dt()

    def _reward_terms(self, speed: Array, ctrl: Array) -> RewardTerms:
        return {
            "reward_forward": self.forward_reward_weight * speed,
            "reward_ctrl": -self.ctrl_cost_weight * sum_squares(ctrl),
        }


@pytree
class UprightRunner(Runner):
    """Running task in a plane with an additional reward for being upright."""

    frame_skip: int = size(default=4, least=1)  # steps of the model per step of the task
    ctrl_cost_weight: Array | float = number(default=1e-3, least=0)  # []
    healthy_reward: Array | float = number(default=1.0)  # []
    reset_noise_scale: Array | float = number(default=5e-3, least=0)  # [] m, rad and per s

    def _sample_start(self, key: Array) -> tuple[Array, Array]:
        return self._sample_near_rest(key, self.reset_noise_scale)

    def _observe(self, state: State) -> Array:
        """Return all coordinates except x, and velocities clipped to 10."""
        return jnp.concatenate([state.body.qpos[1:], jnp.clip(state.body.qvel, -10, 10)])

    def _upright_reward_terms(self, before: State, after: State, ctrl: Array) -> RewardTerms:
        speed = self._forward_velocity(before, after)
        bonus = healthy_bonus(self._is_healthy(after), self.healthy_reward)
        return self._reward_terms(speed, ctrl) | {"reward_survive": bonus}

    def _rewards(self, before: State, after: State, ctrl: Array) -> tuple[RewardTerms, list[Array]]:
        parts = self._upright_reward_terms(before, after, ctrl)
        bonus = parts["reward_survive"]
        return parts, [parts["reward_forward"] + bonus, bonus - sum_squares(ctrl)]
