"""A program of the reach gate: a function, and a function that makes its arguments.

It runs on one device, or on several devices over which its arguments are sharded.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

KEY = jax.random.key(0)
# a function, and a function that makes its arguments
type Made = tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]
# with the placement of the arguments: for each a partition, or a pytree of partitions
type Spread = tuple[Callable[..., Any], Callable[[], tuple[Any, ...]], tuple[Any, ...]]


@dataclass(frozen=True)
class Program:
    """One row of the gate: a program, and its construction for a size under its precision."""

    name: str
    make: Callable[[int], Made] | None
    small: int
    full: int
    wide: bool = False  # True for float64
    chips: tuple[str, ...] = ("h100", "v5e")  # chips whose compilers accept it
    # units of work in a call of size n, and the name of the unit
    amount: Callable[[int], float] = lambda n: 1.0
    unit: str = "calls"
    operations: float = 0.0  # operations of a kernel per unit, which no compiler counts
    goal: float | None = None  # units per second on an H100
    calls: int = 50  # successive calls in a round on a device
    spread: Callable[[int, Mesh], Spread] | None = None  # instead of `make`, for several devices
    devices: int = 1

    def build(self, size: int, devices: list[Any]) -> Made:
        """Return the function, and a function that makes its arguments and places them."""
        f, start, place = self._construct(size, devices)
        return f, lambda: jax.tree.map(jax.device_put, args := start(), place(args))

    def describe(self, size: int, devices: list[Any]) -> tuple[Callable[..., Any], Any]:
        """Return the function and its arguments' shapes on devices that need not be present."""
        f, start, place = self._construct(size, devices)
        args = jax.eval_shape(start)
        kind = lambda x, at: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=at)
        return f, jax.tree.map(kind, args, place(args))

    def _construct(self, size: int, devices: list[Any]) -> tuple[Any, Any, Callable[[Any], Any]]:
        if self.spread is None:
            there = SingleDeviceSharding(devices[0])
            assert self.make is not None
            return *self.make(size), lambda args: jax.tree.map(lambda leaf: there, args)
        mesh = Mesh(np.array(devices), ("batch",), axis_types=(AxisType.Auto,))
        f, start, places = self.spread(size, mesh)
        there = jax.tree.map(
            lambda spec: NamedSharding(mesh, spec), places, is_leaf=_is_partition_spec
        )
        return f, start, lambda args: jax.tree.broadcast(there, args)


def _is_partition_spec(value: Any) -> bool:
    return isinstance(value, PartitionSpec)


def numbers(*shape: int, low: float = 0.1, high: float = 1.0) -> jax.Array:
    """Return uniform random values in the precision of the program."""
    return jax.random.uniform(KEY, shape, jnp.result_type(float), low, high)
