"""Memory that a function would allocate, found by tracing it before it allocates anything.

`limit_memory` wraps functions on the host that make arrays of a size chosen by the caller: the
stars of a cluster, the initial states of environments, the start of a search.
"""

import functools
import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer

from jaxgpu.inputs import arguments, calls

from . import memory

_CACHE_SIZE = 256  # cached byte counts of calls, by function and shapes
# safety factor: Python keeps the local variables of a function until it returns. The measured peak
# was 1.25 times the estimate for `nbody.plummer` with 1e7 bodies, 1.2 times for `nbody.king`
_LOCALS_FACTOR = 1.25
_peak_cache: OrderedDict[Any, int] = OrderedDict()


def limit_memory[**P, R](f: Callable[P, R]) -> Callable[P, R]:
    """Wrap `f` so that it raises before it allocates more than 90 % of the free memory.

    Each call is traced first, once per combination of sizes and shapes, which computes nothing.
    Within a program that is being traced `f` is unchanged: `memory.check` covers that program.

    Raises:
        TypeError: `f` is not callable.

    >>> noise = limit_memory(lambda key, count: jax.random.normal(key, (count,)))
    >>> noise(jax.random.key(0), 3).shape
    (3,)
    >>> noise(jax.random.key(0), 10**15)
    Traceback (most recent call last):
    MemoryError: <lambda>: needs ... GB, and ... GB are free; ...
    """
    arguments.function("limit_memory: f", f)

    @functools.wraps(f)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        if calls.can_check(args, kwargs):
            name = getattr(f, "__qualname__", "a call").rpartition("<locals>.")[2].lstrip("_")
            need = _cached_peak_bytes(f, (args, kwargs))
            calls.defer_check(lambda: memory.check_size(name, int(_LOCALS_FACTOR * need)))
        return f(*args, **kwargs)

    return wrapped


def peak_bytes(f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> int:
    """Return the peak bytes of a call of `f`, without its arguments; nothing is computed.

    It sums the arrays that are alive at the same time, with a separate result for each operation. A
    compiled program, which fuses operations, needs less. Scratch memory of CPU sorts is included.

    Raises:
        TypeError: `f` does not take these arguments, or inspects computed values, so that it cannot
            be traced.

    >>> peak_bytes(lambda n: jnp.sum(2 * jnp.ones(n, jnp.float32)), 1000)
    8000
    """
    arguments.function("peak_bytes: f", f)
    try:
        return _trace_peak_bytes(f, *args, **kwargs)
    except MemoryError:
        raise
    except Exception as error:
        cause = " ".join(str(error).split())[:200]
        raise TypeError(
            "peak_bytes: f cannot be traced with these arguments; give valid ones "
            f"({type(error).__name__}, {cause})"
        ) from error


def _trace_peak_bytes(f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> int:
    try:
        return _jaxpr_peak_bytes(jax.make_jaxpr(lambda: f(*args, **kwargs))().jaxpr)
    except OverflowError as error:  # a size of more than 64 bits
        name = getattr(f, "__name__", "a call")
        raise MemoryError(f"{name}: its size is too large for JAX; reduce it") from error


def _cached_peak_bytes(f: Any, given: Any) -> int:
    """Return `_trace_peak_bytes`, cached by function, sizes and shapes."""
    leaves, structure = jax.tree.flatten(given)
    at = f, structure, tuple(map(_size_key, leaves)), jax.config.jax_enable_x64
    try:
        hash(at)
    except TypeError:
        return _trace_peak_bytes(f, *given[0], **given[1])
    if at not in _peak_cache:
        _peak_cache[at] = _trace_peak_bytes(f, *given[0], **given[1])
    _peak_cache.move_to_end(at)
    while len(_peak_cache) > _CACHE_SIZE:
        _peak_cache.popitem(last=False)
    return _peak_cache[at]


def _size_key(x: Any) -> Any:
    """Return shape and type of an array; of a scalar its value, which may be a size."""
    if not hasattr(x, "dtype"):
        return type(x), x
    one = not x.shape and jnp.issubdtype(x.dtype, jnp.integer) and not isinstance(x, Tracer)
    return (x.dtype, int(x)) if one else (x.shape, x.dtype)


def _jaxpr_peak_bytes(jaxpr: Any) -> int:
    """Return the maximum of the bytes of all results that are alive in a traced program."""
    last: dict[Any, int] = {}
    for i, eqn in enumerate(jaxpr.eqns):
        last |= {v: i for v in (*eqn.outvars, *_select_variables(eqn.invars))}
    last |= {v: len(jaxpr.eqns) for v in _select_variables(jaxpr.outvars)}
    held: dict[Any, int] = {}
    now = most = 0
    for i, eqn in enumerate(jaxpr.eqns):
        made = {v: _array_bytes(v.aval) for v in eqn.outvars}
        inside = max((_jaxpr_peak_bytes(part) for part in _inner_jaxprs(eqn.params)), default=0)
        held |= made
        now += sum(made.values())
        most = max(most, now + max(0, inside - sum(made.values()), _scratch_bytes(eqn)))
        for v in {*eqn.outvars, *_select_variables(eqn.invars)}:
            if last[v] <= i:
                now -= held.pop(v, 0)
    return most


def _select_variables(atoms: Iterable[Any]) -> Iterator[Any]:
    """Return the atoms that are not constants."""
    return (atom for atom in atoms if not hasattr(atom, "val"))


def _inner_jaxprs(params: dict[str, Any]) -> Iterator[Any]:
    """Yield the jaxprs inside an operation, such as a loop, a branch or a call."""
    for value in params.values():
        for part in value if isinstance(value, tuple | list) else (value,):
            if hasattr(part, "eqns"):
                yield part


def _array_bytes(aval: Any) -> int:
    return math.prod(aval.shape) * aval.dtype.itemsize if hasattr(aval, "dtype") else 0


def _scratch_bytes(eqn: Any) -> int:
    """Return the bytes of scratch memory that a sort takes on a CPU."""
    if eqn.primitive.name != "sort":
        return 0
    axis = eqn.params["dimension"]
    return memory.SORT_BYTES * sum(v.aval.shape[axis] for v in eqn.invars)
