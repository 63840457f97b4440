"""Calls of jitted functions of this package with functions and classes of users as arguments.

`jax.jit` caches the traces of these, and does not check whether the values that they read change.
"""

import contextlib
import copy
import functools
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.extend.core import get_opaque_trace_state

from jaxgpu.inputs.trace_context import tracing

from .program import Call
from .saving import identity

_CACHE_SIZE = 16  # programs
_MAX_BYTES = 1 << 24  # bytes of arrays that the functions of a cached program may refer to
_OUTSIDE = get_opaque_trace_state()
_programs: OrderedDict[Any, Any] = OrderedDict()  # by the references of their functions


def call_fresh[R](f: Callable[..., R], *given: Any) -> R:
    """Return `f(*given)`, traced again if a value that `given` refers to has changed.

    Nothing is traced if `given` refers to the same values as before, such as an equal new spec.

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
    call = Call(functools.partial(f, *given))
    again = call.bind(call.operands)
    with _make_retrace_context(call, f, given):
        return again()


def fresh_traces(f: Callable[..., Any], *given: Any) -> contextlib.AbstractContextManager[Any]:
    """Return the context in which `call_fresh` calls, for other methods of a jitted function.

    >>> shape_of = jax.jit(lambda x: x.T)
    >>> with fresh_traces(shape_of, jax.numpy.ones((2, 3))):
    ...     shape_of.eval_shape(jax.numpy.ones((2, 3))).shape
    (3, 2)
    """
    return _make_retrace_context(Call(functools.partial(f, *given)), f, given)


def _make_retrace_context(
    call: Call, f: Callable[..., Any], given: tuple[Any, ...]
) -> contextlib.AbstractContextManager[Any]:
    key = call.key()
    if key is not None:
        return tracing(key[-1:])
    # the digest covers the program, but not the values that its host functions read
    called: list[Any] = []
    with tracing(None):
        digest = identity.program_digest(jax.make_jaxpr(f)(*given), called)
    return tracing(None if called else (digest,))


def call_as_program(body: Callable[..., Any], functions: Sequence[Any], *given: Any) -> Any:
    """Return `body(functions, *given)`; outside of `jit` as one program, kept for the next call.

    Arguments bound by partials and methods among the functions are its operands, except
    integers. At most 16 programs are cached, and none whose functions hold more than 16 MB.

    Args:
        body: a function, or a partial of one.
        functions: of users; if their references are unknown, no program is compiled.
        given: pytrees of arrays and numbers.

    >>> twice = lambda functions, x: functions[0](functions[0](x))
    >>> call_as_program(twice, (lambda x: 3 * x,), 1.0).item()
    9.0
    """
    outside = get_opaque_trace_state() == _OUTSIDE and not jax.config.jax_disable_jit
    calls = [Call(f) for f in (body, *functions)] if outside else []
    keys = tuple(call.key() for call in calls)
    if not keys or any(key is None or key[-1].size > _MAX_BYTES for key in keys):
        return body(functions, *given)
    try:
        program = _programs.pop(keys, None)
    except TypeError:  # an unhashable value
        return body(functions, *given)
    if program is None:
        program = jax.jit(functools.partial(_call_all, tuple(map(_drop_operands, calls))))
    _programs[keys] = program
    while len(_programs) > _CACHE_SIZE:
        _programs.popitem(last=False)
    with tracing(tuple(key[-1] for key in keys)):
        return program([call.operands for call in calls], given)


def _drop_operands(call: Call) -> Call:
    """Return a copy of the call that keeps no array alive."""
    empty = copy.copy(call)
    empty.operands = []
    return empty


def _call_all(calls: tuple[Call, ...], operands: list[Any], given: tuple[Any, ...]) -> Any:
    body, *functions = (call.bind(own) for call, own in zip(calls, operands))
    return body(functions, *given)
