"""Distribution of independent bodies over the devices of a mesh.

The bodies are tracers or whole systems of an ensemble. Each device steps its own share, in loops as
long as that share needs, without communication. The massive bodies that act on tracers are
replicated: every device advances them to bitwise identical values.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxgpu.devices.mesh import check_mesh
from jaxgpu.devices.processes import place


def shard_state(name: str, spec: Any, state: Any, mesh: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Distribute the state as `spec.partition` says; return it and its step for `jaxgpu.runs.run`.

    Args:
        name: the function that was called, the first word of error messages.
        spec: has `step` and, if something can be distributed, `partition`.
        state: the state on one device.
        mesh: the argument of the caller.

    Raises:
        ValueError: `spec` has nothing to distribute, or the mesh does not divide its bodies.
        TypeError: `mesh` is not a mesh.
    """
    mesh = check_mesh(f"{name}: mesh", mesh)
    if not hasattr(spec, "partition"):
        raise ValueError(
            f"{name}: mesh for {type(spec).__name__}, whose bodies all interact; it must be a spec "
            "of independent bodies, Planetary with tracers or Ensemble; leave mesh out"
        )
    places = spec.partition(state, *mesh.axis_names)
    leaves, structure = jax.tree.flatten(state)
    where = structure.flatten_up_to(places)
    # the last axis named in a PartitionSpec counts the bodies in every distributed array
    count = next(np.shape(x)[len(at) - 1] for x, at in zip(leaves, where) if len(at))
    return place_arrays(name, state, places, mesh, count), partial(step, mesh, spec)


def place_arrays(name: str, state: Any, places: Any, mesh: Mesh, count: int) -> Any:
    """Place each array of `state` on the mesh as its PartitionSpec says.

    Args:
        name: the function that was called, the first word of error messages.
        state: the state on one device.
        places: a PartitionSpec for each array.
        mesh: a mesh with one axis.
        count: number of bodies or systems that are distributed.

    Raises:
        ValueError: `count` is 0, or the mesh size does not divide it.
    """
    if count == 0:
        raise ValueError(
            f"{name}: mesh of {mesh.size} devices, and no tracers; bodies with mass are on every "
            "device, only tracers are sharded; give some, or leave mesh out"
        )
    if count % mesh.size:
        raise ValueError(
            f"{name}: mesh of {mesh.size} devices for {count} independent bodies or systems; their "
            "number must be a multiple of the devices; change it, or use fewer devices"
        )
    put = lambda x, where: place(x, NamedSharding(mesh, where))
    return jax.tree.map(put, state, places)


def map_shards(advance: Callable[[Any, Any], Any], mesh: Mesh, places: Any) -> Callable[..., Any]:
    """Make `advance(spec, state)` run on every device for its share of the state."""
    specs = PartitionSpec(), places
    # JAX cannot infer how the results of this package's pair-sum primitives vary over the mesh
    return jax.shard_map(advance, mesh=mesh, in_specs=specs, out_specs=places, check_vma=False)


def step(mesh: Mesh, spec: Any, state: Any) -> Any:
    """Advance the distributed state by one step of `spec`."""
    places = spec.partition(state, *mesh.axis_names)
    return map_shards(lambda spec, state: spec.step(state), mesh, places)(spec, state)
