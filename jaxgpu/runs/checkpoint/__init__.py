"""Checkpoints: a checkpoint is either loaded exactly as it was saved, or raises an error.

Read `sealed_files` (one file with one checksum) first, then `tree` (the arrays of a pytree in it),
`parts` (a checkpoint of which each process of a job writes a part) and `steps` (those of a run,
which are in one `folder`). `binary`, `members` and `untrusted_data` read the bytes, the archive and
the JSON of a file, and treat it as untrusted.
"""

from .sealed_files import CheckpointError
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
