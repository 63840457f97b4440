"""A branch that is compiled as a whole.

XLA's CPU backend makes a module of every operation in a branch of `lax.cond`, at some 15 ms of
compilation each, and one of all operations in a loop, unless one of these is a scatter.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array, lax


def once[T](some: Array, change: Callable[[T], T], value: T) -> T:
    """`change(value)` where `some` [] bool, else `value`: a loop of at most one turn.

    >>> once(jnp.bool_(True), lambda x: x + 1, jnp.float32(1.0)).item()
    2.0
    """
    turn = lambda carry: (jnp.bool_(False), change(carry[1]))
    return lax.while_loop(lambda carry: carry[0], turn, (some, value))[1]
