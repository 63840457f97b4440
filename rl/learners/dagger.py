"""Dataset aggregation (DAgger): imitation of a teacher on the states that the student visits.

Ross, Gordon & Bagnell (2011), arXiv:1011.0686, algorithm 3.1. In update i every environment runs
for `num_steps` steps; each action is the teacher's with probability `decay`^i, else the student's.
All visited observations are labelled with the teacher's actions, and the student is fitted to all
labels so far. `decay=0`, the parameter-free form, uses the teacher in the first update and the
student in all others. `decay=1` is behaviour cloning (Pomerleau 1989), which never visits the
states to which the student's errors lead. Differences from the paper: the student continues from
its weights with `gradient_steps` Adam steps per update instead of a fit from scratch; observations
are normalized; only the last `buffer_size` rows are kept.

Where the teacher has no valid action the student acts, and that observation is not learned from.
The teacher may use privileged information: with dictionary observations the student reads only
`actor_keys`.
"""

from dataclasses import KW_ONLY, replace
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import number, pytree, size, static

from .. import collectives
from ..environment import Environment
from ..policies import LearnedPolicy, make_policy
from ..spaces import Box, Space
from ..vector import VectorState, vectorize
from . import encoders, normalizer, optimizer, replay, teacher
from .networks import MLP, Categorical, clip_action
from .training import RolloutLearner, TrainState


class Student(nn.Module):
    """Policy network of the student: observations to actions, or to logits of discrete actions."""

    space: Space  # action space
    hidden_sizes: tuple[int, ...]  # units of each hidden layer
    encoder: nn.Module | None = None  # maps observations to features first

    def setup(self) -> None:
        """Create the network."""
        count = self.space.shape[0] if isinstance(self.space, Box) else self.space.size
        self.actor = MLP(count, self.hidden_sizes, 0.01, encoder=self.encoder)

    def __call__(self, x: Any) -> Array:
        """Map observations [..., O] to actions [..., A], or to the logits of A actions."""
        return self.actor(x)


