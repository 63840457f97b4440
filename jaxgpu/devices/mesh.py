"""Meshes of one axis, to shard a batch: populations, tracers, environments, seeds."""

import functools
import inspect
from collections.abc import Callable, Hashable
from typing import Any

import jax
import numpy as np
from jax.core import Tracer
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from jaxgpu.inputs import arguments, ranges, references
from jaxgpu.inputs.explanations import explain_errors, on_host
from jaxgpu.inputs.trace_context import tracing

from . import precision
from .processes import place

_COUNT = ranges.Range(least=1, whole=True, one=True, none=True)
_AXIS = ranges.Range(whole=True, one=True, none=True)
_AXIS_FROM_0 = ranges.Range(least=0, whole=True, one=True)
_VECTOR_SIZES = (
    2,
    3,
    4,
    6,
)  # numbers of components of a vector, a quaternion or a point of phase space


@explain_errors
def make_mesh(count: int | None = None, axis: str = "batch") -> Mesh:
    """Return a one-axis mesh of the first `count` devices (default: all, of all processes).

    Raises:
        ValueError: there are fewer devices than requested.
        TypeError: `count` is not an integer, or `axis` is not a string.
    """
    ranges.refuse("mesh.make_mesh: count", count, _COUNT)
    axis = arguments.word("mesh.make_mesh: axis", axis)
    found = jax.devices()
    count = len(found) if count is None else int(count)
    if count > len(found):
        raise ValueError(
            f"mesh.make_mesh: {count} devices requested; there are {len(found)}; on a CPU set "
            "JAX_NUM_CPU_DEVICES before jax starts"
        )
    return Mesh(np.asarray(found[:count]), (axis,), axis_types=(AxisType.Auto,))


@explain_errors
@on_host
def check_mesh(name: str, mesh: Any) -> Mesh:
    """Check that a mesh has one axis and return it with automatic sharding (`AxisType.Auto`).

    XLA then propagates shardings; JAX's own `jax.make_mesh` makes explicit axes by default. The
    devices and the name of the axis stay the same.

    Args:
        name: of the public function and its argument, for the message.
        mesh: the argument.

    Raises:
        TypeError: `mesh` is not a mesh.
        ValueError: a mesh of several axes.

    >>> check_mesh("swarm: mesh", jax.make_mesh((1,), ("batch",))).axis_types
    (Auto,)
    """
    if not isinstance(mesh, Mesh):
        found = arguments.format_value(mesh)
        raise TypeError(f"{name}={found}; it must be a mesh; make it by mesh.make_mesh()")
    if len(mesh.axis_names) != 1:
        raise ValueError(
            f"{name} has the axes {', '.join(mesh.axis_names)}; it must have one axis; make it by "
            "mesh.make_mesh()"
        )
    return Mesh(mesh.devices, mesh.axis_names, axis_types=(AxisType.Auto,))


@explain_errors
@on_host
def shard(tree: Any, mesh: Mesh, axis: int | None = None) -> Any:
    """Shard one axis of every array of `tree` over `mesh`, whose size must divide it.

    All arrays must have the same length along that axis, which is the axis of bodies, members,
    lanes or seeds. The components of a vector must stay on one device.

    Args:
        tree: arrays, such as a state of N bodies with [N, 3] positions and [N] masses.
        mesh: of one axis.
        axis: the axis to shard; negative ones count from the last. By default it is the first, and
            an axis that looks like the components of a vector raises an error.

    >>> shard({"x": np.zeros((6, 3)), "m": np.ones(6)}, make_mesh(1))["x"].shape
    (6, 3)

    Raises:
        ValueError: an array without this axis, axes of different lengths, one that the mesh does
            not divide, or one that looks like the components of a vector.
        TypeError: a leaf is not numeric, `axis` is not an integer, or `mesh` is not a mesh.
    """
    mesh = check_mesh("mesh.shard: mesh", mesh)
    arguments.arrays("mesh.shard: tree", tree)
    ranges.refuse("mesh.shard: axis", axis, _AXIS)
    named, axis = axis is not None, 0 if axis is None else int(axis)
    shapes = _check_divisible(
        "mesh.shard", tree, mesh, axis, "put it on every device by mesh.replicate"
    )
    for shape in shapes:
        if not named and mesh.size > 1 and shape[0] in _VECTOR_SIZES and max(shape) > shape[0]:
            raise ValueError(
                f"mesh.shard: the first axis of an array of shape {shape} looks like vector "
                "components, which must not be sharded; name the axis to shard"
            )
    spec = lambda leaf: PartitionSpec(*[None] * (axis % np.ndim(leaf)), *mesh.axis_names)
    return jax.tree.map(lambda leaf: place(leaf, NamedSharding(mesh, spec(leaf))), tree)


