"""What the learners by gradients share: sizes, a beginning, and the state of a training."""

from dataclasses import KW_ONLY, replace
from typing import Any, ClassVar, Self

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import PartitionSpec

from jaxgpu.inputs import ranges
from jaxgpu.inputs.fields import pytree, size, static

from ..doors import check_learner, widths
from ..environment import Environment
from ..policies import LearntPolicy, learnt
from ..vector import Vector, VectorState, vectorize
from . import encoders, normaliser, schedule


@pytree
class TrainState:
    """All of a training: resumed from it, a run goes on to the bit."""

    params: Any  # weights of the networks
    opt_state: Any  # of the optimiser
    obs_stats: normaliser.Normaliser  # of the observations so far
    env_state: VectorState
    update: Array  # [] updates done
    num_updates: Array | None  # [] of the training, in which rates fall and exploration settles
    report: dict[str, Array]  # means over the episodes that ended in the last rollout

    def advance(
        self, params: Any, opt_state: Any, obs_stats: Any, env_state: Any, report: dict[str, Array]
    ) -> Self:
        """Return the state after one more update, which led to these parts."""
        return replace(
            self,
            params=params,
            opt_state=opt_state,
            obs_stats=obs_stats,
            env_state=env_state,
            update=self.update + 1,
            report=report,
        )

    def places(self, axis: str) -> "TrainState":
        """Where each part belongs on a mesh with this axis: the environments are shared out."""
        whole = dict.fromkeys(vars(self), PartitionSpec())
        return replace(self, **whole | {"env_state": self.env_state.places(axis)})


@pytree
class Critic:
    """What the critic of a training has learnt, for that of another actor to begin with.

    Asymmetric actor-critic distillation (Akinola et al. 2024, arXiv:2408.06506): first an actor and
    a critic learn that both see all that a simulation knows; then another actor, which sees what a
    robot would, learns from the same critic, which goes on learning. What observations and rewards
    are scaled by goes with the weights, without which they mean nothing.
    """

    params: Any  # weights of its network
    obs_stats: normaliser.Normaliser  # of the observations so far
    reward_stats: normaliser.Normaliser  # of discounted sums of rewards so far

    def put_into(self, name: str, state: Any) -> Any:
        """A state before a training, of `name`, with this critic in place of its own.

        Raises:
            ValueError: a network of other shapes, observations that it has not seen, or numbers
                that are not finite.
        """
        ranges.finite(name, critic=self)
        params = state.params["params"]
        new, own = (jax.tree.map(jnp.shape, x) for x in (params["critic"], self.params))
        if new != own:
            raise ValueError(
                f"{name}: the critic that is given has weights of the shapes {own}, that of this "
                f"learner {new}; give both learners the same hidden_sizes, and a critic that sees "
                "the same"
            )
        return replace(
            state,
            params={**state.params, "params": {**params, "critic": self.params}},
            obs_stats=normaliser.continued(name, state.obs_stats, self.obs_stats),
            returns=replace(state.returns, stats=self.reward_stats),
        )


