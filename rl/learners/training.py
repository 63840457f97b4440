"""Base classes of the learners by gradients: rollout sizes, initialization and training state."""

from dataclasses import KW_ONLY, replace
from typing import Any, ClassVar, Self

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import PartitionSpec

from jaxgpu.inputs import ranges
from jaxgpu.inputs.fields import pytree, size, static

from ..checks import check_learner, layer_widths
from ..environment import Environment
from ..policies import LearnedPolicy, make_policy
from ..vector import Vector, VectorState, vectorize
from . import encoders, normalizer, schedule


@pytree
class TrainState:
    """Complete state of a training; a run resumed from it gives bitwise the same result."""

    params: Any  # weights of the networks
    opt_state: Any  # optimizer state
    obs_stats: normalizer.Normalizer  # running statistics of the observations
    env_state: VectorState
    update: Array  # [] completed updates
    num_updates: Array | None  # [] length of the learning-rate and exploration schedules
    report: dict[str, Array]  # means over the episodes that ended in the last rollout

    def advance(
        self, params: Any, opt_state: Any, obs_stats: Any, env_state: Any, report: dict[str, Array]
    ) -> Self:
        """Return the state after one more update, with these new parts."""
        return replace(
            self,
            params=params,
            opt_state=opt_state,
            obs_stats=obs_stats,
            env_state=env_state,
            update=self.update + 1,
            report=report,
        )

    def partition_specs(self, axis: str) -> "TrainState":
        """Return the partition specs on a mesh with this axis: the environments are sharded."""
        whole = dict.fromkeys(vars(self), PartitionSpec())
        return replace(self, **whole | {"env_state": self.env_state.partition_specs(axis)})


@pytree
class Critic:
    """Learned critic of one training, with which another actor's training can start.

    Asymmetric actor-critic distillation (Akinola et al. 2024, arXiv:2408.06506). First an actor and
    a critic train with all privileged information of a simulation. Then another actor, which
    observes only what a robot could, trains with the same critic, which continues to learn. It
    includes the statistics that normalize observations and rewards, on which the weights depend.
    """

    params: Any  # weights of the critic network
    obs_stats: normalizer.Normalizer  # running statistics of the observations
    reward_stats: normalizer.Normalizer  # running statistics of discounted sums of rewards

    def put_into(self, name: str, state: Any) -> Any:
        """Return the initial state of learner `name` with its critic replaced by this one.

        Raises:
            ValueError: if the network shapes differ, observations are new to it, or values are not
                finite.
        """
        ranges.check_finite(name, critic=self)
        params = state.params["params"]
        new, own = (jax.tree.map(jnp.shape, x) for x in (params["critic"], self.params))
        if new != own:
            raise ValueError(
                f"{name}: the given critic has weights of shapes {own}, that of this learner "
                f"{new}; give both learners the same hidden_sizes and critic observations"
            )
        return replace(
            state,
            params={**state.params, "params": {**params, "critic": self.params}},
            obs_stats=normalizer.transfer_stats(name, state.obs_stats, self.obs_stats),
            returns=replace(state.returns, stats=self.reward_stats),
        )


