"""One scene on several devices: each has a share of the particles, and all have the whole grid.

A step spreads every share on the grid of its own device and sums the grids, once; what follows is
the same everywhere or concerns one particle alone. The grid is what travels, 16 bytes a node, so
that it pays where particles are many beside the nodes.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
from jax.sharding import Mesh, PartitionSpec

from jaxgpu.mesh import replicate, split

from .particles import State


def shard_step(advance: Callable[[State, str], State], mesh: Mesh) -> Callable[[State], State]:
    """A function of a state whose particles are spread over the mesh; `jit` it.

    Args:
        advance: `advance(state, axis)` of the share of one device; `axis` is for `Scene.step`.
        mesh: of one axis, as `jaxgpu.mesh.devices` gives it.
    Differentiable as `advance` is. Example in `shard_state`.
    """
    (axis,) = mesh.axis_names
    rest = PartitionSpec()
    where: dict[str, Any] = {"bodies": PartitionSpec(axis), "tools": rest, "t": rest, "flows": rest}
    spec = State(**where)  # a prefix of a state, with the place of a leaf for the leaf
    one = lambda state: advance(state, axis)
    # the transfers are primitives of our own, of which jax does not know that they vary
    return jax.shard_map(one, mesh=mesh, in_specs=(spec,), out_specs=spec, check_vma=False)


def shard_state(state: State, mesh: Mesh) -> State:
    """A state of `scene.init(mesh.size)` with its chunks spread over the devices.

    Raises:
        ValueError: the number of chunks is no multiple of the devices.

    >>> import jax.numpy as jnp
    >>> from jaxgpu import mesh
    >>> from jaxgpu.physics.continuum import Body, Grid, Liquid, Scene
    >>> body = Body(jnp.full((40, 2), 0.5), Liquid(), 1e-4)
    >>> scene = Scene((body,), Grid(0.1, (10, 10)), (0.0, -10.0)).prepare()
    >>> two = mesh.devices(2)
    >>> advance = jax.jit(shard_step(lambda state, axis: scene.step(state, axis=axis), two))
    >>> end = advance(shard_state(scene.init(two.size), two))
    >>> len(end.bodies[0].chunks.m.sharding.device_set), round(float(end.bodies[0].m.sum()), 3)
    (2, 4.0)
    """
    tools, t, flows = replicate((state.tools, state.t, state.flows), mesh)
    bodies = tuple(split(body, mesh, axis=0) for body in state.bodies)
    return replace(state, bodies=bodies, tools=tools, t=t, flows=flows)