@pytree
class Rollouts:
    """Learning from rollouts of B environments over T steps each."""

    _: KW_ONLY
    num_envs: int = size(default=64, least=1)  # B
    num_steps: int = size(default=64, least=1)  # T, steps of each environment between updates
    # what turns observations [N, ...] into features [N, W] first, such as `rl.CNN()`
    network: nn.Module | None = static(default=None)
    hidden_sizes: tuple[int, ...] = widths((64, 64))  # units of each hidden layer behind it
    anneal_lr: bool = static(default=True)  # learning rates fall to zero over the training
    shared_counts: ClassVar[tuple[str, ...]] = ("num_envs",)  # fields

    @property
    def steps_per_update(self) -> int:
        """Steps of environments in one update."""
        return int(self.num_envs) * int(self.num_steps)

    def begin(
        self, env: Environment, key: Array, num_updates: Array | int | None
    ) -> tuple[Any, dict[str, Any]]:
        """The first observation, and what every state begins with, by the names of the fields."""
        check_learner(type(self).__name__, self, env)
        env_state = vectorize(env, self.num_envs).reset(key)
        observation = jax.tree.map(lambda x: x[0], env_state.observation)
        return observation, {
            "obs_stats": normaliser.init(observation),
            "env_state": env_state,
            "update": jnp.int32(0),
            "num_updates": schedule.length(type(self).__name__, num_updates),
            "report": empty_report(),
        }

    def draws(self, envs: Vector, env_state: VectorState, key: Array, count: int) -> tuple:
        """For each of T steps: `count` keys [T] for the policy, and what the environments draw."""
        each = lambda key: jax.random.split(key, count + 1)
        keys = jax.vmap(each)(jax.random.split(key, self.num_steps))
        drawn = jax.vmap(lambda key: envs.draw(env_state, key))(keys[:, count])
        return *(keys[:, i] for i in range(count)), drawn

    def progress(self, state: TrainState) -> Array:
        """The share of the training that is done, []."""
        return schedule.progress(type(self).__name__, state)

    def lr_fraction(self, state: TrainState) -> Array:
        """The share of a learning rate that is left, []: from 1 to 0, or 1 without `anneal_lr`."""
        if not self.anneal_lr:
            return jnp.ones((), jnp.float32)
        return jnp.maximum(1 - self.progress(state), 0.0)

    def encoder(self, env: Any, keys: tuple[str, ...] | None = None) -> encoders.Encoder | None:
        """The `network` over what stands under `keys` of the observations of `env`."""
        return encoders.over(self.network, env.observation_space, keys)

    def check_devices(self, devices: int) -> None:
        """Raise where so many devices cannot share out one of `shared_counts` evenly."""
        for count in self.shared_counts:
            check_shares(type(self).__name__, count, getattr(self, count), devices)

    def check_minibatches(self, num_minibatches: int, devices: int = 1) -> None:
        """Raise where the batch of each device cannot be cut into as many parts."""
        ranges.check("learn", self)
        rows = self.steps_per_update // devices
        if rows % num_minibatches:
            shared = "" if devices == 1 else f", shared out over {devices} devices"
            raise ValueError(
                f"{type(self).__name__}: {num_minibatches} minibatches of {self.num_envs} "
                f"environments times {self.num_steps} steps{shared}; choose a divisor of {rows}"
            )


@pytree
class ActorCriticRollouts(Rollouts):
    """With an actor and a critic, each with a `network` of its own.

    Where observations are dictionaries the critic may see what the actor does not: what is known
    in training alone (Pinto et al. 2018, arXiv:1710.06542).
    """

    _: KW_ONLY
    actor_keys: tuple[str, ...] | None = static(default=None)  # what the actor sees; None sees all
    critic_keys: tuple[str, ...] | None = static(default=None)  # what the critic sees

    def pair(self, env: Any) -> dict[str, Any]:
        """The encoders of the networks, by the names of their fields."""
        return {
            "actor_encoder": self.encoder(env, self.actor_keys),
            "critic_encoder": self.encoder(env, self.critic_keys),
        }

    def seen(self, policy: LearntPolicy, observation: Any) -> Any:
        """What the actor of a policy sees of an observation, scaled."""
        return normaliser.apply(policy.obs_stats, encoders.chosen(observation, self.actor_keys))

    def acting(self, env: Any, params: Any, obs_stats: normaliser.Normaliser) -> LearntPolicy:
        """The policy of weights, without those of the critic."""
        held = {name: x for name, x in params["params"].items() if not name.startswith("critic")}
        return learnt(self, env, {"params": held}, obs_stats, self.actor_keys)


def check_shares(name: str, what: str, count: int, devices: int) -> None:
    """Raise where `count` of what a learner has so many of cannot be shared out evenly."""
    if count % devices:
        raise ValueError(
            f"{name}: {what}={count} over a mesh of {devices} devices; it must be a multiple of "
            f"them; give {-(-count // devices) * devices}, or fewer devices by mesh.devices(count)"
        )


def empty_report() -> dict[str, Array]:
    """The report of a training before its first update."""
    zero = jnp.zeros((), jnp.float32)
    return {"episode_return": zero, "episodes": zero, "success": zero, "broken": zero}
