"""Outcomes of hostile calls: rejected with a proper message, accepted, or a kind of violation."""

import dataclasses
import re
import traceback
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from api_cases import assert_clear_refusal

# functions that may return nan or infinity, by the end of their names, and the reason
PASSES = {
    "a number that is elementwise: nan gives nan, and limits are infinite": r"""numerics\.\S*
        (log_\w+|\w+_ratio|iv_ratio_inverse|matern) kepler\.\w+ elements\.\w+ relativity\.\w+
        half_mass_relaxation_time""",
    "carries data as they are": r"""mesh\.(split|replicate|over) checkpoint\.\w+ report\.save.*
        run\.run.* run\.rollout jaxgpu\.mesh\.\w+ jaxgpu\.checkpoint\.\S+ report\.\S+
        pytree\.\w+ ranges\.\w+ identity\.\w+ store\.\S+ guard\.\w+ files\.\w+
        placement\.(own|beside) primitive\.filled""",
    "gives back what a function of the user gives": r"""in_float64 reassociated Problem\.evaluate
        evolution\.problems\.\S+ plan\.\S*""",
    "a point that is not finite is infinitely far from all others": r"""indicators\.\S+ associate
        crowding_distance""",
    "a particle whose place is no number is lost, as it may be in a run, and counted": r"""
        transfer\.(spread|moments)""",
    "nothing is seen there: infinitely deep": r"""render\.nearest splat\.nearest trace""",
    "made inside programs too, of a state that `init` has checked; `guard=True` watches it": r"""
        \S+\.(step|tell|ask|update|act|policy|reset|observe|force|smooth_force|pull|path|begin|at)
        \S+\.(distance|normal|stress|evaluate|metrics|sample|residual|rewards?|render)
        Simulation\.step forward_dynamics inverse_dynamics mass_matrix forward_kinematics""",
}
# these call a function of the user with the user's arguments: its errors are the user's
USERS = re.compile(r".*\b(in_float64|reassociated|over|program\.called|program\.Loop)$")
_PASSES = [re.compile(rf".*\b{end}$") for ends in PASSES.values() for end in ends.split()]


class TookLong(BaseException):
    """Interruption of a call after its time limit, as by Ctrl-C."""


def error_outcome(name: str, error: BaseException) -> tuple[str, str]:
    """Return the outcome of an exception, and its description."""
    if isinstance(error, TookLong):
        return "interrupted", ""
    try:
        assert_clear_refusal(error)
    except AssertionError:
        last = traceback.extract_tb(error.__traceback__)
        ours = [f for f in last if "/jaxgpu/" in f.filename and "site-packages" not in f.filename]
        # the case itself, or a Flax network that rejects a field, could not make the call
        if "/tests/" in last[-1].filename or ("/flax/" in last[-1].filename and not ours):
            return "no call", name
        at = f"{ours[-1].filename.rpartition('/jaxgpu/')[2]}:{ours[-1].lineno}" if ours else ""
        if USERS.match(name):
            return "passed on", name
        text = " ".join(str(error).split())[:160]
        return "foreign exception", f"{type(error).__name__} at {at}: {text}"
    return "refused", ""


def answer_outcome(name: str, value: Any, good: Any) -> tuple[str, str]:
    """Return the outcome of a returned value, by comparison with the result of the valid call."""
    if dataclasses.is_dataclass(value) and name.endswith(type(value).__name__):
        return "accepted", ""  # a constructed spec is checked at its first use
    nan, inf = count_nonfinite(value)
    nan_before, inf_before = count_nonfinite(good)
    if (nan, inf) != (0, 0) and any(one.match(name) for one in _PASSES):
        return "passed on", ""
    if nan > nan_before:
        return "silent nan", f"{nan} numbers"
    if inf > inf_before:
        return "silent inf", f"{inf} numbers"
    return "accepted", ""


def count_nonfinite(value: Any) -> tuple[int, int]:
    """Return how many returned numbers are nan, and how many are infinite."""
    nan = inf = 0
    for leaf in floats(value):
        nan += int(np.isnan(leaf).sum())
        inf += int(np.isinf(leaf).sum())
    return nan, inf


def floats(value: Any, depth: int = 4) -> Iterator[np.ndarray]:
    """Yield all floating-point values in pytrees, dataclasses and objects of the package."""
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
