"""Digests that identify a run: of its program and of the numbers at its start.

Two programs have the same digest if they apply the same operations to the same constants: the
digest covers the traced program (its jaxpr, with all inner programs) and the values of arrays and
numbers in closures, so another function, bound, material or step size is another program. Names and
lines of the source do not count. Settings of JAX that change numbers only when a program is lowered
count if the program has such operations.
"""

import hashlib
import re
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import Array
from jax.extend import core

from jaxgpu.devices.processes import blocks, spans
from jaxgpu.inputs.references import is_fixed

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
# parameters that hold the name of an operation, its source location, or derivative rules, which
# are traced already if they count
_IGNORED_PARAMETERS = set(
    "name name_and_src_info debug_info metadata fwd_jaxpr_thunk jvp_jaxpr_fun bwd out_trees policy "
    "fun fwd jvp_jaxpr_thunk".split()
)
# settings that change how an operation is lowered, by the prefix of its name
_LOWERING_SETTINGS = {
    "random_": ("jax_threefry_partitionable", "jax_random_seed_offset"),
    "threefry": ("jax_threefry_partitionable",),
    "erf_inv": ("jax_accurate_erf_inv",),
    "logistic": ("jax_use_hlo_logistic_lowering",),
    "reduce_": ("jax_allow_f16_reductions",),
}

type Put = Callable[[bytes], None]


def program_digest(traced: Any, called: list[Any] | None = None) -> str:
    """Return the digest of a traced program and its constants, 64 hexadecimal characters.

    Args:
        called: a list that receives the host functions that it calls. The digest excludes them.

    >>> one, two, same = (jax.make_jaxpr(lambda x, a=a: x + a)(0.0) for a in (1.0, 2.0, 1.0))
    >>> program_digest(one) == program_digest(same), program_digest(one) == program_digest(two)
    (True, False)
    """
    digest = hashlib.sha256()
    _ProgramHasher(digest.update, [] if called is None else called).hash_closed_jaxpr(traced)
    return digest.hexdigest()


def arrays_digest(tree: Any) -> str:
    """Return the digest of the leaves of a pytree: names, dtypes, shapes and bytes.

    >>> arrays_digest({"x": np.zeros(3)}) == arrays_digest({"x": np.zeros(3)})
    True
    >>> arrays_digest({"x": np.zeros(3)}) == arrays_digest({"y": np.zeros(3)})
    False
    """
    digest = hashlib.sha256()
    for path, leaf in jax.tree.leaves_with_path(tree):
        digest.update(jax.tree_util.keystr(path).encode())
        _hash_value(digest.update, leaf)
    return digest.hexdigest()


def combine_digests(*digests: str) -> str:
    """Combine several digests into one.

    >>> combine_digests("of a program", "of a start")[:8]
    'f9dfd4ff'
    """
    return hashlib.sha256("".join(digests).encode()).hexdigest()


class _ProgramHasher:
    """Traversal that hashes the operations of a program by `put` and collects host functions."""

    def __init__(self, put: Put, called: list[Any]) -> None:
        self.put, self.called = put, called

    def hash_closed_jaxpr(self, program: Any) -> None:
        for constant in program.consts:
            _hash_value(self.put, constant)
        self.jaxpr(program.jaxpr)

    def jaxpr(self, jaxpr: Any) -> None:
        """Hash the operations in their order; variables count by their first appearance."""
        put, numbers = self.put, dict[int, int]()

        def hash_variable(atom: Any) -> None:
            if isinstance(atom, core.Literal):
                _hash_value(put, atom.val)
            else:
                number = numbers.setdefault(id(atom), len(numbers))
                put(f"{number}:{atom.aval.str_short()} ".encode())

        for variable in (*jaxpr.constvars, *jaxpr.invars):
            hash_variable(variable)
        for equation in jaxpr.eqns:
            operation = equation.primitive.name
            put(operation.encode())
            for begin, settings in _LOWERING_SETTINGS.items():
                if operation.startswith(begin):
                    put(repr([getattr(jax.config, x, None) for x in settings]).encode())
            for atom in (*equation.invars, *equation.outvars):
                hash_variable(atom)
            for key in sorted(equation.params.keys() - _IGNORED_PARAMETERS):
                put(f"{key}=".encode())
                self.parameter(equation.params[key])
        for atom in jaxpr.outvars:
            hash_variable(atom)

    def parameter(self, value: Any) -> None:
        """Hash a parameter of an operation, without parts that differ between processes."""
        if hasattr(value, "jaxpr") and hasattr(value, "consts"):
            self.hash_closed_jaxpr(value)
        elif hasattr(value, "eqns"):
            self.jaxpr(value)
        elif isinstance(value, (tuple, list)):
            self.put(f"{len(value)} ".encode())
            for part in value:
                self.parameter(part)
        elif isinstance(value, dict):
            for key in sorted(value.keys() - _IGNORED_PARAMETERS, key=str):
                self.put(str(key).encode())
                self.parameter(value[key])
        elif isinstance(value, (set, frozenset)):
            self.put(",".join(sorted(map(str, value))).encode())
        elif isinstance(value, (np.ndarray, np.generic, Array)):
            _hash_value(self.put, value)
        elif hasattr(value, "vjp_fwd") and is_fixed(type(value)):
            # a primitive object, such as a root; it holds the programs of its functions as well
            inside = vars(value) | getattr(value, "params", {})
            self.put(type(value).__qualname__.encode())
            self.parameter({k: x for k, x in inside.items() if k != "params" and not callable(x)})
        elif callable(value) and not isinstance(value, type):
            self.called.append(getattr(value, "callback_func", value))
        else:
            self.put(_ADDRESS.sub("", f"{type(value).__qualname__} {value} ").encode())


def _hash_value(put: Put, value: Any) -> None:
    """Pass type, shape and bytes of a value to the hash by `put`."""
    if hasattr(value, "dtype") and jax.numpy.issubdtype(value.dtype, jax.dtypes.prng_key):
        put(str(jax.random.key_impl(value)).encode())
        value = jax.random.key_data(value)
    if spans(value):
        put(f"{value.dtype}{value.shape}".encode())
        for block in blocks(value):
            put(np.ascontiguousarray(block).tobytes())
        return
    a = np.asarray(value)
    put(f"{a.dtype}{a.shape}".encode())
    put(np.ascontiguousarray(a).tobytes())