@explain_errors
@on_host
def replicate(tree: Any, mesh: Mesh) -> Any:
    """Put all of `tree` on every device of `mesh`.

    Raises:
        TypeError: a leaf is not numeric, or `mesh` is not a mesh.
        ValueError: a mesh of several axes.

    >>> import jax.numpy as jnp
    >>> replicate(jnp.zeros(3), make_mesh(1)).sharding.is_fully_replicated
    True
    """
    mesh = check_mesh("mesh.replicate: mesh", mesh)
    arguments.arrays("mesh.replicate: tree", tree)
    return jax.tree.map(lambda leaf: place(leaf, NamedSharding(mesh, PartitionSpec())), tree)


@explain_errors
@on_host
def map_shards(f: Callable[..., Any], mesh: Mesh, axis: int = 0) -> Callable[..., Any]:
    """Make `f` compute a batch in shards, one per device, without communication.

    A loop in `f` runs on each device as often as its own shard requires; a loop over a batch that
    is only sharded waits for all devices in each turn. Values that `f` closes over are replicated.
    Under `jit` one program serves any number of devices; `jaxgpu.runs.run` accepts it as a step.

    Args:
        f: a function of one or more pytrees of arrays with a batch of independent members, such as
            one made by `jax.vmap`; it returns a pytree of arrays with that axis.
        mesh: of one axis, whose size divides the batch.
        axis: the axis of the batch, in all arguments and results.

    >>> square = map_shards(jax.vmap(lambda x: x * x), make_mesh(1))
    >>> square(np.arange(4.0)).tolist()
    [0.0, 1.0, 4.0, 9.0]

    Raises:
        TypeError: `f` is not callable, `axis` is not an integer, or `mesh` is not a mesh; at a
            call: a leaf is not numeric, or there is none.
        ValueError: a mesh of several axes, an axis below 0; at a call: an array without this axis,
            axes of different lengths, or one that the mesh does not divide.
    """
    arguments.function("mesh.map_shards: f", f)
    mesh = check_mesh("mesh.map_shards: mesh", mesh)
    ranges.refuse("mesh.map_shards: axis", axis, _AXIS_FROM_0)
    # a spec is passed as an argument, so other numbers in it use the same program
    function, carried = f, ()
    if inspect.ismethod(f) and not jax.tree_util.all_leaves([f.__self__]):
        function, carried = f.__func__, (f.__self__,)
    if not isinstance(function, Hashable):
        function = functools.partial(function)
    spread = _call_sharded if precision.options_of(f) is None else _call_sharded_reassociated
    return functools.partial(spread, mesh, int(axis), function, carried)


def _call_sharded(
    mesh: Mesh, axis: int, function: Callable[..., Any], carried: tuple[Any, ...], *batch: Any
) -> Any:
    """Return `function(*carried, *batch)`, computed with one shard of the batch per device."""
    if not jax.tree.leaves(arguments.arrays("mesh.map_shards: the batch", batch)):
        raise TypeError("mesh.map_shards: the batch holds no array; give the function one to shard")
    _check_divisible("mesh.map_shards", batch, mesh, axis, "let the function close over it")
    spread = PartitionSpec(*[None] * axis, *mesh.axis_names)
    # outside of a program an array may be on one device, as another program left it
    put = lambda x: x if isinstance(x, Tracer) else place(x, NamedSharding(mesh, spread))
    batch = jax.tree.map(put, batch)
    traced = any(isinstance(x, Tracer) for x in jax.tree.leaves((carried, batch)))
    each = _make_shard_map(function, mesh, spread, len(carried), len(batch))
    if traced:
        return each(*carried, *batch)
    # one program, cached for the next call, traced again if the values that `function` reads change
    told = references.describe(function)
    with tracing(None if told is None else (told,)):
        return jax.jit(each)(*carried, *batch)


@functools.lru_cache(maxsize=64)
def _make_shard_map(
    function: Callable[..., Any], mesh: Mesh, spread: PartitionSpec, carried: int, batch: int
) -> Callable[..., Any]:
    places = (*[PartitionSpec()] * carried, *[spread] * batch)
    # jaxgpu's primitives do not declare which axes vary, and there is no communication to check
    return jax.shard_map(function, mesh=mesh, in_specs=places, out_specs=spread, check_vma=False)


_call_sharded_reassociated = precision.allow_reassociation(_call_sharded)


def _check_divisible(
    name: str, tree: Any, mesh: Mesh, axis: int, otherwise: str
) -> list[tuple[int, ...]]:
    """Return the shapes of the arrays of `tree`; raise if the mesh cannot shard that axis."""
    shapes = [np.shape(leaf) for leaf in jax.tree.leaves(tree)]
    for shape in shapes:
        if not -len(shape) <= axis < len(shape):
            raise ValueError(f"{name}: an array of shape {shape} has no axis {axis}; {otherwise}")
        if shape[axis] != shapes[0][axis]:
            raise ValueError(
                f"{name}: arrays of shapes {shapes[0]} and {shape}; the sharded axis {axis} must "
                "have one length in all"
            )
        if shape[axis] % mesh.size:
            raise ValueError(
                f"{name}: an array of shape {shape} over {mesh.size} devices; the length of axis "
                f"{axis} must be a multiple of that"
            )
    return shapes
