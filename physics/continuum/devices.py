"""Scenes on several devices: each device has a slab of the grid and the particles in it.

Devices form a row along one axis of the grid. In a step, each device scatters its particles to its
slab, adds the contributions of both sides on the four planes about each cut (six if a liquid's
volume is corrected), and continues within the slab: one message to each neighbour. After sixteen
steps, or as soon as the fastest particle may have moved three quarters of a cell, particles that
have crossed a cut migrate, and cuts move to equalise the particles (`partition`, `migration`).

A particle may still be too far from its slab, because it has accelerated or its neighbour has no
empty slot. Those steps are then repeated on the full grid, of which every device has a copy, and
the copies are summed. So are all steps of a scene that cannot be cut: every axis is periodic or has
fewer planes than slabs need. The result is that of one device to rounding in every case.
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

from jaxgpu.devices.mesh import check_mesh, replicate, shard
from jaxgpu.inputs.fields import pytree, static

from . import engine
from .grid.device_grids import Replica, Slab
from .grid.grid import Grid
from .migration import migrate
from .particles import Body, Chunks, Particles, State, empty_chunks
from .partition import Partition, make_partition, slot_ids
from .scene import Scene


@pytree
class ShardedState:
    """A state whose particles are distributed over devices; `gather_state` restores their order."""

    state: State  # slots of each body, in the order of the devices
    ids: tuple[Array, ...]  # [C, P] number, from 1, of the particle in each slot; 0 if empty
    cuts: Array  # [devices + 1] int32 first plane of each slab, and the end of the last
    whole: Array  # [] int32 number of steps taken on the full grid
    partition: Partition | None = static()  # None if all steps use the full grid


def shard_state(scene: Scene, mesh: Mesh) -> ShardedState:
    """Return the state at time zero, distributed over the devices of a mesh; host only.

    The grid is cut across the axis along which devices share the particles most evenly, never a
    periodic one, and that of gravity only if there is no other.

    Raises:
        ValueError: the scene has injectors or collectors.

    >>> from jaxgpu.devices import mesh
    >>> from jaxgpu.physics.continuum import Body, Grid, Liquid, fill_box
    >>> body = Body(fill_box((0.2, 0.2), (1.8, 0.5), 0.05), Liquid(), 0.05**2)
    >>> scene = Scene((body,), Grid(0.1, (20, 10)), (0.0, -10.0)).prepare()
    >>> two = mesh.make_mesh(2)
    >>> end = jax.jit(shard_step(scene, two))(shard_state(scene, two))
    >>> x = end.state.bodies[0].x
    >>> len(x.sharding.device_set), end.cuts.tolist(), int(end.whole)
    (2, [0, 11, 25], 0)
    """
    mesh = check_mesh("shard_state: mesh", mesh)
    if scene.sources:
        raise ValueError(
            "shard_state: a scene with injectors or collectors runs on one device; use mesh=None"
        )
    state = scene.init(mesh.size)
    tools, t, flows = replicate((state.tools, state.t, state.flows), mesh)
    chunks = [body.chunks for body in state.bodies]
    found = make_partition(scene, chunks, mesh.size)
    none = replicate(jnp.int32(0), mesh)
    if found is None:
        bodies = tuple(shard(body, mesh, axis=0) for body in state.bodies)
        state = replace(state, bodies=bodies, tools=tools, t=t, flows=flows)
        return ShardedState(state=state, ids=(), cuts=none[None], whole=none, partition=None)
    partition, cuts = found
    bodies, ids = [], []
    for body, given, (count, slots) in zip(scene.bodies, chunks, partition.chunks):
        shape = (mesh.size * count, slots)
        numbers = slot_ids(scene.grid, given, cuts, partition.cut.axis, count * slots).reshape(
            shape
        )
        bodies.append(shard(_scatter_to_slots(body, scene.grid, given, numbers), mesh, axis=0))
        ids.append(shard(numbers, mesh, axis=0))
    state = replace(state, bodies=tuple(bodies), tools=tools, t=t, flows=flows)
    return ShardedState(
        state=state, ids=tuple(ids), cuts=replicate(cuts, mesh), whole=none, partition=partition
    )


@partial(jax.jit, static_argnames="grid")
def _scatter_to_slots(body: Body, grid: Grid, chunks: Chunks, ids: Array) -> Particles:
    """Return the particles with these ids, from 1, in slots shaped as `ids`; 0 is empty."""
    at = jnp.maximum(ids - 1, 0)
    put = lambda given, waiting: jnp.where(ids > 0, given.ravel()[at], waiting)
    return Particles(jax.tree.map(put, chunks, empty_chunks(body, grid, ids.shape)))


def gather_state(scene: Scene, shares: ShardedState) -> State:
    """Return the state with every particle in its slot of `scene.init`, evenly split over devices.

    Differentiable.
    """
    partition = shares.partition
    if partition is None:
        return shares.state
    parts = zip(scene.bodies, partition.whole, shares.state.bodies, shares.ids)
    bodies = tuple(_restore_order(body, scene.grid, shape, p, ids) for body, shape, p, ids in parts)
    return replace(shares.state, bodies=bodies)


@partial(jax.jit, static_argnames=("grid", "shape"))
def _restore_order(
    body: Body, grid: Grid, shape: tuple[int, ...], particles: Particles, ids: Array
) -> Particles:
    """Scatter the particles to the slots given by their ids, from 1, in arrays of this shape."""
    at = jnp.where(ids > 0, ids - 1, math.prod(shape)).ravel()
    put = lambda a, b: a.ravel().at[at].set(b.ravel(), mode="drop").reshape(shape)
    return Particles(jax.tree.map(put, empty_chunks(body, grid, shape), particles.chunks))


def shard_step(scene: Scene, mesh: Mesh) -> Callable[[ShardedState], ShardedState]:
    """Return a function that advances shares by one step, as `Scene.step` does; `jit` it.

    Differentiable in the scene and the state, as `Scene.step` is.

    Raises:
        TypeError, ValueError: there is no mesh, or it has several axes.
    """

    def advance(shares: ShardedState, name: str) -> ShardedState:
        shares, _ = _migrate(scene, shares, name)
        return _advance_shares(scene, shares, name, 0, 1, lambda i: 1)

    return _map_over_devices(advance, mesh)


def shard_frame(
    scene: Scene, mesh: Mesh, steps: Array | int
) -> Callable[[ShardedState], ShardedState]:
    """Return a function that advances shares by this number of steps; `jit` it.

    Liquids are relaxed to the density of the grid once in sixteen steps, as in `simulate`. There is
    no reverse mode; `shard_step` has it.

    Raises:
        TypeError, ValueError: there is no mesh, or it has several axes.
    """
    last = jnp.asarray(steps, jnp.int32)
    correct = lambda i: engine.correction_steps(i, last)

    def advance(shares: ShardedState, name: str) -> ShardedState:
        def advance_block(carry: tuple[Array, ShardedState]) -> tuple[Array, ShardedState]:
            done, shares = carry
            shares, free = _migrate(scene, shares, name)
            count = jnp.minimum(free, last - done)
            return done + count, _advance_shares(scene, shares, name, done, count, correct)

        return lax.while_loop(lambda carry: carry[0] < last, advance_block, (jnp.int32(0), shares))[
            1
        ]

    return _map_over_devices(advance, mesh)


def _migrate(scene: Scene, shares: ShardedState, name: str) -> tuple[ShardedState, Array]:
    """Migrate particles; return the shares and the steps for which particles stay near home."""
    partition = shares.partition
    if partition is None:
        return shares, jnp.int32(engine.CHECK_STEPS)
    chunks = [body.chunks for body in shares.state.bodies]
    chunks, ids, cuts, free = migrate(partition, scene, chunks, shares.ids, shares.cuts, name)
    state = replace(shares.state, bodies=tuple(Particles(a) for a in chunks))
    return replace(shares, state=state, ids=tuple(ids), cuts=cuts), free


def _advance_shares(
    scene: Scene,
    shares: ShardedState,
    name: str,
    first: Any,
    count: Any,
    correct: Callable[[Any], Any],
) -> ShardedState:
    """Advance shares by `count` steps from step `first`, on slabs if particles stay near them."""
    partition, before, replica = shares.partition, shares.state, Replica.from_grid(scene.grid, name)

    def advance_on_full_grid(state: State) -> State:
        advance_step = lambda i, state: engine.step(scene, state, correct(i), replica)
        return lax.fori_loop(first, first + count, advance_step, state)

    if partition is None:
        return replace(shares, state=advance_on_full_grid(before), whole=shares.whole + count)
    slab = Slab.from_grid(scene.grid, partition.cut, name, shares.cuts)

    def advance_slab_step(i: Any, carry: tuple[State, Array]) -> tuple[State, Array]:
        state, held = carry
        return engine.step(scene, state, correct(i), slab), held & _is_within_slab(slab, state)

    advance_on_slabs = lambda state: lax.fori_loop(
        first, first + count, advance_slab_step, (state, jnp.bool_(True))
    )
    start = _is_true_on_all(_is_within_slab(slab, before), name)
    state, held = lax.cond(start, advance_on_slabs, lambda state: (state, jnp.bool_(False)), before)
    held = _is_true_on_all(held, name)
    state = lax.cond(held, lambda: state, lambda: advance_on_full_grid(before))
    return replace(shares, state=state, whole=shares.whole + jnp.where(held, 0, count))


def _is_within_slab(slab: Slab, state: State) -> Array:
    """Return whether all particles of this device are close enough to its slab, [] bool."""
    chunks = [body.chunks for body in state.bodies]
    return jnp.all(jnp.stack([slab.contains(a.x[slab.cut.axis], a.m) for a in chunks]))


def _is_true_on_all(true: Array, name: str) -> Array:
    """Return whether a flag is true on all devices, [] bool."""
    return lax.psum((~true).astype(jnp.int32), name) == 0


def _map_over_devices(
    advance: Callable[[ShardedState, str], ShardedState], mesh: Mesh
) -> Callable[[ShardedState], ShardedState]:
    """Return a function that runs `advance(shares, axis name)` on the shares of all devices."""
    mesh = check_mesh("shard_step: mesh", mesh)
    (name,) = mesh.axis_names
    rest, here = PartitionSpec(), PartitionSpec(name)
    state: dict[str, Any] = {"bodies": here, "tools": rest, "t": rest, "flows": rest}
    others: dict[str, Any] = {"ids": here, "cuts": rest, "whole": rest}
    partition_specs = lambda partition: ShardedState(
        state=State(**state), partition=partition, **others
    )

    def step(shares: ShardedState) -> ShardedState:
        spec = partition_specs(
            shares.partition
        )  # a prefix tree of shares, whose leaves are partition specs
        advance_local = lambda shares: advance(shares, name)
        # JAX cannot check how our transfer primitives vary over the devices: check_vma is off
        made = jax.shard_map(
            advance_local, mesh=mesh, in_specs=(spec,), out_specs=spec, check_vma=False
        )
        return made(shares)

    return step
