"""Evolution strategies: the weights of the policy are the candidates.

Salimans et al. (2017), arXiv:1703.03864, with any method of `jaxgpu.evolution.single` that keeps a
mean. All candidates of a generation play the same episodes, so that chance favours none; the
objective is the mean return, of which only ranks count. Nothing is differentiated: rewards may be
rare, and observations and actions of any kind.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree
from jax.sharding import PartitionSpec

from jaxgpu.evolution.problem import Problem, box
from jaxgpu.evolution.single import SNES, bounds
from jaxgpu.pytree import number, pytree, size

from .. import shares
from ..doors import check_learner, widths
from ..environment import Environment
from ..spaces import Box
from ..vector import VectorState, mended, vectorize
from . import normaliser
from .networks import MLP, feasible
from .training import check_shares, empty_report


@pytree
class ES:
    """What to run; numbers are leaves, to be vmapped over.

    >>> from jaxgpu import rl
    >>> env, es = rl.make("cartpole"), ES(SNES(4), max_steps=10)
    >>> act = es.policy(env, es.init(env, jax.random.key(0)))  # rl.train makes it better
    >>> act(env.reset(jax.random.key(1))[1]).shape
    ()
    """

    algorithm: Any = SNES(32)  # of `jaxgpu.evolution.single`, with a mean
    max_weight: Array | float = number(default=3.0, above=0)  # [] bound of the weights
    episodes: int = size(default=2, least=1)  # of each candidate in a generation
    max_steps: int = size(default=500, least=1)  # steps of an episode, at most
    hidden_sizes: tuple[int, ...] = widths((8,))  # units of each hidden layer of the policy

    @property
    def steps_per_update(self) -> int:
        """Steps of environments in one generation; some are played on after an episode's end."""
        return self.algorithm.batch_size * self.episodes * self.max_steps

    def init(
        self, env: Environment, key: Array, num_updates: Array | int | None = None
    ) -> "ESState":
        """The state before a training: the first mean; nothing depends on `num_updates`."""
        del num_updates
        check_learner("ES", self, env)
        observation = jax.eval_shape(env.reset, key)[1]
        zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), observation)
        count = ravel_pytree(self._zeros(env, zeros))[0].shape[0]
        sphere = Problem(box(-1.0, 1.0, count, jnp.float32), jnp.sum)
        return ESState(
            search=self.algorithm.init(key, sphere),
            obs_stats=normaliser.init(zeros),
            update=jnp.int32(0),
            report=empty_report(),
        )

    def check_devices(self, devices: int) -> None:
        """Raise where so many devices cannot share out the candidates."""
        check_shares("ES", "algorithm.batch_size", self.algorithm.batch_size, devices)

    def update(
        self, env: Environment, state: "ESState", key: Array, axis: str | None = None
    ) -> "ESState":
        """One generation.

        With the `axis` of a mesh, inside `jax.shard_map`, it is seen by one of its devices, which
        plays its share of the candidates; all of them know all returns.
        """
        ask_key, play_key = jax.random.split(key)
        x = self.algorithm.ask(state.search, ask_key)
        played = self._play(env, state.obs_stats, shares.own(x, axis), play_key, axis)
        returns, success = (shares.joined(a, axis) for a in played[:2])
        new = played[2]
        known = jnp.all(jnp.isfinite(jnp.concatenate([a.ravel() for a in jax.tree.leaves(new)])))
        stats = jax.tree.map(lambda new, old: jnp.where(known, new, old), new, state.obs_stats)
        returns, success = returns.astype(jnp.float32), success.astype(jnp.float32)
        cost = -jnp.mean(returns, 1)
        broken = jnp.where(jnp.isnan(cost), jnp.inf, jnp.zeros_like(cost))
        cost = jnp.where(jnp.isnan(cost), jnp.inf, cost)[:, None]
        search = self.algorithm.tell(state.search, x, cost, broken)
        whole = jnp.isfinite(returns)
        episodes = jnp.sum(whole.astype(jnp.float32))
        mean = lambda x: jnp.sum(jnp.where(whole, x, 0.0)) / jnp.maximum(episodes, 1.0)
        report = {"episode_return": mean(returns), "success": mean(success), "episodes": episodes}
        report["broken"] = jnp.float32(returns.size) - episodes
        return replace(
            state, search=search, obs_stats=stats, update=state.update + 1, report=report
        )

    def policy(self, env: Environment, state: "ESState") -> Callable[[Any], Array]:
        """The policy of the mean."""
        mean = bounds.point(state.search.box, state.search.mean)
        weights = self._weights(env, state.obs_stats.mean)(mean)

        def act(observation: Any) -> Array:
            return self._act(env, weights, normaliser.apply(state.obs_stats, observation))

        return act

    def _play(
        self,
        env: Environment,
        obs_stats: normaliser.Normaliser,
        x: Array,
        key: Array,
        axis: str | None = None,
    ) -> tuple[Array, Array, normaliser.Normaliser]:
        """Returns and successes [N, E] of `episodes` episodes, and what was seen by then.

        N candidates are this device's; what was seen is what all have.
        """
        size = x.shape[0] * self.episodes
        start_key, step_key = jax.random.split(key)
        first = mended(jax.vmap(env.reset)(jax.random.split(start_key, self.episodes)))
        first = jax.tree.map(lambda a: jnp.concatenate([a] * x.shape[0]), first)
        zero = jnp.zeros(size)
        env_state = VectorState(
            state=first[0],
            observation=first[1],
            episode_return=zero,
            episode_length=jnp.zeros(size, jnp.int32),
            first=first,
        )
        envs = vectorize(env, size * shares.count(axis), "same", axis)
        weights = jax.vmap(self._weights(env, obs_stats.mean))(x)
        group = lambda a: a.reshape(x.shape[0], self.episodes, *a.shape[1:])
        act = jax.vmap(jax.vmap(lambda w, o: self._act(env, w, o), (None, 0)))

        def move(loop: Any, key: Array) -> tuple[Any, None]:
            env_state, playing, returns, success, new = loop
            inputs = jax.tree.map(group, normaliser.apply(obs_stats, env_state.observation))
            action = act(weights, inputs)
            action = action.reshape(size, *action.shape[2:])
            after, out = envs.step(env_state, action, key)
            returns = jnp.where(playing, out.info["episode_return"], returns)
            returns = jnp.where(playing & out.broken, jnp.nan, returns)
            success = jnp.where(playing, out.info["success"], success)
            new = normaliser.update(new, env_state.observation)
            return (after, playing & ~out.is_first, returns, success, new), None

        seen = obs_stats if axis is None else jax.tree.map(jnp.zeros_like, obs_stats)
        start = (env_state, zero == 0, zero, zero > 0, seen)
        keys = jax.random.split(step_key, self.max_steps)
        (_, _, returns, success, new), _ = jax.lax.scan(move, start, keys)
        if axis is not None:  # once a generation, not once a step
            new = normaliser.merged(obs_stats, new, axis)
        return group(returns), group(success.astype(returns.dtype)), new

    def _act(self, env: Environment, weights: Any, x: Any) -> Array:
        out: Any = self._network(env).apply(weights, x)
        real = isinstance(env.action_space, Box)
        return feasible(env.action_space, out) if real else jnp.argmax(out, -1)

    def _network(self, env: Environment) -> MLP:
        space: Any = env.action_space
        return MLP(space.shape[0] if isinstance(space, Box) else space.size, self.hidden_sizes)

    def _zeros(self, env: Environment, observation: Any) -> Any:
        shapes = jax.eval_shape(self._network(env).init, jax.random.key(0), observation)
        return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)

    def _weights(self, env: Environment, observation: Any) -> Callable[[Array], Any]:
        unravel = ravel_pytree(self._zeros(env, observation))[1]
        return lambda x: unravel(self.max_weight * x)


@pytree
class ESState:
    """All of a training: resumed from it, a run goes on to the bit."""

    search: Any  # of the method
    obs_stats: normaliser.Normaliser
    update: Array  # [] generations done
    report: dict[str, Array]  # means over the generation

    def places(self, axis: str) -> Any:
        """Where each part belongs on a mesh: every device has the whole."""
        del axis
        return PartitionSpec()