@pytree
class DAgger(RolloutLearner):
    """Dataset aggregation (Ross et al. 2011). Numeric fields are pytree leaves.

    >>> from jaxgpu import rl
    >>> env = rl.make("pendulum")
    >>> brake = jax.tree_util.Partial(lambda x: -0.1 * x[2:])  # a tenth of the angle's speed
    >>> done = rl.train(env, rl.DAgger(brake), jax.random.key(0), steps=16_384)
    >>> bool(abs(done.policy(jnp.array([1.0, 0.0, 2.0]))[0] + 0.2) < 0.05)
    True
    """

    teacher: Any  # a memoryless learned policy, or `jax.tree_util.Partial` of a function
    learning_rate: Array | float = number(default=1e-3, least=0)  # [] initial learning rate
    decay: Array | float = number(default=0.0, least=0, most=1)  # [] teacher acts in share decay^i
    max_grad_norm: Array | float = number(default=0.5, above=0, infinite=True)  # [] gradient clip
    gradient_steps: int = size(default=32, least=1)  # gradient steps per update
    batch_size: int = size(default=256, least=1)  # N, rows per gradient step
    buffer_size: int = size(default=100_000, least=1)  # C, capacity in rows
    _: KW_ONLY
    num_envs: int = size(default=64, least=1)  # B, parallel environments
    num_steps: int = size(default=16, least=1)  # T, steps of each environment per update
    actor_keys: tuple[str, ...] | None = static(default=None)  # keys for the student; None: all
    shared_counts = "num_envs", "batch_size"

    def init(
        self, env: Environment, key: Array, num_updates: Array | int | None = None
    ) -> "DAggerState":
        """Return the initial state: a network, an empty buffer and environments after a reset.

        `Learner.init` describes the arguments.

        Raises:
            ValueError: if the buffer is smaller than a rollout, or the teacher's actions are not in
                `env.action_space`.
            TypeError: if the teacher is not a callable pytree, or is recurrent.
        """
        env_key, network_key = jax.random.split(key)
        observation, common = self.begin(env, env_key, num_updates)
        replay.check_capacity("DAgger", self.buffer_size, self.steps_per_update)
        teacher.check("DAgger", self.teacher, env, observation)
        params: Any = self._network(env).init(network_key, observation)
        row = {"observation": observation, "action": self.teacher(observation)}
        common["report"]["error"] = jnp.zeros((), jnp.float32)
        return DAggerState(
            params=params,
            opt_state=optimizer.init(params),
            **common,
            replay=replay.init(row, self.buffer_size),
        )

    def update(
        self, env: Environment, state: "DAggerState", key: Array, axis: str | None = None
    ) -> "DAggerState":
        """Return the state after `num_steps` steps per environment and `gradient_steps` descents.

        With the `axis` of a mesh, each of its devices calls it inside `jax.shard_map`.
        """
        roll_key, learn_key = jax.random.split(key)
        env_state, rows, report = self._rollout(env, state, roll_key, axis)
        buffer, rows = replay.add_rollout(state.replay, rows, axis)
        obs_stats = normalizer.update(state.obs_stats, rows["observation"])
        learning_rate = self.learning_rate * self.lr_fraction(state)
        learning_rate = jnp.where(buffer.size > 0, learning_rate, 0.0)
        error_of = jax.value_and_grad(self._loss)

        def learn(loop: Any, key: Array) -> tuple[Any, Array]:
            params, opt_state = loop
            part = replay.sample(buffer, key, self.batch_size, axis)
            x = normalizer.apply(obs_stats, part["observation"])
            error, gradient = error_of(params, env, x, part["action"])
            return optimizer.descend(
                params, opt_state, gradient, learning_rate, self.max_grad_norm, axis
            ), collectives.pmean(error, axis)

        keys = jax.random.split(learn_key, self.gradient_steps)
        start = state.params, state.opt_state
        (params, opt_state), errors = jax.lax.scan(learn, start, keys)
        after = state.advance(params, opt_state, obs_stats, env_state, report)
        report = report | {"error": jnp.mean(errors, dtype=jnp.float32)}
        return replace(after, report=report, replay=buffer)

    def policy(self, env: Environment, state: "DAggerState") -> LearnedPolicy:
        """Return the student's deterministic policy."""
        alone = replace(self, teacher=None)
        return make_policy(alone, env, state.params, state.obs_stats, self.actor_keys)

    def act(self, policy: LearnedPolicy, observation: Any) -> Any:
        """Return the student's action for an observation."""
        seen = encoders.select_keys(observation, self.actor_keys)
        return self._act(policy, policy.params, normalizer.apply(policy.obs_stats, seen))

    def _rollout(
        self, env: Environment, state: "DAggerState", key: Array, axis: str | None = None
    ) -> tuple[Any, dict, dict]:
        envs = vectorize(env, self.num_envs, axis=axis)
        share = jnp.asarray(self.decay, jnp.float32) ** state.update.astype(jnp.float32)

        def move(env_state: VectorState, inputs: tuple[Array, Any]) -> tuple[VectorState, Any]:
            act_key, drawn = inputs
            observation = env_state.observation
            # Where the teacher has no valid action, the student acts and the row is not stored.
            advice, silent = teacher.query(self.teacher, env, observation)
            own = self._act(env, state.params, normalizer.apply(state.obs_stats, observation))
            taught = collectives.local_rows(
                jax.random.bernoulli(act_key, share, (self.num_envs,)), axis
            )
            taught = (taught & ~silent).reshape(-1, *(1,) * (advice.ndim - 1))
            after, out = envs.step_with(env_state, jnp.where(taught, advice, own), drawn)
            rows = {"observation": observation, "action": advice, "broken": out.broken | silent}
            return after, (rows, out)

        act_keys, drawn = self.rollout_inputs(envs, state.env_state, key, 1)
        env_state, (rows, out) = jax.lax.scan(move, state.env_state, (act_keys, drawn))
        return env_state, rows, out.report(axis)

    def _loss(self, params: Any, env: Environment, x: Any, action: Array) -> Array:
        """Return the loss []: squared error in half action ranges, or cross-entropy in nats."""
        out: Any = self._network(env).apply(params, x)
        space = env.action_space
        if not isinstance(space, Box):
            return -jnp.mean(Categorical(out).log_prob(action))
        half = (space.high - space.low) / 2
        return jnp.mean(((out - action) / jnp.where(jnp.isfinite(half), half, 1.0)) ** 2)

    def _act(self, env: Environment | LearnedPolicy, params: Any, x: Any) -> Any:
        """Return the student's actions for normalized observations."""
        out: Any = self._network(env).apply(params, x)
        space = env.action_space
        return clip_action(space, out) if isinstance(space, Box) else Categorical(out).mode()

    def _network(self, env: Environment | LearnedPolicy) -> Student:
        encoder = self.encoder(env, self.actor_keys)
        return Student(env.action_space, self.hidden_sizes, encoder)


@pytree
class DAggerState(TrainState):
    """Training state; `params` has the weights of the student."""

    replay: replay.Replay  # observations with the teacher's actions
