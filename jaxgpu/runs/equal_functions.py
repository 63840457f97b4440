"""Users' functions and specs that are written again, replaced by the equal ones before them.

A lambda in a loop is another function at each turn, and a program is compiled for it. Where its
code and all that it refers to are the same, the one of the turn before stands for it. The same is
done with the static fields of specs, such as a network with a lambda for its activation.
"""

import types
from collections import OrderedDict
from typing import Any

from jaxgpu.inputs import references
from jaxgpu.inputs.code_reads import Contents, contents

_KEPT = 64  # functions
_LARGE = 1 << 20  # bytes of arrays that a kept function may hold

_met: OrderedDict[Contents, tuple[types.FunctionType, references.References]] = OrderedDict()
# structures of pytrees, and their static leaves, by what they refer to
_forms: OrderedDict[Any, tuple[Any, tuple[Any, ...]]] = OrderedDict()


def find_equal(function: Any) -> Any:
    """Return a function met before that is equal to `function`, or `function` itself.

    Equal are functions of one code, wherever it stands, that refer to the same: numbers and arrays
    by value, what can be written to by itself too. Both are looked at now, so that a list that was
    written to since makes another function. At most 64 are kept.

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
    """Return the structure of a pytree and its static leaves met before that are equal to these.

    Equal are those whose functions and objects refer to the same, now. At most 64 are kept.

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
