"""Reuse of equal functions and specs: a redefined function is replaced by its equal predecessor.

A lambda in a loop is a new function in each iteration, and would be compiled each time. If its code
and all values that it refers to are the same, the earlier function is used instead. The same
applies to static fields of specs, such as a network with a lambda for its activation.
"""

import types
from collections import OrderedDict
from typing import Any

from jaxgpu.inputs import references
from jaxgpu.inputs.code_reads import CodeContents, code_contents

_CACHE_SIZE = 64  # functions
_MAX_BYTES = 1 << 20  # bytes of arrays that a cached function may refer to

_known_functions: OrderedDict[CodeContents, tuple[types.FunctionType, references.References]] = (
    OrderedDict()
)
# structures of pytrees with their static leaves, by their references
_known_structures: OrderedDict[Any, tuple[Any, tuple[Any, ...]]] = OrderedDict()


def find_equal(function: Any) -> Any:
    """Return an earlier function that is equal to `function`, or `function` itself.

    Functions are equal if they have the same code, wherever it is defined, and refer to the same
    values: numbers are compared by value, JAX arrays by identity, mutable objects by both. They are
    compared as they are now, so a change of a list makes another function. At most 64 are cached.

    >>> code, script = (lambda x: rate * x).__code__, {"rate": 2.0}  # of a user's module
    >>> first, second = (types.FunctionType(code, script) for _ in range(2))
    >>> find_equal(first) is first, find_equal(second) is first
    (True, True)
    >>> script["rate"] = 3.0
    >>> find_equal(second) is first
    False
    """
    if not isinstance(function, types.FunctionType) or references.is_fixed(function):
        return function
    told = references.describe(function)
    if told is None or told.size > _MAX_BYTES:
        return function
    code = code_contents(function.__code__)
    known, then = _known_functions.pop(code, (function, told))
    if then != told or (known is not function and references.describe(known) != told):
        known = function
    _known_functions[code] = known, told
    while len(_known_functions) > _CACHE_SIZE:
        _known_functions.popitem(last=False)
    return known


def find_equal_form(structure: Any, static: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """Return an earlier pytree structure with its static leaves that is equal to this one.

    They are equal if their functions and objects now refer to the same. At most 64 are cached.

    >>> code, script = (lambda x: rate * x).__code__, {"rate": 2.0}  # of a user's module
    >>> first, second = (types.FunctionType(code, script) for _ in range(2))
    >>> import jax
    >>> forms = [(jax.tree.structure(f), (f,)) for f in (first, second)]
    >>> find_equal_form(*forms[0]) == find_equal_form(*forms[1]), forms[0] == forms[1]
    (True, False)
    """
    told = _structure_references(structure, static)
    if told is None or not told.has_user_code or told.size > _MAX_BYTES:
        return structure, static
    known = _known_structures.pop(told.parts, (structure, static))
    if _structure_references(*known) != told:
        known = structure, static
    _known_structures[told.parts] = known
    while len(_known_structures) > _CACHE_SIZE:
        _known_structures.popitem(last=False)
    return known


def _structure_references(structure: Any, static: tuple[Any, ...]) -> references.References | None:
    return references.describe((static, *references.nodes(structure)))
