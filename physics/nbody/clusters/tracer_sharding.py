"""A cluster over several devices: stars are replicated, tracers are distributed.

The evolution of stars depends only on stars. Every device therefore advances them to bitwise
identical values, whichever blocks its own tracers need. Counters differ between devices: during a
run the state holds them per device, [D, ...], and `merge_counters` combines them for every
observer.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import Mesh, PartitionSpec

from jaxgpu.devices.mesh import check_mesh
from jaxgpu.devices.precision import allow_reassociation

from .. import sharding


def shard_state(spec: Any, state: Any, mesh: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Distribute the initial state of a `Cluster` over a mesh; return it and its step.

    Raises:
        ValueError: no tracers, or a mesh size that does not divide their number.
        TypeError: `mesh` is not a mesh.
    """
    mesh = check_mesh("evolve: mesh", mesh)
    places, count = partition(state, *mesh.axis_names), state.gone.gone.shape[0]
    state = split_counters(state, mesh)
    return sharding.place_arrays("evolve", state, places, mesh, count), partial(step, mesh, spec)


def split_counters(state: Any, mesh: Mesh) -> Any:
    """Give the state counters per device, [D, ...]; the counts so far go to the first device."""
    append_zeros = lambda q: jnp.concatenate(
        [q[None], jnp.zeros((mesh.size - 1, *q.shape), q.dtype)]
    )
    return _map_counters(state, append_zeros)


def measure_sharded(look: Callable[[Any], Any], state: Any) -> Any:
    """Apply `look` to a distributed state after its counters have been combined."""
    return look(merge_counters(state))


def merge_counters(state: Any) -> Any:
    """Combine the counters of all devices in a distributed state.

    Blocks and floored steps are the maximum over the devices, since each device counts those of the
    stars. Steps are those of the stars once, plus those of all tracers.
    """
    bodies = state.bodies
    stars, tracers = jnp.max(bodies.steps[:, 0]), jnp.sum(bodies.steps[:, 1])
    steps = jnp.stack([stars, tracers])
    most = {name: jnp.max(getattr(bodies, name)) for name in ("blocks", "floored")}
    return replace(state, bodies=replace(bodies, steps=steps, **most))


@allow_reassociation
def step(mesh: Mesh, spec: Any, state: Any) -> Any:
    """Advance the distributed state by one interval, without communication."""

    def advance(spec: Any, state: Any) -> Any:
        return _map_counters(spec.step(_map_counters(state, lambda q: q[0])), lambda q: q[None])

    return sharding.map_shards(advance, mesh, partition(state, *mesh.axis_names))(spec, state)


def partition(state: Any, axis: str) -> Any:
    """Return the placement of a state: tracers and counters distributed, the rest replicated."""
    everywhere = jax.tree.map(lambda _: PartitionSpec(), state)
    shard_last_axis = lambda q: PartitionSpec(
        *[None] * (jnp.ndim(q) - 1), axis
    )  # the tracers' axis
    tracers, gone = jax.tree.map(shard_last_axis, (state.bodies.tracers, state.gone))
    bodies = _map_counters(everywhere, lambda _: PartitionSpec(axis)).bodies
    return replace(everywhere, bodies=replace(bodies, tracers=tracers), gone=gone)


def _map_counters(state: Any, change: Callable[[Array], Any]) -> Any:
    """Apply `change` to the counters of a state: blocks, steps and floored steps."""
    bodies = state.bodies
    counts = {name: change(getattr(bodies, name)) for name in ("blocks", "steps", "floored")}
    return replace(state, bodies=replace(bodies, **counts))
