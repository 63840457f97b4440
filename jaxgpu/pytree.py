"""Frozen dataclasses that are JAX pytrees: the one way specs and states are held here."""

import dataclasses
from typing import Any, dataclass_transform

import jax


def static(**kwargs: Any) -> Any:
    """Declare a field that is baked into the compiled program: a size, a name or a function."""
    return dataclasses.field(metadata={"static": True}, **kwargs)


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field, static))
def pytree[T](cls: type[T]) -> type[T]:
    """Make `cls` a frozen dataclass whose fields are leaves unless marked `static`.

    Numbers stay leaves, so `vmap` over hyper-parameters costs nothing; `dataclasses.replace`
    makes the changed copy.

    >>> @pytree
    ... class Bodies:
    ...     m: float
    ...     count: int = static(default=2)
    >>> jax.tree.leaves(Bodies(m=1.5))
    [1.5]
    """
    return jax.tree_util.register_dataclass(dataclasses.dataclass(frozen=True, eq=False)(cls))
