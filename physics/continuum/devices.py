"""One scene on several devices: each has a share of the particles, and all have the whole grid.

A step spreads every share on the grid of its own device and sums the grids, once; what follows is
the same everywhere or concerns one particle alone. The grid is what travels, 16 bytes a node, so
that it pays where particles are many beside the nodes.
"""

from collections.abc import Callable

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxgpu.physics.continuum.scene import State


def over(advance: Callable[[State, str], State], mesh: Mesh) -> Callable[[State], State]:
    """`advance(state, axis)` as a function of a state that `place` has spread over the mesh.

    `axis` is what `engine.step` takes.
    """
    (axis,) = mesh.axis_names
    spec = _spec(axis)
    one = lambda state: advance(state, axis)
    # the transfers are primitives of our own, of which jax does not know that they vary
    return jax.shard_map(one, mesh=mesh, in_specs=(spec,), out_specs=spec, check_vma=False)


def place(state: State, mesh: Mesh) -> State:
    """A state of `init(scene, mesh.size)` with its chunks spread over the devices.

    >>> import jax.numpy as jnp
    >>> from jaxgpu import mesh
    >>> from jaxgpu.physics.continuum import Body, Grid, Liquid, Scene, init, prepare, step
    >>> body = Body(jnp.full((40, 2), 0.5), Liquid(), 1e-4)
    >>> scene, two = prepare(Scene((body,), Grid(0.1, (10, 10)), (0.0, -10.0))), mesh.devices(2)
    >>> advance = jax.jit(over(lambda state, axis: step(scene, state, axis=axis), two))
    >>> end = advance(place(init(scene, two.size), two))
    >>> len(end.bodies[0].m.sharding.device_set), round(float(end.bodies[0].m.sum()), 3)
    (2, 4.0)
    """
    (axis,) = mesh.axis_names
    return jax.device_put(state, jax.tree.map(lambda p: NamedSharding(mesh, p), _spec(axis)))


def _spec(axis: str) -> State:
    """Particles by their leading axis, chunks; the rest everywhere."""
    all_ = PartitionSpec()
    return State(bodies=PartitionSpec(axis), tools=all_, t=all_, flows=all_)
