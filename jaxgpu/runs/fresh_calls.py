"""Calls of jitted functions of this package that are given functions and classes of users.

`jax.jit` keeps what they were traced to, whatever has changed in what they read.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax

from .program import Call
from .saving import identity
from .saving.trace_context import tracing


def call_fresh[R](f: Callable[..., R], *given: Any) -> R:
    """Return `f(*given)`, by a program that is no older than what users' code in `given` reads.

    >>> class Rate:
    ...     __module__, value = "notes", 2.0
    ...     def __call__(self, x):
    ...         return self.value * x
    >>> apply, rate = jax.jit(lambda rate, x: rate(x), static_argnums=0), Rate()
    >>> call_fresh(apply, rate, 1.0).item(), setattr(Rate, "value", 3.0)
    (2.0, None)
    >>> call_fresh(apply, rate, 1.0).item(), apply(rate, 1.0).item()
    (3.0, 3.0)
    """
    key = Call(functools.partial(f, *given)).key()
    told: Any = key and key[-1:]
    if told is None:  # the program tells it, but not what functions of the host in it read
        called: list[Any] = []
        with tracing(None):
            digest = identity.of_program(jax.make_jaxpr(f)(*given), called)
        told = None if called else (f, digest)
    with tracing(told):
        return f(*given)
