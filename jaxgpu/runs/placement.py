"""Placement of the state and the operands of a run: copies on the devices of its mesh."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import NamedSharding, PartitionSpec

from jaxgpu.devices.processes import place, spans
from jaxgpu.inputs import arguments
from jaxgpu.inputs.explanations import explain_errors, on_host

_copy = jax.jit(jnp.copy)  # eight times faster on the host than `jnp.array`


@explain_errors
@on_host
def device_copy(leaf: Any) -> Array:
    """Return a strongly typed copy on the device, which a loop may overwrite.

    >>> import numpy as np
    >>> device_copy(np.float32(2.0)).weak_type
    False

    Raises:
        ValueError: a Python integer that is too large.
    """
    weak = getattr(leaf, "weak_type", False)  # keys have none
    if isinstance(leaf, Array) and not weak and len(leaf.devices()) == 1:
        return _copy(leaf)
    try:
        leaf = jnp.asarray(leaf)
    except OverflowError as error:
        bits = 8 * jnp.result_type(int).itemsize
        raise ValueError(
            f"run: state holds {arguments.format_value(leaf)}; a whole number must have at most "
            f"{bits} bits; give it as a float"
        ) from error
    return jnp.copy(leaf) if arguments.is_key(leaf) else jnp.array(leaf, leaf.dtype)


def place_operands(state: Any, operands: Any) -> Any:
    """Return the operands, replicated over the mesh of the state if it has several devices.

    >>> place_operands(jnp.zeros(3), {"rate": 0.1})
    {'rate': 0.1}
    """
    places = [getattr(leaf, "sharding", None) for leaf in jax.tree.leaves(state)]
    spread = next((s for s in places if isinstance(s, NamedSharding) and s.num_devices > 1), None)
    if spread is None:
        return operands
    whole = NamedSharding(spread.mesh, PartitionSpec())
    put = lambda x: x if _is_sharded(x) else place(x, whole)
    return jax.tree.map(put, operands)


def result_sharding(state: Any) -> NamedSharding | None:
    """Return the sharding of results that all processes read; None for a single process.

    >>> result_sharding({"x": jnp.zeros(3)})
    """
    spread = next((leaf for leaf in jax.tree.leaves(state) if spans(leaf)), None)
    return None if spread is None else NamedSharding(spread.sharding.mesh, PartitionSpec())


def _is_sharded(x: Any) -> bool:
    return isinstance(getattr(x, "sharding", None), NamedSharding)
