"""The checkpoints of a run that stay beside the newest two: every n-th, by the clock, logarithmic.

A checkpoint that stays has a name of its own in the folder (`checkpoint.folder`), so that no later
run needs to know by which rule it was kept.
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
    """Checkpoints of a run that are kept by the clock: the first one after each interval.

    Time between a kill and the resume does not count.

    >>> import jax.numpy as jnp, tempfile
    >>> from jaxgpu.runs import run
    >>> done = run(jnp.cos, 0.0, 10, out=tempfile.mkdtemp(), keep=WallTime(seconds=600.0))
    >>> WallTime(seconds=0)
    Traceback (most recent call last):
    ValueError: WallTime: seconds=0; it must be a finite number above 0, in s
    """

    seconds: float  # s, of the clock, while the run goes on

    def __post_init__(self) -> None:
        ranges.refuse("WallTime: seconds", self.seconds, _SECONDS)


@dataclass(frozen=True)
class Logarithmic:
    """Steps of a run that are kept in geometric progression: by default 1, 2, 4, 8 and so on.

    Each is the one before times `factor`, rounded, and larger by one at least.

    >>> import jax.numpy as jnp, jaxgpu, tempfile
    >>> from jaxgpu.runs import run
    >>> folder = tempfile.mkdtemp()
    >>> done = run(jnp.cos, 0.0, 200, out=folder, keep=Logarithmic(first=10, factor=4))
    >>> jaxgpu.load(folder).steps[:3]
    (10, 40, 160)
    """

    first: int = 1  # step that is kept first
    factor: float = 2.0  # from one kept step to the next, at least 1.01

    def __post_init__(self) -> None:
        ranges.refuse("Logarithmic: first", self.first, _STEPS)
        ranges.refuse("Logarithmic: factor", self.factor, _FACTOR)


type Keep = int | WallTime | Logarithmic | None


def check(name: str, keep: Any) -> Keep:
    """Return the argument, a rule by which checkpoints are kept.

    Raises:
        ValueError, TypeError: no such rule.

    >>> check("run: keep", 0)
    Traceback (most recent call last):
    ValueError: run: keep=0; it must be a whole number of at least 1 (every n-th step), ...
    """
    if keep is None or isinstance(keep, WallTime | Logarithmic):
        return keep
    fault = _STEPS.fault(keep)
    if fault:
        kind = ValueError if isinstance(keep, int) and not isinstance(keep, bool) else TypeError
        raise kind(
            f"{name}={fault}; it must be a whole number of at least 1 (every n-th step), "
            "jaxgpu.runs.WallTime, jaxgpu.runs.Logarithmic or None"
        )
    return int(keep)


class KeptSteps:
    """The rule by which a run keeps checkpoints, and the time since it kept the last one.

    >>> kept = KeptSteps(Logarithmic())
    >>> kept.next_after(0), kept.next_after(5), kept.count(0, 100), kept.is_due(6)
    (1, 8, 7, False)
    """

    def __init__(self, keep: Keep) -> None:
        self.keep = keep
        self._began = time.monotonic()  # where the interval that runs would have begun

    def next_after(self, step: int) -> int | None:
        """Return the first step behind `step` that is kept; None where no step is known to be."""
        if isinstance(self.keep, Logarithmic):
            kept, factor = int(self.keep.first), float(self.keep.factor)
            while kept <= step:
                kept = max(round(kept * factor), kept + 1)
            return kept
        return (step // self.keep + 1) * self.keep if isinstance(self.keep, int) else None

    def count(self, begin: int, end: int) -> int:
        """Return how many steps behind `begin`, up to `end`, are known to be kept."""
        if isinstance(self.keep, int):
            return end // self.keep - begin // self.keep
        found, kept = 0, self.next_after(begin)
        while kept is not None and kept <= end:
            found, kept = found + 1, self.next_after(kept)
        return found

    def is_due(self, step: int) -> bool:
        """Tell whether the checkpoint of a step, which is written now, is kept."""
        if isinstance(self.keep, WallTime):
            return self.seconds >= self.keep.seconds
        return step > 0 and self.next_after(step - 1) == step

    @property
    def seconds(self) -> float:
        """Seconds that the run has taken since it kept a checkpoint by the clock."""
        return time.monotonic() - self._began

    def restart_clock(self, seconds: float = 0.0) -> None:
        """Begin an interval, of which `seconds` have passed."""
        self._began = time.monotonic() - seconds
