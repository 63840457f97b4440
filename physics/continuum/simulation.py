"""Simulation of scenes from the host: checks, recording, checkpoints and resuming."""

import dataclasses
import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.sharding import Mesh

from jaxgpu.devices.mesh import check_mesh, shard
from jaxgpu.inputs import ranges
from jaxgpu.inputs.explanations import explain_errors, on_host
from jaxgpu.inputs.fields import pytree, static
from jaxgpu.runs import Keep, Resume
from jaxgpu.runs.loop import Run, measure_nothing, run

from . import engine
from .devices import ShardedState, gather_state, shard_frame, shard_state
from .particles import State
from .scene import Scene


@pytree
class FrameRecord:
    """Quantities recorded after every frame, including the user's measurement."""

    measured: Any  # result of the user's function
    lost: Array  # [] int32 particles and tools that left the box or are not finite
    t: Array  # [] time, s
    refused: Array  # [bodies] int32 injected particles that found no empty slot
    tools_lost: Array  # [tools] bool mask of the tools among the lost


@pytree
class BoundMeasure:
    """A measurement function with its bound arguments, whose arrays are operands of a program."""

    function: Callable[..., Any] = static()  # the unbound function
    args: tuple[Any, ...]  # its first arguments
    named: dict[str, Any]  # its arguments by name

    def __call__(self, state: State) -> Any:
        """Return the measurement of a state."""
        return self.function(*self.args, state, **self.named)


@pytree
class FrameStepper:
    """A scene that is run frame by frame; its numbers are operands of one compiled program."""

    scene: Scene
    substeps: Array | int  # [] steps per frame
    measure: Callable[[State], Any]

    def init(self) -> State:
        """Return the state at time zero."""
        return self.scene.init()

    def step(self, state: State) -> State:
        """Advance the state by one frame."""

        def advance_step(i: Array, state: State) -> State:
            return engine.step(self.scene, state, engine.correction_steps(i, self.substeps))

        return lax.fori_loop(0, self.substeps, advance_step, state)

    def record(self, state: State) -> FrameRecord:
        """Return the record of a state, for the start and after every frame."""
        return self.make_record(state, state)

    def make_record(self, state: State, spread: State) -> FrameRecord:
        """Return the record of a state; `spread` holds the same particles in any order."""
        return FrameRecord(
            measured=self.measure(state),
            lost=count_lost(self.scene, spread),
            t=state.t,
            refused=_count_refused(self.scene, state),
            tools_lost=_lost_tools(self.scene, state),
        )


@pytree
class ShardedStepper:
    """`FrameStepper` on several devices; functions of a state see the particles in order."""

    frames: FrameStepper
    mesh: Mesh = static()  # devices that share the scene

    def init(self) -> ShardedState:
        """Return the state at time zero, distributed over the devices."""
        return shard_state(self.frames.scene, self.mesh)

    def step(self, shares: ShardedState) -> ShardedState:
        """Advance the shares by one frame."""
        return shard_frame(self.frames.scene, self.mesh, self.frames.substeps)(shares)

    def record(self, shares: ShardedState) -> FrameRecord:
        """Return the record of a state, for the start and after every frame."""
        return self.frames.make_record(gather_state(self.frames.scene, shares), shares.state)

    def end(self, shares: ShardedState) -> State:
        """Return the state with particles in order, evenly distributed over devices; host only."""
        state = gather_state(self.frames.scene, shares)
        bodies = tuple(shard(body, self.mesh, axis=0) for body in state.bodies)
        return dataclasses.replace(state, bodies=bodies)


@explain_errors
@on_host
def simulate(
    scene: Scene,
    t: float,
    *,
    frames: int = 1,
    measure: Callable[[State], Any] = measure_nothing,
    until: Callable[[State], Array] | None = None,
    out: str | Path | None = None,
    resume: Resume = False,
    keep: Keep = None,
    guard: bool = False,
    mesh: Mesh | None = None,
) -> Run[State]:
    """Run a scene from its initial state for t seconds and record `measure` at equal intervals.

    A second call with the same functions and shapes reuses the compiled program. `rollout` is the
    pure counterpart.

    Args:
        scene: dt is chosen if it is None; steps are shortened a little to end at the frames.
        t: seconds of simulated time, above zero.
        frames: how often `measure(state)` is recorded after the start.
        measure: function of a state that returns a pytree of arrays; runs on the device.
        until: function of a state, [] bool; the run ends after the first frame where it is True.
        out: folder for checkpoints.
        resume: continue from the last checkpoint, bitwise identical to an uninterrupted run:
            True, names of values that may differ, or a `Branch`, as `jaxgpu.runs.run` documents.
        keep: checkpoints to retain, counted in frames, as `jaxgpu.runs.run` documents.
        guard: stop at the first value that is not finite and name it, before it is saved.
        mesh: devices over which to distribute the particles, from `jaxgpu.devices.mesh.make_mesh`.
    Returns:
        a `Run`: the last state, history [1 + frames, ...] from the start on, and timing.
    Raises:
        ValueError: `Scene.prepare` rejects the scene.
        FloatingPointError: particles or a free tool left the box or are not finite; with the
            time at which this was detected.
        OverflowError: an injector found no empty slot; the message has the required capacity.

    >>> from jaxgpu.physics.continuum import Body, Grid, NeoHookean
    >>> drop = Body(jnp.full((8, 2), 0.5), NeoHookean(), volume=1e-3)
    >>> end = simulate(Scene((drop,), Grid(0.1, (10, 10)), gravity=(0.0, -10.0)), 0.1).state
    >>> f"{end.t:.3f} s, {end.bodies[0].x[0, 1]:.2f} m"  # 0.5 - 10 t^2 / 2
    '0.100 s, 0.45 m'
    """
    ranges.numbers("simulate: t", t, (), above=0, unit="s")
    ranges.numbers("simulate: frames", frames, (), least=1, whole=True)
    scene = scene.prepare()
    substeps = int(np.ceil(t / (frames * float(np.asarray(scene.dt))) - 1e-6))
    dt = np.asarray(scene.bodies[0].x).dtype.type(t / (frames * substeps))
    film = FrameStepper(dataclasses.replace(scene, dt=dt), substeps, _bind_arrays(measure))
    if mesh is None:
        done = run(
            film.step,
            film.init(),
            frames,
            measure=film.record,
            until=until,
            out=out,
            resume=resume,
            keep=keep,
            guard=guard,
        )
    else:
        shared = ShardedStepper(film, check_mesh("simulate: mesh", mesh))
        spread = run(
            shared.step,
            shared.init(),
            frames,
            measure=shared.record,
            until=until and partial(_is_finished, film.scene, _bind_arrays(until)),
            out=out,
            resume=resume,
            keep=keep,
            guard=guard,
        )
        done = Run(shared.end(spread.state), spread.history, spread.timing)
    _raise_lost(done.history)
    _raise_refused(done.history, done.state)
    return dataclasses.replace(done, history=done.history.measured)


