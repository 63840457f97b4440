"""Training and evaluation of any learner on any environment."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu import ranges
from jaxgpu import run as loop

from .doors import check_count
from .environment import Environment
from .learners import schedule as schedules


class Learner(Protocol):
    """What every algorithm has: a spec with these methods, all pure."""

    @property
    def steps_per_update(self) -> int:
        """Steps of environments in one update."""
        ...

    def init(self, env: Environment, key: Array, updates: Array | int | None = None) -> Any:
        """The state before a training of so many updates, which is the length of its schedules."""
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

    Learning rates fall, and exploration settles, over these `updates`.

    Returns:
        The last state, and the reports [updates] of all updates.

    Raises:
        ValueError: a hyper-parameter, or a parameter of the environment, out of its range.
        TypeError: observations, actions or rewards of a kind that the learner does not take.
    """
    ranges.refuse("learn: updates", updates, ranges.Range(least=0, whole=True, one=True))
    init_key, run_key = jax.random.split(key)

    def one(state: Any, i: Array) -> tuple[Any, Any]:
        state = learner.update(env, state, jax.random.fold_in(run_key, i))
        return state, state.report

    state = learner.init(env, init_key, max(updates, 1))
    return jax.lax.scan(one, state, jnp.arange(updates))


def train(
    env: Environment,
    learner: Learner,
    key: Array,
    steps: int,
    out: str | Path | None = None,
    resume: bool = False,
    schedule: int | None = None,
) -> loop.Run:
    """`learn` for `steps` steps of environments in the package's loop, with checkpoints in `out`.

    The history holds the reports of all updates, and the result is that of `learn` to the bit,
    interrupted or not.

    Args:
        env: of all copies.
        learner: what learns.
        key: of the whole training.
        steps: of environments in all, those of a resumed training counted in.
        out: folder of checkpoints.
        resume: go on from what is there.
        schedule: steps over which learning rates fall to zero and exploration settles; `steps` if
            not said. It is a part of the training, and a resumed one keeps it: to stop early and
            go on later, begin with the `schedule` of the whole. The bits are those of the whole
            training. Steps beyond the end of the schedule have a learning rate of zero.

    Raises:
        ValueError: fewer steps than one update has, or a resumed training whose schedule is
            another.
        CheckpointError: a folder that holds another training, or another network.
    """
    ranges.check("train", learner)
    check_count("train: steps", steps)
    if schedule is not None:
        check_count("train: schedule", schedule)
    updates = steps // learner.steps_per_update
    if updates < 1:
        raise ValueError(
            f"train: steps={steps}; one update has {learner.steps_per_update}; give as many"
        )
    length = updates if schedule is None else max(schedule // learner.steps_per_update, 1)
    if resume:
        schedules.refuse_another("train", out, length, learner.steps_per_update)
    init_key, run_key = jax.random.split(key)
    state = jax.jit(lambda key: learner.init(env, key, length))(init_key)
    _refuse_broken(env, state)

    def update(state: Any, key: Array) -> Any:
        return learner.update(env, state, key)

    measure = lambda state: state.report
    done = loop.run(update, state, updates, key=run_key, measure=measure, out=out, resume=resume)
    return replace(done, history=jax.tree.map(lambda rows: rows[1:], done.history))


def _refuse_broken(env: Environment, state: Any) -> None:
    """Raise where not one copy can begin: nothing would ever be learnt."""
    vector = getattr(state, "vector", None)
    if vector is not None and not np.any(np.isfinite(jax.tree.leaves(vector.observation)[0])):
        raise ValueError(
            f"train: no copy of {type(env).__name__} begins with finite numbers; "
            "mend what its start returns, or the numbers that it is given"
        )


def evaluate(
    env: Environment,
    policy: Callable[[Any], Array] | Remembering,
    key: Array,
    episodes: int,
    limit: int,
) -> Scores:
    """Play `episodes` episodes of at most `limit` steps, all at once; a pure function.

    Where the environment says nothing of `success` there is none.

    Raises:
        ValueError: no episodes, no steps, or a parameter of the environment out of its range.
        TypeError: a reward of several objectives.
    """
    check_count("evaluate: episodes", episodes)
    check_count("evaluate: limit", limit)
    ranges.check("evaluate", env)
    start_key, step_key = jax.random.split(key)
    state, observation = jax.vmap(env.reset)(jax.random.split(start_key, episodes))
    zero = jnp.zeros(episodes)
    act = policy.act if isinstance(policy, Remembering) else lambda memory, x: (memory, policy(x))
    blank = policy.blank if isinstance(policy, Remembering) else ()
    memory = jax.tree.map(lambda x: jnp.broadcast_to(x[None], (episodes, *x.shape)), blank)

    def move(carry: Any, key: Array) -> tuple[Any, None]:
        memory, state, observation, playing, scores = carry
        keys = jax.random.split(key, episodes)
        memory, action = jax.vmap(act)(memory, observation)
        new = jax.vmap(env.step)(state, action, keys)
        if new.reward.ndim != 1:
            raise TypeError(
                f"evaluate: a reward of {type(env).__name__} has shape "
                f"{list(new.reward.shape[1:])}; it must be one number; add its parts up"
            )
        total = scores.total + jnp.where(playing, new.reward, 0.0)
        length = scores.length + jnp.where(playing, 1.0, 0.0)
        success = jnp.where(playing, new.info.get("success", False), scores.success)
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
