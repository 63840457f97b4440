"""Injectors and collectors: particles that enter and leave during a run.

A body has a fixed number of slots, `Body.capacity`, of which slots of mass zero are empty. An
injector fills empty slots, a collector empties filled ones, and every particle is counted, so that
mass is accounted for exactly. Emptied slots are filled again. Particles that find no empty slot are
counted as refused; `simulate` raises an error for them.
"""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.geometry import rotations as pose
from jaxgpu.geometry.vectors import Vec
from jaxgpu.inputs.fields import number, pytree, size

from ..grid.grid import Grid
from .contact import Tool


@pytree
class SourceCounts:
    """Numbers of particles that one source has moved so far."""

    moved: Array  # [] int32 particles injected or collected
    refused: Array  # [] int32 particles that found no empty slot

    @staticmethod
    def zeros() -> "SourceCounts":
        """Return zero counts."""
        return SourceCounts(jnp.int32(0), jnp.int32(0))


@pytree
class Injector:
    """A nozzle that injects a layer of particles at equal intervals of time.

    Layer j enters at start + j interval and moves at v from that moment, so that the jet is uniform
    for any time step. For a full jet the interval is the particles' spacing over the speed. With
    `tool`, x and v are in that tool's frame and its own velocity is added.
    Differentiable in x, v and interval; piecewise in start.

    >>> from jaxgpu.physics.continuum import Body, Grid, Liquid, Scene, simulate
    >>> tap = Injector([[0.5, 0.8]], [0.0, -1.0], interval=0.02)
    >>> water = Body([[0.5, 0.1]], Liquid(), 1e-3, capacity=10)
    >>> done = simulate(Scene((water,), Grid(0.1, (10, 10)), sources=(tap,)), 0.1)
    >>> int(done.state.flows[0].moved)  # layers that entered
    5
    """

    x: Any = number(unit="m")  # [n, D] points of a layer
    v: Any = number(unit="m/s")  # [D] velocity
    interval: Array | float = number(above=0, unit="s", one=True)  # [] between layers, at least dt
    body: int = size(default=0, least=0)  # index of the body that receives particles
    tool: int = size(
        default=-1, least=-1
    )  # index of the collider that it moves with; none by default
    start: Array | float = number(default=0.0, unit="s", one=True)  # [] time of first layer
    # no layer enters at or after this time
    stop: Array | float = number(default=np.inf, unit="s", infinite=True, one=True)  # []

    def act(
        self, body: Any, chunks: Any, tools: tuple[Tool, ...], grid: Grid, span: Any
    ) -> tuple[Any, SourceCounts]:
        """Return chunks after a step over span = (t, t + dt), and injected and refused counts."""
        before, after = (self._num_layers(t) for t in span)
        dtype = chunks.m.dtype
        age = span[1] - self.start - (after - 1) * self.interval
        v = jnp.asarray(self.v, dtype)
        x = jnp.asarray(self.x, dtype) + (age * v)[None]
        points, speed = _to_space(tuple(x.T), tuple(v), self.tool, tools)
        points = tuple(grid.wrap(a, i) for i, a in enumerate(points))

        def enter(chunks):
            empty = chunks.m == 0
            # the points fill the first empty slots in order
            rank = jnp.cumsum(empty.ravel(), dtype=jnp.int32).reshape(empty.shape) - 1
            new = empty & (rank < x.shape[0])
            which = jnp.clip(rank, 0, x.shape[0] - 1)
            filled = _fill_slots(body, chunks, new, tuple(a[which] for a in points), speed, 1)
            return filled, jnp.sum(new, dtype=jnp.int32)

        due = after > before
        chunks, count = lax.cond(due, enter, lambda p: (p, jnp.int32(0)), chunks)
        return chunks, SourceCounts(count, jnp.where(due, x.shape[0], 0) - count)

    def _num_layers(self, t) -> Array:
        """Return the number of layers that have entered before time t."""
        return jnp.maximum(jnp.ceil((jnp.minimum(t, self.stop) - self.start) / self.interval), 0)


