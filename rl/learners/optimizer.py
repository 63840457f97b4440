"""Adam with gradient clipping by global norm: Kingma & Ba (2015), arXiv:1412.6980, by optax."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array

from .. import collectives


def init(params: Any) -> Any:
    """Return the initial state of the optimizer."""
    return _adam(1.0).init(params)


def descend(
    params: Any,
    opt_state: Any,
    gradient: Any,
    learning_rate: Array | float,
    max_grad_norm: Array | float,
    axis: str | None = None,
) -> tuple[Any, Any]:
    """Clip `gradient` to the norm `max_grad_norm`, take one Adam step; return params and opt_state.

    With the `axis` of a mesh the gradients of the devices are averaged first. Each is that of the
    loss of the device's own rows, inside a `jax.shard_map` with `check_vma=False`, where JAX does
    not sum gradients by itself.

    >>> state = init(jax.numpy.float32(3.0))
    >>> params, _ = descend(3.0, state, jax.numpy.float32(7.0), 0.5, 1.0)
    >>> round(float(params), 4)
    2.5
    """
    with jax.numpy_dtype_promotion("standard"):  # optax raises floats to integer powers
        mean = collectives.pmean(gradient, axis)
        step, opt_state = _adam(max_grad_norm).update(mean, opt_state)
    return jax.tree.map(lambda p, s: p - learning_rate * s, params, step), opt_state


def run_minibatches(
    loss: Callable[[Any, Any], Array],
    params: Any,
    opt_state: Any,
    batch: Any,
    orders: Array,
    learning_rate: Array | float,
    max_grad_norm: Array | float,
    extra: Any = None,
    axis: str | None = None,
) -> tuple[Any, Any]:
    """Take one step on `loss(params, part)` per minibatch; return params and opt_state.

    Args:
        loss: function of the parameters and of rows of the batch.
        params: initial parameters.
        opt_state: initial optimizer state.
        batch: leaves [R, ...].
        orders: row indices of each minibatch, [steps, R / num_minibatches], from `minibatches`.
        learning_rate: learning rate of every step.
        max_grad_norm: clip of the gradient norm.
        extra: further entries of `part` for each step, by name, leaves [steps, ...].
        axis: mesh axis whose devices have equal parts of every minibatch, see `descend`.

    >>> x, orders = jnp.array([1.0, 3.0]), jnp.array([[0], [1]] * 200)
    >>> square, start = lambda p, x: jnp.sum((p - x) ** 2), jnp.float32(0.0)
    >>> round(float(run_minibatches(square, start, init(start), x, orders, 0.02, 9.0)[0]), 1)
    2.0
    """

    def step(carry: tuple[Any, Any], drawn: tuple[Array, Any]) -> tuple[tuple[Any, Any], None]:
        (params, opt_state), (rows, more) = carry, drawn
        # The barrier separates the row gather from the loss, which then runs on wide arrays.
        part = jax.lax.optimization_barrier(jax.tree.map(lambda x: x[rows], batch))
        gradient = jax.grad(loss)(params, part if more is None else part | more)
        return descend(params, opt_state, gradient, learning_rate, max_grad_norm, axis), None

    return jax.lax.scan(step, (params, opt_state), (orders, extra))[0]


def minibatches(key: Array, rows: int, epochs: int, parts: int, axis: str | None = None) -> Array:
    """Return shuffled row indices [epochs parts, rows / parts]; each epoch has every row once.

    With the `axis` of a mesh every device shuffles its own rows independently.

    It uses the random bits of `jax.random.permutation`, with the low bits replaced by the row
    index: sorting one array takes half as long as sorting pairs. Ties are ordered by row, which
    matters only at the border of two minibatches.
    """
    size = jnp.uint32(2 ** (rows - 1).bit_length())

    def permutation(key: Array) -> Array:
        drawn = jax.random.bits(jax.random.split(key)[1], (rows,), jnp.uint32)
        return jnp.sort(drawn // size * size + jnp.arange(rows, dtype=jnp.uint32)) % size

    orders = jax.vmap(permutation)(jax.random.split(collectives.device_key(key, axis), epochs))
    return jnp.reshape(orders.astype(jnp.int32), (epochs * parts, -1))


def replace_broken_rows(orders: Array, broken: Array) -> Array:
    """Replace each row of `orders` that is `broken` [R] by the nearest valid row before it.

    If there is none before it, use the first valid row. If no row is valid, nothing is replaced.

    >>> replace_broken_rows(jnp.arange(4)[None], jnp.array([True, False, True, False])).tolist()
    [[1, 1, 1, 3]]
    """
    rows = jnp.arange(len(broken), dtype=orders.dtype)
    before = jax.lax.cummax(jnp.where(broken, -1, rows))
    first = jnp.argmin(broken).astype(orders.dtype)
    whole = jnp.where(before < 0, first, before)
    return jnp.where(jnp.all(broken), rows, whole)[orders]


def _adam(max_grad_norm: Array | float) -> optax.GradientTransformation:
    bound: Any = max_grad_norm
    adam = optax.chain(optax.clip_by_global_norm(bound), optax.scale_by_adam(eps=1e-5))
    return optax.flatten(adam)  # few operations on one long array instead of as many per weight
