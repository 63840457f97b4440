"""Training and evaluation of any learner on any environment."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu import run as loop
from jaxgpu.rl.environment import Environment


class Learner(Protocol):
    """What every algorithm has: a spec with these methods, all pure."""

    @property
    def steps_per_update(self) -> int:
        """Steps of environments in one update."""
        ...

    def init(self, env: Environment, key: Array) -> Any:
        """The state before learning."""
        ...

    def update(self, env: Environment, state: Any, key: Array) -> Any:
        """The state after one update; `state.report` holds its measurements."""
        ...

    def policy(self, env: Environment, state: Any) -> Any:
        """The learnt policy, without noise: a function, or `Remembering`."""
        ...


class Scores(NamedTuple):
    """How complete episodes went, one number an episode."""

    total: Array  # [E] sum of rewards
    length: Array  # [E] steps
    success: Array  # [E] whether the last step was a success


class Remembering(NamedTuple):
    """A policy with a memory; one without is a function from observation to action."""

    blank: Any  # the memory at the start of an episode
    act: Callable[[Any, Any], tuple[Any, Array]]  # memory and observation to memory and action


def learn(env: Environment, learner: Learner, key: Array, updates: int) -> tuple[Any, Any]:
    """A whole training as one pure function: `vmap` it over keys and over learners.

    Returns:
        The last state, and the reports [updates] of all updates.
    """
    init_key, run_key = jax.random.split(key)

    def one(state: Any, i: Array) -> tuple[Any, Any]:
        state = learner.update(env, state, jax.random.fold_in(run_key, i))
        return state, state.report

    return jax.lax.scan(one, learner.init(env, init_key), jnp.arange(updates))


def train(
    env: Environment,
    learner: Learner,
    key: Array,
    steps: int,
    out: str | Path | None = None,
    resume: bool = False,
) -> loop.Run:
    """`learn` for `steps` steps of environments in the package's loop, with checkpoints in `out`.

    The history holds the reports of all updates, and the result is that of `learn` to the bit,
    interrupted or not.

    Raises:
        ValueError: fewer steps than one update has.
        CheckpointError: a folder that holds another training, or another network.
    """
    updates = steps // learner.steps_per_update
    if updates < 1:
        raise ValueError(
            f"train: steps={steps}; one update has {learner.steps_per_update}; give as many"
        )
    init_key, run_key = jax.random.split(key)
    state = jax.jit(lambda key: learner.init(env, key))(init_key)

    def update(state: Any, key: Array) -> Any:
        return learner.update(env, state, key)

    measure = lambda state: state.report
    return loop.run(update, state, updates, key=run_key, measure=measure, out=out, resume=resume)


def evaluate(
    env: Environment,
    policy: Callable[[Any], Array] | Remembering,
    key: Array,
    episodes: int,
    limit: int,
) -> Scores:
    """Play `episodes` episodes of at most `limit` steps, all at once; a pure function."""
    start_key, step_key = jax.random.split(key)
    state, observation = jax.vmap(env.start)(jax.random.split(start_key, episodes))
    zero = jnp.zeros(episodes)
    act = policy.act if isinstance(policy, Remembering) else lambda memory, x: (memory, policy(x))
    blank = policy.blank if isinstance(policy, Remembering) else ()
    memory = jax.tree.map(lambda x: jnp.broadcast_to(x[None], (episodes, *x.shape)), blank)

    def move(carry: Any, key: Array) -> tuple[Any, None]:
        memory, state, observation, playing, scores = carry
        keys = jax.random.split(key, episodes)
        memory, action = jax.vmap(act)(memory, observation)
        new = jax.vmap(env.advance)(state, action, keys)
        total = scores.total + jnp.where(playing, new.reward, 0.0)
        length = scores.length + jnp.where(playing, 1.0, 0.0)
        success = jnp.where(playing, new.info["success"], scores.success)
        playing = playing & ~(new.terminated | new.truncated)
        scores = Scores(total, length, success)
        return (memory, new.state, new.observation, playing, scores), None

    begin = (memory, state, observation, zero == 0, Scores(zero, zero, zero > 0))
    (*_, scores), _ = jax.lax.scan(move, begin, jax.random.split(step_key, limit))
    return scores


def interquartile_mean(scores: np.ndarray, key: Array, draws: int = 2000) -> tuple[float, ...]:
    """Mean of the middle half of `scores` [S], and the 95 % interval of bootstraps of it.

    Agarwal et al. (2021), arXiv:2108.13264: for few runs, steadier than the median, and the tails
    do not count.
    """

    def middle(x: Array) -> Array:
        cut = x.shape[0] // 4
        return jnp.mean(jnp.sort(x)[cut : x.shape[0] - cut])

    x = jnp.asarray(scores)
    pick = jax.random.randint(key, (draws, x.shape[0]), 0, x.shape[0])
    low, high = jnp.quantile(jax.vmap(middle)(x[pick]), jnp.asarray([0.025, 0.975]))
    return float(middle(x)), float(low), float(high)