@pytree
class Collector:
    """A region that removes the particles inside it.

    >>> from jaxgpu.geometry import sdf
    >>> from jaxgpu.physics.continuum import Body, Grid, Liquid, Scene, simulate
    >>> drain = Collector(sdf.HalfSpace((0.0, 1.0), 0.3))  # all below a height
    >>> water = Body([[0.5, 0.1], [0.5, 0.8]], Liquid(), 1e-3)
    >>> done = simulate(Scene((water,), Grid(0.1, (10, 10)), sources=(drain,)), 0.01)
    >>> int(done.state.flows[0].moved)
    1
    """

    shape: Any  # an `sdf` shape, in space or in a tool's frame, m
    body: int = size(default=0, least=0)  # index of the body that loses particles
    tool: int = size(
        default=-1, least=-1
    )  # index of the collider that it moves with; none by default

    def act(
        self, body: Any, chunks: Any, tools: tuple[Tool, ...], grid: Grid, span: Any
    ) -> tuple[Any, SourceCounts]:
        """Return chunks after a step and the count removed; emptied slots move to mid-box."""
        x = chunks.x
        if self.tool >= 0:
            tool = tools[self.tool]
            x = pose.rotate_inverse(tool.turn, tuple(a - tool.x[i] for i, a in enumerate(x)))
        gone = (self.shape.distance(x) < 0) & (chunks.m > 0)
        middle = np.add(grid.lower, grid.upper) / 2
        waiting = tuple(jnp.full_like(a, c) for a, c in zip(chunks.x, middle))
        still = tuple(jnp.zeros((), a.dtype) for a in chunks.x)
        chunks = _fill_slots(body, chunks, gone, waiting, still, 0)
        return chunks, SourceCounts(jnp.sum(gone, dtype=jnp.int32), jnp.int32(0))


def apply_sources(
    scene: Any, bodies: tuple, tools: tuple[Tool, ...], flows: tuple[SourceCounts, ...], span: Any
) -> tuple[tuple, tuple[SourceCounts, ...]]:
    """Apply all sources in the order of `scene.sources`; return bodies and total counts."""
    now, counts = [particles.chunks for particles in bodies], []
    for source, seen in zip(scene.sources, flows):
        i = source.body
        now[i], more = source.act(scene.bodies[i], now[i], tools, scene.grid, span)
        counts.append(SourceCounts(seen.moved + more.moved, seen.refused + more.refused))
    after = tuple(replace(p, chunks=chunks) for p, chunks in zip(bodies, now))
    return after, tuple(counts)


def _to_space(x: Vec, v: Vec, tool: int, tools: tuple[Tool, ...]) -> tuple[Vec, Vec]:
    """Transform a source's points and velocity from its tool's frame to space."""
    if tool < 0:
        return x, v
    at = tools[tool]
    arm = pose.rotate(at.turn, x)
    carried = tuple(a + at.v[i] for i, a in enumerate(pose.rotate(at.turn, v)))
    return tuple(a + at.x[i] for i, a in enumerate(arm)), carried


def _fill_slots(body: Any, chunks: Any, where: Array, x: Vec, v: Vec, filled: int):
    """Return chunks with undeformed particles, or none, in masked slots, at x with velocity v."""
    d, zero = len(x), jnp.zeros_like(chunks.m)
    volume = jnp.asarray(body.volume, zero.dtype) * filled
    put = lambda new, old: jnp.where(where, new, old)
    internal = body.material.rest(zero, d)
    return replace(
        chunks,
        x=tuple(put(a, b) for a, b in zip(x, chunks.x)),
        v=tuple(put(a, b) for a, b in zip(v, chunks.v)),
        C=tuple(tuple(put(0, a) for a in row) for row in chunks.C),
        m=put(volume * body.density, chunks.m),
        volume=put(volume, chunks.volume),
        internal=jax.tree.map(put, internal, chunks.internal),
    )
