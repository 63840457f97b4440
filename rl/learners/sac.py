"""Soft actor-critic: off-policy learning that maximizes reward plus entropy.

Haarnoja et al. (2018), arXiv:1812.05905: two critics learn soft values of rows sampled from a
replay buffer, the actor, a tanh-squashed normal distribution, maximizes the smaller of the two, and
the temperature adapts to reach a target entropy. Differences from the paper: observations are
normalized; actor, critics and temperature share one Adam step, each with its own loss; a truncated
episode is bootstrapped from the value of its last observation before the reset. As an option a
random action of the first steps is repeated, as in `pqn`, since independent steps cancel out.

An update steps all environments `num_steps` times and takes `gradient_steps` gradient steps. On a
mesh the buffer is replicated, and every device samples its share of each batch.
"""

from dataclasses import KW_ONLY, replace
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs import ranges
from jaxgpu.inputs.fields import number, pytree, size

from .. import collectives
from ..environment import Environment
from ..policies import LearnedPolicy
from ..spaces import Box
from ..vector import VectorState, vectorize
from . import normalizer, optimizer, replay
from .networks import MLP, TanhNormal, concat_vectors, rescale_action, sample_noise
from .training import ActorCriticLearner, TrainState


class Networks(nn.Module):
    """Actor and two critics."""

    actions: int  # dimension of an action
    hidden_sizes: tuple[int, ...]  # units of each hidden layer
    actor_encoder: nn.Module | None = None  # maps observations to features first
    critic_encoder: nn.Module | None = None  # the same for both critics

    def setup(self) -> None:
        """Create the three networks."""
        # flax annotates `in_axes` as int; None passes the same input to both critics
        axes: dict[str, Any] = {"in_axes": None, "axis_size": 2}
        twins: Any = nn.vmap(MLP, {"params": 0}, {"params": True}, **axes)
        self.actor = MLP(
            2 * self.actions, self.hidden_sizes, 0.01, nn.relu, encoder=self.actor_encoder
        )
        self.critics = twins(1, self.hidden_sizes, 1.0, nn.relu)

    def __call__(self, x: Any, action: Array) -> tuple[TanhNormal, Array]:
        """Evaluate all networks, for parameter initialization."""
        return self.act(x), self.q(x, action)

    def act(self, x: Any) -> TanhNormal:
        """Return the action distribution for observations [..., O]."""
        mean, log_std = jnp.split(self.actor(x), 2, -1)
        return TanhNormal(mean, jnp.clip(log_std, -10.0, 2.0))

    def q(self, x: Any, action: Array) -> Array:
        """Return Q of both critics, [2, N], for observations [N, O] and actions [N, A]."""
        x = concat_vectors(x) if self.critic_encoder is None else self.critic_encoder(x)
        return self.critics(jnp.concatenate([x, action], -1))[..., 0]


