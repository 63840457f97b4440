"""Trainings of many seeds as one program, measured along the way."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
from jax import Array

from jaxgpu import run as loop
from jaxgpu.rl.environment import Environment
from jaxgpu.rl.learn import Learner


def sweep(
    env: Environment,
    learner: Learner,
    keys: Array,
    parts: int,
    every: int,
    measure: Callable[[Any], Any],
    out: str | Path | None = None,
    resume: bool = False,
) -> loop.Run:
    """Train from each of the keys [S], all in one program, with checkpoints in `out`.

    Args:
        env: of all trainings.
        learner: of all; a learning rate that falls does so until the end.
        keys: of the seeds, [S].
        parts: how often all trainings are measured.
        every: updates before each measurement.
        measure: pure function of the state of one training.
        out: folder of checkpoints.
        resume: go on from what is there.

    Returns:
        A run whose state has an axis [S] in front, as its history [parts, S, ...] has behind time.
    """
    spec: Any = learner
    if hasattr(spec, "updates"):
        spec = replace(spec, updates=float(parts * every))

    def step(state: Any, key: Array) -> Any:
        def update(i: Array, state: Any) -> Any:
            each = jax.random.split(jax.random.fold_in(key, i), len(keys))
            return jax.vmap(lambda state, key: spec.update(env, state, key))(state, each)

        return jax.lax.fori_loop(0, every, update, state)

    first = jax.jit(jax.vmap(lambda key: spec.init(env, key)))(keys)
    rest = jax.random.fold_in(keys[0], len(keys))
    return loop.run(step, first, parts, key=rest, measure=jax.vmap(measure), out=out, resume=resume)
