"""Checks of arguments that are not numbers: strings, paths, functions, keys and pytrees."""

import functools
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer


def word(name: str, value: Any, among: Collection[str] = ()) -> str:
    """Return the argument, a non-empty string and one of `among` unless that is empty.

    >>> word("mesh.make_mesh: axis", "batch")
    'batch'
    >>> word("figure: mime", "tiff", ("png", "svg"))
    Traceback (most recent call last):
    ValueError: figure: mime='tiff'; it must be 'png' or 'svg'
    """
    need = " or ".join(map(repr, among)) or "a word"
    if not isinstance(value, str):
        raise TypeError(f"{name}={format_value(value)}; it must be {need}")
    if not value or (among and value not in among):
        raise ValueError(f"{name}={value!r}; it must be {need}")
    return value


def path(name: str, value: Any, kind: str = "a folder") -> Path:
    """Return the argument as a path; `kind` names what the path must lead to.

    >>> path("run: out", "results").name
    'results'
    >>> path("run: out", 3)
    Traceback (most recent call last):
    TypeError: run: out=3; it must be the path of a folder
    """
    if not isinstance(value, str | Path):
        raise TypeError(f"{name}={format_value(value)}; it must be the path of {kind}")
    if not str(value):
        raise ValueError(f"{name}=''; it must be the path of {kind}")
    return Path(value)


def function(name: str, value: Any, kind: str = "a function") -> Callable[..., Any]:
    """Return the argument if it is callable.

    >>> function("run: step", jnp.sin) is jnp.sin
    True
    """
    if not callable(value):
        raise TypeError(f"{name}={format_value(value)}; it must be {kind}")
    return value


def mark_step[**P, R](name: str, step: Callable[P, R], mark: str) -> Callable[P, R]:
    """Wrap the callable `step` in a function that has the attribute `mark`.

    >>> mark_step("run: step", len, "slow").slow
    True
    """
    function(name, step)

    @functools.wraps(step)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        return step(*args, **kwargs)

    vars(wrapped)[mark] = True
    return wrapped


def flag(name: str, value: Any) -> bool:
    """Return the argument as a bool; a string such as "no" would count as True.

    >>> flag("run: resume", "no")
    Traceback (most recent call last):
    TypeError: run: resume='no'; it must be True or False
    """
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name}={format_value(value)}; it must be True or False")
    return bool(value)


def key(name: str, value: Any) -> Array:
    """Return the argument, one random key: typed, or in JAX's old form (two 32-bit words).

    >>> key("init: key", 7)
    Traceback (most recent call last):
    TypeError: init: key=7; it must be a key; make it by jax.random.key(seed)
    """
    old = getattr(value, "dtype", None) == jnp.uint32 and np.ndim(value) == 1
    if not old and not is_key(value):
        raise TypeError(
            f"{name}={format_value(value)}; it must be a key; make it by jax.random.key(seed)"
        )
    if not old and value.shape:
        raise ValueError(f"{name}=keys of shape {list(value.shape)}; it must be one key; take one")
    return value


def arrays(name: str, tree: Any) -> Any:
    """Return the argument, a pytree of numbers, truth values, keys or arrays of them.

    >>> arrays("run: state", {"x": np.zeros(3), "name": "a"})
    Traceback (most recent call last):
    TypeError: run: state['name']='a'; it must be a number or an array of numbers
    """
    for at, leaf in jax.tree.leaves_with_path(tree):
        if not is_key(leaf) and not _is_numeric(leaf):
            where = f"{name}{jax.tree_util.keystr(at)}"
            raise TypeError(
                f"{where}={format_value(leaf)}; it must be a number or an array of numbers"
            )
    return tree


def is_key(leaf: Any) -> bool:
    """Return True if a leaf is a typed random key or an array of them.

    >>> is_key(jax.random.key(0)), is_key(np.zeros(2))
    (True, False)
    """
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def format_value(value: Any) -> str:
    """Format an invalid value in at most 40 characters, for an error message.

    >>> format_value(None), format_value(np.zeros((2, 3)))
    ('None', 'an array of shape [2, 3]')
    """
    if isinstance(value, Tracer):  # it has no value yet
        return f"a value of type {value.dtype}{list(value.shape)}"
    if isinstance(value, np.ndarray | Array) and value.ndim:
        kind = "" if value.dtype.kind in "biuf" else f" of type {value.dtype}"
        return f"an array of shape {list(value.shape)}{kind}"
    if not isinstance(value, str | int | float | complex | np.generic | Array | None):
        return f"a value of type {type(value).__name__}"
    text = " ".join(repr(value).split())
    return text if len(text) <= 40 else text[:37] + "..."


def _is_numeric(leaf: Any) -> bool:
    if isinstance(leaf, str | bytes):
        return False
    dtype = getattr(leaf, "dtype", None)
    dtype = np.asarray(leaf).dtype if dtype is None else dtype
    return jnp.issubdtype(dtype, jnp.number) or jnp.issubdtype(dtype, jnp.bool_)
