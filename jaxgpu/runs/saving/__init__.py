"""What a run leaves in its folder, and how it finds itself again there.

    step-000000000102.npz         a checkpoint: the state of a step (`jaxgpu.runs.checkpoint`)
    step-000000000100-kept.npz    one that stays, by a rule of `kept_steps`
    history/                      what was measured since the start, appended (`history`)
    experiment-1f0c9a....npz      what the run is, by name (`experiment`, written by `structure`)

Read `store` first, which writes all three for the loop of `run`. `identity` decides whether a run
is the same, by its traced program and the `settings` of JAX; a `branch` begins at a checkpoint of
another run.
`guard` looks at a run before it is saved, and `saved` reads it without the script: `objects` builds
again what `structure` told, of the classes and functions in `catalog`.
"""

__all__ = []  # the loop uses its parts; `jaxgpu.load` is for users
