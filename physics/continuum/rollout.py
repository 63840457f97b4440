"""Many steps: forwards to look at, or differentiable in bounded memory.

A reverse pass needs every state. Keeping all of T costs T states; keeping L nested levels of
T^(1/L) costs about L T^(1/L) and L - 1 more forward passes (Griewank & Walther 2008,
doi:10.1137/1.9780898717761, ch. 12, without the binomial refinement). The grid is kept with each
state of the innermost level, so that the reverse pass repeats no transfer.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh

from jaxgpu import ranges
from jaxgpu.run import Run, run

from . import devices, engine
from .prepare import prepare
from .scene import Scene, State, init


def _nothing(state: State) -> Any:
    return ()


def simulate(
    scene: Scene,
    t: float,
    *,
    frames: int = 1,
    measure: Callable[[State], Any] = _nothing,
    out: str | Path | None = None,
    resume: bool = False,
    mesh: Mesh | None = None,
) -> Run:
    """Run a scene from its start for t seconds and record `measure` at equal intervals.

    Args:
        scene: dt is chosen if it has none; steps are shortened a little to hit the frames.
        t: seconds of simulated time, above zero.
        frames: how often `measure(state)` is recorded.
        measure: pytree of arrays, computed on the device.
        out: folder for checkpoints.
        resume: go on from the last of them, to the same bits as if never stopped.
        mesh: devices to spread the particles over, as `jaxgpu.mesh.devices` gives them.
    Returns:
        a `Run`: the last state, history [frames, ...] and timing.
    Raises:
        ValueError: what `prepare` refuses.
        FloatingPointError: matter or a free tool left the box, or is not a number; with the time
            it was seen.
        OverflowError: an injector found no empty slot; with the capacity that would have done.

    >>> from jaxgpu.physics.continuum import Body, Grid, NeoHookean, positions
    >>> drop = Body(jnp.full((8, 2), 0.5), NeoHookean(), volume=1e-3)
    >>> end = simulate(Scene((drop,), Grid(0.1, (10, 10)), gravity=(0.0, -10.0)), 0.1).state
    >>> f"{end.t:.3f} s, {positions(end.bodies[0])[0, 1]:.2f} m"  # 0.5 - 10 t^2 / 2
    '0.100 s, 0.45 m'
    """
    ranges.numbers("simulate: t", t, (), above=0, unit="s")
    ranges.numbers("simulate: frames", frames, (), least=1, whole=True)
    scene = prepare(scene)
    substeps = int(np.ceil(t / (frames * float(np.asarray(scene.dt))) - 1e-6))
    dt = np.asarray(scene.bodies[0].x).dtype.type(t / (frames * substeps))
    scene = replace(scene, dt=dt)

    def frame(state: State, axis: str | None = None) -> State:
        one = lambda i, state: engine.step(scene, state, engine.due(i, substeps), axis)
        return lax.fori_loop(0, substeps, one, state)

    done = run(
        devices.over(frame, mesh) if mesh else frame,
        devices.place(init(scene, mesh.size), mesh) if mesh else init(scene),
        frames,
        measure=lambda s: (measure(s), lost(scene, s), s.t, _refused(scene, s), _strayed(scene, s)),
        out=out,
        resume=resume,
    )
    after = jax.tree.map(lambda rows: rows[1:], done.history)  # the frames, without the start
    history, bad, times, refused, strayed = after
    _raise_lost(bad, times, strayed)
    for i in range(len(scene.bodies)):
        if np.any(refused[:, i]):
            slots, first = done.state.bodies[i].m.size, int(np.argmax(refused[:, i] > 0))
            raise OverflowError(
                f"simulate: bodies[{i}] has {slots} slots and its injectors found none for "
                f"{refused[-1, i]} particles, the first by t={times[first]:.4g} s; give its Body "
                f"capacity={slots + refused[-1, i]} or collect more"
            )
    return Run(done.state, history, done.timing)


def _raise_lost(bad: np.ndarray, times: np.ndarray, strayed: np.ndarray) -> None:
    """The error of a run in which matter or a tool was lost, at the first frame that shows it."""
    if not np.any(bad):
        return
    first = int(np.argmax(bad > 0))
    if np.any(strayed[first]):
        raise FloatingPointError(
            f"simulate: colliders[{np.argmax(strayed[first])}] had left the box, or was not a "
            f"number, at t={times[first]:.4g} s; faces of the box do not hold a free tool: hold it "
            f"by matter, or take a wider grid"
        )
    raise FloatingPointError(
        f"simulate: {bad[first]} particles were outside the box or not a number at "
        f"t={times[first]:.4g} s; take a smaller dt, stiffer contact or a wider grid"
    )


def _refused(scene: Scene, state: State) -> jax.Array:
    """Particles of each body that found no slot, [bodies] int32."""
    counts = [jnp.int32(0)] * len(scene.bodies)
    for source, flow in zip(scene.sources, state.flows):
        counts[source.body] = counts[source.body] + flow.refused
    return jnp.stack(counts)


def _strayed(scene: Scene, state: State) -> jax.Array:
    """Which tools are not finite, or free and with their centre outside the box, [tools] bool."""
    out = []
    for collider, tool in zip(scene.colliders, state.tools):
        finite = jnp.stack([jnp.all(jnp.isfinite(a)) for a in jax.tree.leaves(tool)])
        inside = jnp.all(finite)
        if collider.mass is not None:
            low, high = (jnp.asarray(a, tool.x.dtype) for a in (scene.grid.lower, scene.grid.upper))
            inside = inside & jnp.all((tool.x >= low) & (tool.x <= high))
        out.append(~inside)
    return jnp.stack(out) if out else jnp.zeros(0, bool)


def lost(scene: Scene, state: State) -> jax.Array:
    """How many particles and tools are lost, [] int32.

    A particle is, more than a cell outside the box or not finite; a tool, where it is not finite
    or, if it is free, its centre is outside the box, whose faces tools do not meet.
    """
    grid, count = scene.grid, jnp.int32(0)
    for body in state.bodies:
        inside = body.m >= 0
        for a, low, high in zip(body.x, grid.lower, grid.upper):
            inside = inside & (a >= low - grid.dx) & (a <= high + grid.dx)  # nan fails both
        count = count + jnp.sum(~inside, dtype=jnp.int32)
    return count + jnp.sum(_strayed(scene, state), dtype=jnp.int32)


def rollout(
    scene: Scene,
    state: State,
    controls: Any,
    drive: Callable[[Scene, State, Any], tuple[Scene, State]],
    *,
    substeps: int,
    measure: Callable[[State], Any] = _nothing,
    checkpoint: Literal["auto"] | tuple[int, int] = "auto",
    budget: float = 2**30,
) -> tuple[State, Any]:
    """Steps under control, to be differentiated; jit the caller.

    Args:
        scene: with dt.
        state: where it starts.
        controls: pytree of arrays [T, ...], one entry a frame.
        drive: `drive(scene, state, control)` gives the scene and state of a frame: it sets a
            tool's velocity, a force, a material. What it changes in the scene lasts one frame.
        substeps: steps in a frame.
        measure: recorded after each frame.
        checkpoint: levels of nested checkpoints over frames and over the steps of a frame, 0 for
            none; "auto" takes the fewest that keep the states within `budget`.
        budget: bytes for kept states.
    Returns:
        last state, and measures [T, ...].

    >>> from dataclasses import replace
    >>> from jaxgpu.physics.continuum import Body, Grid, Liquid
    >>> scene = prepare(Scene((Body(jnp.ones((1, 2)), Liquid(), volume=1e-4),), Grid(0.2, (9, 9))))
    >>> push = lambda scene, state, g: (replace(scene, gravity=(g, 0.0)), state)
    >>> speed = lambda state: state.bodies[0].v[0][0, 0]
    >>> force = lambda g: rollout(scene, init(scene), g, push, substeps=2, measure=speed)[1][-1]
    >>> round(float(jax.grad(force)(jnp.zeros(3))[0] / scene.dt), 3)  # a frame of two steps
    2.0
    """
    frames = frames_of(scene, controls, substeps, budget)
    if checkpoint == "auto":
        checkpoint = levels(scene, state, frames, substeps, budget)
    outer, within = checkpoint
    held = engine.due(jnp.arange(substeps, dtype=jnp.int32), substeps)

    def frame(state: State, control: Any) -> tuple[State, Any]:
        driven, state = drive(scene, state, control)
        one = lambda state, held: (engine.step(driven, state, held), None)
        state, _ = _nested(one, state, held, substeps, within, keep_grid=True)
        return state, measure(state)

    return _nested(frame, state, controls, frames, outer, keep_grid=False)


def frames_of(scene: Scene, controls: Any, substeps: int = 1, budget: float = 2**30) -> int:
    """Number of frames of a rollout, after what can be checked of it.

    Raises:
        ValueError, TypeError: no dt, numbers out of their range, controls of several lengths.
    """
    if scene.dt is None:
        raise ValueError("rollout: the scene has no dt; use prepare(scene), or give dt in seconds")
    ranges.numbers("rollout: substeps", substeps, (), least=1, whole=True)
    ranges.numbers("rollout: budget", budget, (), above=0, unit="bytes")
    lengths = {jnp.shape(leaf)[:1] for leaf in jax.tree.leaves(controls)}
    if len(lengths) != 1 or () in lengths or (0,) in lengths:
        said = sorted(list(a) for a in lengths)
        raise ValueError(
            f"rollout: controls begin with axes {said}; all arrays must begin with one axis of "
            f"frames, and of the same length"
        )
    return lengths.pop()[0]


def levels(
    scene: Scene, state: State, frames: int, substeps: int, budget: float
) -> tuple[int, int]:
    """Fewest levels of checkpoints whose kept states and grids fit in `budget` bytes."""
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


def _nested(body: Callable, state: Any, xs: Any, length: int, depth: int, keep_grid: bool):
    """`lax.scan` with `depth` nested levels of checkpoints; any length, prime ones too."""
    if depth == 0:
        return lax.scan(body, state, xs, length=length)
    if depth == 1:
        names = (engine.FIELD,) if keep_grid else ()
        policy = jax.checkpoint_policies.save_only_these_names(*names)
        return lax.scan(jax.checkpoint(body, policy=policy), state, xs, length=length)
    each = max(1, round(length ** ((depth - 1) / depth)))
    groups = length // each
    inner = lambda state, xs: _nested(body, state, xs, each, depth - 1, keep_grid)
    split = jax.tree.map(lambda a: a[: groups * each].reshape(groups, each, *a.shape[1:]), xs)
    state, ys = lax.scan(jax.checkpoint(inner), state, split, length=groups)
    rest = jax.tree.map(lambda a: a[groups * each :], xs)
    state, last = _nested(body, state, rest, length - groups * each, 1, keep_grid)
    join = lambda a, b: jnp.concatenate([a.reshape(-1, *a.shape[2:]), b])
    return state, jax.tree.map(join, ys, last)
