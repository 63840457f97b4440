"""What a program of the reach gate is: a function, and what makes its arguments.

It may be of one device, or of several over which its arguments are spread.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

KEY = jax.random.key(0)
# a function, and what makes its arguments
type Made = tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]
# and where the arguments lie: for each a partition, or a pytree of them
type Spread = tuple[Callable[..., Any], Callable[[], tuple[Any, ...]], tuple[Any, ...]]


@dataclass(frozen=True)
class Program:
    """One row: what it is, and how it is made of a size under its precision."""

    name: str
    make: Callable[[int], Made] | None
    small: int
    full: int
    wide: bool = False  # of float64
    chips: tuple[str, ...] = ("h100", "v5e")  # whose compilers take it
    # units of work in a call of size n, and what they are
    amount: Callable[[int], float] = lambda n: 1.0
    unit: str = "calls"
    operations: float = 0.0  # of a kernel for a unit, which no compiler counts
    goal: float | None = None  # units a second on an H100
    calls: int = 50  # of a round on a device, one after the other
    spread: Callable[[int, Mesh], Spread] | None = None  # in place of `make`: over several devices
    devices: int = 1

    def made(self, size: int, devices: list[Any]) -> Made:
        """The function, and what makes its arguments and puts them where they belong."""
        f, start, place = self._made(size, devices)
        return f, lambda: jax.tree.map(jax.device_put, args := start(), place(args))

    def described(self, size: int, devices: list[Any]) -> tuple[Callable[..., Any], Any]:
        """The function, and the shapes of its arguments on devices that need not be there."""
        f, start, place = self._made(size, devices)
        args = jax.eval_shape(start)
        kind = lambda x, at: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=at)
        return f, jax.tree.map(kind, args, place(args))

    def _made(self, size: int, devices: list[Any]) -> tuple[Any, Any, Callable[[Any], Any]]:
        if self.spread is None:
            there = SingleDeviceSharding(devices[0])
            assert self.make is not None
            return *self.make(size), lambda args: jax.tree.map(lambda leaf: there, args)
        mesh = Mesh(np.array(devices), ("batch",), axis_types=(AxisType.Auto,))
        f, start, places = self.spread(size, mesh)
        there = jax.tree.map(lambda spec: NamedSharding(mesh, spec), places, is_leaf=_is_place)
        return f, start, lambda args: jax.tree.broadcast(there, args)


def _is_place(value: Any) -> bool:
    return isinstance(value, PartitionSpec)


def numbers(*shape: int, low: float = 0.1, high: float = 1.0) -> jax.Array:
    """Uniform numbers in the precision of the program."""
    return jax.random.uniform(KEY, shape, jnp.result_type(float), low, high)
