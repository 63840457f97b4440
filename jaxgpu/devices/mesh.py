"""One axis of devices to spread a batch over: populations, tracers, environments, seeds."""

import functools
import inspect
from collections.abc import Callable, Hashable
from typing import Any

import jax
import numpy as np
from jax.core import Tracer
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from jaxgpu.inputs import arguments, ranges, references
from jaxgpu.inputs.doors import explained, on_host
from jaxgpu.inputs.trace_context import tracing

from . import precision
from .processes import place

_COUNT = ranges.Range(least=1, whole=True, one=True, none=True)
_AXIS = ranges.Range(whole=True, one=True, none=True)
_FIRST_AXES = ranges.Range(least=0, whole=True, one=True)
_VECTORS = (2, 3, 4, 6)  # how many components a vector, a quaternion or a point of phase space has


@explained
def devices(count: int | None = None, axis: str = "batch") -> Mesh:
    """A one-dimensional mesh of the first `count` devices (default: all, those of all processes).

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


@explained
@on_host
def flat(name: str, mesh: Any) -> Mesh:
    """`mesh` as the package's programs take it: one axis, whose shardings XLA propagates.

    JAX's own `jax.make_mesh` makes explicit axes by default; the devices and the name stay.

    Args:
        name: the door and argument that the sentence is to name.
        mesh: what a caller gave.

    Raises:
        TypeError: no mesh.
        ValueError: a mesh of several axes.

    >>> flat("swarm: mesh", jax.make_mesh((1,), ("batch",))).axis_types
    (Auto,)
    """
    if not isinstance(mesh, Mesh):
        found = arguments.shown(mesh)
        raise TypeError(f"{name}={found}; it must be a mesh; make it by mesh.devices()")
    if len(mesh.axis_names) != 1:
        raise ValueError(
            f"{name} has the axes {', '.join(mesh.axis_names)}; it must have one; make it by "
            "mesh.devices()"
        )
    return Mesh(mesh.devices, mesh.axis_names, axis_types=(AxisType.Auto,))


@explained
@on_host
def split(tree: Any, mesh: Mesh, axis: int | None = None) -> Any:
    """Spread one axis of every array of `tree` over `mesh`, which must divide it.

    All arrays must be equally long on that axis, which is that of the bodies, members, lanes or
    seeds: never the components of a vector, which belong on one device.

    Args:
        tree: arrays, such as a state of N bodies with [N, 3] positions and [N] masses.
        mesh: of one axis.
        axis: which axis of the arrays is spread; negative ones count from the last. The first, if
            it is not named; then one that looks like the components of a vector is refused.

    >>> split({"x": np.zeros((6, 3)), "m": np.ones(6)}, devices(1))["x"].shape
    (6, 3)

    Raises:
        ValueError: an array without this axis, axes of several lengths, one that the devices do not
            divide, or one that looks like the components of a vector.
        TypeError: a leaf that holds no numbers, an axis that is no whole number, or no mesh.
    """
    mesh = flat("mesh.split: mesh", mesh)
    arguments.arrays("mesh.split: tree", tree)
    ranges.refuse("mesh.split: axis", axis, _AXIS)
    named, axis = axis is not None, 0 if axis is None else int(axis)
    shapes = _divisible("mesh.split", tree, mesh, axis, "put it on every device by mesh.replicate")
    for shape in shapes:
        if not named and mesh.size > 1 and shape[0] in _VECTORS and max(shape) > shape[0]:
            raise ValueError(
                f"mesh.split: the first axis of an array of shape {shape} looks like the "
                "components of a vector, which must not be torn apart; name the axis that is spread"
            )
    spec = lambda leaf: PartitionSpec(*[None] * (axis % np.ndim(leaf)), *mesh.axis_names)
    return jax.tree.map(lambda leaf: place(leaf, NamedSharding(mesh, spec(leaf))), tree)


@explained
@on_host
def replicate(tree: Any, mesh: Mesh) -> Any:
    """Put the whole of `tree` on every device of `mesh`.

    Raises:
        TypeError: a leaf that holds no numbers, or no mesh.
        ValueError: a mesh of several axes.

    >>> import jax.numpy as jnp
    >>> replicate(jnp.zeros(3), devices(1)).sharding.is_fully_replicated
    True
    """
    mesh = flat("mesh.replicate: mesh", mesh)
    arguments.arrays("mesh.replicate: tree", tree)
    return jax.tree.map(lambda leaf: place(leaf, NamedSharding(mesh, PartitionSpec())), tree)


@explained
@on_host
def over(f: Callable[..., Any], mesh: Mesh, axis: int = 0) -> Callable[..., Any]:
    """The function `f` of a batch, computed by each device for its share; nothing crosses.

    A loop in `f` turns on each device as often as its own share asks for, where one over a batch
    that is merely spread waits for all devices in each turn. What `f` closes over is on all of
    them. Under `jit` it is one program of any number of devices; `jaxgpu.runs.run` takes it as a
    step.

    Args:
        f: of one or more pytrees of arrays, the members of whose batch do not depend on each other,
            such as `jax.vmap` makes; it gives a pytree of arrays with that axis.
        mesh: of one axis, whose size divides the batch.
        axis: that of the batch, in all arguments and results.

    >>> square = over(jax.vmap(lambda x: x * x), devices(1))
    >>> square(np.arange(4.0)).tolist()
    [0.0, 1.0, 4.0, 9.0]

    Raises:
        TypeError: `f` cannot be called, an axis that is no whole number, no mesh; and when it is
            called, leaves that hold no numbers, or none.
        ValueError: a mesh of several axes, an axis below 0; and when it is called, an array without
            this axis, axes of several lengths, or one that the devices do not divide.
    """
    arguments.function("mesh.over: f", f)
    mesh = flat("mesh.over: mesh", mesh)
    ranges.refuse("mesh.over: axis", axis, _FIRST_AXES)
    # a spec goes in as an argument: other numbers in it are the same program
    function, carried = f, ()
    if inspect.ismethod(f) and not jax.tree_util.all_leaves([f.__self__]):
        function, carried = f.__func__, (f.__self__,)
    if not isinstance(function, Hashable):
        function = functools.partial(function)
    spread = _shares if precision.options_of(f) is None else _marked_shares
    return functools.partial(spread, mesh, int(axis), function, carried)


def _shares(
    mesh: Mesh, axis: int, function: Callable[..., Any], carried: tuple[Any, ...], *batch: Any
) -> Any:
    """`function(*carried, *batch)`, with a share of the batch on each device."""
    if not jax.tree.leaves(arguments.arrays("mesh.over: the batch", batch)):
        raise TypeError("mesh.over: the batch holds no array; give the function one to spread")
    _divisible("mesh.over", batch, mesh, axis, "let the function close over it")
    spread = PartitionSpec(*[None] * axis, *mesh.axis_names)
    # outside of a program arrays may be on one device, where an earlier one left them
    put = lambda x: x if isinstance(x, Tracer) else place(x, NamedSharding(mesh, spread))
    batch = jax.tree.map(put, batch)
    traced = any(isinstance(x, Tracer) for x in jax.tree.leaves((carried, batch)))
    each = _mapped(function, mesh, spread, len(carried), len(batch))
    if traced:
        return each(*carried, *batch)
    # one program, kept for the next call, which is traced again where what `function` reads changed
    told = references.describe(function)
    with tracing(None if told is None else (told,)):
        return jax.jit(each)(*carried, *batch)


@functools.lru_cache(maxsize=64)
def _mapped(
    function: Callable[..., Any], mesh: Mesh, spread: PartitionSpec, carried: int, batch: int
) -> Callable[..., Any]:
    places = (*[PartitionSpec()] * carried, *[spread] * batch)
    # primitives of our own say nothing of what varies, and nothing crosses here
    return jax.shard_map(function, mesh=mesh, in_specs=places, out_specs=spread, check_vma=False)


_marked_shares = precision.reassociated(_shares)


def _divisible(
    name: str, tree: Any, mesh: Mesh, axis: int, otherwise: str
) -> list[tuple[int, ...]]:
    """The shapes of the arrays of `tree`; refused where the mesh cannot spread that axis of all."""
    shapes = [np.shape(leaf) for leaf in jax.tree.leaves(tree)]
    for shape in shapes:
        if not -len(shape) <= axis < len(shape):
            raise ValueError(f"{name}: an array of shape {shape} has no axis {axis}; {otherwise}")
        if shape[axis] != shapes[0][axis]:
            raise ValueError(
                f"{name}: arrays of shapes {shapes[0]} and {shape}; axis {axis}, which is "
                "spread, must be equally long in all"
            )
        if shape[axis] % mesh.size:
            raise ValueError(
                f"{name}: an array of shape {shape} over {mesh.size} devices; "
                f"axis {axis} must be a multiple of them"
            )
    return shapes
