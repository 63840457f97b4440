"""A context in which JAX does not use what users' functions were traced to before they changed."""

import contextlib
from collections import OrderedDict
from typing import Any

import jax

_KEPT = 256  # contexts
_context = jax.make_user_context(None)
_tokens: OrderedDict[Any, object] = OrderedDict()


def tracing(references: Any) -> contextlib.AbstractContextManager[Any]:
    """Return a context in which JAX traces functions again if their references have changed.

    JAX keeps the traces of functions within a function, such as the body of a loop, and looks at
    nothing that they read.

    Args:
        references: hashable parts that say what is read, as `references.describe` gives them; None
            where it cannot be said. Without code of users among it, JAX's own traces are used.

    >>> rate = 2.0
    >>> body = jax.jit(lambda x: x * rate)
    >>> with tracing(("rate", 2.0)):
    ...     before = body(1.0).item()
    >>> rate = 3.0
    >>> with tracing(("rate", 3.0)):
    ...     print(before, body(1.0).item())
    2.0 3.0
    """
    if references is not None and not any(getattr(x, "has_user_code", True) for x in references):
        return contextlib.nullcontext()
    token = object()
    if references is not None:
        token = _tokens.setdefault(references, token)
        _tokens.move_to_end(references)
        if len(_tokens) > _KEPT:
            _tokens.popitem(last=False)
    return _context(token)
