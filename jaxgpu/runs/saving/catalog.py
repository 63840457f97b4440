"""Allowlist of the classes, methods and functions that a file may name.

A file describes the structure of a tree or a spec. Its author chooses the names in it, so they are
looked up here and nowhere else: dataclasses and named tuples of the numerical packages of jaxgpu,
networks of Flax, states of Optax, activation functions, and definitions in modules that the caller
trusts. No attribute is accessed: names are looked up in the dictionaries of modules.
"""

import dataclasses
import functools
import re
import sys
import types
from collections.abc import Callable
from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp

from ..checkpoint import binary

type Trusted = tuple[types.ModuleType | str, ...]

# packages of jaxgpu whose dataclasses hold numbers and settings only, without side effects
_ALLOWED_PACKAGES = re.compile(
    r"jaxgpu\.(evolution|geometry|numerics|physics|render|rl|studies)(\.[a-z][a-z0-9_]*)*"
)
# modules that may be imported to find a name, and modules of Flax with known classes
_FLAX, _OPTAX = "flax.linen", "optax"
_FLAX_STATES = ("flax.training.train_state", "flax.training.dynamic_scale")
# methods of the protocols and of networks, which compute and have no side effects
_METHODS = frozenset("act apply ask evaluate init policy reset step tell update".split())
_ELEMENTWISE = "abs cos exp log max mean min prod sin sqrt square sum tanh".split()


def check(name: str, trusted: Any) -> tuple[str, ...]:
    """Return the names of trusted modules; raise if one has not been imported.

    Raises:
        TypeError, ValueError: not a tuple of modules, or a module that is not imported.

    >>> check("load", (dataclasses, "re"))
    ('dataclasses', 're')
    >>> check("load", "re")
    Traceback (most recent call last):
    TypeError: load: trusted='re'; it must be a tuple of modules, or of their names
    """
    listed = isinstance(trusted, tuple | list)
    names = [x.__name__ if isinstance(x, types.ModuleType) else x for x in trusted if listed]
    if not listed or not all(isinstance(x, str) for x in names):
        raise TypeError(
            f"{name}: trusted={trusted!r:.40}; it must be a tuple of modules, or of their names"
        )
    for module in names:
        if module not in sys.modules:
            raise ValueError(
                f"{name}: trusted={module!r}; it must be an imported module; import it first"
            )
    return tuple(names)


def find_class(name: str, trusted: tuple[str, ...] = ()) -> type | None:
    """Return the class that a file names "module:name"; None if it is not allowed or missing.

    >>> find_class("jaxgpu.numerics.sphere.mixture:Mixture").__name__
    'Mixture'
    >>> find_class("subprocess:Popen"), find_class("jaxgpu.numerics.sphere.mixture:jax")
    (None, None)
    """
    module, _, path = name.partition(":")
    if not _is_trusted(module, trusted):
        if module.startswith("flax."):
            return _flax_classes().get(name)
        if not _import_allowed(module):
            return None
    found = _find_definition(module, path)
    if not isinstance(found, type):
        return None
    return found if dataclasses.is_dataclass(found) or tuple_fields(found) is not None else None


def find_function(name: str, trusted: tuple[str, ...] = ()) -> Callable[..., Any] | None:
    """Return the function or class that a file names as a value; None if it is not allowed.

    >>> find_function("jax._src.nn.functions:silu") is jax.nn.silu
    True
    >>> find_function("posix:system")
    """
    module, _, path = name.partition(":")
    if _is_trusted(module, trusted):
        found = _find_definition(module, path)
        return found if callable(found) else None
    if name in _activation_functions():
        return _activation_functions()[name]
    return _network_parts().get(name) if module.startswith(("flax.", "jax.")) else None


def find_method(thing: Any, name: str, trusted: tuple[str, ...] = ()) -> Any:
    """Return a method of an object that a file describes; None if it is not allowed.

    >>> from jaxgpu.evolution.single import CMAES
    >>> find_method(CMAES(8), "ask").__name__, find_method(CMAES(8), "__init__")
    ('ask', None)
    """
    cls = type(thing)
    free = _is_trusted(cls.__module__, trusted)
    if not free and (name not in _METHODS or find_class(name_of(cls), trusted) is not cls):
        return None
    held = next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)
    return types.MethodType(held, thing) if isinstance(held, types.FunctionType) else None


def tuple_fields(cls: type) -> list[str] | None:
    """Return the fields of a named tuple, or None for another class."""
    fields = getattr(cls, "_fields", None) if issubclass(cls, tuple) else None
    return list(fields) if isinstance(fields, tuple) else None


def name_of(thing: Any) -> str:
    """Return the name "module:name" of a class or function in a file."""
    return f"{getattr(thing, '__module__', None)}:{getattr(thing, '__qualname__', '')}"


def _is_trusted(module: str, trusted: tuple[str, ...]) -> bool:
    return module in sys.modules and any(
        module == name or module.startswith(f"{name}.") for name in trusted
    )


def _import_allowed(module: str) -> bool:
    """Import an allowed module; return False if it is not allowed or missing."""
    try:
        if _ALLOWED_PACKAGES.fullmatch(module):
            import_module(module)
        elif module.startswith("optax."):
            import_module(_OPTAX)  # which imports its submodules; no other is imported by name
        else:
            return False
    except ImportError:
        return False
    return module in sys.modules


def _find_definition(module: str, path: str) -> Any:
    """Return the object that a module defines under a name, by dictionary lookups only."""
    found: Any = sys.modules[module]
    for part in path.split("."):
        inside = vars(found) if isinstance(found, types.ModuleType | type) else {}
        found = inside.get(part)
    return found if name_of(found) == f"{module}:{path}" else None


@functools.cache
def _flax_classes() -> dict[str, type]:
    """Return public networks of Flax, and the states of its trainings, by name."""
    linen = import_module(_FLAX)
    found = [x for x in vars(linen).values() if isinstance(x, type) and issubclass(x, linen.Module)]
    for module in map(import_module, _FLAX_STATES):
        found += vars(module).values()
    return {name_of(x): x for x in found if isinstance(x, type) and dataclasses.is_dataclass(x)}


@functools.cache
def _activation_functions() -> dict[str, Callable[..., Any]]:
    """Return the functions of arrays that networks and measures use, by name."""
    found = [x for name, x in vars(jax.nn).items() if name[0] != "_" and callable(x)]
    found += [vars(jnp)[name] for name in _ELEMENTWISE]
    return {name_of(x): x for x in found}


@functools.cache
def _network_parts() -> dict[str, Callable[..., Any]]:
    """Return dtypes, pooling functions and default functions of Flax networks, by name."""
    linen = import_module(_FLAX)
    found = [linen.avg_pool, linen.max_pool, jnp.bool_]
    found += [x for name, x in vars(jnp).items() if name in binary.DTYPES]
    fields = [f for cls in _flax_classes().values() for f in dataclasses.fields(cls)]
    found += [f.default for f in fields if isinstance(f.default, types.FunctionType)]
    return {name_of(x): x for x in found if "<locals>" not in name_of(x)}
