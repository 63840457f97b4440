"""Short-horizon actor-critic: policy gradients through a differentiable simulation.

Xu et al. (2022), arXiv:2204.07137. The actor ascends the analytic gradient of the discounted
rewards of a short window plus the target critic's value at the end of each path. The critic learns
TD(lambda) targets, and the target network follows the critic slowly. Differences from the paper:
observations are normalized; as an option a fraction of the environments is reset after each window.
Without it, where episodes end only by the time limit, all environments run in step, and the critic
sees the states after a reset once in many windows.

Two further options suit robots in contact. `actor_lambda` below 1 replaces the value at the end of
a path by the TD(lambda) mean of the values along it, so that the critic, which has learned where
robots fall, contributes at every step (as in Hafner et al. 2020, arXiv:1912.01603, equation 6).
`max_slope` clips the gradient that a single action of a single environment contributes.
"""

from dataclasses import KW_ONLY, replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import number, pytree, size

from .. import collectives
from ..environment import Environment
from ..policies import LearnedPolicy
from ..spaces import Box
from ..vector import vectorize
from . import normalizer, optimizer
from .advantage import outcome_advantages
from .networks import ActorCritic, Normal, rescale_action, sample_noise
from .training import ActorCriticLearner, TrainState


@pytree
class SHAC(ActorCriticLearner):
    """Short-horizon actor-critic (Xu et al. 2022). Numeric fields are pytree leaves."""

    learning_rate: Array | float = number(default=3e-3, least=0)  # [] initial, of the actor
    critic_learning_rate: Array | float = number(default=2e-3, least=0)  # [] initial, of the critic
    gamma: Array | float = number(default=0.97, least=0, most=1)  # [] discount
    td_lambda: Array | float = number(default=0.95, least=0, most=1)  # [] of the critic's targets
    tau: Array | float = number(
        default=0.2, above=0, most=1
    )  # [] step size of the target network towards the critic, per update
    max_grad_norm: Array | float = number(default=1.0, above=0, infinite=True)  # [] gradient clip
    reset_prob: Array | float = number(
        default=0.0, least=0, most=1
    )  # [] probability that an environment is reset after a window
    critic_iterations: int = size(default=8, least=1)  # passes of the critic over a window
    actor_lambda: Array | float = number(
        default=1.0, least=0, most=1
    )  # [] of the actor's returns; 1: only the values at ends of windows and episodes
    max_slope: Array | float | None = number(
        default=None, above=0, none=True
    )  # [] clip of the gradient of a path's return by one of its actions; None: no clip
    _: KW_ONLY
    num_steps: int = size(default=16, least=1)  # T, steps in a window

    def init(
        self, env: Environment, key: Array, num_updates: Array | int | None = None
    ) -> "SHACState":
        """Return the initial state: untrained networks and environments after a reset.

        `Learner.init` describes the arguments.

        Raises:
            ValueError: if the environment is not differentiable.
        """
        if not env.differentiable or not isinstance(env.action_space, Box):
            raise ValueError(
                f"SHAC: {type(env).__name__} is not differentiable; use PPO, or give an "
                "environment with `differentiable` true and real actions"
            )
        env_key, network_key = jax.random.split(key)
        observation, common = self.begin(env, env_key, num_updates)
        params = self._network(env).init(network_key, observation)
        opt_state = {"actor": optimizer.init(params), "critic": optimizer.init(params)}
        return SHACState(params=params, opt_state=opt_state, **common, target=params)

    def update(
        self, env: Environment, state: "SHACState", key: Array, axis: str | None = None
    ) -> "SHACState":
        """Return the state after a window: one actor step, then `critic_iterations` critic steps.

        With the `axis` of a mesh, each of its devices calls it inside `jax.shard_map`.
        """
        lr_fraction = self.lr_fraction(state)
        gradient_of = jax.grad(self._window_loss, has_aux=True)
        gradient, (env_state, batch, report) = gradient_of(state.params, env, state, key, axis)
        params, actor_state = optimizer.descend(
            state.params,
            state.opt_state["actor"],
            gradient,
            self.learning_rate * lr_fraction,
            self.max_grad_norm,
            axis,
        )
        network = self._network(env)
        critic_rate = self.critic_learning_rate * lr_fraction

        def error(params: Any) -> Array:
            value: Any = network.apply(params, batch["observation"], method=ActorCritic.value)
            return jnp.mean(jnp.where(batch["broken"], 0.0, value - batch["target"]) ** 2)

        def learn(loop: Any, _: None) -> tuple[Any, None]:
            params, opt_state = loop
            gradient = jax.grad(error)(params)
            new = optimizer.descend(
                params, opt_state, gradient, critic_rate, self.max_grad_norm, axis
            )
            return new, None

        start = (params, state.opt_state["critic"])
        (params, critic_state), _ = jax.lax.scan(learn, start, length=self.critic_iterations)
        interpolate = lambda old, new: old + self.tau * (new - old)
        opt_state = {"actor": actor_state, "critic": critic_state}
        obs_stats = normalizer.update(state.obs_stats, batch["raw"], axis)
        after = state.advance(params, opt_state, obs_stats, env_state, report)
        return replace(after, target=jax.tree.map(interpolate, state.target, params))

    def policy(self, env: Environment, state: "SHACState") -> LearnedPolicy:
        """Return the deterministic policy: tanh of the mean, scaled to the action bounds."""
        return self.actor_policy(env, state.params, state.obs_stats)

    def act(self, policy: LearnedPolicy, observation: Any) -> Array:
        """Return the deterministic action of `policy` for an observation."""
        x = self.actor_input(policy, observation)
        choice = jnp.tanh(self._act(policy, policy.params, x).mode())
        return rescale_action(policy.action_space, choice)

    def _window_loss(
        self,
        params: Any,
        env: Environment,
        state: "SHACState",
        key: Array,
        axis: str | None = None,
    ) -> Any:
        """Return minus the mean return per step of the window, with the value after its end."""
        envs, network = vectorize(env, self.num_envs, axis=axis), self._network(env)
        # The derivative recomputes the intermediates of a step, cheaper than to store them.
        step_with = jax.checkpoint(envs.step_with, prevent_cse=False)

        def value_of(x: Any) -> Array:
            value: Any = network.apply(state.target, x, method=ActorCritic.value)
            return value

        steps, most = self.num_steps * envs.num_local, self.max_slope
        most = None if most is None else most / steps  # the objective is a mean over these
        kept = self.gamma * self.actor_lambda

        def move(loop: Any, inputs: Any) -> tuple[Any, Any]:
            (env_state, weight), (act_key, drawn, reset) = loop, inputs
            x = normalizer.apply(state.obs_stats, env_state.observation)
            noises = sample_noise(env.action_space, act_key, self.num_envs, axis)
            choice = self._act(env, params, x).from_noise(noises)
            action = _clip_gradient(rescale_action(env.action_space, jnp.tanh(choice)), most)
            after, out = step_with(env_state, action, drawn, reset)
            final = value_of(normalizer.apply(state.obs_stats, out.final))
            future = self.gamma * jnp.where(out.terminated, 0.0, final)
            # A path that ends adds the target critic's value; the next path starts undiscounted.
            heard = jnp.where(out.is_first, 1.0, 1 - self.actor_lambda)
            gain = weight * (out.reward + heard * future)
            later = jnp.where(out.is_first, 1.0, weight * kept)
            row = (env_state.observation, x, out, final, gain, weight * future)
            return (after, later), row

        start = (state.env_state, jnp.ones(envs.num_local))
        reset = self._reset_mask(jax.random.fold_in(key, 0), axis)
        inputs = (*self.rollout_inputs(envs, state.env_state, key, 1), reset)
        (env_state, _), (raw, x, out, final, gain, beyond) = jax.lax.scan(move, start, inputs)
        # the values after paths that have not ended
        ahead = jnp.where(out.is_first[-1], 0.0, self.actor_lambda * beyond[-1])
        loss = -jnp.mean(jnp.sum(gain, 0) + ahead) / self.num_steps
        value = value_of(x)
        target = value + outcome_advantages(out, value, final, self.gamma, self.td_lambda)
        batch = {"raw": raw, "observation": x, "target": target, "broken": out.broken}
        return loss, jax.lax.stop_gradient((env_state, batch, out.report(axis)))

    def _reset_mask(self, key: Array, axis: str | None = None) -> Array:
        """Return the mask [T, B] of resets: a random fraction of environments, after the last step.

        The critic has valued the ends of their paths before.
        """
        share = (
            collectives.local_rows(jax.random.uniform(key, (self.num_envs,)), axis)
            < self.reset_prob
        )
        return (jnp.arange(self.num_steps) == self.num_steps - 1)[:, None] & share[None]

    def _network(self, env: Environment | LearnedPolicy) -> ActorCritic:
        return ActorCritic(
            env.action_space, self.hidden_sizes, log_std=-1.0, **self.make_encoders(env)
        )

    def _act(self, env: Environment | LearnedPolicy, params: Any, x: Any) -> Normal:
        choice: Any = self._network(env).apply(params, x, method=ActorCritic.act)
        return choice


@jax.custom_vjp
def _clip_gradient(action: Array, most: Array | float | None) -> Array:
    """Return actions [B, A] unchanged; in reverse, clip each gradient to norm `most`, NaN to zero.

    Where a copy breaks, the gradients of its earlier steps are NaN, even when multiplied by zero.
    """
    del most
    return action


def _clip_gradient_bwd(most: Array | float | None, slope: Array) -> tuple[Array, None]:
    good = jnp.all(jnp.isfinite(slope), -1, keepdims=True)
    slope = jnp.where(good, slope, 0.0)
    if most is None:
        return slope, None
    square = jnp.sum(slope**2, -1, keepdims=True)
    norm = jnp.sqrt(jnp.where(square > 0, square, 1.0))
    return slope * jnp.minimum(1.0, most / norm), None


_clip_gradient.defvjp(lambda action, most: (action, most), _clip_gradient_bwd)


@pytree
class SHACState(TrainState):
    """Training state; `opt_state` has one entry for the `actor` and one for the `critic`."""

    target: Any  # target network, of which only the critic is used
