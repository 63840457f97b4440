"""Adam with a bound on the gradient's norm: Kingma & Ba (2015), arXiv:1412.6980, by optax."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array

from .. import shares


def init(params: Any) -> Any:
    """The state of the optimiser before the first step."""
    return _adam(1.0).init(params)


def descend(
    params: Any,
    opt_state: Any,
    gradient: Any,
    learning_rate: Array | float,
    max_grad_norm: Array | float,
    axis: str | None = None,
) -> tuple[Any, Any]:
    """Parameters and optimiser state after one step down `gradient`, cut to `max_grad_norm` first.

    With the `axis` of a mesh it is the mean of the devices' gradients, each of the loss of its own
    rows alone: inside a `jax.shard_map` with `check_vma=False`, where JAX sums none by itself.

    >>> state = init(jax.numpy.float32(3.0))
    >>> params, _ = descend(3.0, state, jax.numpy.float32(7.0), 0.5, 1.0)
    >>> round(float(params), 4)
    2.5
    """
    with jax.numpy_dtype_promotion("standard"):  # optax raises floats to whole-number powers
        mean = shares.mean(gradient, axis)
        step, opt_state = _adam(max_grad_norm).update(mean, opt_state)
    return jax.tree.map(lambda p, s: p - learning_rate * s, params, step), opt_state


def passes(
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
    """Parameters and optimiser state after a step down `loss(params, part)` for each minibatch.

    Args:
        loss: of the parameters and of rows of the batch.
        params: before the first step.
        opt_state: before the first step.
        batch: leaves [R, ...].
        orders: rows of each minibatch, [steps, R / num_minibatches], as `minibatches` draws them.
        learning_rate: of every step.
        max_grad_norm: to which the gradient is cut.
        extra: of each step, by name, leaves [steps, ...]; it joins the rows in `part`.
        axis: of a mesh whose devices have equal parts of every minibatch, as `descend` takes it.

    >>> x, orders = jnp.array([1.0, 3.0]), jnp.array([[0], [1]] * 200)
    >>> square, start = lambda p, x: jnp.sum((p - x) ** 2), jnp.float32(0.0)
    >>> round(float(passes(square, start, init(start), x, orders, 0.02, 9.0)[0]), 1)
    2.0
    """

    def step(carry: tuple[Any, Any], drawn: tuple[Array, Any]) -> tuple[tuple[Any, Any], None]:
        (params, opt_state), (rows, more) = carry, drawn
        # the barrier keeps fetching, row by row, out of the loss, which is computed in wide strides
        part = jax.lax.optimization_barrier(jax.tree.map(lambda x: x[rows], batch))
        gradient = jax.grad(loss)(params, part if more is None else part | more)
        return descend(params, opt_state, gradient, learning_rate, max_grad_norm, axis), None

    return jax.lax.scan(step, (params, opt_state), (orders, extra))[0]


def minibatches(key: Array, rows: int, epochs: int, parts: int, axis: str | None = None) -> Array:
    """Every row once an epoch, in `parts` random parts: indices [epochs parts, rows / parts].

    With the `axis` of a mesh every device draws an order of its own for its own rows.

    By the numbers that `jax.random.permutation` draws, whose last bits are made those of the row:
    one number a row takes half as long to sort as two. Ties are broken by the row, which matters
    only at the border of two parts.
    """
    size = jnp.uint32(2 ** (rows - 1).bit_length())

    def order(key: Array) -> Array:
        drawn = jax.random.bits(jax.random.split(key)[1], (rows,), jnp.uint32)
        return jnp.sort(drawn // size * size + jnp.arange(rows, dtype=jnp.uint32)) % size

    orders = jax.vmap(order)(jax.random.split(shares.apart(key, axis), epochs))
    return jnp.reshape(orders.astype(jnp.int32), (epochs * parts, -1))


def spared(orders: Array, broken: Array) -> Array:
    """The `orders` of `minibatches`, each row that is `broken` [R] replaced by a whole one.

    By the nearest before it, or the first of all. Where none is whole nothing is replaced.

    >>> spared(jnp.arange(4)[None], jnp.array([True, False, True, False])).tolist()
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
    return optax.flatten(adam)  # a few operations on one long array, not as many on each weight
