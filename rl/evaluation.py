"""Evaluation of policies: complete episodes, and statistics over runs."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from jaxgpu.devices import allocation
from jaxgpu.inputs import arguments, ranges
from jaxgpu.inputs.explanations import explain_errors, on_host

from .checks import check_count
from .environment import Environment
from .policies import Policy, as_recurrent


class Scores(NamedTuple):
    """Results of E complete episodes, one value per episode."""

    episode_return: Array  # [E] return; [E, K] for K objectives
    episode_length: Array  # [E] steps
    success: Array  # [E] whether the last step was a success


@explain_errors
@allocation.limit_memory
def evaluate(
    env: Environment,
    policy: Policy,
    key: Array,
    episodes: int,
    max_steps: int,
) -> Scores:
    """Return the scores of `episodes` episodes of at most `max_steps` steps, run in parallel.

    It is a pure function: under `jit`, `vmap` and `grad` only its body is traced. Multiple
    objectives are summed separately. `success` is False if the environment does not report it.

    Raises:
        ValueError: if there are no episodes or steps, or an environment parameter is out of range.
    """
    check_count("evaluate: episodes", episodes)
    check_count("evaluate: max_steps", max_steps)
    ranges.check("evaluate", env)
    policy = as_recurrent(policy)
    act, start = policy.act, policy.carry
    start_key, step_key = jax.random.split(key)
    state, observation = jax.vmap(env.reset)(jax.random.split(start_key, episodes))
    zero = jnp.zeros(episodes)
    carry = jax.tree.map(lambda x: jnp.broadcast_to(x[None], (episodes, *x.shape)), start)
    act = jax.vmap(act)
    step = jax.jit(jax.vmap(env.step), inline=True)  # traced once, for its reward and in the loop
    action = jax.eval_shape(act, carry, observation)[1]
    paid = jax.eval_shape(step, state, action, jax.random.split(step_key, episodes)).reward

    def move(loop: Any, key: Array) -> tuple[Any, None]:
        carry, state, observation, playing, scores = loop
        keys = jax.random.split(key, episodes)
        carry, action = act(carry, observation)
        new = step(state, action, keys)
        counted = jnp.expand_dims(playing, tuple(range(1, new.reward.ndim)))
        scores = Scores(
            episode_return=scores.episode_return + jnp.where(counted, new.reward, 0.0),
            episode_length=scores.episode_length + jnp.where(playing, 1.0, 0.0),
            success=jnp.where(playing, new.info.get("success", False), scores.success),
        )
        playing = playing & ~(new.terminated | new.truncated)
        return (carry, new.state, new.observation, playing, scores), None

    none = jnp.zeros(paid.shape, zero.dtype)
    loop = (carry, state, observation, zero == 0, Scores(none, zero, zero > 0))
    (*_, scores), _ = jax.lax.scan(move, loop, jax.random.split(step_key, max_steps))
    return scores


@explain_errors
@on_host
def interquartile_mean(
    scores: np.ndarray, key: Array, draws: int = 2000
) -> tuple[float, float, float]:
    """Return the interquartile mean of `scores` and its 95 % bootstrap confidence interval.

    For few runs it varies less than the median, and it ignores the tails. S // 4 scores are dropped
    at either end. The interval spans the 2.5th to the 97.5th percentile of that mean over `draws`
    samples of S scores with replacement (Agarwal et al. 2021, arXiv:2108.13264), in float32 unless
    64-bit types are enabled. The results are numbers on the host.

    Args:
        scores: [S], one per run, in any unit.
        key: random key of the bootstrap samples.
        draws: number of bootstrap samples, 1 or more.

    Returns:
        The mean and the lower and upper ends of the interval, in the unit of the scores.

    Raises:
        ValueError: if scores are empty, have another shape or are not finite, or draws is not a
            count.
        TypeError: if the key is not a random key, or scores are not numeric or are being traced.

    >>> import jax, numpy as np
    >>> mean, low, high = interquartile_mean(np.array([0.0, 1.0, 2.0, 3.0]), jax.random.key(0))
    >>> mean, low <= mean <= high
    (1.5, True)
    """
    arguments.key("interquartile_mean: key", key)
    check_count("interquartile_mean: draws", draws)
    x = jnp.asarray(ranges.numbers("interquartile_mean: scores", scores, ("S",)), float)
    if not x.size:
        raise ValueError("interquartile_mean: scores has shape [0]; it must be [S], S >= 1")
    if isinstance(x, Tracer):
        raise TypeError(
            "interquartile_mean: scores are traced; it computes on the host; call it outside of "
            "jit, vmap and grad"
        )
    middle, low, high = _mean_and_interval(x, key, int(draws))
    return float(middle), float(low), float(high)


@allocation.limit_memory
@partial(jax.jit, static_argnums=2)
def _mean_and_interval(x: Array, key: Array, draws: int) -> tuple[Array, ...]:
    """Return the interquartile mean and the ends of its 95 % bootstrap interval."""

    def trimmed_mean(x: Array) -> Array:
        cut = x.shape[0] // 4
        return jnp.mean(jnp.sort(x)[cut : x.shape[0] - cut])

    pick = jax.random.randint(key, (draws, x.shape[0]), 0, x.shape[0])
    return trimmed_mean(x), *jnp.quantile(
        jax.vmap(trimmed_mean)(x[pick]), jnp.asarray([0.025, 0.975])
    )
