"""One axis of devices to spread a batch over: populations, tracers, environments, seeds."""

from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from jaxgpu import arguments, ranges

_COUNT = ranges.Range(least=1, whole=True, one=True, none=True)


def devices(count: int | None = None, axis: str = "batch") -> Mesh:
    """A one-dimensional mesh of the first `count` devices (default: all of them).

    Raises:
        ValueError: when there are fewer devices than asked for.
        TypeError: a count that is no whole number, an axis that is no word.
    """
    ranges.refuse("mesh.devices: count", count, _COUNT)
    axis = arguments.word("mesh.devices: axis", axis)
    found = jax.devices()
    count = len(found) if count is None else int(count)
    if count > len(found):
        raise ValueError(
            f"mesh.devices: {count} devices asked for; there are {len(found)}; on a CPU set "
            "JAX_NUM_CPU_DEVICES before jax starts"
        )
    return Mesh(np.asarray(found[:count]), (axis,), axis_types=(AxisType.Auto,))


def split(tree: Any, mesh: Mesh) -> Any:
    """Spread the leading axis of every array of `tree` over `mesh`, which must divide it.

    >>> split(np.arange(6.0), devices(1)).shape
    (6,)

    Raises:
        ValueError: a number without an axis, or an axis that cannot be divided.
        TypeError: a leaf that holds no numbers, or no mesh.
    """
    axes = _mesh("mesh.split", mesh).axis_names
    if len(axes) != 1:
        raise ValueError(
            f"mesh.split: a mesh of axes {axes}; it must have one; make it by devices()"
        )
    arguments.arrays("mesh.split: tree", tree)
    for leaf in jax.tree.leaves(tree):
        if np.ndim(leaf) == 0 or np.shape(leaf)[0] % mesh.size:
            raise ValueError(
                f"mesh.split: an array of shape {np.shape(leaf)} over {mesh.size} devices; "
                "its leading axis must be a multiple of them"
            )
    return jax.device_put(tree, NamedSharding(mesh, PartitionSpec(axes[0])))


def replicate(tree: Any, mesh: Mesh) -> Any:
    """Put the whole of `tree` on every device of `mesh`.

    Raises:
        TypeError: a leaf that holds no numbers, or no mesh.
    """
    _mesh("mesh.replicate", mesh)
    arguments.arrays("mesh.replicate: tree", tree)
    return jax.device_put(tree, NamedSharding(mesh, PartitionSpec()))


def _mesh(name: str, mesh: Any) -> Mesh:
    if not isinstance(mesh, Mesh):
        found = arguments.shown(mesh)
        raise TypeError(f"{name}: mesh={found}; it must be a mesh; make it by mesh.devices()")
    return mesh
