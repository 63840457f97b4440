"""What came of a hostile call: refused in a sentence, accepted, or a fault, and of which kind."""

import dataclasses
import traceback
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from doors import refused_well

FAULTS = ("silent nan", "silent inf", "foreign exception", "abort", "hang")


class TookLong(BaseException):
    """A call that was interrupted, as by Ctrl-C, after its time."""


def refusal(error: BaseException) -> tuple[str, str]:
    """The outcome of an exception, and what is to be said of it."""
    if isinstance(error, TookLong):
        return "interrupted", ""
    try:
        refused_well(error)
    except AssertionError:
        last = traceback.extract_tb(error.__traceback__)
        ours = [f for f in last if "/jaxgpu/" in f.filename and "site-packages" not in f.filename]
        at = f"{ours[-1].filename.rpartition('/jaxgpu/')[2]}:{ours[-1].lineno}" if ours else ""
        text = " ".join(str(error).split())[:160]
        return "foreign exception", f"{type(error).__name__} at {at}: {text}"
    return "refused", ""


def answer(value: Any, good: Any) -> tuple[str, str]:
    """The outcome of a value that came back, beside that of the right call."""
    nan, inf = unfinite(value)
    nan_before, inf_before = unfinite(good)
    if nan > nan_before:
        return "silent nan", f"{nan} numbers"
    if inf > inf_before:
        return "silent inf", f"{inf} numbers"
    return "accepted", ""


def unfinite(value: Any) -> tuple[int, int]:
    """How many numbers of what came back are nan, and how many infinite."""
    nan = inf = 0
    for leaf in floats(value):
        nan += int(np.isnan(leaf).sum())
        inf += int(np.isinf(leaf).sum())
    return nan, inf


def floats(value: Any, depth: int = 4) -> Iterator[np.ndarray]:
    """All floating numbers in pytrees, dataclasses and objects of ours."""
    for leaf in jax.tree.leaves(value, is_leaf=lambda x: x is None):
        if isinstance(leaf, bool | int | str | None):
            continue
        if isinstance(leaf, float | complex | np.generic | np.ndarray | jax.Array):
            dtype = getattr(leaf, "dtype", np.dtype(type(leaf)))
            if jnp.issubdtype(dtype, jnp.inexact):
                yield np.asarray(leaf).astype(np.complex128)
        elif depth and dataclasses.is_dataclass(leaf) and not isinstance(leaf, type):
            for field in dataclasses.fields(leaf):
                yield from floats(getattr(leaf, field.name), depth - 1)
        elif depth and type(leaf).__module__.startswith("jaxgpu") and hasattr(leaf, "__dict__"):
            yield from floats(list(vars(leaf).values()), depth - 1)
