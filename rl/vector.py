"""Many copies of an environment, each beginning anew when its episode ends.

The observation after the end of an episode is the first of the next; the true last one is in
`Outcome.final`, so that a learner can tell what a truncated episode was still worth. Beginnings are
drawn fresh at every step, one for each copy. With `restart="bank"` they are an eighth as many as
there are copies, which is faster where a step costs no more than a start; copies that end in the
same step then share them, and where episodes end by the clock alone all do. With "same" every
episode begins as the first one of the copy.

A step that leads to a state, an observation or a reward that is not finite never reaches the
learner: the copy begins anew, and `Outcome.broken` says so. Of a state, which may hold infinities
on purpose, those that stay as they were are left alone; a nan never is.
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
from jaxgpu.inputs.doors import explained
from jaxgpu.inputs.fields import pytree, size, static

from . import shares
from .environment import Environment, refuse_no_environment

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

    def report(self, axis: str | None = None) -> dict[str, Array]:
        """Of the episodes that ended: their number, and means of their returns and successes.

        And how many steps were `broken`. They are those of all devices along the `axis` of a mesh.
        """
        single = lambda x: jnp.sum(jnp.where(self.done, x.astype(jnp.float32), 0.0))
        sums = {
            "episode_return": single(self.info["episode_return"]),
            "episodes": jnp.sum(self.done.astype(jnp.float32)),
            "success": single(self.info["success"]),
            "broken": jnp.sum(self.broken.astype(jnp.float32)),
        }
        sums = shares.total(sums, axis)
        ended = jnp.maximum(sums["episodes"], 1.0)
        means = {name: sums[name] / ended for name in ("episode_return", "success")}
        return sums | means


@pytree
class VectorState:
    """All copies."""

    state: Any  # of the environments, [B, ...]
    observation: Any  # [B, O]
    episode_return: Array  # [B] sum of rewards of the running episode; of the first objective
    episode_length: Array  # [B] its steps
    # states and observations to begin with: of every copy where restart="same", else of one of
    # them, [1, ...], for the step of which no new start is finite
    first: Any

    def places(self, axis: str) -> Any:
        """Where each part belongs on a mesh with this axis: the copies are shared out.

        What all of them may begin with is on every device.
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
    """`num_envs` copies of `env`; with an `axis`, those of one device inside `jax.shard_map`."""

    env: Any  # the environment
    num_envs: int = size(least=1)  # of all devices
    # where an episode begins that follows another: "fresh", "bank" or "same"
    restart: str = static(default="fresh")
    axis: str | None = static(default=None)  # of a mesh whose devices have equal shares of them

    @property
    def here(self) -> int:
        """How many copies this device has: B below."""
        return self.num_envs // shares.count(self.axis)

    @allocation.bounded
    def reset(self, key: Array) -> VectorState:
        """First states of all copies; an environment may `stagger` these, and only these."""
        begun = mended(jax.vmap(self.env.reset)(self._keys(key)))
        state, observation = begun
        first = begun if self.restart == "same" else jax.tree.map(lambda x: x[:1], begun)
        if stagger := getattr(self.env, "stagger", None):
            state = jax.vmap(stagger)(state, self._keys(jax.random.fold_in(key, 1)))
        return VectorState(
            state=state,
            observation=observation,
            episode_return=jnp.zeros(self.here),
            episode_length=jnp.zeros(self.here, jnp.int32),
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
        if jnp.ndim(action) == 0 or jnp.shape(action)[0] != self.here:
            raise ValueError(
                f"step: action has shape {list(jnp.shape(action))}; it must be [{self.here}, "
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
        moved, out = self.move(state, action, step_key)
        after = self.restarted(moved, out.is_first | reset, fresh)
        return after, out._replace(observation=after.observation)

    def move(self, state: VectorState, action: Array, key: Array) -> tuple[VectorState, Outcome]:
        """`step` without new beginnings: copies in `Outcome.is_first` are to begin anew.

        Their states may hold anything; `Outcome.observation` is `final` here.
        """
        step = jax.vmap(self.env.step)(state.state, action, self._keys(key))
        good = finite((step.observation, step.reward)) & finite(step.state, state.state)
        broken = jnp.broadcast_to(~good, self.here)
        final = _chosen(broken, state.observation, step.observation)
        reward = _chosen(broken, jnp.zeros_like(step.reward), step.reward)
        counted = jax.lax.stop_gradient(reward if reward.ndim == 1 else reward[:, 0])
        moved = VectorState(
            state=step.state,
            observation=final,
            episode_return=state.episode_return + counted,
            episode_length=state.episode_length + 1,
            first=state.first,
        )
        # what the episodes that end here come to
        info = {"success": jnp.zeros(self.here, bool), **step.info}
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

    def restarted(self, state: VectorState, where: Array, fresh: Any) -> VectorState:
        """The copies begun anew `where` [B], from states and observations as `draw` gives them."""

        def repeated(new: Array) -> Array:
            if self.restart != "bank":
                return new
            new = jnp.concatenate([new] * -(-self.num_envs // new.shape[0]))[: self.num_envs]
            return shares.own(new, self.axis)

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
        bank = -(-self.num_envs // 8)  # every device has the whole of it
        keys = self._keys(key) if self.restart == "fresh" else jax.random.split(key, bank)
        return mended(jax.vmap(self.env.reset)(keys), state.first)

    def _keys(self, key: Array) -> Array:
        """A key of each copy [B], the same however many devices there are."""
        return shares.own(jax.random.split(key, self.num_envs), self.axis)


def finite(tree: Any, before: Any = None) -> Array:
    """Whether all real numbers of a row are finite, [B]; leaves are [B, ...].

    Or, of a tree like it, what they were `before`: infinite on purpose.
    """
    leaves = jax.tree.leaves(tree)
    held = [None] * len(leaves) if before is None else jax.tree.leaves(before)

    def good(x: Array, was: Array | None) -> Array:
        whole = jnp.isfinite(x) if was is None else jnp.isfinite(x) | (x == was)
        return jnp.all(whole, tuple(range(1, x.ndim)))

    reals = (pair for pair in zip(leaves, held) if jnp.issubdtype(pair[0].dtype, jnp.inexact))
    return functools.reduce(jnp.logical_and, itertools.starmap(good, reals), jnp.bool_(True))


def _chosen(where: Array, new: Any, old: Any) -> Any:
    """Rows of `new` where `where` [B], else of `old`."""

    def choose(new: Array, old: Array) -> Array:
        return jnp.where(where.reshape(where.shape + (1,) * (old.ndim - 1)), new, old)

    return jax.tree.map(choose, new, old)


def mended(begun: Any, spare: Any = None) -> Any:
    """States and observations to begin with, [B, ...]; finite ones in place of those that are not.

    The first of them that is, or `spare` [1, ...] where none is.
    """
    good = finite(begun[1]) & finite(begun[0], begun[0])  # of a state all but nan
    good = jnp.broadcast_to(good, len(jax.tree.leaves(begun)[0]))
    found, at = jnp.any(good), jnp.argmax(good)
    other = jax.tree.map(lambda x: x[at][None], begun)
    if spare is not None:
        other = jax.tree.map(lambda x, y: jnp.where(found, x, y), other, spare)
    other = jax.tree.map(lambda x, y: jnp.broadcast_to(x, y.shape), other, begun)
    return _chosen(good, begun, other)


@explained
def vectorize(
    env: Environment, num_envs: int, restart: str = "fresh", axis: str | None = None
) -> Vector:
    """`num_envs` copies of `env`.

    Args:
        env: what is copied.
        num_envs: how many copies there are, those of all devices together.
        restart: "fresh", "bank" or "same", as the module says.
        axis: inside `jax.shard_map`, the axis of the mesh whose devices share them out.

    Raises:
        ValueError: no copies, or an unknown way to begin anew.
        TypeError: no environment.

    >>> from jaxgpu import rl
    >>> many = rl.vectorize(rl.make("cartpole"), 4)
    >>> state = many.reset(jax.random.key(0))
    >>> state, out = many.step(state, jnp.zeros(4, jnp.int32), jax.random.key(1))
    >>> out.reward.shape, out.final.shape
    ((4,), (4, 4))
    """
    ranges.refuse("vectorize: num_envs", num_envs, ranges.Range(least=1, whole=True, one=True))
    refuse_no_environment("vectorize", env)
    ranges.check("vectorize", env)
    if axis is not None:
        arguments.word("vectorize: axis", axis)
    if restart not in _RESTARTS:
        raise ValueError(f"vectorize: restart={restart!r}; use one of {', '.join(_RESTARTS)}")
    return Vector(env, int(num_envs), restart, axis)
