"""Rollouts: many steps as one pure program, to jit, vmap and differentiate in bounded memory.

A reverse pass needs every state. Storing all of T costs T states; L nested levels of T^(1/L) cost
about L T^(1/L) states and L - 1 more forward passes (Griewank & Walther 2008,
doi:10.1137/1.9780898717761, ch. 12, without the binomial refinement). The grid is stored with each
state of the innermost level, so that the reverse pass repeats no transfer.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxgpu.inputs import ranges
from jaxgpu.inputs.explanations import explain_errors, on_host
from jaxgpu.runs.fresh_calls import call_as_program
from jaxgpu.runs.loop import measure_nothing

from . import engine
from .particles import State
from .scene import Scene

type Drive = Callable[[Scene, State, Any], tuple[Scene, State]]


def no_drive(scene: Scene, state: State, control: Any) -> tuple[Scene, State]:
    """Return scene and state unchanged: the default drive."""
    return scene, state


@explain_errors
@on_host
def rollout(
    scene: Scene,
    state: State,
    controls: Any,
    drive: Drive = no_drive,
    *,
    substeps: int,
    measure: Callable[[State], Any] = measure_nothing,
    checkpoint: Literal["auto"] | tuple[int, int] = "auto",
    budget: float = 2**30,
) -> tuple[State, Any]:
    """Run T frames under control and record measurements: the pure counterpart of `simulate`.

    Args:
        scene: a scene with dt.
        state: initial state.
        controls: pytree of arrays [T, ...], one entry per frame; or T itself, if none are needed.
        drive: `drive(scene, state, control)` returns the scene and state of a frame: it sets a
            tool's velocity, a force, a material. Its changes to the scene last one frame.
        substeps: steps per frame.
        measure: recorded at the start and after each frame.
        checkpoint: levels of nested checkpoints over frames and over the steps of a frame, 0 for
            none; "auto" chooses the fewest that keep the stored states within `budget`.
        budget: bytes for stored states.
    Returns:
        last state, and measurements [1 + T, ...].
    Raises:
        ValueError, TypeError: dt is None, a value is out of range, or controls differ in length.

    >>> from dataclasses import replace
    >>> from jaxgpu.physics.continuum import Body, Grid, Liquid
    >>> scene = Scene((Body(jnp.ones((1, 2)), Liquid(), volume=1e-4),), Grid(0.2, (9, 9))).prepare()
    >>> push = lambda scene, state, g: (replace(scene, gravity=(g, 0.0)), state)
    >>> speed = lambda state: state.bodies[0].v[0, 0]
    >>> force = lambda g: rollout(scene, scene.init(), g, push, substeps=2, measure=speed)[1][-1]
    >>> slope = jax.jit(jax.grad(force))(jnp.zeros(3))
    >>> round(float(slope[0] / scene.dt), 3)  # a frame of two steps
    2.0
    """
    frames = count_frames(scene, controls, substeps, budget)
    if checkpoint == "auto":
        checkpoint = choose_levels(scene, state, frames, substeps, budget)
    per_frame = jnp.arange(frames) if isinstance(controls, int) else controls
    body = partial(_scan_frames, substeps, frames, *checkpoint)
    return call_as_program(body, (drive, measure), scene, state, per_frame)


def _scan_frames(
    substeps: int,
    frames: int,
    outer: int,
    within: int,
    functions: tuple[Drive, Callable[[State], Any]],
    scene: Scene,
    state: State,
    per_frame: Any,
) -> tuple[State, Any]:
    """Return the last state and the measurements, with these levels of checkpoints."""
    drive, measure = functions
    corrections = engine.correction_steps(jnp.arange(substeps, dtype=jnp.int32), substeps)

    def frame(state: State, control: Any) -> tuple[State, Any]:
        driven, state = drive(scene, state, control)
        advance_step = lambda state, correction: (engine.step(driven, state, correction), None)
        state, _ = _nested_scan(advance_step, state, corrections, substeps, within, keep_grid=True)
        return state, measure(state)

    first = measure(state)
    state, rows = _nested_scan(frame, state, per_frame, frames, outer, keep_grid=False)
    history = lambda a, b: jnp.concatenate([jnp.asarray(a, b.dtype)[None], b])
    return state, jax.tree.map(history, first, rows)


def count_frames(scene: Scene, controls: Any, substeps: int = 1, budget: float = 2**30) -> int:
    """Check the arguments of a rollout and return its number of frames.

    Raises:
        ValueError, TypeError: dt is None, a value is out of range, or controls differ in length.
    """
    if scene.dt is None:
        raise ValueError("rollout: the scene has no dt; use scene.prepare(), or give dt in seconds")
    ranges.numbers("rollout: substeps", substeps, (), least=1, whole=True)
    ranges.numbers("rollout: budget", budget, (), above=0, unit="bytes")
    if isinstance(controls, int):
        ranges.numbers("rollout: controls", controls, (), least=1, whole=True)
        return controls
    lengths = {jnp.shape(leaf)[:1] for leaf in jax.tree.leaves(controls)}
    if len(lengths) != 1 or () in lengths or (0,) in lengths:
        said = sorted(list(a) for a in lengths)
        raise ValueError(
            f"rollout: controls begin with axes {said}; the first axis of all must be frames, of "
            "the same length"
        )
    return lengths.pop()[0]


def choose_levels(
    scene: Scene, state: State, frames: int, substeps: int, budget: float
) -> tuple[int, int]:
    """Return the fewest checkpoint levels, over and within frames, that fit in `budget` bytes."""
    size = lambda tree: sum(a.size * a.dtype.itemsize for a in jax.tree.leaves(tree))
    one = size(state)
    grid = 4 * int(np.prod(scene.grid.shape)) * state.t.dtype.itemsize * (2 if scene.sharp else 1)
    plans = [(0, 1), (1, 1), (2, 1), (2, 2), (3, 2), (3, 3)]
    for outer, within in plans:
        steps = within * substeps ** (1 / within)
        kept = outer * frames ** (1 / outer) * one if outer else (frames - 1) * steps * (one + grid)
        if kept + steps * (one + grid) <= budget:
            return outer, within
    return plans[-1]


def _nested_scan(body: Callable, state: Any, xs: Any, length: int, depth: int, keep_grid: bool):
    """Apply `lax.scan` with `depth` nested levels of checkpoints, for any length, also a prime."""
    if depth == 0:
        return lax.scan(body, state, xs, length=length)
    if depth == 1:
        names = (engine.GRID_NAME,) if keep_grid else ()
        policy = jax.checkpoint_policies.save_only_these_names(*names)
        return lax.scan(jax.checkpoint(body, policy=policy), state, xs, length=length)
    each = max(1, round(length ** ((depth - 1) / depth)))
    groups = length // each
    inner = lambda state, xs: _nested_scan(body, state, xs, each, depth - 1, keep_grid)
    split = jax.tree.map(lambda a: a[: groups * each].reshape(groups, each, *a.shape[1:]), xs)
    state, ys = lax.scan(jax.checkpoint(inner), state, split, length=groups)
    rest = jax.tree.map(lambda a: a[groups * each :], xs)
    state, last = _nested_scan(body, state, rest, length - groups * each, 1, keep_grid)
    join = lambda a, b: jnp.concatenate([a.reshape(-1, *a.shape[2:]), b])
    return state, jax.tree.map(join, ys, last)
