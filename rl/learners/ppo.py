"""Proximal policy optimization as one compiled program.

Schulman et al. (2017), arXiv:1707.06347, with the advantages of Schulman et al. (2016),
arXiv:1506.02438. Differences from the paper: observations and advantages are normalized, the
learning rate decays linearly to zero unless `anneal_lr` is off, and values are not clipped
(Andrychowicz et al. 2021, arXiv:2006.05990, find no benefit). A truncated episode is bootstrapped
from the value of its last observation before the reset. As options, rewards are divided by the
running standard deviation of their discounted sums, and the learning rate adapts to keep the KL
divergence of an update near a target (Rudin et al. 2022, arXiv:2109.11978; there after each
minibatch, here after each update). A training may start with the `critic` of another.

The cost per environment step is about 1 + 3 `update_epochs` passes through both networks.
"""

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import PartitionSpec

from jaxgpu.inputs import ranges
from jaxgpu.inputs.fields import number, pytree, size, static

from .. import collectives
from ..environment import Environment
from ..policies import LearnedPolicy
from ..vector import Outcome, VectorState, vectorize
from . import normalizer, optimizer
from .advantage import outcome_advantages
from .networks import ActorCritic, Categorical, Normal, clip_action, sample_noise, with_log_std
from .training import ActorCriticLearner, Critic, TrainState


