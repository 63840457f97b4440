"""Recurrent PPO for partially observable tasks: a gated recurrent unit before both networks.

The unit is that of Cho et al. (2014), arXiv:1406.1078, trained by backpropagation through complete
rollouts. A minibatch is a subset of the environments over all steps, each with its carry at the
start of the rollout. The carry is reset to zero at the start of every episode. An environment with
a broken step (see `vectorize`) is left out of the update. What only the critic observes
(`critic_keys`) is concatenated with the carry, which is the actor's. All else is as in `PPO`.
"""

from dataclasses import replace
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import PartitionSpec

from jaxgpu.inputs.fields import pytree, size

from .. import collectives
from ..checks import check_learner
from ..environment import Environment
from ..policies import LearnedPolicy, RecurrentPolicy, make_policy
from ..spaces import Space
from ..vector import VectorState, vectorize
from . import encoders, normalizer, optimizer, ppo
from .kickstart import KickstartedPPO
from .networks import (
    ActorCritic,
    Categorical,
    Normal,
    clip_action,
    concat_vectors,
    sample_noise,
    with_log_std,
)
from .training import check_divisible


class RecurrentActorCritic(nn.Module):
    """GRU on the observations, with an actor and a critic on its carry."""

    space: Space  # action space
    hidden_size: int  # units of the GRU
    encoder: nn.Module | None = None  # maps observations to features first
    critic_encoder: nn.Module | None = None  # features of the critic alone, next to the carry

    def setup(self) -> None:
        """Create all parts."""
        start = nn.initializers.orthogonal(2**0.5)
        self.embed = nn.Dense(self.hidden_size, kernel_init=start, precision="highest")
        self.cell = nn.GRUCell(self.hidden_size)
        self.heads = ActorCritic(self.space, (self.hidden_size,))

    def __call__(self, carry: Array, x: Any) -> tuple[Array, Normal | Categorical, Array]:
        """Return next carry, action distribution and value for a carry and an observation."""
        carry = self.next_carry(carry, x)
        return carry, *self.act_and_value(carry, x)

    def act(self, carry: Array, x: Any) -> tuple[Array, Normal | Categorical]:
        """Return next carry and action distribution, without the critic and its inputs."""
        carry = self.next_carry(carry, x)
        return carry, self.heads.act(carry)

    def next_carry(self, carry: Array, x: Any) -> Array:
        """Return the carry after an observation."""
        x = concat_vectors(x) if self.encoder is None else self.encoder(x)
        with jax.default_matmul_precision("highest"):  # the cell has no such argument
            return self.cell(carry, nn.tanh(self.embed(x)))[0]

    def act_and_value(self, carry: Array, x: Any) -> tuple[Normal | Categorical, Array]:
        """Return distribution and value for the carry after an observation."""
        if self.critic_encoder is None:
            return self.heads(carry)
        more = self.critic_encoder(x)
        return self.heads.act(carry), self.heads.value(concat_vectors([carry, more]))


