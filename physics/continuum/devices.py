"""One scene on several devices: each has a slab of the grid, and the particles in it.

Devices are in a row along one axis of the grid. A step spreads the particles of each on its slab,
adds what both sides of a cut have on the four planes about it (six where a liquid's volume is
corrected), and goes on within the slab: one message to each neighbour. After sixteen steps, or as
soon as the fastest particle may have gone three quarters of a cell, particles that have crossed a
cut are handed on, and cuts move to where devices have equally many (`partition`, `migration`).

Where a particle is too far from its slab after all, since it is faster than it was or its neighbour
has no slot for it, those steps are taken again on the whole grid, which every device then has and
all sum up. So are all steps of a scene that cannot be cut: every axis is periodic or has fewer
planes than slabs need. The result is that of one device to rounding in every case.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.sharding import Mesh, PartitionSpec

from jaxgpu.devices.mesh import flat, replicate, split
from jaxgpu.inputs.fields import pytree, static

from . import engine
from .grid.grid import Grid
from .grid.shared import Replica, Slab
from .migration import handed_on
from .particles import Body, Chunks, Particles, State, empty
from .partition import Partition, partitioned, placed
from .scene import Scene


@pytree
class Shares:
    """A state whose particles are spread over devices; `gather_state` gives it back in order."""

    state: State  # slots of each body: those of the first device, of the second, ...
    ids: tuple[Array, ...]  # [C, P] number of the particle in each slot from one on; 0 in none
    cuts: Array  # [devices + 1] int32 first plane of each slab, and the number of all
    whole: Array  # [] int32 steps that were taken on the whole grid
    partition: Partition | None = static()  # none where all steps are


def shard_state(scene: Scene, mesh: Mesh) -> Shares:
    """The state at time zero, spread over the devices of a mesh; on the host.

    The axis across which the grid is cut is the one along which devices share the particles most
    evenly, never a periodic one, and that of gravity only where there is no other.

    Raises:
        ValueError: a scene with injectors or collectors.

    >>> from jaxgpu.devices import mesh
    >>> from jaxgpu.physics.continuum import Body, Grid, Liquid, fill_box
    >>> body = Body(fill_box((0.2, 0.2), (1.8, 0.5), 0.05), Liquid(), 0.05**2)
    >>> scene = Scene((body,), Grid(0.1, (20, 10)), (0.0, -10.0)).prepare()
    >>> two = mesh.devices(2)
    >>> end = jax.jit(shard_step(scene, two))(shard_state(scene, two))
    >>> x = end.state.bodies[0].x
    >>> len(x.sharding.device_set), end.cuts.tolist(), int(end.whole)
    (2, [0, 11, 25], 0)
    """
    mesh = flat("shard_state: mesh", mesh)
    if scene.sources:
        raise ValueError(
            "shard_state: a scene with injectors or collectors runs on one device; mesh=None"
        )
    state = scene.init(mesh.size)
    tools, t, flows = replicate((state.tools, state.t, state.flows), mesh)
    chunks = [body.chunks for body in state.bodies]
    found = partitioned(scene, chunks, mesh.size)
    none = replicate(jnp.int32(0), mesh)
    if found is None:
        bodies = tuple(split(body, mesh, axis=0) for body in state.bodies)
        state = replace(state, bodies=bodies, tools=tools, t=t, flows=flows)
        return Shares(state=state, ids=(), cuts=none[None], whole=none, partition=None)
    partition, cuts = found
    bodies, ids = [], []
    for body, given, (count, slots) in zip(scene.bodies, chunks, partition.chunks):
        shape = (mesh.size * count, slots)
        numbers = placed(scene.grid, given, cuts, partition.cut.axis, count * slots).reshape(shape)
        bodies.append(split(_spread_out(body, scene.grid, given, numbers), mesh, axis=0))
        ids.append(split(numbers, mesh, axis=0))
    state = replace(state, bodies=tuple(bodies), tools=tools, t=t, flows=flows)
    return Shares(
        state=state, ids=tuple(ids), cuts=replicate(cuts, mesh), whole=none, partition=partition
    )


@partial(jax.jit, static_argnames="grid")
def _spread_out(body: Body, grid: Grid, chunks: Chunks, ids: Array) -> Particles:
    """Particles of these numbers, from one on, in slots shaped as they are; none where it is 0."""
    at = jnp.maximum(ids - 1, 0)
    put = lambda given, waiting: jnp.where(ids > 0, given.ravel()[at], waiting)
    return Particles(jax.tree.map(put, chunks, empty(body, grid, ids.shape)))


def gather_state(scene: Scene, shares: Shares) -> State:
    """The state with every particle in its slot of `scene.init`, in equal parts on the devices.

    Differentiable.
    """
    partition = shares.partition
    if partition is None:
        return shares.state
    parts = zip(scene.bodies, partition.whole, shares.state.bodies, shares.ids)
    bodies = tuple(_in_order(body, scene.grid, shape, p, ids) for body, shape, p, ids in parts)
    return replace(shares.state, bodies=bodies)


@partial(jax.jit, static_argnames=("grid", "shape"))
def _in_order(
    body: Body, grid: Grid, shape: tuple[int, ...], particles: Particles, ids: Array
) -> Particles:
    """The particles in the slots of this shape that their numbers, from one on, say."""
    at = jnp.where(ids > 0, ids - 1, math.prod(shape)).ravel()
    put = lambda a, b: a.ravel().at[at].set(b.ravel(), mode="drop").reshape(shape)
    return Particles(jax.tree.map(put, empty(body, grid, shape), particles.chunks))


def shard_step(scene: Scene, mesh: Mesh) -> Callable[[Shares], Shares]:
    """A function of shares that returns them after a step, as `Scene.step` does; `jit` it.

    Differentiable in the scene and the state, as `Scene.step` is.

    Raises:
        TypeError, ValueError: no mesh, or one of several axes.
    """

    def advance(shares: Shares, name: str) -> Shares:
        shares, _ = _handed_on(scene, shares, name)
        return _taken(scene, shares, name, 0, 1, lambda i: 1)

    return _spread(advance, mesh)


def shard_frame(scene: Scene, mesh: Mesh, steps: Array | int) -> Callable[[Shares], Shares]:
    """A function of shares that returns them after so many steps; `jit` it.

    Liquids are led to the density of the grid once in sixteen of them, as in `simulate`. There is
    no reverse mode; `shard_step` has it.

    Raises:
        TypeError, ValueError: no mesh, or one of several axes.
    """
    last = jnp.asarray(steps, jnp.int32)
    correct = lambda i: engine.correction_steps(i, last)

    def advance(shares: Shares, name: str) -> Shares:
        def turn(carry: tuple[Array, Shares]) -> tuple[Array, Shares]:
            done, shares = carry
            shares, free = _handed_on(scene, shares, name)
            count = jnp.minimum(free, last - done)
            return done + count, _taken(scene, shares, name, done, count, correct)

        return lax.while_loop(lambda carry: carry[0] < last, turn, (jnp.int32(0), shares))[1]

    return _spread(advance, mesh)


def _handed_on(scene: Scene, shares: Shares, name: str) -> tuple[Shares, Array]:
    """Shares with particles on the devices at home, and for how many steps they stay near them."""
    partition = shares.partition
    if partition is None:
        return shares, jnp.int32(engine.EVERY)
    chunks = [body.chunks for body in shares.state.bodies]
    chunks, ids, cuts, free = handed_on(partition, scene, chunks, shares.ids, shares.cuts, name)
    state = replace(shares.state, bodies=tuple(Particles(a) for a in chunks))
    return replace(shares, state=state, ids=tuple(ids), cuts=cuts), free


def _taken(
    scene: Scene, shares: Shares, name: str, first: Any, count: Any, correct: Callable[[Any], Any]
) -> Shares:
    """Shares after so many steps from number `first` on, on slabs if particles stay near them."""
    partition, before, replica = shares.partition, shares.state, Replica.of(scene.grid, name)

    def on_whole(state: State) -> State:
        one = lambda i, state: engine.step(scene, state, correct(i), replica)
        return lax.fori_loop(first, first + count, one, state)

    if partition is None:
        return replace(shares, state=on_whole(before), whole=shares.whole + count)
    slab = Slab.of(scene.grid, partition.cut, name, shares.cuts)

    def one(i: Any, carry: tuple[State, Array]) -> tuple[State, Array]:
        state, held = carry
        return engine.step(scene, state, correct(i), slab), held & _held(slab, state)

    on_slabs = lambda state: lax.fori_loop(first, first + count, one, (state, jnp.bool_(True)))
    start = _everywhere(_held(slab, before), name)
    state, held = lax.cond(start, on_slabs, lambda state: (state, jnp.bool_(False)), before)
    held = _everywhere(held, name)
    state = lax.cond(held, lambda: state, lambda: on_whole(before))
    return replace(shares, state=state, whole=shares.whole + jnp.where(held, 0, count))


def _held(slab: Slab, state: State) -> Array:
    """Whether all particles of this device are near enough to its slab, [] bool."""
    chunks = [body.chunks for body in state.bodies]
    return jnp.all(jnp.stack([slab.holds(a.x[slab.cut.axis], a.m) for a in chunks]))


def _everywhere(true: Array, name: str) -> Array:
    """Whether it is true on all devices, [] bool."""
    return lax.psum((~true).astype(jnp.int32), name) == 0


def _spread(advance: Callable[[Shares, str], Shares], mesh: Mesh) -> Callable[[Shares], Shares]:
    """`advance`, of the share of one device and the name of the axis, on all devices."""
    mesh = flat("shard_step: mesh", mesh)
    (name,) = mesh.axis_names
    rest, here = PartitionSpec(), PartitionSpec(name)
    state: dict[str, Any] = {"bodies": here, "tools": rest, "t": rest, "flows": rest}
    others: dict[str, Any] = {"ids": here, "cuts": rest, "whole": rest}
    place = lambda partition: Shares(state=State(**state), partition=partition, **others)

    def step(shares: Shares) -> Shares:
        spec = place(shares.partition)  # a prefix of shares, with the place of a leaf for the leaf
        one = lambda shares: advance(shares, name)
        # the transfers are primitives of our own, of which jax does not know that they vary
        made = jax.shard_map(one, mesh=mesh, in_specs=(spec,), out_specs=spec, check_vma=False)
        return made(shares)

    return step
