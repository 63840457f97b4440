"""Vectorized environments: B copies of one environment with automatic resets.

When an episode ends, `Outcome.observation` is the first observation of the next episode and
`Outcome.final` the last one of the ended episode, from which learners bootstrap truncated episodes.
By default every copy gets a freshly sampled initial state at every step. `restart="bank"` samples
one eighth as many, which is faster where a step costs no more than a reset. Copies that end in the
same step then share them, and all do where episodes end only by the time limit. With
`restart="same"` a copy always restarts from its first initial state.

A step whose state, observation or reward is not finite never reaches the learner. The copy is reset
and marked in `Outcome.broken`. Infinities that a state intentionally holds are accepted as long as
they do not change; NaNs never are.
"""

import functools
import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import PartitionSpec

from jaxgpu.devices import allocation
from jaxgpu.inputs import arguments, ranges
from jaxgpu.inputs.explanations import explain_errors
from jaxgpu.inputs.fields import pytree, size, static

from . import collectives
from .environment import Environment, check_environment

_RESTARTS = ("bank", "fresh", "same")


class Outcome(NamedTuple):
    """Result of a step of all B copies; leaves [B, ...]."""

    observation: Any  # observation to act on next
    final: Any  # observation after this step, before any reset
    reward: Array  # [B], or [B, K]
    terminated: Array  # [B] bool
    truncated: Array  # [B] bool
    info: dict[str, Array]  # with the running `episode_return` and `episode_length`
    # [B] bool, the step gave NaN or infinity and the copy is reset: `reward` is 0, `final` is the
    # observation acted on, the episode is neither terminated nor truncated; excluded from learning
    broken: Array

    @property
    def done(self) -> Array:
        """Mask of copies whose episode ended, terminated or truncated."""
        return self.terminated | self.truncated

    @property
    def is_first(self) -> Array:
        """Mask of copies that start an episode next, after an end or a broken step."""
        return self.done | self.broken

    def report(self, axis: str | None = None) -> dict[str, Array]:
        """Return the number of ended episodes and their mean return and success rate.

        Also the number of `broken` steps. With a mesh `axis` they are totals over all its devices.
        """
        sum_done = lambda x: jnp.sum(jnp.where(self.done, x.astype(jnp.float32), 0.0))
        sums = {
            "episode_return": sum_done(self.info["episode_return"]),
            "episodes": jnp.sum(self.done.astype(jnp.float32)),
            "success": sum_done(self.info["success"]),
            "broken": jnp.sum(self.broken.astype(jnp.float32)),
        }
        sums = collectives.psum(sums, axis)
        ended = jnp.maximum(sums["episodes"], 1.0)
        means = {name: sums[name] / ended for name in ("episode_return", "success")}
        return sums | means


@pytree
class VectorState:
    """State of all copies."""

    state: Any  # environment states, [B, ...]
    observation: Any  # [B, O]
    episode_return: Array  # [B] return of the running episode so far; of the first objective
    episode_length: Array  # [B] steps of the running episode so far
    # initial states and observations: of every copy where restart="same", else of one copy,
    # [1, ...], used in a step in which no sampled initial state is finite
    first: Any

    def partition_specs(self, axis: str) -> Any:
        """Return the partition specs on a mesh with this axis: the copies are sharded.

        The stored initial state is replicated, except with restart="same".
        """
        shared, whole = PartitionSpec(axis), PartitionSpec()
        of_each = [x.shape[:1] == self.episode_return.shape for x in jax.tree.leaves(self.first)]
        places: dict[str, Any] = {
            "state": shared,
            "observation": shared,
            "episode_return": shared,
            "episode_length": shared,
            "first": shared if all(of_each) else whole,
        }
        return VectorState(**places)


