"""Folder of a run: its checkpoints, its history and its description, for resuming.

    step-000000000102.npz         a checkpoint: the state of a step (`jaxgpu.runs.checkpoint`)
    step-000000000100-kept.npz    one that is retained, by a rule of `kept_steps`
    history/                      the measures since the start, appended (`history`)
    experiment-1f0c9a....npz      the description of the run (`experiment`, `structure`)

Read `store` first, which writes all three for the loop of `run`. `identity` decides whether a run
is the same, by digests of its traced program; `settings` lists the settings of JAX that count. A
`branch` starts at a checkpoint of another run. `guard` checks a run before it is saved, and
`saved_run` reads it without the script: `objects` rebuilds the values that `structure` described,
from the classes and functions in `catalog`.
"""

__all__ = []  # the loop uses its parts; `jaxgpu.load` is for users
