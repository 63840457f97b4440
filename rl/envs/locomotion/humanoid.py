"""Walk forward, or stand up: Gymnasium's Humanoid-v5 and HumanoidStandup-v5, with their robots.

Tassa, Erez & Todorov (2012), doi:10.1109/IROS.2012.6386025. The files request another contact
solver with few iterations; here the contact problem is solved to convergence.
"""

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import number, pytree
from jaxgpu.physics.rigid import forward
from jaxgpu.physics.rigid.model import Model
from jaxgpu.physics.rigid.motion import inertia
from jaxgpu.physics.rigid.motion.poses import Poses
from jaxgpu.physics.rigid.sensors import contact_forces

from ...environment import register
from ...spaces import Box
from .robot import Measurements, RewardTerms, Robot, State, healthy_bonus, model_field, sum_squares


@pytree
class _HumanoidTask(Robot):
    """Observations common to the humanoid tasks."""

    @property
    def action_space(self) -> Box:
        """Box of the actuators' controls; their gears give each joint its torque."""
        return Box(-0.4, 0.4, (self.model.layout.nu,))

    def _measure(self, d: forward.Dynamics) -> Measurements:
        forces = contact_forces(self.model, d)
        return self._body_measurements(d.where, d.motion) | {
            "actuator": d.actuator,
            "contact": forces,
        }

    def _initial_measurements(self, body: forward.State) -> Measurements:
        where = self.model.poses(body)
        seen = self._body_measurements(where, inertia.motion(self.model, where, body.qvel))
        forces = jnp.zeros((self.model.layout.nbody, 6), body.qvel.dtype)
        return seen | {"actuator": jnp.zeros_like(body.qvel), "contact": forces}

    def _body_measurements(self, where: Poses, motion: inertia.Motion) -> Measurements:
        mass = self.model.bodies.mass
        place = jnp.sum(mass[None] * where.centre[:2], 1) / jnp.sum(mass)
        return {"place": place, "inertia": motion.inertia.T, "velocity": motion.velocity.T}

    def _observation_size(self) -> int:
        layout = self.model.layout
        return layout.nq - 2 + 2 * layout.nv - 6 + (10 + 6 + 6) * (layout.nbody - 1)

    def _observe(self, state: State) -> Array:
        """Return qpos without x and y, qvel, and measured inertia, velocity, torque and force.

        For each body: its inertia and velocity about the robot's center of mass. Then follow the
        actuators' torques, then the contact forces on bodies.
        """
        body, seen = state.body, state.seen
        of_bodies = [seen[name][1:].ravel() for name in ("inertia", "velocity")]
        motors, forces = seen["actuator"][6:], seen["contact"][1:].ravel()
        return jnp.concatenate([body.qpos[2:], body.qvel, *of_bodies, motors, forces])


@register("humanoid")
@pytree
class Humanoid(_HumanoidTask):
    """Humanoid: 1.25 forward velocity plus 5 while upright, minus action and contact costs.

    The action cost is 0.1 action^2, the contact cost at most 10. Objectives, as in MoRobtrol, each
    plus 5: velocity reward, and minus action^2.

    >>> import jax
    >>> from jaxgpu import rl
    >>> rl.make("humanoid").reset(jax.random.key(0))[1].shape
    (348,)
    """

    model: Model = model_field("humanoid.xml")
    forward_reward_weight: Array | float = number(default=1.25)  # [] s/m
    ctrl_cost_weight: Array | float = number(default=0.1, least=0)  # []
    contact_cost_weight: Array | float = number(default=5e-7, least=0)  # [] per N^2 and (N m)^2
    healthy_reward: Array | float = number(default=5.0)  # []
    reset_noise_scale: Array | float = number(default=1e-2, least=0)  # [] m, rad and per s

    def _sample_start(self, key: Array) -> tuple[Array, Array]:
        return self._sample_near_rest(key, self.reset_noise_scale)

    def _rewards(self, before: State, after: State, ctrl: Array) -> tuple[RewardTerms, list[Array]]:
        speed = (after.seen["place"][0] - before.seen["place"][0]) / self._dt()
        bonus = healthy_bonus(self._is_healthy(after), self.healthy_reward)
        parts = {
            "reward_forward": self.forward_reward_weight * speed,
            "reward_ctrl": -self.ctrl_cost_weight * sum_squares(ctrl),
            "reward_contact": -_contact_cost(self.contact_cost_weight, after),
            "reward_survive": bonus,
        }
        return parts, [parts["reward_forward"] + bonus, bonus - sum_squares(ctrl)]

    def _is_healthy(self, state: State) -> Array:
        """Return whether the torso's height is in 1 ... 2 m."""
        z = state.body.qpos[2]
        return (z > 1.0) & (z < 2.0)


@register("humanoid-standup")
@pytree
class HumanoidStandup(_HumanoidTask):
    """Humanoid standup: height over the model's time step, plus 1, minus both costs.

    Never terminates. Objectives, as in MoRobtrol: the height term and the action cost.

    >>> import jax
    >>> from jaxgpu import rl
    >>> rl.make("humanoid-standup").reset(jax.random.key(0))[1].shape
    (348,)
    """

    model: Model = model_field("humanoidstandup.xml")
    ctrl_cost_weight: Array | float = number(default=0.1, least=0)  # []
    impact_cost_weight: Array | float = number(default=5e-7, least=0)  # [] per N^2 and (N m)^2
    reset_noise_scale: Array | float = number(default=1e-2, least=0)  # [] m, rad and per s

    def _sample_start(self, key: Array) -> tuple[Array, Array]:
        return self._sample_near_rest(key, self.reset_noise_scale)

    def _rewards(self, before: State, after: State, ctrl: Array) -> tuple[RewardTerms, list[Array]]:
        rise = after.body.qpos[2] / self.model.option.timestep
        parts = {
            "reward_linup": rise,
            "reward_quadctrl": -self.ctrl_cost_weight * sum_squares(ctrl),
            "reward_impact": -_contact_cost(self.impact_cost_weight, after),
            "reward_survive": jnp.ones_like(rise),
        }
        return parts, [rise, parts["reward_quadctrl"]]


def _contact_cost(weight: Array | float, state: State) -> Array:
    """Return the contact cost, at most 10."""
    return jnp.minimum(weight * sum_squares(state.seen["contact"]), 10)
