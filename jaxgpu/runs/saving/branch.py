"""Branches: runs that start at a retained state of another run, and the argument `resume=`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jaxgpu.inputs import arguments, ranges

_STEP = ranges.Range(least=0, below=10**12, whole=True, one=True)
_RESUME_NOUN = (
    "True or False, or names in a tuple, such as ('eta',), or jaxgpu.runs.Branch(folder, step)"
)


@dataclass(frozen=True)
class Branch:
    """State of a run in a folder, from which `run(..., resume=Branch(...))` starts another.

    The new run has its own folder, `out`, which receives the history up to that step. The folder of
    the old run is only read, even while that run is active.

    >>> import jax.numpy as jnp, jaxgpu, tempfile
    >>> from functools import partial
    >>> from jaxgpu.runs import run
    >>> grow = lambda rate, x: rate * x
    >>> old, new = tempfile.mkdtemp(), tempfile.mkdtemp()
    >>> done = run(partial(grow, 2.0), jnp.float32(1), 10, measure=lambda x: x, out=old, keep=5)
    >>> branch = Branch(old, step=5, changed=("rate",))
    >>> other = run(
    ...     partial(grow, 3.0), jnp.float32(1), 7, measure=lambda x: x, out=new, resume=branch
    ... )
    >>> other.history
    array([  1.,   2.,   4.,   8.,  16.,  32.,  96., 288.], dtype=float32)
    >>> jaxgpu.load(new).changes[1]
    'at step 5: rate was 2.0, is 3.0'
    """

    folder: str | Path  # `out` of the run to branch from
    step: int  # one of `jaxgpu.load(folder).steps`
    changed: Sequence[str] = ()  # names of values that may differ, as in the error message

    def __post_init__(self) -> None:
        arguments.path("Branch: folder", self.folder)
        ranges.refuse("Branch: step", self.step, _STEP)
        if isinstance(self.changed, str) or not isinstance(self.changed, Sequence):
            shown = arguments.format_value(self.changed)
            raise TypeError(
                f"Branch: changed={shown}; it must be names in a tuple, such as ('eta',)"
            )
        for name in self.changed:
            arguments.word("Branch: changed", name)


type Resume = bool | Sequence[str] | Branch


def allowed_names(resume: Any) -> tuple[str, ...]:
    """Return the names of values that may differ from the run that is resumed.

    Raises:
        TypeError: neither a truth value, nor names, nor a branch.

    >>> allowed_names(True), allowed_names(["eta"]), allowed_names(Branch("a", 5, ("eta",)))
    ((), ('eta',), ('eta',))
    """
    if isinstance(resume, bool | np.bool_):
        return ()
    if isinstance(resume, Branch):
        return tuple(resume.changed)
    if isinstance(resume, str) or not isinstance(resume, Sequence) or not len(resume):
        raise TypeError(f"run: resume={arguments.format_value(resume)}; it must be {_RESUME_NOUN}")
    return tuple(arguments.word("run: resume", name) for name in resume)


def source(out: Any, resume: Any) -> Any:
    """Return the folder whose checkpoints a run resumes from: its own, or that of its branch.

    >>> source("new", True), source("new", Branch("old", 5))
    ('new', 'old')
    """
    return resume.folder if isinstance(resume, Branch) else out


def refuse_same(out: Any, branch: Branch) -> None:
    """Raise if a branch would be written into the folder that it is read from.

    Raises:
        ValueError: it is the same folder.

    >>> refuse_same("a/../old", Branch("old", 5))
    Traceback (most recent call last):
    ValueError: run: out=a/../old; it must differ from the folder of the branch; give a new...
    """
    if out is not None and Path(out).resolve() == Path(branch.folder).resolve():
        raise ValueError(
            f"run: out={out}; it must differ from the folder of the branch; give a new one"
        )
