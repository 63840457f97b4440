"""Settings of JAX that change the results of a program, or its compilation."""

import re
from typing import Any

import jax

from jaxgpu.devices import machine

# settings of messages, caches, files and connections
_UNRELATED_SETTINGS = re.compile(
    "cache|dump|log(?!istic)|traceback|mtls|cross_host|explain|proxy|preemption|distributed|pgle|export|"
    "visible_devices|topology|timeout|mock|url|pprint|captured_constants|guard|leak|profile"
)
# settings that change numbers, when a program is traced or lowered
_NUMBER_SETTINGS = (
    "jax_enable_x64",
    "jax_default_matmul_precision",
    "jax_default_prng_impl",
    "jax_threefry_partitionable",
    "jax_random_seed_offset",
    "jax_high_dynamic_range_gumbel",
    "jax_numpy_dtype_promotion",
    "jax_softmax_custom_jvp",
    "jax_accurate_erf_inv",
    "jax_use_hlo_logistic_lowering",
    "jax_allow_f16_reductions",
)
_INEXACT_FLAGS = re.compile("fast_math|fast_min_max|excess_precision")
_COMPILER_SETTINGS = tuple(
    name for name in jax.config.values if not _UNRELATED_SETTINGS.search(name)
)


def compiler_settings() -> tuple[Any, ...]:
    """Return the settings of JAX, hashable; with other settings a program is recompiled.

    >>> with jax.threefry_partitionable(False):
    ...     other = compiler_settings()
    >>> other == compiler_settings()
    False
    """
    values = tuple([getattr(jax.config, name, None) for name in _COMPILER_SETTINGS])
    try:
        hash(values)
    except TypeError:  # one of them is a list or a dictionary
        return tuple(map(repr, values))
    return values


def number_settings() -> dict[str, str]:
    """Return settings of JAX and flags of XLA that definitely change numbers, by name.

    >>> number_settings()["jax_random_seed_offset"]
    '0'
    """
    return {name: str(getattr(jax.config, name, None)) for name in _NUMBER_SETTINGS} | loose_flags()


def loose_flags() -> dict[str, str]:
    """Return the flags of XLA that relax exact arithmetic, by name.

    >>> loose_flags()
    {}
    """
    flags = [flag.lstrip("-").partition("=") for flag in machine.compiler_flags()]
    return {name: value or "true" for name, _, value in flags if _INEXACT_FLAGS.search(name)}
