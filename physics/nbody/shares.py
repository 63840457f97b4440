"""Bodies that feel none of one another, a share of them on each device of a mesh.

Tracers, and whole systems of an ensemble: each device takes the steps of its own, in loops as long
as these ask for, and nothing crosses. What they feel, the massive bodies, is on every device, which
moves it to the same bits as all others.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxgpu.devices.mesh import flat
from jaxgpu.devices.processes import place


def spread(name: str, spec: Any, state: Any, mesh: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The state, spread as `spec.partition` says, and a step of it, for `jaxgpu.runs.run`.

    Args:
        name: of the function that was called, which begins the sentence.
        spec: with `step` and, where something can be spread, `partition`.
        state: of one device.
        mesh: what a caller gave.

    Raises:
        ValueError: a spec of which nothing is spread, a mesh that does not divide what is.
        TypeError: no mesh.
    """
    mesh = flat(f"{name}: mesh", mesh)
    if not hasattr(spec, "partition"):
        raise ValueError(
            f"{name}: mesh for {type(spec).__name__}, whose bodies all feel one another; it must "
            "be a spec of independent ones, Planetary with tracers or Ensemble; leave it out"
        )
    places = spec.partition(state, *mesh.axis_names)
    leaves, structure = jax.tree.flatten(state)
    where = structure.flatten_up_to(places)
    # every array that is spread has all of these bodies along the axis that is named last
    count = next(np.shape(x)[len(at) - 1] for x, at in zip(leaves, where) if len(at))
    return placed(name, state, places, mesh, count), partial(step, mesh, spec)


def placed(name: str, state: Any, places: Any, mesh: Mesh, count: int) -> Any:
    """`state` with each array where the PartitionSpec in its place says.

    Args:
        name: of the function that was called, which begins the sentence.
        state: of one device.
        places: a PartitionSpec for each array.
        mesh: of one axis.
        count: how many bodies or systems are spread.

    Raises:
        ValueError: there are none, or the mesh does not divide them.
    """
    if count == 0:
        raise ValueError(
            f"{name}: mesh of {mesh.size} devices, and no tracers; bodies with mass are on every "
            "device, and tracers are spread; give some, or leave it out"
        )
    if count % mesh.size:
        raise ValueError(
            f"{name}: mesh of {mesh.size} devices for {count} independent bodies or systems; their "
            "number must be a multiple of the devices; make it one, or use fewer devices"
        )
    put = lambda x, where: place(x, NamedSharding(mesh, where))
    return jax.tree.map(put, state, places)


def of_shares(advance: Callable[[Any, Any], Any], mesh: Mesh, places: Any) -> Callable[..., Any]:
    """`advance(spec, state)` by each device for its share of the state, as `places` says."""
    specs = PartitionSpec(), places
    # the pair sums are primitives of our own, of which jax does not know that they vary
    return jax.shard_map(advance, mesh=mesh, in_specs=specs, out_specs=places, check_vma=False)


def step(mesh: Mesh, spec: Any, state: Any) -> Any:
    """The spread state a step of `spec` later."""
    places = spec.partition(state, *mesh.axis_names)
    return of_shares(lambda spec, state: spec.step(state), mesh, places)(spec, state)