def _is_finished(scene: Scene, until: Callable[[State], Array], shares: ShardedState) -> Array:
    """Return whether a run on several devices ends here, [] bool."""
    return until(gather_state(scene, shares))


def _bind_arrays(measure: Callable[[State], Any]) -> Callable[[State], Any]:
    """Return the function as a pytree of its bound arrays, so that they become operands."""
    if inspect.ismethod(measure) and not jax.tree_util.all_leaves([measure.__self__]):
        return BoundMeasure(measure.__func__, (measure.__self__,), {})
    if isinstance(measure, partial):
        carried = jax.tree.leaves((measure.args, measure.keywords))
        if not any(isinstance(leaf, int) for leaf in carried):  # integers may be sizes: keep static
            return BoundMeasure(measure.func, measure.args, measure.keywords)
    return measure


def _raise_lost(seen: FrameRecord) -> None:
    """Raise an error at the first frame that shows lost particles or a lost tool."""
    if not np.any(seen.lost):
        return
    first = int(np.argmax(seen.lost > 0))
    if np.any(seen.tools_lost[first]):
        raise FloatingPointError(
            f"simulate: colliders[{np.argmax(seen.tools_lost[first])}] was outside the box, or not "
            f"finite, at t={seen.t[first]:.4g} s; box faces do not stop a free tool; support it by "
            "material, or use a wider grid"
        )
    raise FloatingPointError(
        f"simulate: {seen.lost[first]} particles were outside the box or not finite at "
        f"t={seen.t[first]:.4g} s; take a smaller dt, stiffer contact or a wider grid"
    )


def _raise_refused(seen: FrameRecord, end: State) -> None:
    """Raise an error if injectors found no empty slot."""
    for i, body in enumerate(end.bodies):
        refused = seen.refused[:, i]
        if np.any(refused):
            slots, first = body.m.size, int(np.argmax(refused > 0))
            raise OverflowError(
                f"simulate: bodies[{i}] has {slots} slots and its injectors found none free for "
                f"{refused[-1]} particles, the first by t={seen.t[first]:.4g} s; give its Body "
                f"capacity={slots + refused[-1]} or collect more"
            )


def _count_refused(scene: Scene, state: State) -> Array:
    """Return the number of particles of each body that found no empty slot, [bodies] int32."""
    counts = [jnp.int32(0)] * len(scene.bodies)
    for source, flow in zip(scene.sources, state.flows):
        counts[source.body] = counts[source.body] + flow.refused
    return jnp.stack(counts)


def _lost_tools(scene: Scene, state: State) -> Array:
    """Return a mask [tools] of tools that are not finite, or free and centred outside the box."""
    out = []
    for collider, tool in zip(scene.colliders, state.tools):
        finite = jnp.stack([jnp.all(jnp.isfinite(a)) for a in jax.tree.leaves(tool)])
        inside = jnp.all(finite)
        if collider.mass is not None:
            low, high = (jnp.asarray(a, tool.x.dtype) for a in (scene.grid.lower, scene.grid.upper))
            inside = inside & jnp.all((tool.x >= low) & (tool.x <= high))
        out.append(~inside)
    return jnp.stack(out) if out else jnp.zeros(0, bool)


@explain_errors
def count_lost(scene: Scene, state: State) -> Array:
    """Return the number of lost particles and tools, [] int32.

    A particle is lost if it is more than a cell outside the box or not finite. A tool is lost if it
    is not finite or, being free, has its centre outside the box, whose faces do not stop tools.

    >>> from jaxgpu.physics.continuum import Body, Grid, Liquid, Scene
    >>> scene = Scene((Body([[0.5, 0.5]], Liquid(), 1e-3),), Grid(0.1, (10, 10)))
    >>> int(count_lost(scene, scene.init()))
    0
    """
    grid, count = scene.grid, jnp.int32(0)
    for body in state.bodies:
        chunks = body.chunks
        inside = chunks.m >= 0
        for a, low, high in zip(chunks.x, grid.lower, grid.upper):
            inside = inside & (a >= low - grid.dx) & (a <= high + grid.dx)  # NaN fails both
        count = count + jnp.sum(~inside, dtype=jnp.int32)
    return count + jnp.sum(_lost_tools(scene, state), dtype=jnp.int32)
