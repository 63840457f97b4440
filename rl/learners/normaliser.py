"""Running mean and variance of observations: Chan, Golub & LeVeque (1983), equations 2.1.

Vectors are scaled, each of their numbers by itself. Pictures, [H, W, C], pass as they are.
Also rewards over the running deviation of their discounted sums (Engstrom et al. 2020,
arXiv:2005.12729, section 3), so that the size of a task's rewards does not matter.
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
    """What has been seen so far; `mean` and `square` have the structure of an observation."""

    mean: Any  # of all that was seen; of a picture zeros of its kind, which stay
    square: Any  # sum of squared deviations from the mean; of a picture the same zeros
    count: Array  # [] observations seen


def init(observation: Any) -> Normaliser:
    """For observations like `observation`, none seen yet."""
    zero = jax.tree.map(lambda x: jnp.zeros_like(x if _is_picture(x) else as_real(x)), observation)
    return Normaliser(zero, zero, jnp.zeros(()))


def _is_picture(like: Array) -> bool:
    return jnp.ndim(like) == 3


def update(normaliser: Normaliser, observations: Any, axis: str | None = None) -> Normaliser:
    """Take in a batch of observations: leaves have further axes in front.

    With the `axis` of a mesh it is the batch of all devices along it.

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
    return _joined(normaliser, structure.unflatten(means), structure.unflatten(squares), new)


def merged(normaliser: Normaliser, seen: Normaliser, axis: str) -> Normaliser:
    """Take in what each of the devices along an axis has `seen`, equally many observations."""
    means, structure = jax.tree.flatten(seen.mean)
    moments = zip(means, jax.tree.leaves(seen.square), strict=True)
    means, squares = zip(*(shares.merged(*x, seen.count, axis) for x in moments), strict=True)
    new = seen.count * shares.count(axis)
    return _joined(normaliser, structure.unflatten(means), structure.unflatten(squares), new)


def continued(name: str, fresh: Normaliser, seen: Normaliser) -> Normaliser:
    """What was `seen`, for observations like those of `fresh`, which may hold pictures besides.

    Raises:
        ValueError: vectors that were not seen; `name` begins the sentence.
    """
    squares = jax.tree.leaves(seen.square)
    held = dict(zip(_places(seen.mean), zip(jax.tree.leaves(seen.mean), squares), strict=True))
    likes, structure = jax.tree.flatten(fresh.mean)
    kept = []
    for at, like in zip(_places(fresh.mean), likes, strict=True):
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


def _places(tree: Any) -> list[str]:
    return [jax.tree_util.keystr(at) for at, _ in jax.tree.leaves_with_path(tree)]


def _joined(normaliser: Normaliser, mean: Any, square: Any, new: Array | int) -> Normaliser:
    """With `new` observations more, of this mean and this sum of squared deviations from it."""
    count = normaliser.count + new
    shift = jax.tree.map(lambda a, b: a - b, mean, normaliser.mean)

    def squared(s: Array, more: Array, d: Array) -> Array:
        return s if _is_picture(s) else s + more + d * d * normaliser.count * new / count

    def moved(m: Array, d: Array) -> Array:
        return m if _is_picture(m) else m + d * new / count

    square = jax.tree.map(squared, normaliser.square, square, shift)
    mean = jax.tree.map(moved, normaliser.mean, shift)
    return Normaliser(mean, square, count)


def apply(normaliser: Normaliser, observations: Any) -> Any:
    """Vectors less the mean, over the standard deviation, within ten of it; pictures as they are.

    >>> stats = init({"eye": jnp.zeros((2, 2, 1), jnp.uint8), "joints": jnp.zeros(1)})
    >>> seen = apply(stats, {"eye": jnp.full((2, 2, 1), 9, jnp.uint8), "joints": jnp.ones(1)})
    >>> seen["eye"].dtype, seen["joints"].tolist()  # nothing is known yet of the joints
    (dtype('uint8'), [1.0])
    """

    def scaled(x: Array, mean: Array, square: Array) -> Array:
        if _is_picture(mean):
            return x
        x = as_real(x)
        spread = jnp.sqrt(square / jnp.maximum(normaliser.count, 1.0) + 1e-8)
        lead = (1,) * (x.ndim - mean.ndim)
        mean, spread = mean.reshape(lead + mean.shape), spread.reshape(lead + spread.shape)
        known = normaliser.count > 0
        return jnp.where(known, jnp.clip((x - mean) / jnp.where(known, spread, 1.0), -10, 10), x)

    return jax.tree.map(scaled, observations, normaliser.mean, normaliser.square)


@pytree
class Returns:
    """Discounted sums of rewards of B environments."""

    total: Array  # [B] of the running episodes
    stats: Normaliser  # all sums so far


def no_returns(num_envs: int) -> Returns:
    """Before the first step."""
    return Returns(jnp.zeros(num_envs), init(jnp.zeros(())))


def scale(
    returns: Returns, reward: Array, done: Array, gamma: Array | float, axis: str | None = None
) -> tuple[Returns, Array]:
    """Take in rewards [T, B], with `done` where episodes end, and divide them by the deviation.

    With the `axis` of a mesh the deviation is that of all devices along it.

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
