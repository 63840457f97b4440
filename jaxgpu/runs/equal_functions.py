"""Reuse of equal functions and specs: a redefined function is replaced by its equal predecessor.

A lambda in a loop is a new function in each iteration, and would be compiled each time. If its code
and all values that it refers to are the same, the earlier function is used instead. The same
applies to static fields of specs, such as a network with a lambda for its activation.
"""

import types
from collections import OrderedDict
from typing import Any

from jaxgpu.inputs import references
from jaxgpu.inputs.code_reads import Contents, contents

_KEPT = 64  # functions
_LARGE = 1 << 20  # bytes of arrays that a cached function may refer to

_met: OrderedDict[Contents, tuple[types.FunctionType, references.References]] = OrderedDict()
# structures of pytrees with their static leaves, by their references
_forms: OrderedDict[Any, tuple[Any, tuple[Any, ...]]] = OrderedDict()


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
    if told is None or told.size > _LARGE:
        return function
    code = contents(function.__code__)
    known, then = _met.pop(code, (function, told))
    if then != told or (known is not function and references.describe(known) != told):
        known = function
    _met[code] = known, told
    while len(_met) > _KEPT:
        _met.popitem(last=False)
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
    told = _describe_form(structure, static)
    if told is None or not told.has_user_code or told.size > _LARGE:
        return structure, static
    known = _forms.pop(told.parts, (structure, static))
    if _describe_form(*known) != told:
        known = structure, static
    _forms[told.parts] = known
    while len(_forms) > _KEPT:
        _forms.popitem(last=False)
    return known


def _describe_form(structure: Any, static: tuple[Any, ...]) -> references.References | None:
    return references.describe((static, *references.nodes(structure)))