@pytree
class RecurrentPPO:
    """PPO with a recurrent policy: the settings of PPO and the width of the GRU.

    >>> from jaxgpu import rl
    >>> env = rl.make("cartpole")
    >>> learner = RecurrentPPO(rl.PPO(num_envs=4, num_minibatches=2), hidden_size=8)
    >>> policy = learner.policy(env, learner.init(env, jax.random.key(0)))
    >>> carry, action = policy.act(policy.carry, env.reset(jax.random.key(1))[1])
    >>> carry.shape, action.shape
    ((8,), ())
    """

    ppo: ppo.PPO  # its `network` precedes the GRU; its `hidden_sizes` are ignored
    hidden_size: int = size(default=64, least=1)  # W, units of the GRU and of the layer after it

    @property
    def steps_per_update(self) -> int:
        """Environment steps per update."""
        return self.ppo.steps_per_update

    @property
    def network(self) -> nn.Module | None:
        """Module that maps observations to features first, or None."""
        return self.ppo.network

    def init(
        self, env: Environment, key: Array, num_updates: Array | int | None = None
    ) -> "RecurrentPPOState":
        """Return the initial state: an untrained network and environments after a reset.

        `Learner.init` describes the arguments.

        Raises:
            ValueError: if the minibatches do not divide the environments, or `ppo` has a `critic`.
            TypeError: if `ppo` has a teacher.
        """
        check_learner("RecurrentPPO", self, env)
        if isinstance(self.ppo, KickstartedPPO):
            raise TypeError(
                "RecurrentPPO: its ppo has a teacher, from which a policy with a memory cannot "
                "learn; give an rl.PPO"
            )
        if self.ppo.critic is not None:
            raise ValueError(
                "RecurrentPPO: its ppo has a critic of another training, but its own critic must "
                "read the memory; leave ppo.critic at None"
            )
        if self.ppo.num_envs % self.ppo.num_minibatches:
            raise ValueError(
                f"RecurrentPPO: {self.ppo.num_minibatches} minibatches of {self.ppo.num_envs} "
                "environments, which are not split; choose a divisor"
            )
        env_key, network_key = jax.random.split(key)
        observation, common = self.ppo.begin(env, env_key, num_updates)
        carry = jnp.zeros((self.ppo.num_envs, self.hidden_size))
        params = self._network(env).init(network_key, carry[0], observation)
        params = with_log_std(params, self.ppo.log_std)
        return RecurrentPPOState(
            params=params,
            opt_state=optimizer.init(params),
            **common,
            returns=normalizer.init_returns(self.ppo.num_envs),
            lr_scale=jnp.ones((), jnp.float32),
            carry=carry,
            is_first=jnp.ones(self.ppo.num_envs, bool),
        )

    def check_devices(self, devices: int) -> None:
        """Raise if environments or minibatches cannot be sharded evenly over that many devices."""
        check_divisible("RecurrentPPO", "num_envs", self.ppo.num_envs, devices)
        each = self.ppo.num_envs // devices
        if each % self.ppo.num_minibatches:
            raise ValueError(
                f"RecurrentPPO: {self.ppo.num_minibatches} minibatches of {self.ppo.num_envs} "
                f"environments, which are not split, over {devices} devices; choose a divisor of "
                f"{each}"
            )

    def update(
        self, env: Environment, state: "RecurrentPPOState", key: Array, axis: str | None = None
    ) -> "RecurrentPPOState":
        """Return the state after a rollout of all environments and `update_epochs` passes over it.

        With the `axis` of a mesh, each of its devices calls it inside `jax.shard_map`.
        """
        spec, network = self.ppo, self._network(env)
        roll_key, learn_key = jax.random.split(key)
        rolled, batch, report = self._rollout(env, state, roll_key, axis)
        obs_stats = normalizer.update(state.obs_stats, batch["observation"], axis)
        batch["observation"] = normalizer.apply(state.obs_stats, batch["observation"])

        def loss(params: Any, part: dict[str, Array]) -> Array:
            pi, value = self._evaluate_rollouts(network, params, part)
            return spec.surrogate(pi, value, part)

        here = spec.num_envs // collectives.axis_size(axis)
        orders = optimizer.minibatches(
            learn_key, here, spec.update_epochs, spec.num_minibatches, axis
        )
        orders = optimizer.replace_broken_rows(orders, jnp.any(batch["broken"], 1))
        params, opt_state = optimizer.run_minibatches(
            loss,
            state.params,
            state.opt_state,
            batch,
            orders,
            spec.learning_rate * state.lr_scale * spec.lr_fraction(state),
            spec.max_grad_norm,
            spec.moments(batch["advantage"], orders, axis),
            axis,
        )
        pi = self._evaluate_rollouts(network, params, batch)[0]
        after = state.advance(params, opt_state, obs_stats, rolled.pop("env_state"), report)
        lr_scale = spec.adapt_lr(state.lr_scale, pi, batch, axis)
        return replace(after, lr_scale=lr_scale, **rolled)

    def policy(self, env: Environment, state: "RecurrentPPOState") -> RecurrentPolicy:
        """Return the deterministic policy: the mode of the learned action distribution."""
        act = make_policy(self, env, state.params, state.obs_stats, self.ppo.actor_keys)
        return RecurrentPolicy(jnp.zeros(self.hidden_size), act)

    def act(self, policy: LearnedPolicy, carry: Array, observation: Any) -> tuple[Array, Any]:
        """Return the next carry and the most likely action of `policy`."""
        x = self.ppo.actor_input(policy, observation)
        network: Any = self._network(policy)
        out = network.apply(policy.params, carry, x, method=RecurrentActorCritic.act)
        return out[0], clip_action(policy.action_space, out[1].mode())

    def _rollout(
        self, env: Environment, state: "RecurrentPPOState", key: Array, axis: str | None = None
    ) -> tuple[dict[str, Any], dict[str, Array], dict[str, Array]]:
        """Return the changed fields of the state by name, the batch [B, T, ...] and the report."""
        spec, network = self.ppo, self._network(env)
        envs = vectorize(env, spec.num_envs, axis=axis)

        def move(loop: tuple[VectorState, Array, Array], inputs: Any) -> tuple[Any, Any]:
            (env_state, carry, is_first), (act_key, drawn) = loop, inputs
            x = normalizer.apply(state.obs_stats, env_state.observation)
            out: Any = network.apply(state.params, _reset_carry(carry, is_first), x)
            carry, pi, value = out
            action = pi.from_noise(sample_noise(env.action_space, act_key, spec.num_envs, axis))
            after, out = envs.step_with(env_state, clip_action(env.action_space, action), drawn)
            row = {
                "observation": env_state.observation,
                "action": action,
                "log_prob": pi.log_prob(action),
                "is_first": is_first,
            }
            return (after, carry, out.is_first), (row, value, carry, out)

        start = (state.env_state, state.carry, state.is_first)
        inputs = spec.rollout_inputs(envs, state.env_state, key, 1)
        (env_state, carry, is_first), rows = jax.lax.scan(move, start, inputs)
        batch, value, carries, out = rows
        final = normalizer.apply(state.obs_stats, out.final)
        ahead: Any = network.apply(state.params, carries, final)
        returns, more = spec.batch(state.returns, value, ahead[2], out, axis)
        batch = jax.tree.map(lambda x: jnp.moveaxis(x, 0, 1), batch | more)  # [B, T, ...]
        batch["carry"] = state.carry
        rolled = {
            "env_state": env_state,
            "carry": carry,
            "is_first": is_first,
            "returns": returns,
        }
        return rolled, batch, out.report(axis)

    def _evaluate_rollouts(
        self, network: RecurrentActorCritic, params: Any, part: dict[str, Array]
    ) -> tuple[Normal | Categorical, Array]:
        """Return distributions and values [B, T] along the rollouts of `part`."""

        def step(carry: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
            x, is_first = row
            before = _reset_carry(carry, is_first)
            after: Any = network.apply(params, before, x, method=RecurrentActorCritic.next_carry)
            return after, after

        rows = (part["observation"], part["is_first"])
        rows = jax.tree.map(lambda x: jnp.moveaxis(x, 0, 1), rows)
        carries = jnp.moveaxis(jax.lax.scan(step, part["carry"], rows)[1], 0, 1)
        out: Any = network.apply(
            params, carries, part["observation"], method=RecurrentActorCritic.act_and_value
        )
        return out

    def _network(self, env: Environment | LearnedPolicy) -> RecurrentActorCritic:
        spec, alone = self.ppo, None
        if spec.actor_keys != spec.critic_keys:
            alone = encoders.vision_encoder(spec.network, env.observation_space, spec.critic_keys)
        encoder = spec.encoder(env, spec.actor_keys)
        return RecurrentActorCritic(env.action_space, self.hidden_size, encoder, alone)


@pytree
class RecurrentPPOState(ppo.PPOState):
    """PPO state plus the carries of the policy."""

    carry: Array  # [B, W] GRU carry of each environment
    is_first: Array  # [B] bool: the environment is at the start of an episode

    def partition_specs(self, axis: str) -> "RecurrentPPOState":
        """Return the partition specs on a mesh with this axis: the environments are sharded."""
        places: Any = super().partition_specs(axis)
        shared: Any = PartitionSpec(axis)
        return replace(places, carry=shared, is_first=shared)


def _reset_carry(carry: Array, is_first: Array) -> Array:
    return jnp.where(is_first[:, None], 0.0, carry)
