"""The one loop, and the folder of a run: what is measured, saved and resumed.

Read `loop` first, then `program` (the compiled steps, with `placement`, `equal_functions` and
`fresh_calls`), `saving` (the folder of a run) on top of `checkpoint` and `files`, and `interrupt`.
"""

from .loop import Run, rollout, run
from .saving.branch import Branch, Resume
from .saving.kept_steps import Keep, Logarithmic, WallTime

__all__ = ["Branch", "Keep", "Logarithmic", "Resume", "Run", "WallTime", "rollout", "run"]