@pytree
class Vector:
    """`num_envs` copies of `env`; with an `axis`, this device's shard in `jax.shard_map`."""

    env: Any  # the environment
    num_envs: int = size(least=1)  # total over all devices
    # initial states after a reset: "fresh", "bank" or "same"
    restart: str = static(default="fresh")
    axis: str | None = static(default=None)  # mesh axis over which the copies are sharded

    @property
    def num_local(self) -> int:
        """Number of copies on this device, B below."""
        return self.num_envs // collectives.axis_size(self.axis)

    @allocation.limit_memory
    def reset(self, key: Array) -> VectorState:
        """Return the initial states of all copies; only here `env.stagger` is applied, if any."""
        begun = replace_broken(jax.vmap(self.env.reset)(self._keys(key)))
        state, observation = begun
        first = begun if self.restart == "same" else jax.tree.map(lambda x: x[:1], begun)
        if stagger := getattr(self.env, "stagger", None):
            state = jax.vmap(stagger)(state, self._keys(jax.random.fold_in(key, 1)))
        return VectorState(
            state=state,
            observation=observation,
            episode_return=jnp.zeros(self.num_local),
            episode_length=jnp.zeros(self.num_local, jnp.int32),
            first=first,
        )

    def step(
        self, state: VectorState, action: Array, key: Array, reset: Array | bool = False
    ) -> tuple[VectorState, Outcome]:
        """Step all copies and reset copies that ended; gradients do not flow through resets.

        Copies in the mask `reset` [B] are also reset, with their episodes neither terminated nor
        truncated.

        Raises:
            ValueError: if the number of actions differs, or one is NaN outside of `jit`.
        """
        if jnp.ndim(action) == 0 or jnp.shape(action)[0] != self.num_local:
            raise ValueError(
                f"step: action has shape {list(jnp.shape(action))}; it must be [{self.num_local}, "
                "...], one per copy"
            )
        ranges.numbers("step: action", action)
        return self.step_with(state, action, self.draw(state, key), reset)

    def draw(self, state: VectorState, key: Array) -> Any:
        """Return the random inputs of one step: a key and the sampled initial states.

        `step` calls it. Batched over the keys of many steps in advance, it uses fewer and larger
        operations, but needs memory for the initial states of all these steps.
        """
        step_key, start_key = jax.random.split(key)
        return step_key, jax.lax.stop_gradient(self._initial_states(state, start_key))

    def step_with(
        self, state: VectorState, action: Array, drawn: Any, reset: Array | bool = False
    ) -> tuple[VectorState, Outcome]:
        """Step all copies with the random inputs returned by `draw`."""
        step_key, fresh = drawn
        moved, out = self.move(state, action, step_key)
        after = self.reset_where(moved, out.is_first | reset, fresh)
        return after, out._replace(observation=after.observation)

    def move(self, state: VectorState, action: Array, key: Array) -> tuple[VectorState, Outcome]:
        """Step all copies without resets; those in `Outcome.is_first` must be reset next.

        Their states may hold any values. `Outcome.observation` equals `final` here.
        """
        step = jax.vmap(self.env.step)(state.state, action, self._keys(key))
        good = is_finite((step.observation, step.reward)) & is_finite(step.state, state.state)
        broken = jnp.broadcast_to(~good, self.num_local)
        final = _select_rows(broken, state.observation, step.observation)
        reward = _select_rows(broken, jnp.zeros_like(step.reward), step.reward)
        counted = jax.lax.stop_gradient(reward if reward.ndim == 1 else reward[:, 0])
        moved = VectorState(
            state=step.state,
            observation=final,
            episode_return=state.episode_return + counted,
            episode_length=state.episode_length + 1,
            first=state.first,
        )
        # totals of the episodes that end here
        info = {"success": jnp.zeros(self.num_local, bool), **step.info}
        info["episode_return"] = moved.episode_return
        info["episode_length"] = moved.episode_length
        return moved, Outcome(
            observation=final,
            final=final,
            reward=reward,
            terminated=step.terminated & ~broken,
            truncated=step.truncated & ~broken,
            info=info,
            broken=broken,
        )

    def reset_where(self, state: VectorState, where: Array, fresh: Any) -> VectorState:
        """Reset the copies in the mask `where` [B] to the initial states returned by `draw`."""

        def repeat_bank(new: Array) -> Array:
            if self.restart != "bank":
                return new
            new = jnp.concatenate([new] * -(-self.num_envs // new.shape[0]))[: self.num_envs]
            return collectives.local_rows(new, self.axis)

        now = (state.state, state.observation)
        later, observation = _select_rows(where, jax.tree.map(repeat_bank, fresh), now)
        return VectorState(
            state=later,
            observation=observation,
            episode_return=jnp.where(where, 0.0, state.episode_return),
            episode_length=jnp.where(where, 0, state.episode_length),
            first=state.first,
        )

    def _initial_states(self, state: VectorState, key: Array) -> Any:
        if self.restart == "same":
            return state.first
        bank = -(-self.num_envs // 8)  # all devices compute the full bank
        keys = self._keys(key) if self.restart == "fresh" else jax.random.split(key, bank)
        return replace_broken(jax.vmap(self.env.reset)(keys), state.first)

    def _keys(self, key: Array) -> Array:
        """Return one key per copy [B], independent of the number of devices."""
        return collectives.local_rows(jax.random.split(key, self.num_envs), self.axis)


def is_finite(tree: Any, before: Any = None) -> Array:
    """Return a mask [B] of rows whose floating-point values are all finite; leaves are [B, ...].

    Infinities that equal the value in a tree `before` of the same structure are accepted.
    """
    leaves = jax.tree.leaves(tree)
    held = [None] * len(leaves) if before is None else jax.tree.leaves(before)

    def is_leaf_finite(x: Array, was: Array | None) -> Array:
        whole = jnp.isfinite(x) if was is None else jnp.isfinite(x) | (x == was)
        return jnp.all(whole, tuple(range(1, x.ndim)))

    reals = (pair for pair in zip(leaves, held) if jnp.issubdtype(pair[0].dtype, jnp.inexact))
    return functools.reduce(
        jnp.logical_and, itertools.starmap(is_leaf_finite, reals), jnp.bool_(True)
    )


def _select_rows(where: Array, new: Any, old: Any) -> Any:
    """Return the rows of `new` in the mask `where` [B], and of `old` elsewhere."""

    def choose(new: Array, old: Array) -> Array:
        return jnp.where(where.reshape(where.shape + (1,) * (old.ndim - 1)), new, old)

    return jax.tree.map(choose, new, old)


def replace_broken(begun: Any, spare: Any = None) -> Any:
    """Replace non-finite initial states and observations [B, ...] by a finite one.

    It is the first finite row, or `spare` [1, ...] if none is finite.
    """
    good = is_finite(begun[1]) & is_finite(
        begun[0], begun[0]
    )  # states may hold infinities, but no NaN
    good = jnp.broadcast_to(good, len(jax.tree.leaves(begun)[0]))
    found, at = jnp.any(good), jnp.argmax(good)
    other = jax.tree.map(lambda x: x[at][None], begun)
    if spare is not None:
        other = jax.tree.map(lambda x, y: jnp.where(found, x, y), other, spare)
    other = jax.tree.map(lambda x, y: jnp.broadcast_to(x, y.shape), other, begun)
    return _select_rows(good, begun, other)


@explain_errors
def vectorize(
    env: Environment, num_envs: int, restart: str = "fresh", axis: str | None = None
) -> Vector:
    """Return a vectorized environment of `num_envs` copies of `env`.

    Args:
        env: the environment.
        num_envs: number of copies, over all devices.
        restart: "fresh", "bank" or "same", see the module docstring.
        axis: inside `jax.shard_map`, the mesh axis over which the copies are sharded.

    Raises:
        ValueError: if there are no copies, or `restart` is unknown.
        TypeError: if `env` is not an environment.

    >>> from jaxgpu import rl
    >>> many = rl.vectorize(rl.make("cartpole"), 4)
    >>> state = many.reset(jax.random.key(0))
    >>> state, out = many.step(state, jnp.zeros(4, jnp.int32), jax.random.key(1))
    >>> out.reward.shape, out.final.shape
    ((4,), (4, 4))
    """
    ranges.refuse("vectorize: num_envs", num_envs, ranges.Range(least=1, whole=True, one=True))
    check_environment("vectorize", env)
    ranges.check("vectorize", env)
    if axis is not None:
        arguments.word("vectorize: axis", axis)
    if restart not in _RESTARTS:
        raise ValueError(f"vectorize: restart={restart!r}; use one of {', '.join(_RESTARTS)}")
    return Vector(env, int(num_envs), restart, axis)
