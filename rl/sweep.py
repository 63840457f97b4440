"""Trainings of many seeds as one program, measured along the way."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
from jax import Array

from jaxgpu import run as loop

from .doors import check_count
from .environment import Environment
from .learn import Learner
from .learners import schedule as schedules


def sweep(
    env: Environment,
    learner: Learner,
    keys: Array,
    parts: int,
    every: int,
    measure: Callable[[Any], Any],
    out: str | Path | None = None,
    resume: bool = False,
    schedule: int | None = None,
) -> loop.Run:
    """Train from each of the keys [S], all in one program, with checkpoints in `out`.

    Args:
        env: of all trainings.
        learner: of all.
        keys: of the seeds, [S].
        parts: how often all trainings are measured.
        every: updates before each measurement.
        measure: pure function of the state of one training.
        out: folder of checkpoints.
        resume: go on from what is there.
        schedule: updates over which learning rates fall and exploration settles, `parts * every`
            if not said; as that of `train`, and kept by a resumed sweep.

    Returns:
        A run whose state has an axis [S] in front, as its history [parts, S, ...] has behind time.
    """
    check_count("sweep: parts", parts)
    check_count("sweep: every", every)
    length = parts * every if schedule is None else schedule
    if resume:
        schedules.refuse_another("sweep", out, length, 1)

    def step(state: Any, key: Array) -> Any:
        def update(i: Array, state: Any) -> Any:
            each = jax.random.split(jax.random.fold_in(key, i), len(keys))
            return jax.vmap(lambda state, key: learner.update(env, state, key))(state, each)

        return jax.lax.fori_loop(0, every, update, state)

    first = jax.jit(jax.vmap(lambda key: learner.init(env, key, length)))(keys)
    rest = jax.random.fold_in(keys[0], len(keys))
    done = loop.run(step, first, parts, key=rest, measure=jax.vmap(measure), out=out, resume=resume)
    return replace(done, history=jax.tree.map(lambda rows: rows[1:], done.history))
