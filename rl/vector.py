"""Many copies of an environment, each beginning anew when its episode ends.

The observation after the end of an episode is the first of the next; the true last one is in
`Outcome.final`, so that a learner can tell what a truncated episode was still worth. Beginnings are
drawn fresh at every step, one for each copy. With `restart="bank"` they are an eighth as many as
there are copies, which is faster where a step costs no more than a start; copies that end in the
same step then share them, and where episodes end by the clock alone all do. With "same" every
episode begins as the first one of the copy.

A step that leads to an observation or a reward that is not finite never reaches the learner: the
copy begins anew, and `Outcome.broken` says so.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import Mesh

from jaxgpu import ranges
from jaxgpu.mesh import replicate, split
from jaxgpu.pytree import pytree, size, static

from .environment import Environment

_RESTARTS = ("bank", "fresh", "same")


class Outcome(NamedTuple):
    """What a step of all B copies leads to; leaves [B, ...]."""

    observation: Any  # to act on next
    final: Any  # the observation this step led to, before any new beginning
    reward: Array  # [B], or [B, K]
    terminated: Array  # [B] bool
    truncated: Array  # [B] bool
    info: dict[str, Array]  # of the environment; `episode_return` and `episode_length` so far
    # [B] bool, the step led to nan or infinity and the copy begins anew: `reward` is 0, `final` the
    # observation acted on, the episode neither terminated nor truncated; not to be learnt from
    broken: Array

    @property
    def done(self) -> Array:
        """Whether the episode ended here, in either way."""
        return self.terminated | self.truncated

    @property
    def is_first(self) -> Array:
        """Whether what is acted on next is a beginning: the episode ended, or broke."""
        return self.done | self.broken

    def report(self) -> dict[str, Array]:
        """Of the episodes that ended: their number, and means of their returns and successes.

        And how many steps were `broken`.
        """
        ended = jnp.sum(self.done.astype(jnp.float32))
        single = lambda x: jnp.where(self.done, x.astype(jnp.float32), 0.0)
        mean = lambda x: jnp.sum(single(x)) / jnp.maximum(ended, 1.0)
        total, success = mean(self.info["episode_return"]), mean(self.info["success"])
        broken = jnp.sum(self.broken.astype(jnp.float32))
        return {"episode_return": total, "episodes": ended, "success": success, "broken": broken}


@pytree
class VectorState:
    """All copies."""

    state: Any
    observation: Any
    episode_return: Array  # [B] sum of rewards of the running episode; of the first objective
    episode_length: Array  # [B] its steps
    # states and observations to begin with: of every copy where restart="same", else of one of
    # them, [1, ...], for the step of which no new start is finite
    first: Any

    def spread(self, over: Mesh) -> "VectorState":
        """The copies shared out over the devices of a mesh, of which B is a multiple.

        What all of them may begin with is put on every device.
        """
        own = [x.shape[:1] == self.episode_return.shape for x in jax.tree.leaves(self.first)]
        return VectorState(
            state=split(self.state, over, axis=0),
            observation=split(self.observation, over, axis=0),
            episode_return=split(self.episode_return, over, axis=0),
            episode_length=split(self.episode_length, over, axis=0),
            first=split(self.first, over, axis=0) if all(own) else replicate(self.first, over),
        )


@pytree
class Vector:
    """`num_envs` copies of `env`."""

    env: Any  # the environment
    num_envs: int = size(least=1)
    restart: str = static(default="fresh")

    def reset(self, key: Array) -> VectorState:
        """First states of all copies."""
        begun = mended(jax.vmap(self.env.reset)(jax.random.split(key, self.num_envs)))
        state, observation = begun
        first = begun if self.restart == "same" else jax.tree.map(lambda x: x[:1], begun)
        return VectorState(
            state=state,
            observation=observation,
            episode_return=jnp.zeros(self.num_envs),
            episode_length=jnp.zeros(self.num_envs, jnp.int32),
            first=first,
        )

    def step(
        self, state: VectorState, action: Array, key: Array, reset: Array | bool = False
    ) -> tuple[VectorState, Outcome]:
        """One step of all copies, and new beginnings; no gradient flows through a beginning.

        Copies that are in `reset` [B] begin anew too, their episodes broken off without an end.

        Raises:
            ValueError: actions of another number, or nan outside of `jit`.
        """
        if jnp.ndim(action) == 0 or jnp.shape(action)[0] != self.num_envs:
            raise ValueError(
                f"step: action has shape {list(jnp.shape(action))}; it must be [{self.num_envs}, "
                "...], one of each copy"
            )
        ranges.numbers("step: action", action)
        return self.step_with(state, action, self.draw(state, key), reset)

    def draw(self, state: VectorState, key: Array) -> Any:
        """What a step draws: a key, and states to begin with.

        `step` draws it itself. Mapped over the keys of many steps before the first of them, the
        same numbers cost fewer and larger operations, and room for as many states a step.
        """
        step_key, start_key = jax.random.split(key)
        return step_key, jax.lax.stop_gradient(self._beginnings(state, start_key))

    def step_with(
        self, state: VectorState, action: Array, drawn: Any, reset: Array | bool = False
    ) -> tuple[VectorState, Outcome]:
        """`step` with what has been drawn."""
        step_key, fresh = drawn
        keys = jax.random.split(step_key, self.num_envs)
        step = jax.vmap(self.env.step)(state.state, action, keys)
        broken = ~(_finite(step.observation) & _finite(step.reward))
        final = _chosen(broken, state.observation, step.observation)
        reward = _chosen(broken, jnp.zeros_like(step.reward), step.reward)
        terminated, truncated = step.terminated & ~broken, step.truncated & ~broken
        counted = jax.lax.stop_gradient(reward if reward.ndim == 1 else reward[:, 0])
        moved = VectorState(
            state=step.state,
            observation=final,
            episode_return=state.episode_return + counted,
            episode_length=state.episode_length + 1,
            first=state.first,
        )
        # before the new beginnings: what the episodes that end here come to
        info = {"success": jnp.zeros(self.num_envs, bool), **step.info}
        info["episode_return"] = moved.episode_return
        info["episode_length"] = moved.episode_length
        after = self._restarted(moved, terminated | truncated | broken | reset, fresh)
        return after, Outcome(
            observation=after.observation,
            final=final,
            reward=reward,
            terminated=terminated,
            truncated=truncated,
            info=info,
            broken=broken,
        )

    def _restarted(self, state: VectorState, where: Array, fresh: Any) -> VectorState:
        """The copies begun anew `where` [B]."""

        def repeated(new: Array) -> Array:
            return jnp.concatenate([new] * -(-self.num_envs // new.shape[0]))[: self.num_envs]

        now = (state.state, state.observation)
        later, observation = _chosen(where, jax.tree.map(repeated, fresh), now)
        return VectorState(
            state=later,
            observation=observation,
            episode_return=jnp.where(where, 0.0, state.episode_return),
            episode_length=jnp.where(where, 0, state.episode_length),
            first=state.first,
        )

    def _beginnings(self, state: VectorState, key: Array) -> Any:
        if self.restart == "same":
            return state.first
        count = self.num_envs if self.restart == "fresh" else -(-self.num_envs // 8)
        return mended(jax.vmap(self.env.reset)(jax.random.split(key, count)), state.first)


def _finite(tree: Any) -> Array:
    """Whether all real numbers of a row are finite, [B]; leaves are [B, ...]."""
    zero = [
        jnp.sum(0 * x, tuple(range(1, x.ndim)))  # nan where one is not finite: one pass, no mask
        for x in jax.tree.leaves(tree)
        if jnp.issubdtype(x.dtype, jnp.inexact)
    ]
    good = [jnp.isfinite(x) for x in zero]
    return functools.reduce(jnp.logical_and, good, jnp.ones(len(jax.tree.leaves(tree)[0]), bool))


def _chosen(where: Array, new: Any, old: Any) -> Any:
    """Rows of `new` where `where` [B], else of `old`."""

    def choose(new: Array, old: Array) -> Array:
        return jnp.where(where.reshape(where.shape + (1,) * (old.ndim - 1)), new, old)

    return jax.tree.map(choose, new, old)


def mended(begun: Any, spare: Any = None) -> Any:
    """States and observations to begin with, [B, ...]; finite ones in place of those that are not.

    The first of them that is, or `spare` [1, ...] where none is.
    """
    good = _finite(begun[1])
    found, at = jnp.any(good), jnp.argmax(good)
    other = jax.tree.map(lambda x: x[at][None], begun)
    if spare is not None:
        other = jax.tree.map(lambda x, y: jnp.where(found, x, y), other, spare)
    other = jax.tree.map(lambda x, y: jnp.broadcast_to(x, y.shape), other, begun)
    return _chosen(good, begun, other)


def vectorize(env: Environment, num_envs: int, restart: str = "fresh") -> Vector:
    """`num_envs` copies of `env`.

    Raises:
        ValueError: no copies, or an unknown way to begin anew.
    """
    ranges.refuse("vectorize: num_envs", num_envs, ranges.Range(least=1, whole=True, one=True))
    ranges.check("vectorize", env)
    if restart not in _RESTARTS:
        raise ValueError(f"vectorize: restart={restart!r}; use one of {', '.join(_RESTARTS)}")
    return Vector(env, num_envs, restart)
