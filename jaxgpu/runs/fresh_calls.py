"""Calls of jitted functions of this package that are given functions and classes of users.

`jax.jit` keeps their traces, and does not look at what they read.
"""

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import jax

from jaxgpu.inputs.trace_context import tracing

from .program import Call
from .saving import identity


def call_fresh[R](f: Callable[..., R], *given: Any) -> R:
    """Return `f(*given)`, traced again if anything that `given` refers to has changed.

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
    with fresh_traces(f, *given):
        return f(*given)


def fresh_traces(f: Callable[..., Any], *given: Any) -> contextlib.AbstractContextManager[Any]:
    """Return the context in which `call_fresh` calls, for other methods of a jitted function.

    >>> shape_of = jax.jit(lambda x: x.T)
    >>> with fresh_traces(shape_of, jax.numpy.ones((2, 3))):
    ...     shape_of.eval_shape(jax.numpy.ones((2, 3))).shape
    (3, 2)
    """
    key = Call(functools.partial(f, *given)).key()
    if key is not None:
        return tracing(key[-1:])
    # the program says it, but not what functions of the host in it read
    called: list[Any] = []
    with tracing(None):
        digest = identity.of_program(jax.make_jaxpr(f)(*given), called)
    return tracing(None if called else (digest,))
