"""Settings of JAX that change what a program gives, or what it is compiled to."""

import re
from typing import Any

import jax

# settings of messages, caches, files and connections
_OTHER = re.compile(
    "cache|dump|log(?!istic)|traceback|mtls|cross_host|explain|proxy|preemption|distributed|pgle|export|"
    "visible_devices|topology|timeout|mock|url|pprint|captured_constants|guard|leak|profile"
)
_NAMES = tuple(name for name in jax.config.values if not _OTHER.search(name))


def compiler_settings() -> tuple[Any, ...]:
    """Return the settings of JAX, hashable: under others a program is compiled again.

    >>> with jax.threefry_partitionable(False):
    ...     other = compiler_settings()
    >>> other == compiler_settings()
    False
    """
    values = tuple([getattr(jax.config, name, None) for name in _NAMES])
    try:
        hash(values)
    except TypeError:  # one of them is a list or a dictionary
        return tuple(map(repr, values))
    return values
