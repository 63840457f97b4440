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

from .. import shares
from .networks import as_real


@pytree
class Normaliser:
    """Running statistics; `mean` and `square` have the structure of an observation."""

    mean: Any  # mean of all observations; for an image, constant zeros of its type
    square: Any  # sum of squared deviations from the mean; for an image, the same zeros
    count: Array  # [] number of observations


def init(observation: Any) -> Normaliser:
    """Return the empty statistics for observations like `observation`."""
    zero = jax.tree.map(lambda x: jnp.zeros_like(x if _is_picture(x) else as_real(x)), observation)
    return Normaliser(zero, zero, jnp.zeros(()))


def _is_picture(like: Array) -> bool:
    return jnp.ndim(like) == 3


def update(normaliser: Normaliser, observations: Any, axis: str | None = None) -> Normaliser:
    """Update the statistics with a batch of observations, whose leaves have extra leading axes.

    With the `axis` of a mesh, the batches of all devices along it are combined.

    >>> stats = update(init(jnp.zeros(())), jnp.array([1.0, 3.0]))
    >>> float(stats.mean), float(apply(stats, jnp.float32(4.0)))
    (2.0, 2.0)
    """

    def flat(x: Array, like: Array) -> Array:
        return x.reshape(-1, *like.shape)

    def moments(x: Array, like: Array) -> tuple[Array, Array]:
        return (like, like) if _is_picture(like) else shares.moments(as_real(x), (0,), axis)

    likes, structure = jax.tree.flatten(normaliser.mean)
    rows = jax.tree.leaves(jax.tree.map(flat, observations, normaliser.mean))
    means, squares = zip(*map(moments, rows, likes), strict=True)
    new = rows[0].shape[0] * shares.count(axis)
    return _add_moments(normaliser, structure.unflatten(means), structure.unflatten(squares), new)


def merged(normaliser: Normaliser, seen: Normaliser, axis: str) -> Normaliser:
    """Add the `seen` statistics of each device along an axis, all of equal count."""
    means, structure = jax.tree.flatten(seen.mean)
    moments = zip(means, jax.tree.leaves(seen.square), strict=True)
    means, squares = zip(*(shares.merged(*x, seen.count, axis) for x in moments), strict=True)
    new = seen.count * shares.count(axis)
    return _add_moments(normaliser, structure.unflatten(means), structure.unflatten(squares), new)


def continued(name: str, fresh: Normaliser, seen: Normaliser) -> Normaliser:
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
                f"{name}: the critic that is given has seen no observation{at} of shape "
                f"{list(like.shape)}; let it learn where there is one"
            )
        kept.append(moments)
    means, squares = zip(*kept, strict=True)
    return Normaliser(structure.unflatten(means), structure.unflatten(squares), seen.count)


def _leaf_paths(tree: Any) -> list[str]:
    return [jax.tree_util.keystr(at) for at, _ in jax.tree.leaves_with_path(tree)]


def _add_moments(normaliser: Normaliser, mean: Any, square: Any, new: Array | int) -> Normaliser:
    """Add `new` observations with this mean and this sum of squared deviations from it."""
    count = normaliser.count + new
    shift = jax.tree.map(lambda a, b: a - b, mean, normaliser.mean)

    def add_square(s: Array, more: Array, d: Array) -> Array:
        return s if _is_picture(s) else s + more + d * d * normaliser.count * new / count

    def shift_mean(m: Array, d: Array) -> Array:
        return m if _is_picture(m) else m + d * new / count

    square = jax.tree.map(add_square, normaliser.square, square, shift)
    mean = jax.tree.map(shift_mean, normaliser.mean, shift)
    return Normaliser(mean, square, count)


def apply(normaliser: Normaliser, observations: Any) -> Any:
    """Standardize vectors and clip them to within 10 standard deviations; images are unchanged.

    >>> stats = init({"eye": jnp.zeros((2, 2, 1), jnp.uint8), "joints": jnp.zeros(1)})
    >>> seen = apply(stats, {"eye": jnp.full((2, 2, 1), 9, jnp.uint8), "joints": jnp.ones(1)})
    >>> seen["eye"].dtype, seen["joints"].tolist()  # nothing is known yet of the joints
    (dtype('uint8'), [1.0])
    """

    def standardize(x: Array, mean: Array, square: Array) -> Array:
        if _is_picture(mean):
            return x
        x = as_real(x)
        spread = jnp.sqrt(square / jnp.maximum(normaliser.count, 1.0) + 1e-8)
        lead = (1,) * (x.ndim - mean.ndim)
        mean, spread = mean.reshape(lead + mean.shape), spread.reshape(lead + spread.shape)
        known = normaliser.count > 0
        return jnp.where(known, jnp.clip((x - mean) / jnp.where(known, spread, 1.0), -10, 10), x)

    return jax.tree.map(standardize, observations, normaliser.mean, normaliser.square)


@pytree
class Returns:
    """Running discounted sums of rewards of B environments."""

    total: Array  # [B] discounted sum of the running episodes
    stats: Normaliser  # statistics of all sums so far


def no_returns(num_envs: int) -> Returns:
    """Return the sums before the first step."""
    return Returns(jnp.zeros(num_envs), init(jnp.zeros(())))


def scale(
    returns: Returns, reward: Array, done: Array, gamma: Array | float, axis: str | None = None
) -> tuple[Returns, Array]:
    """Update the statistics with rewards [T, B] and divide the rewards by the standard deviation.

    The mask `done` marks ends of episodes. With the `axis` of a mesh the deviation is over all
    devices.

    >>> done = jnp.zeros((2, 1), bool)
    >>> scale(no_returns(1), jnp.array([[2.0], [2.0]]), done, 0.5)[1]  # sums 2 and 3
    Array([[4.],
           [4.]], dtype=float32)
    """

    def add(total: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
        total = gamma * total + row[0]
        return jnp.where(row[1], 0.0, total), total

    total, sums = jax.lax.scan(add, returns.total, (reward, done))
    stats = update(returns.stats, sums, axis)
    return Returns(total, stats), reward / jnp.sqrt(stats.square / stats.count + 1e-8)