@pytree
class SAC(ActorCriticLearner):
    """Soft actor-critic (Haarnoja et al. 2018). Numeric fields are pytree leaves.

    >>> from jaxgpu import rl
    >>> env, sac = rl.make("pendulum"), SAC(num_envs=4, buffer_size=64)
    >>> act = sac.policy(env, sac.init(env, jax.random.key(0)))  # rl.train makes it better
    >>> act(env.reset(jax.random.key(1))[1]).shape
    (1,)
    """

    learning_rate: Array | float = number(default=1e-3, least=0)  # [] initial learning rate
    gamma: Array | float = number(default=0.99, least=0, most=1)  # [] discount
    tau: Array | float = number(
        default=0.005, above=0, most=1
    )  # [] step size of the target network towards the critics, per gradient step
    target_entropy: Array | float = number(
        default=-1.0, unit="nats"
    )  # [] nats per action component, for actions scaled to -1...1
    temperature: Array | float = number(default=1.0, above=0)  # [] initial entropy weight alpha
    start_steps: Array | float = number(
        default=256.0, least=0, infinite=True
    )  # [] initial environment steps with random actions
    hold: Array | float = number(
        default=0.0, least=0, most=1
    )  # [] probability that one of these is repeated in the next step
    gradient_steps: int = size(default=8, least=1)  # gradient steps per update
    batch_size: int = size(default=128, least=1)  # N, rows per gradient step
    buffer_size: int = size(default=100_000, least=1)  # C, capacity in rows
    _: KW_ONLY
    num_envs: int = size(default=8, least=1)  # B, parallel environments
    num_steps: int = size(default=1, least=1)  # T, steps of each environment per update
    shared_counts = "num_envs", "batch_size"

    def init(
        self, env: Environment, key: Array, num_updates: Array | int | None = None
    ) -> "SACState":
        """Return the initial state: untrained networks, an empty buffer and reset environments.

        `Learner.init` describes the arguments.

        Raises:
            ValueError: if actions are discrete, or the buffer is smaller than a rollout.
        """
        if not isinstance(env.action_space, Box):
            raise ValueError(
                f"SAC: {type(env).__name__} has {env.action_space.size} actions; they must be "
                "real; use PQN or PPO"
            )
        ranges.check("learn", self)
        replay.check_capacity("SAC", self.buffer_size, self.steps_per_update)
        env_key, network_key = jax.random.split(key)
        observation, common = self.begin(env, env_key, num_updates)
        action = jnp.zeros(env.action_space.shape)
        network = self._network(env)
        rows = jax.tree.map(lambda x: x[None], observation)
        weights: Any = network.init(network_key, rows, action[None])
        alpha = self.temperature * jnp.ones((), jnp.float32)
        params = {"weights": weights, "log_alpha": jnp.log(alpha)}
        row = {
            "observation": observation,
            "action": action,
            "reward": jnp.zeros(()),
            "next_observation": observation,
            "terminated": jnp.bool_(False),
        }
        common["report"]["temperature"] = alpha
        return SACState(
            params=params,
            opt_state=optimizer.init(params),
            **common,
            target=weights,
            replay=replay.init(row, self.buffer_size),
        )

    def update(
        self, env: Environment, state: "SACState", key: Array, axis: str | None = None
    ) -> "SACState":
        """Return the state after `num_steps` steps per environment and `gradient_steps` descents.

        With the `axis` of a mesh, each of its devices calls it inside `jax.shard_map`.
        """
        roll_key, learn_key = jax.random.split(key)
        env_state, rows, report = self._rollout(env, state, roll_key, axis)
        buffer, rows = replay.add_rollout(state.replay, rows, axis)
        obs_stats = normalizer.update(state.obs_stats, rows["observation"])
        learning_rate = self.learning_rate * self.lr_fraction(state)
        learning_rate = jnp.where(buffer.size > 0, learning_rate, 0.0)
        gradient_of = jax.grad(self._loss)

        def learn(loop: Any, key: Array) -> tuple[Any, None]:
            params, target, opt_state = loop
            draw_key, act_key = jax.random.split(key)
            part = replay.sample(buffer, draw_key, self.batch_size, axis)
            for name in ("observation", "next_observation"):
                part[name] = normalizer.apply(obs_stats, part[name])
            gradient = gradient_of(params, target, env, part, act_key, axis)
            params, opt_state = optimizer.descend(
                params, opt_state, gradient, learning_rate, jnp.inf, axis
            )
            interpolate = lambda old, new: old + self.tau * (new - old)
            return (params, jax.tree.map(interpolate, target, params["weights"]), opt_state), None

        keys = jax.random.split(learn_key, self.gradient_steps)
        start = (state.params, state.target, state.opt_state)
        (params, target, opt_state), _ = jax.lax.scan(learn, start, keys)
        report["temperature"] = jnp.exp(params["log_alpha"])
        after = state.advance(params, opt_state, obs_stats, env_state, report)
        return replace(after, target=target, replay=buffer)

    def policy(self, env: Environment, state: "SACState") -> LearnedPolicy:
        """Return the deterministic policy: tanh of the mean, scaled to the action bounds."""
        return self.actor_policy(env, state.params["weights"], state.obs_stats)

    def act(self, policy: LearnedPolicy, observation: Any) -> Array:
        """Return the deterministic action of `policy` for an observation."""
        x = self.actor_input(policy, observation)
        choice = self._act(policy, {"weights": policy.params}, x)
        return rescale_action(policy.action_space, choice.mode())

    def _rollout(
        self, env: Environment, state: "SACState", key: Array, axis: str | None = None
    ) -> tuple[Any, dict, dict]:
        envs, space = vectorize(env, self.num_envs, axis=axis), env.action_space
        steps_done = (state.update * self.steps_per_update).astype(jnp.float32)

        def move(loop: tuple[VectorState, Array], inputs: Any) -> tuple[Any, Any]:
            (env_state, held), (act_key, random_key, drawn, i) = loop, inputs
            x = normalizer.apply(state.obs_stats, env_state.observation)
            noises = sample_noise(space, act_key, self.num_envs, axis)
            action, _ = self._act(env, state.params, x).from_noise(noises)
            any_action = jax.random.uniform(random_key, (self.num_envs, *space.shape), minval=-1.0)
            any_action = collectives.local_rows(any_action, axis)
            hold_key = jax.random.fold_in(random_key, 0)
            hold = jax.random.uniform(hold_key, (self.num_envs, 1)) < self.hold
            hold = collectives.local_rows(hold, axis)
            any_action = jnp.where(hold & (i > 0), held, any_action)
            early = steps_done + (i * self.num_envs).astype(jnp.float32) < self.start_steps
            action = jnp.where(early, any_action, action)
            after, out = envs.step_with(env_state, rescale_action(space, action), drawn)
            return (after, action), (env_state.observation, action, out)

        inputs = (*self.rollout_inputs(envs, state.env_state, key, 2), jnp.arange(self.num_steps))
        start = state.env_state, jnp.zeros((envs.num_local, *space.shape))
        (env_state, _), (observation, action, out) = jax.lax.scan(move, start, inputs)
        rows = {
            "observation": observation,
            "action": action,
            "reward": out.reward,
            "next_observation": out.final,
            "terminated": out.terminated,
            "broken": out.broken,
        }
        return env_state, rows, out.report(axis)

    def _loss(
        self,
        params: Any,
        target: Any,
        env: Environment,
        part: Any,
        key: Array,
        axis: str | None = None,
    ) -> Array:
        """Return the sum of critic, actor and temperature losses, whose gradients do not mix."""
        network, held = self._network(env), jax.lax.stop_gradient(params)
        alpha = jnp.exp(held["log_alpha"])
        action_key, next_key = jax.random.split(key)
        x, next_x = part["observation"], part["next_observation"]
        action_noise = lambda key: sample_noise(env.action_space, key, self.batch_size, axis)

        next_action, next_log_prob = self._act(env, held, next_x).from_noise(action_noise(next_key))
        next_q: Any = network.apply(target, next_x, next_action, method=Networks.q)
        soft = jnp.min(next_q, 0) - alpha * next_log_prob
        goal = part["reward"] + self.gamma * jnp.where(part["terminated"], 0.0, soft)
        q: Any = network.apply(params["weights"], x, part["action"], method=Networks.q)
        error = 0.5 * jnp.sum(jnp.mean((q - goal[None]) ** 2, 1))

        action, log_prob = self._act(env, params, x).from_noise(action_noise(action_key))
        q = network.apply(held["weights"], x, action, method=Networks.q)
        loss = jnp.mean(alpha * log_prob - jnp.min(q, 0))
        target_entropy = self.target_entropy * action.shape[-1]
        excess = -jax.lax.stop_gradient(jnp.mean(log_prob)) - target_entropy
        return error + loss + params["log_alpha"] * excess

    def _network(self, env: Any) -> Networks:
        return Networks(env.action_space.shape[0], self.hidden_sizes, **self.make_encoders(env))

    def _act(self, env: Environment | LearnedPolicy, params: Any, x: Any) -> TanhNormal:
        out: Any = self._network(env).apply(params["weights"], x, method=Networks.act)
        return out


@pytree
class SACState(TrainState):
    """Training state; `params` has the network weights and the log temperature."""

    target: Any  # target network, of which only the critics are used
    replay: replay.Replay  # replay buffer
