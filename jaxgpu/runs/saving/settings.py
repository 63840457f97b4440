"""Settings of JAX and of the compiler that change what a program gives."""

from typing import Any

import jax


def of_programs() -> tuple[Any, ...]:
    """Return all settings of JAX, hashable: what is compiled under others is another program.

    >>> with jax.threefry_partitionable(False):
    ...     other = of_programs()
    >>> other == of_programs()
    False
    """
    return tuple(_hashable(getattr(jax.config, name, None)) for name in jax.config.values)


def _hashable(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | str | None) else repr(value)
