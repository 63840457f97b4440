"""Run loop of the package, and the folder of a run: measuring, saving and resuming.

Read `loop` first, then `program` (the compiled steps, with `placement`, `equal_functions` and
`fresh_calls`), `saving` (the folder of a run, based on `checkpoint` and `files`) and `interrupt`.
"""

from .loop import Run, rollout, run
from .saving.branch import Branch, Resume
from .saving.kept_steps import Keep, Logarithmic, WallTime

__all__ = ["Branch", "Keep", "Logarithmic", "Resume", "Run", "WallTime", "rollout", "run"]