@pytree
class PPO(ActorCriticLearner):
    """Proximal policy optimization (Schulman et al. 2017). Numeric fields are pytree leaves."""

    learning_rate: Array | float = number(default=1e-3, least=0)  # [] initial learning rate
    gamma: Array | float = number(default=0.99, least=0, most=1)  # [] discount
    gae_lambda: Array | float = number(default=0.95, least=0, most=1)  # [] lambda of the advantages
    clip_eps: Array | float = number(default=0.2, above=0)  # [] clip range of the probability ratio
    ent_coef: Array | float = number(default=0.0, least=0)  # [] weight of the entropy bonus
    vf_coef: Array | float = number(default=0.5, least=0)  # [] weight of the value loss
    max_grad_norm: Array | float = number(default=0.5, above=0, infinite=True)  # [] gradient clip
    target_kl: Array | float = number(
        default=0.01, above=0, unit="nats"
    )  # [] KL divergence per update, with `adaptive_lr`
    log_std: Array | float = number(
        default=-0.5, least=-10, most=3
    )  # [] initial log standard deviation of continuous actions
    update_epochs: int = size(default=4, least=1)  # epochs over each rollout
    num_minibatches: int = size(default=8, least=1)  # minibatches per epoch
    normalize_reward: bool = static(default=False)  # divide by the deviation of discounted sums
    adaptive_lr: bool = static(default=False)  # adapt the learning rate to `target_kl`
    critic: Critic | None = None  # initial critic, from another training

    def init(
        self, env: Environment, key: Array, num_updates: Array | int | None = None
    ) -> "PPOState":
        """Return the initial state: untrained networks and environments after a reset.

        `Learner.init` describes the arguments.

        Raises:
            ValueError: if the minibatches do not divide the batch, or the `critic` does not fit.
        """
        self.check_minibatches(self.num_minibatches)
        env_key, network_key = jax.random.split(key)
        observation, common = self.begin(env, env_key, num_updates)
        params = with_log_std(self._network(env).init(network_key, observation), self.log_std)
        state = PPOState(
            params=params,
            opt_state=optimizer.init(params),
            **common,
            returns=normalizer.init_returns(self.num_envs),
            lr_scale=jnp.ones((), jnp.float32),
        )
        return state if self.critic is None else self.critic.put_into("PPO", state)

    def critic_of(self, state: "PPOState") -> Critic:
        """Return the critic of a training, with which another training can start.

        >>> from jaxgpu import rl
        >>> env, ppo, key = rl.make("pendulum"), rl.PPO(num_envs=8, num_steps=8), jax.random.key(0)
        >>> taught = rl.PPO(num_envs=8, num_steps=8, critic=ppo.critic_of(ppo.init(env, key)))
        >>> (taught.init(env, jax.random.key(1)).params["params"]["critic"]["Dense_0"]["kernel"]
        ... == ppo.init(env, key).params["params"]["critic"]["Dense_0"]["kernel"]).all().item()
        True
        """
        learnt = Critic(state.params["params"]["critic"], state.obs_stats, state.returns.stats)
        ranges.check_finite("PPO.critic_of", critic=learnt)
        return learnt

    def check_devices(self, devices: int) -> None:
        """Raise if environments or minibatches cannot be sharded evenly over that many devices."""
        super().check_devices(devices)
        self.check_minibatches(self.num_minibatches, devices)

    def update(
        self, env: Environment, state: "PPOState", key: Array, axis: str | None = None
    ) -> "PPOState":
        """Return the state after a rollout of all environments and `update_epochs` passes over it.

        With the `axis` of a mesh, each of its devices calls it inside `jax.shard_map`.
        """
        roll_key, learn_key = jax.random.split(key)
        (env_state, returns), batch, report = self._rollout(env, state, roll_key, axis)
        obs_stats = normalizer.update(state.obs_stats, batch["observation"], axis)
        batch = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), batch)
        batch["observation"] = normalizer.apply(state.obs_stats, batch["observation"])
        learning_rate = self.learning_rate * state.lr_scale * self.lr_fraction(state)

        network = self._network(env)
        rows = self.steps_per_update // collectives.axis_size(axis)
        orders = optimizer.minibatches(
            learn_key, rows, self.update_epochs, self.num_minibatches, axis
        )
        orders = optimizer.replace_broken_rows(orders, batch["broken"])
        params, opt_state = optimizer.run_minibatches(
            lambda params, part: self._loss(params, network, part),
            state.params,
            state.opt_state,
            batch,
            orders,
            learning_rate,
            self.max_grad_norm,
            self.moments(batch["advantage"], orders, axis),
            axis,
        )
        pi = self._apply(network, params, batch["observation"])[0]
        after = state.advance(params, opt_state, obs_stats, env_state, report)
        lr_scale = self.adapt_lr(state.lr_scale, pi, batch, axis)
        return replace(after, returns=returns, lr_scale=lr_scale)

    def policy(self, env: Environment, state: "PPOState") -> LearnedPolicy:
        """Return the deterministic policy: the mode of the learned action distribution."""
        return replace(self, critic=None).actor_policy(env, state.params, state.obs_stats)

    def act(self, policy: LearnedPolicy, observation: Any) -> Any:
        """Return the most likely action of `policy` for an observation."""
        x = self.actor_input(policy, observation)
        return clip_action(policy.action_space, self._act(policy, policy.params, x).mode())

    def _rollout(
        self, env: Environment, state: "PPOState", key: Array, axis: str | None = None
    ) -> tuple[Any, dict, dict]:
        envs = vectorize(env, self.num_envs, axis=axis)

        def move(env_state: VectorState, inputs: tuple[Array, Any]) -> tuple[VectorState, Any]:
            noises, drawn = inputs
            x = normalizer.apply(state.obs_stats, env_state.observation)
            pi = self._act(env, state.params, x)
            action = pi.from_noise(noises)
            after, out = envs.step_with(env_state, clip_action(env.action_space, action), drawn)
            return after, (env_state.observation, pi, action, out)

        act_keys, drawn = self.rollout_inputs(envs, state.env_state, key, 1)
        noises = jax.vmap(lambda key: sample_noise(env.action_space, key, self.num_envs, axis))(
            act_keys
        )
        env_state, rows = jax.lax.scan(move, state.env_state, (noises, drawn))
        observation, pi, action, out = rows
        log_prob = pi.log_prob(action)
        value, final = self._values(env, state, observation, env_state.observation, out)
        returns, batch = self.batch(state.returns, value, final, out, axis)
        batch |= {"observation": observation, "action": action, "log_prob": log_prob}
        return (env_state, returns), batch, out.report(axis)

    def batch(
        self,
        returns: normalizer.ReturnStats,
        value: Array,
        final_value: Array,
        out: Outcome,
        axis: str | None = None,
    ) -> tuple[normalizer.ReturnStats, dict[str, Array]]:
        """Return the updated reward scaling, and the advantages and targets of a rollout [T, B]."""
        if self.normalize_reward:
            returns, reward = normalizer.scale(returns, out.reward, out.is_first, self.gamma, axis)
            out = out._replace(reward=reward)
        advantage = outcome_advantages(out, value, final_value, self.gamma, self.gae_lambda)
        batch = {"advantage": advantage, "target": advantage + value, "broken": out.broken}
        return returns, batch

    def _loss(self, params: Any, network: ActorCritic, part: dict[str, Array]) -> Array:
        return self.surrogate(*self._apply(network, params, part["observation"]), part)

    def moments(self, advantage: Array, orders: Array, axis: str | None) -> dict[str, Array] | None:
        """Return mean and deviation of the advantages per minibatch over all devices, [steps].

        They depend only on the rollout, so one reduction before the first step suffices. Without an
        `axis` return None, and `surrogate` computes them.
        """
        if axis is None:
            return None
        rows = advantage[orders]
        mean, square = collectives.moments(rows, tuple(range(1, rows.ndim)), axis)
        size = rows[0].size * collectives.axis_size(axis)
        return {"advantage_mean": mean, "advantage_std": jnp.sqrt(square / size)}

    def surrogate(self, pi: Normal | Categorical, value: Array, part: dict[str, Array]) -> Array:
        """Return the scalar loss of a minibatch: clipped objective, value error and entropy."""
        advantage = part["advantage"]
        if "advantage_mean" in part:
            mean, std = part["advantage_mean"], part["advantage_std"]
        else:
            mean, std = jnp.mean(advantage), jnp.std(advantage)
        advantage = (advantage - mean) / (std + 1e-8)
        ratio = jnp.exp(pi.log_prob(part["action"]) - part["log_prob"])
        bounded = jnp.clip(ratio, 1 - self.clip_eps, 1 + self.clip_eps)
        objective = jnp.mean(jnp.minimum(ratio * advantage, bounded * advantage))
        error = jnp.mean((value - part["target"]) ** 2)
        return self.vf_coef * error - objective - self.ent_coef * jnp.mean(pi.entropy())

    def adapt_lr(
        self,
        lr_scale: Array,
        pi: Normal | Categorical,
        batch: dict[str, Array],
        axis: str | None = None,
    ) -> Array:
        """Return the learning-rate scale: lower if KL > 2 `target_kl`, higher below half of it."""
        if not self.adaptive_lr:
            return lr_scale
        change = pi.log_prob(batch["action"]) - batch["log_prob"]
        kl = jnp.mean(jnp.exp(change) - 1 - change)  # k3 estimator of KL(old, new), unbiased, >= 0
        kl = collectives.pmean(kl, axis)
        factor = jnp.where(kl < self.target_kl / 2, 1.5, 1.0)
        return jnp.clip(lr_scale * jnp.where(kl > 2 * self.target_kl, 1 / 1.5, factor), 1e-2, 1e2)

    def _network(self, env: Environment | LearnedPolicy) -> ActorCritic:
        return ActorCritic(env.action_space, self.hidden_sizes, **self.make_encoders(env))

    def _apply(
        self, network: ActorCritic, params: Any, x: Any
    ) -> tuple[Normal | Categorical, Array]:
        out: Any = network.apply(params, x)
        return out

    def _act(self, env: Environment | LearnedPolicy, params: Any, x: Any) -> Normal | Categorical:
        out: Any = self._network(env).apply(params, x, method=ActorCritic.act)
        return out

    def _values(
        self, env: Environment, state: "PPOState", observation: Any, last: Any, out: Outcome
    ) -> tuple[Array, Array]:
        """Return values [T, B] of the observations before and after each step.

        `observation` holds those acted on, and `last` the ones to act on after the rollout.
        """
        network = self._network(env)

        def value_of(model: tuple[Any, normalizer.Normalizer], x: Any) -> Array:
            scaled = normalizer.apply(model[1], x)
            value: Any = network.apply(model[0], scaled, method=ActorCritic.value)
            return value

        model = (state.params, state.obs_stats)
        append_last = lambda x, last: jnp.concatenate([x, last[None]])
        value = value_of(model, jax.tree.map(append_last, observation, last))
        cut = out.truncated & ~out.terminated
        return value[:-1], final_values(value_of, model, value[1:], out.final, cut)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def final_values(
    value_of: Callable[[Any, Any], Array], model: Any, next_value: Array, final: Any, cut: Array
) -> Array:
    """Return values [T, B] of the observations after each step.

    They equal `value_of(model, final)`, and so do their derivatives, but are arbitrary where an
    episode terminated. Most equal the value of the next observation acted on. Only the others are
    computed: the first of each environment, then the second, and so on.

    Args:
        value_of: value function of the model and of observations [..., B].
        model: first argument of `value_of`.
        next_value: values of the next observations acted on, [T, B].
        final: observations after the steps, before resets, [T, B, ...].
        cut: [T, B] bool, steps before a reset, where the episode was truncated.
    """

    def compute_next(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        value, left = carry
        first = jnp.argmax(left, 0)
        now = left & (jnp.arange(len(left))[:, None] == first[None])
        x = jax.tree.map(lambda x: x[first, jnp.arange(x.shape[1])], final)
        return jnp.where(now, value_of(model, x)[None], value), left & ~now

    return jax.lax.while_loop(lambda carry: jnp.any(carry[1]), compute_next, (next_value, cut))[0]


@final_values.defjvp
def _final_values_jvp(
    value_of: Callable[[Any, Any], Array], primals: tuple, tangents: tuple
) -> tuple[Array, Array]:
    """Differentiate the direct formula, since a while loop has no reverse-mode derivative."""
    (model, next_value, final, cut), (model_tangent, _, final_tangent, _) = primals, tangents
    slope = jax.jvp(value_of, (model, final), (model_tangent, final_tangent))[1]
    return final_values(value_of, model, next_value, final, cut), slope


@pytree
class PPOState(TrainState):
    """Training state plus the scales of rewards and learning rate."""

    returns: normalizer.ReturnStats
    lr_scale: Array  # [] factor of the learning rate

    def partition_specs(self, axis: str) -> "PPOState":
        """Return the partition specs on a mesh with this axis: the environments are sharded."""
        places: Any = super().partition_specs(axis)
        sums: Any = PartitionSpec(axis)
        stats: Any = PartitionSpec()
        return replace(places, returns=normalizer.ReturnStats(sums, stats))