@pytree
class RolloutLearner:
    """Base of learners that train on rollouts of B environments over T steps each."""

    _: KW_ONLY
    num_envs: int = size(default=64, least=1)  # B, parallel environments
    num_steps: int = size(default=64, least=1)  # T, steps of each environment per rollout
    # maps observations [N, ...] to features [N, W] first, such as `rl.CNN()`
    network: nn.Module | None = static(default=None)
    hidden_sizes: tuple[int, ...] = layer_widths((64, 64))  # units of each hidden layer after it
    anneal_lr: bool = static(default=True)  # decay learning rates linearly to zero
    shared_counts: ClassVar[tuple[str, ...]] = ("num_envs",)  # fields that devices divide

    @property
    def steps_per_update(self) -> int:
        """Environment steps per update."""
        return int(self.num_envs) * int(self.num_steps)

    def begin(
        self, env: Environment, key: Array, num_updates: Array | int | None
    ) -> tuple[Any, dict[str, Any]]:
        """Return the first observation, and the common fields of the initial state by name."""
        check_learner(type(self).__name__, self, env)
        env_state = vectorize(env, self.num_envs).reset(key)
        observation = jax.tree.map(lambda x: x[0], env_state.observation)
        return observation, {
            "obs_stats": normalizer.init(observation),
            "env_state": env_state,
            "update": jnp.int32(0),
            "num_updates": schedule.length(type(self).__name__, num_updates),
            "report": empty_report(),
        }

    def rollout_inputs(self, envs: Vector, env_state: VectorState, key: Array, count: int) -> tuple:
        """Return `count` policy keys and the environments' random inputs for each of T steps."""
        split_key = lambda key: jax.random.split(key, count + 1)
        keys = jax.vmap(split_key)(jax.random.split(key, self.num_steps))
        drawn = jax.vmap(lambda key: envs.draw(env_state, key))(keys[:, count])
        return *(keys[:, i] for i in range(count)), drawn

    def progress(self, state: TrainState) -> Array:
        """Return the completed fraction of the training, []."""
        return schedule.progress(type(self).__name__, state)

    def lr_fraction(self, state: TrainState) -> Array:
        """Return the learning-rate factor []: decaying from 1 to 0, or 1 without `anneal_lr`."""
        if not self.anneal_lr:
            return jnp.ones((), jnp.float32)
        return jnp.maximum(1 - self.progress(state), 0.0)

    def encoder(self, env: Any, keys: tuple[str, ...] | None = None) -> encoders.Encoder | None:
        """Return the `network` applied to the entries `keys` of the observations of `env`."""
        return encoders.make_encoder(self.network, env.observation_space, keys)

    def check_devices(self, devices: int) -> None:
        """Raise if that many devices cannot shard one of the `shared_counts` evenly."""
        for count in self.shared_counts:
            check_divisible(type(self).__name__, count, getattr(self, count), devices)

    def check_minibatches(self, num_minibatches: int, devices: int = 1) -> None:
        """Raise if the batch of each device cannot be split into that many minibatches."""
        ranges.check("learn", self)
        rows = self.steps_per_update // devices
        if rows % num_minibatches:
            shared = "" if devices == 1 else f", sharded over {devices} devices"
            raise ValueError(
                f"{type(self).__name__}: {num_minibatches} minibatches of {self.num_envs} "
                f"environments times {self.num_steps} steps{shared}; choose a divisor of {rows}"
            )


@pytree
class ActorCriticLearner(RolloutLearner):
    """Base of learners with an actor and a critic, each with its own copy of `network`.

    With dictionary observations the critic may read privileged entries, available only in training
    (asymmetric actor-critic: Pinto et al. 2018, arXiv:1710.06542).
    """

    _: KW_ONLY
    actor_keys: tuple[str, ...] | None = static(default=None)  # keys for the actor; None: all
    critic_keys: tuple[str, ...] | None = static(default=None)  # keys for the critic; None: all

    def make_encoders(self, env: Any) -> dict[str, Any]:
        """Return the encoders of actor and critic, by the names of their fields."""
        return {
            "actor_encoder": self.encoder(env, self.actor_keys),
            "critic_encoder": self.encoder(env, self.critic_keys),
        }

    def actor_input(self, policy: LearnedPolicy, observation: Any) -> Any:
        """Return the normalized entries of an observation that the actor of a policy reads."""
        return normalizer.apply(
            policy.obs_stats, encoders.select_keys(observation, self.actor_keys)
        )

    def actor_policy(
        self, env: Any, params: Any, obs_stats: normalizer.Normalizer
    ) -> LearnedPolicy:
        """Return the policy with these parameters, without the critic's."""
        held = {name: x for name, x in params["params"].items() if not name.startswith("critic")}
        return make_policy(self, env, {"params": held}, obs_stats, self.actor_keys)


def check_divisible(name: str, what: str, count: int, devices: int) -> None:
    """Raise if `count`, the value of the field `what`, is not a multiple of `devices`."""
    if count % devices:
        raise ValueError(
            f"{name}: {what}={count} over a mesh of {devices} devices; it must be a multiple of "
            f"them; give {-(-count // devices) * devices}, or fewer devices by "
            "mesh.make_mesh(count)"
        )


def empty_report() -> dict[str, Array]:
    """Return the report of a training before its first update."""
    zero = jnp.zeros((), jnp.float32)
    return {"episode_return": zero, "episodes": zero, "success": zero, "broken": zero}
