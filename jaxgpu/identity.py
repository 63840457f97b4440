"""What a run is: digests of its program and of the numbers that it starts from.

Two programs have one digest where they do the same operations on the same constants: the digest is
taken over the traced program (its jaxpr, with every program inside it) and over the values of the
arrays and numbers that are closed over, so another function, bound, material or step size is
another program, whatever it is called. Names of variables and lines of source do not count.
"""

import hashlib
import re
from typing import Any

import jax
import numpy as np
from jax import Array
from jax.extend import core

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def of_program(traced: Any) -> str:
    """The digest of a traced program and of the constants in it, 64 hexadecimal characters.

    >>> one, two, same = (jax.make_jaxpr(lambda x, a=a: x + a)(0.0) for a in (1.0, 2.0, 1.0))
    >>> of_program(one) == of_program(same), of_program(one) == of_program(two)
    (True, False)
    """
    digest = hashlib.sha256()
    _closed(digest.update, traced)
    return digest.hexdigest()


def of_arrays(tree: Any) -> str:
    """The digest of the leaves of a pytree: names, dtypes, shapes and bytes."""
    digest = hashlib.sha256()
    for path, leaf in jax.tree.leaves_with_path(tree):
        digest.update(jax.tree_util.keystr(path).encode())
        _value(digest.update, leaf)
    return digest.hexdigest()


def _closed(put: Any, program: Any) -> None:
    for constant in program.consts:
        _value(put, constant)
    _jaxpr(put, program.jaxpr)


def _jaxpr(put: Any, jaxpr: Any) -> None:
    """Operations in their order; variables by the number of their first appearance."""
    numbers: dict[int, int] = {}

    def name(atom: Any) -> None:
        if isinstance(atom, core.Literal):
            _value(put, atom.val)
        else:
            put(f"{numbers.setdefault(id(atom), len(numbers))}:{atom.aval.str_short()} ".encode())

    for variable in (*jaxpr.constvars, *jaxpr.invars):
        name(variable)
    for equation in jaxpr.eqns:
        put(equation.primitive.name.encode())
        for atom in (*equation.invars, *equation.outvars):
            name(atom)
        for key in sorted(equation.params):
            put(f"{key}=".encode())
            _parameter(put, equation.params[key])
    for atom in jaxpr.outvars:
        name(atom)


def _parameter(put: Any, value: Any) -> None:
    """A parameter of an operation, without what differs between two processes."""
    if hasattr(value, "jaxpr") and hasattr(value, "consts"):
        _closed(put, value)
    elif hasattr(value, "eqns"):
        _jaxpr(put, value)
    elif isinstance(value, (tuple, list)):
        for part in value:
            _parameter(put, part)
    elif isinstance(value, dict):
        for key in sorted(value, key=str):
            put(str(key).encode())
            _parameter(put, value[key])
    elif isinstance(value, (set, frozenset)):
        put(",".join(sorted(map(str, value))).encode())
    elif isinstance(value, (np.ndarray, np.generic, Array)):
        _value(put, value)
    elif callable(value):
        _function(put, getattr(value, "callback_func", value))
    else:
        put(_ADDRESS.sub("", f"{type(value).__qualname__} {value} ").encode())


def _function(put: Any, function: Any) -> None:
    """A function of Python: a rule of derivatives, which is traced where it counts, or a call back.

    Of a call back to the host the code and the numbers that it closes over are all there is.
    """
    put(getattr(function, "__qualname__", type(function).__qualname__).encode())
    if code := getattr(function, "__code__", None):
        put(code.co_code + _ADDRESS.sub("", str(code.co_consts)).encode())
    for cell in getattr(function, "__closure__", None) or ():
        if isinstance(cell.cell_contents, (int, float, np.ndarray, np.generic)):
            _value(put, cell.cell_contents)


def _value(put: Any, value: Any) -> None:
    if hasattr(value, "dtype") and jax.numpy.issubdtype(value.dtype, jax.dtypes.prng_key):
        put(str(jax.random.key_impl(value)).encode())
        value = jax.random.key_data(value)
    a = np.asarray(value)
    put(f"{a.dtype}{a.shape}".encode())
    put(np.ascontiguousarray(a).tobytes())
