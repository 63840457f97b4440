"""Running mean and variance of observations: Chan, Golub & LeVeque (1983), equations 2.1.

Each component of a vector is normalized separately. Images [H, W, C] are not normalized. Rewards
can be divided by the running standard deviation of their discounted sums (Engstrom et al. 2020,
arXiv:2005.12729, section 3), so that the scale of a task's rewards does not matter.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import pytree

from .. import collectives
from .networks import as_float


@pytree
class Normalizer:
    """Running statistics; `mean` and `square` have the structure of an observation."""

    mean: Any  # mean of all observations; for an image, constant zeros of its type
    square: Any  # sum of squared deviations from the mean; for an image, the same zeros
    count: Array  # [] number of observations


def init(observation: Any) -> Normalizer:
    """Return the empty statistics for observations like `observation`."""
    zero = jax.tree.map(lambda x: jnp.zeros_like(x if _is_picture(x) else as_float(x)), observation)
    return Normalizer(zero, zero, jnp.zeros(()))


def _is_picture(like: Array) -> bool:
    return jnp.ndim(like) == 3


def update(normaliser: Normalizer, observations: Any, axis: str | None = None) -> Normalizer:
    """Update the statistics with a batch of observations, whose leaves have extra leading axes.

    With the `axis` of a mesh, the batches of all devices along it are combined.

    >>> stats = update(init(jnp.zeros(())), jnp.array([1.0, 3.0]))
    >>> float(stats.mean), float(apply(stats, jnp.float32(4.0)))
    (2.0, 2.0)
    """

    def flat(x: Array, like: Array) -> Array:
        return x.reshape(-1, *like.shape)

    def moments(x: Array, like: Array) -> tuple[Array, Array]:
        return (like, like) if _is_picture(like) else collectives.moments(as_float(x), (0,), axis)

    likes, structure = jax.tree.flatten(normaliser.mean)
    rows = jax.tree.leaves(jax.tree.map(flat, observations, normaliser.mean))
    means, squares = zip(*map(moments, rows, likes), strict=True)
    new = rows[0].shape[0] * collectives.axis_size(axis)
    return _add_moments(normaliser, structure.unflatten(means), structure.unflatten(squares), new)


def merge(normaliser: Normalizer, seen: Normalizer, axis: str) -> Normalizer:
    """Add the `seen` statistics of each device along an axis, all of equal count."""
    means, structure = jax.tree.flatten(seen.mean)
    moments = zip(means, jax.tree.leaves(seen.square), strict=True)
    means, squares = zip(
        *(collectives.merge_moments(*x, seen.count, axis) for x in moments), strict=True
    )
    new = seen.count * collectives.axis_size(axis)
    return _add_moments(normaliser, structure.unflatten(means), structure.unflatten(squares), new)


def transfer_stats(name: str, fresh: Normalizer, seen: Normalizer) -> Normalizer:
    """Return the statistics `seen` for the observations of `fresh`, which may add images.

    Raises:
        ValueError: if `seen` lacks a vector of `fresh`; `name` starts the message.
    """
    squares = jax.tree.leaves(seen.square)
    held = dict(zip(_leaf_paths(seen.mean), zip(jax.tree.leaves(seen.mean), squares), strict=True))
    likes, structure = jax.tree.flatten(fresh.mean)
    kept = []
    for at, like in zip(_leaf_paths(fresh.mean), likes, strict=True):
        moments = held.get(at)
        if _is_picture(like):
            moments = like, like
        elif moments is None or moments[0].shape != like.shape:
            raise ValueError(
                f"{name}: the given critic has not learned from an observation{at} of shape "
                f"{list(like.shape)}; train it with one"
            )
        kept.append(moments)
    means, squares = zip(*kept, strict=True)
    return Normalizer(structure.unflatten(means), structure.unflatten(squares), seen.count)


def _leaf_paths(tree: Any) -> list[str]:
    return [jax.tree_util.keystr(at) for at, _ in jax.tree.leaves_with_path(tree)]


def _add_moments(normaliser: Normalizer, mean: Any, square: Any, new: Array | int) -> Normalizer:
    """Add `new` observations with this mean and this sum of squared deviations from it."""
    count = normaliser.count + new
    shift = jax.tree.map(lambda a, b: a - b, mean, normaliser.mean)

    def add_square(s: Array, more: Array, d: Array) -> Array:
        return s if _is_picture(s) else s + more + d * d * normaliser.count * new / count

    def shift_mean(m: Array, d: Array) -> Array:
        return m if _is_picture(m) else m + d * new / count

    square = jax.tree.map(add_square, normaliser.square, square, shift)
    mean = jax.tree.map(shift_mean, normaliser.mean, shift)
    return Normalizer(mean, square, count)


def apply(normaliser: Normalizer, observations: Any) -> Any:
    """Standardize vectors and clip them to within 10 standard deviations; images are unchanged.

    >>> stats = init({"eye": jnp.zeros((2, 2, 1), jnp.uint8), "joints": jnp.zeros(1)})
    >>> seen = apply(stats, {"eye": jnp.full((2, 2, 1), 9, jnp.uint8), "joints": jnp.ones(1)})
    >>> seen["eye"].dtype, seen["joints"].tolist()  # nothing is known yet of the joints
    (dtype('uint8'), [1.0])
    """

    def standardize(x: Array, mean: Array, square: Array) -> Array:
        if _is_picture(mean):
            return x
        x = as_float(x)
        spread = jnp.sqrt(square / jnp.maximum(normaliser.count, 1.0) + 1e-8)
        lead = (1,) * (x.ndim - mean.ndim)
        mean, spread = mean.reshape(lead + mean.shape), spread.reshape(lead + spread.shape)
        known = normaliser.count > 0
        return jnp.where(known, jnp.clip((x - mean) / jnp.where(known, spread, 1.0), -10, 10), x)

    return jax.tree.map(standardize, observations, normaliser.mean, normaliser.square)


@pytree
class ReturnStats:
    """Running discounted sums of rewards of B environments."""

    total: Array  # [B] discounted sum of the running episodes
    stats: Normalizer  # statistics of all sums so far


def init_returns(num_envs: int) -> ReturnStats:
    """Return the sums before the first step."""
    return ReturnStats(jnp.zeros(num_envs), init(jnp.zeros(())))


def scale(
    returns: ReturnStats, reward: Array, done: Array, gamma: Array | float, axis: str | None = None
) -> tuple[ReturnStats, Array]:
    """Update the statistics with rewards [T, B] and divide the rewards by the standard deviation.

    The mask `done` marks ends of episodes. With the `axis` of a mesh the deviation is over all
    devices.

    >>> done = jnp.zeros((2, 1), bool)
    >>> scale(init_returns(1), jnp.array([[2.0], [2.0]]), done, 0.5)[1]  # sums 2 and 3
    Array([[4.],
           [4.]], dtype=float32)
    """

    def add(total: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
        total = gamma * total + row[0]
        return jnp.where(row[1], 0.0, total), total

    total, sums = jax.lax.scan(add, returns.total, (reward, done))
    stats = update(returns.stats, sums, axis)
    return ReturnStats(total, stats), reward / jnp.sqrt(stats.square / stats.count + 1e-8)
