"""Parallelized Q-network: Q-learning without a replay buffer or a target network.

Gallici et al. (2024), arXiv:2407.04811: many environments explore epsilon-greedily with a decaying
epsilon; a network with LayerNorm learns their Q(lambda) returns in a few epochs, and the rollout is
discarded. Differences from the paper: observations are normalized, the learning rate decays
linearly to zero, and a truncated episode is bootstrapped from the value of its last observation
before the reset. As an option a random action is repeated (Dabney et al. 2021, arXiv:2006.01782;
here for a geometric number of steps, at most to the end of the rollout or episode), since
independent random steps cancel out and do not reach distant rewards.
"""

from dataclasses import KW_ONLY
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import number, pytree, size

from .. import collectives
from ..environment import Environment
from ..policies import LearnedPolicy, make_policy
from ..spaces import Discrete
from ..vector import VectorState, vectorize
from . import normalizer, optimizer
from .advantage import outcome_advantages
from .networks import MLP
from .training import RolloutLearner, TrainState


@pytree
class PQN(RolloutLearner):
    """Parallelized Q-network (Gallici et al. 2024). Numeric fields are pytree leaves.

    >>> from jaxgpu import rl
    >>> env, pqn = rl.make("cartpole"), PQN(num_envs=4)
    >>> act = pqn.policy(env, pqn.init(env, jax.random.key(0)))  # rl.train makes it better
    >>> act(env.reset(jax.random.key(1))[1]).shape
    ()
    """

    learning_rate: Array | float = number(default=1e-3, least=0)  # [] initial learning rate
    gamma: Array | float = number(default=0.99, least=0, most=1)  # [] discount
    q_lambda: Array | float = number(default=0.65, least=0, most=1)  # [] of the returns
    epsilon_start: Array | float = number(
        default=1.0, least=0, most=1
    )  # [] initial fraction of random actions
    epsilon_finish: Array | float = number(
        default=0.05, least=0, most=1
    )  # [] final fraction of random actions
    exploration_fraction: Array | float = number(
        default=0.5, above=0, most=1
    )  # [] fraction of the updates over which epsilon decays
    hold: Array | float = number(
        default=0.0, least=0, most=1
    )  # [] probability that a random action is repeated in the next step
    max_grad_norm: Array | float = number(default=10.0, above=0, infinite=True)  # [] gradient clip
    update_epochs: int = size(default=4, least=1)  # epochs over each rollout
    num_minibatches: int = size(default=8, least=1)  # minibatches per epoch
    _: KW_ONLY
    num_envs: int = size(default=32, least=1)  # B, parallel environments

    def init(
        self, env: Environment, key: Array, num_updates: Array | int | None = None
    ) -> TrainState:
        """Return the initial state: an untrained network and environments after a reset.

        `Learner.init` describes the arguments.

        Raises:
            ValueError: if actions are continuous, or the minibatches do not divide the batch.
        """
        if not isinstance(env.action_space, Discrete):
            raise ValueError(
                f"PQN: {type(env).__name__} has real actions; it must have a finite number of "
                "them; use PPO"
            )
        self.check_minibatches(self.num_minibatches)
        env_key, network_key = jax.random.split(key)
        observation, common = self.begin(env, env_key, num_updates)
        params = self._network(env).init(network_key, observation)
        return TrainState(params=params, opt_state=optimizer.init(params), **common)

    def check_devices(self, devices: int) -> None:
        """Raise if environments or minibatches cannot be sharded evenly over that many devices."""
        super().check_devices(devices)
        self.check_minibatches(self.num_minibatches, devices)

    def update(
        self, env: Environment, state: TrainState, key: Array, axis: str | None = None
    ) -> TrainState:
        """Return the state after a rollout of all environments and `update_epochs` passes over it.

        With the `axis` of a mesh, each of its devices calls it inside `jax.shard_map`.
        """
        roll_key, learn_key = jax.random.split(key)
        env_state, observations, batch, report = self._rollout(env, state, roll_key, axis)
        batch = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), batch)

        def loss(params: Any, part: dict[str, Array]) -> Array:
            q = self._q_values(env, params, part["observation"])
            q = jnp.take_along_axis(q, part["action"][:, None], 1)[:, 0]
            return 0.5 * jnp.mean((q - part["target"]) ** 2)

        rows = self.steps_per_update // collectives.axis_size(axis)
        orders = optimizer.minibatches(
            learn_key, rows, self.update_epochs, self.num_minibatches, axis
        )
        params, opt_state = optimizer.run_minibatches(
            loss,
            state.params,
            state.opt_state,
            batch,
            optimizer.replace_broken_rows(orders, batch["broken"]),
            self.learning_rate * self.lr_fraction(state),
            self.max_grad_norm,
            axis=axis,
        )
        obs_stats = normalizer.update(state.obs_stats, observations, axis)
        return state.advance(params, opt_state, obs_stats, env_state, report)

    def policy(self, env: Environment, state: TrainState) -> LearnedPolicy:
        """Return the greedy policy."""
        return make_policy(self, env, state.params, state.obs_stats)

    def act(self, policy: LearnedPolicy, observation: Any) -> Array:
        """Return the action of `policy` with the largest Q for an observation."""
        x = normalizer.apply(policy.obs_stats, observation)
        return jnp.argmax(self._q_values(policy, policy.params, x), -1)

    def epsilon(self, state: TrainState) -> Array:
        """Return the fraction of random actions in the next rollout, []."""
        fallen = self.progress(state) / self.exploration_fraction
        share = self.epsilon_start - (self.epsilon_start - self.epsilon_finish) * fallen
        return jnp.maximum(share, self.epsilon_finish)

    def _rollout(
        self, env: Environment, state: TrainState, key: Array, axis: str | None = None
    ) -> Any:
        envs, epsilon = vectorize(env, self.num_envs, axis=axis), self.epsilon(state)
        sample_local = lambda draw, key, *of: collectives.local_rows(
            draw(key, (self.num_envs,), *of), axis
        )

        def move(loop: tuple[VectorState, Array, Array], inputs: Any) -> tuple[Any, Any]:
            (env_state, explored, held), (pick_key, random_key, drawn) = loop, inputs
            x = normalizer.apply(state.obs_stats, env_state.observation)
            q = self._q_values(env, state.params, x)
            any_action = sample_local(jax.random.randint, random_key, 0, q.shape[-1], jnp.int32)
            hold_key = jax.random.fold_in(pick_key, 0)
            hold = explored & (sample_local(jax.random.uniform, hold_key) < self.hold)
            explore = hold | (sample_local(jax.random.uniform, pick_key) < epsilon)
            any_action = jnp.where(hold, held, any_action)
            greedy = jax.lax.argmax(q, q.ndim - 1, jnp.int32)
            action = jnp.where(explore, any_action, greedy)
            after, out = envs.step_with(env_state, action, drawn)
            row = (env_state.observation, x, action, jnp.max(q, -1), out)
            return (after, explore & ~out.is_first, action), row

        inputs = self.rollout_inputs(envs, state.env_state, key, 2)
        explored, held = jnp.zeros(envs.num_local, bool), jnp.zeros(envs.num_local, jnp.int32)
        (env_state, _, _), rows = jax.lax.scan(move, (state.env_state, explored, held), inputs)
        observations, x, action, value, out = rows
        final = self._q_values(env, state.params, normalizer.apply(state.obs_stats, out.final)).max(
            -1
        )
        advantage = outcome_advantages(out, value, final, self.gamma, self.q_lambda)
        batch = {"observation": x, "action": action, "target": value + advantage}
        batch["broken"] = out.broken
        return env_state, observations, batch, out.report(axis)

    def _network(self, env: Environment | LearnedPolicy) -> MLP:
        space: Any = env.action_space
        return MLP(
            space.size,
            self.hidden_sizes,
            activation=nn.relu,
            layer_norm=True,
            encoder=self.encoder(env),
        )

    def _q_values(self, env: Environment | LearnedPolicy, params: Any, x: Any) -> Array:
        """Return Q of every action, [..., A]."""
        out: Any = self._network(env).apply(params, x)
        return out
