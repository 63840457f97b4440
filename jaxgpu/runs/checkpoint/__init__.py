"""Checkpoints that are either exactly right or refused.

Read `sealed` (one file under one digest) first, then `tree` (the arrays of a pytree in it), `parts`
(a checkpoint of which every process of a job writes its own) and `steps` (those of a run, which lie
in one `folder`). `binary`, `members` and `plain` are the bytes, the archive and the JSON of a file,
read as if a stranger had written them.
"""

from .sealed import CheckpointError
from .steps import holds_any, load_last, save_parts, save_step
from .tree import load, read, save

__all__ = [
    "CheckpointError",
    "holds_any",
    "load",
    "load_last",
    "read",
    "save",
    "save_parts",
    "save_step",
]
