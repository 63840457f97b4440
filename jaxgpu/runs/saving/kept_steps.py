"""Rules for retained checkpoints: every n-th step, by wall time, or logarithmic.

A retained checkpoint has a different name in the folder (`checkpoint.folder`), so a later run does
not have to know the rule.
"""

import time
from dataclasses import dataclass
from typing import Any

from jaxgpu.inputs import ranges

_STEPS = ranges.Range(least=1, whole=True, one=True)
_SECONDS = ranges.Range(above=0, unit="s", one=True)
_FACTOR = ranges.Range(least=1.01, one=True)


@dataclass(frozen=True)
class WallTime:
    """Rule that retains checkpoints by wall time: the first one after each interval.

    The time between a kill and the resume does not count.

    >>> import jax.numpy as jnp, tempfile
    >>> from jaxgpu.runs import run
    >>> done = run(jnp.cos, 0.0, 10, out=tempfile.mkdtemp(), keep=WallTime(seconds=600.0))
    >>> WallTime(seconds=0)
    Traceback (most recent call last):
    ValueError: WallTime: seconds=0; it must be a finite number above 0, in s
    """

    seconds: float  # s, wall time while the run is active

    def __post_init__(self) -> None:
        ranges.refuse("WallTime: seconds", self.seconds, _SECONDS)


@dataclass(frozen=True)
class Logarithmic:
    """Rule that retains steps in geometric progression, by default 1, 2, 4, 8 and so on.

    Each is the one before times `factor`, rounded, and at least one step later.

    >>> import jax.numpy as jnp, jaxgpu, tempfile
    >>> from jaxgpu.runs import run
    >>> folder = tempfile.mkdtemp()
    >>> done = run(jnp.cos, 0.0, 200, out=folder, keep=Logarithmic(first=10, factor=4))
    >>> jaxgpu.load(folder).steps[:3]
    (10, 40, 160)
    """

    first: int = 1  # first retained step
    factor: float = 2.0  # ratio of successive retained steps, at least 1.01

    def __post_init__(self) -> None:
        ranges.refuse("Logarithmic: first", self.first, _STEPS)
        ranges.refuse("Logarithmic: factor", self.factor, _FACTOR)


type Keep = int | WallTime | Logarithmic | None


def check(name: str, keep: Any) -> Keep:
    """Return the argument, a rule by which checkpoints are retained.

    Raises:
        ValueError, TypeError: not such a rule.

    >>> check("run: keep", 0)
    Traceback (most recent call last):
    ValueError: run: keep=0; it must be a whole number of at least 1 (every n-th step), ...
    """
    if keep is None or isinstance(keep, WallTime | Logarithmic):
        return keep
    fault = _STEPS.violation(keep)
    if fault:
        kind = ValueError if isinstance(keep, int) and not isinstance(keep, bool) else TypeError
        raise kind(
            f"{name}={fault}; it must be a whole number of at least 1 (every n-th step), "
            "jaxgpu.runs.WallTime, jaxgpu.runs.Logarithmic or None"
        )
    return int(keep)


class KeptSteps:
    """State of a rule: the rule, and the time since it last retained a checkpoint.

    >>> kept = KeptSteps(Logarithmic())
    >>> kept.next_step(0), kept.next_step(5), kept.count(0, 100), kept.is_due(6)
    (1, 8, 7, False)
    """

    def __init__(self, keep: Keep) -> None:
        self.keep = keep
        self._began = time.monotonic()  # start of the current interval, shifted by a resume

    def next_step(self, step: int) -> int | None:
        """Return the first retained step after `step`, or None if it is not known in advance."""
        if isinstance(self.keep, Logarithmic):
            kept, factor = int(self.keep.first), float(self.keep.factor)
            while kept <= step:
                kept = max(round(kept * factor), kept + 1)
            return kept
        return (step // self.keep + 1) * self.keep if isinstance(self.keep, int) else None

    def count(self, begin: int, end: int) -> int:
        """Return the number of steps after `begin`, up to `end`, known to be retained."""
        if isinstance(self.keep, int):
            return end // self.keep - begin // self.keep
        found, kept = 0, self.next_step(begin)
        while kept is not None and kept <= end:
            found, kept = found + 1, self.next_step(kept)
        return found

    def is_due(self, step: int) -> bool:
        """Return True if the checkpoint of a step, which is written now, is retained."""
        if isinstance(self.keep, WallTime):
            return self.seconds >= self.keep.seconds
        return step > 0 and self.next_step(step - 1) == step

    @property
    def seconds(self) -> float:
        """Seconds of the run since it last retained a checkpoint by wall time."""
        return time.monotonic() - self._began

    def restart_clock(self, seconds: float = 0.0) -> None:
        """Start an interval of which `seconds` have passed."""
        self._began = time.monotonic() - seconds
