"""One axis of devices to spread a batch over: populations, swarms, environments, seeds."""

from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec


def devices(count: int | None = None, axis: str = "batch") -> Mesh:
    """A one-dimensional mesh of the first `count` devices (default: all of them).

    Raises:
        ValueError: when there are fewer devices than asked for.
    """
    found = jax.devices()
    count = len(found) if count is None else count
    if not 1 <= count <= len(found):
        raise ValueError(
            f"mesh.devices: {count} devices asked for; there are {len(found)}; on a CPU set "
            "JAX_NUM_CPU_DEVICES before jax starts"
        )
    return Mesh(np.asarray(found[:count]), (axis,), axis_types=(AxisType.Auto,))


def split(tree: Any, mesh: Mesh) -> Any:
    """Spread the leading axis of every array of `tree` over `mesh`, which must divide it.

    One row that stands for all, an array of shape [1, ...], is put on every device whole.

    >>> split(np.arange(6.0), devices(1)).shape
    (6,)

    Raises:
        ValueError: a number without an axis, or an axis that cannot be divided.
    """
    (axis,) = mesh.axis_names

    def place(leaf: Any) -> NamedSharding:
        shape = np.shape(leaf)
        if not shape or (shape[0] != 1 and shape[0] % mesh.size):
            raise ValueError(
                f"mesh.split: an array of shape {shape} over {mesh.size} devices; "
                "its leading axis must be a multiple of them, or 1"
            )
        return NamedSharding(mesh, PartitionSpec(*([axis] if shape[0] > 1 else [])))

    return jax.device_put(tree, jax.tree.map(place, tree))


def replicate(tree: Any, mesh: Mesh) -> Any:
    """Put the whole of `tree` on every device of `mesh`."""
    return jax.device_put(tree, NamedSharding(mesh, PartitionSpec()))
