"""Boundary conditions: the action of the two faces of an axis on the nodes near them.

The layers near a face are sliced out, changed and written back; the other nodes are untouched. On a
GPU every such slice is a launch: there each node looks up its mirror images and selects, so that
all axes together are one pass over the grid. A TPU gathers rows by index slowly.
"""

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.devices.primitive import primitive

PAD = 2  # nodes outside each face, so that a particle on a face has its full stencil
FACE_LAYERS = PAD + 2  # nodes that a face acts on: the outer ones, its own and the first inner one

# (axis, velocity components that its faces act on, whether material may separate from them,
# whether the lower and the upper face are among the nodes)
type AxisFaces = tuple[int, Sequence[int], bool, tuple[Any, Any]]


def inverse_mass(m: Array) -> Array:
    """Return 1 / m of masses, kg; 0 for negligible m, below 1e-18 in float32 and 1e-36 in float64.

    The rim of a spline leaves such masses on nodes, and 1 / m^2 of the reverse pass would overflow.

    >>> import jax
    >>> slope = jax.grad(inverse_mass)(jnp.float32(1e-30))
    >>> inverse_mass(jnp.array([0.5, 0.0, 1e-30])), float(slope)
    (Array([2., 0., 0.], dtype=float32), 0.0)
    """
    # 10 sqrt(tiny); on some devices float64 has the exponents of float32, hence the second bound
    heavy = m > 10 * max(float(jnp.finfo(m.dtype).tiny) ** 0.5, 1e-37)
    return jnp.where(heavy, 1 / jnp.where(heavy, m, 1), 0)


def apply_faces(
    v: Array, m: Array, axis: int, held: Iterable[int], slip: bool, there: tuple[Any, Any]
) -> Array:
    """Apply the lower and the upper face of an axis, which do not overlap, to velocities [..., 4].

    Args:
        v: velocity of the nodes, m/s.
        m: [...] their mass, kg.
        axis: normal to the faces.
        held: components of the velocity that the faces act on.
        slip: whether material may separate from the faces.
        there: whether the lower and the upper face are among these nodes.
    """
    starts, near = {1: 0, -1: m.shape[axis] - FACE_LAYERS}, []
    for (side, start), here in zip(starts.items(), there):
        mass, before = (lax.slice_in_dim(a, start, start + FACE_LAYERS, axis=axis) for a in (m, v))
        masses, after = _layers(mass, axis, side), before
        for i in held:
            u = _mirror_velocity(
                _layers(before[..., i], axis, side), masses, into=side if slip else 0
            )
            after = after.at[..., i].set(jnp.stack(u[::side], axis))
        near.append(_select(here, after, before))
    # Without the barrier, XLA 0.12 on a CPU fuses these and reads layers already written.
    for start, new in zip(starts.values(), lax.optimization_barrier(near)):
        v = lax.dynamic_update_slice_in_dim(v, new, start, axis)
    return v


def apply_faces_fused(
    act: Callable[[list[Array]], list[Array]], table: Array, acting: Sequence[AxisFaces]
) -> list[Array]:
    """Return velocity components [...] after the faces of several axes, one axis after another.

    Every node looks up its mirror images, also in several faces at a time, and applies to them the
    faces of the preceding axes.

    Args:
        act: function of the table's columns that returns velocities, each node by itself.
        table: [..., K] of the nodes, mass in column D.
        acting: the axes.
    """
    swaps = [(axis, (PAD - 1, table.shape[axis] - FACE_LAYERS)) for axis, *_ in acting]
    values = {}
    for one in _subsets(swaps):
        rows = _mirror_rows(table, one, 3)
        columns = [rows[..., i] for i in range(table.shape[-1])]
        values[one] = act(columns), columns[table.ndim - 1]
    for swap, axis in zip(swaps, acting):
        values = {
            one: (_apply_face_to_nodes(value, values[swap, *one], axis), value[1])
            for one, value in values.items()
            if swap not in one
        }
    return values[()][0]


def _apply_face_to_nodes(
    here: tuple[list[Array], Array], image: tuple[list[Array], Array], acting: AxisFaces
) -> list[Array]:
    """Return node velocities after an axis's faces, from (velocity, mass) of nodes and images."""
    axis, held, slip, there = acting
    (vs, m), (us, other) = here, image
    # Masks are constants, since each would be a launch as an expression.
    shape = [n if i == axis else 1 for i, n in enumerate(m.shape)]
    layers = lambda into, *which: np.isin(np.arange(shape[axis])[::into], which).reshape(shape)
    share, out = inverse_mass(m + other), list(vs)
    for i in held:
        v, u = vs[i], us[i]
        pair, new = (m * v - other * u) * share, v
        for into, is_there in zip((1, -1), there):
            paired = layers(into, PAD - 1, PAD + 1)  # counted from this face's outermost layer
            if slip:
                alone = into * jnp.maximum(into * v, 0)
                paired = paired & (into * (v + u) < 0)
            else:
                alone = jnp.zeros_like(v)
            alike = jnp.where(layers(into, *range(PAD - 1), PAD), alone, new)
            new = _select(is_there, jnp.where(paired, pair, alike), new)
        out[i] = new
    return out


def mirror_mass(m: Array, axis: int, there: tuple[Any, Any]) -> Array:
    """Mirror the mass at the lower and the upper face of an axis: images add up."""
    n = 2 * PAD + 1
    last = m.shape[axis] - n
    # Both faces are done in one step if no layer belongs to both.
    lower, upper = zip((0, last), there)
    for faces in ((lower, upper),) if last >= n else ((lower,), (upper,)):
        starts = [start for start, _ in faces]
        near = [lax.slice_in_dim(m, start, start + n, axis=axis) for start in starts]
        # the middle layer of each is the face
        near = [_select(here, a + jnp.flip(a, axis), a) for a, (_, here) in zip(near, faces)]
        for start, new in zip(starts, lax.optimization_barrier(near)):  # as in `apply_faces`
            m = lax.dynamic_update_slice_in_dim(m, new, start, axis)
    return m


def mirror_mass_fused(m: Array, acting: Sequence[AxisFaces]) -> Array:
    """Mirror the mass [...] at the faces of several axes, each node by itself."""
    wide = 2 * PAD + 1
    if any(m.shape[axis] < 2 * wide for axis, *_ in acting):  # one layer belongs to both
        for axis, _, _, there in acting:
            m = mirror_mass(m, axis, there)
        return m
    swaps = [(axis, (0, m.shape[axis] - wide)) for axis, *_ in acting]
    values = {one: _mirror_rows(m[..., None], one, wide)[..., 0] for one in _subsets(swaps)}
    for swap, (axis, _, _, there) in zip(swaps, acting):
        n = m.shape[axis]
        shape = [n if i == axis else 1 for i in range(m.ndim)]
        lower, upper = (np.reshape(np.arange(n)[::into] < wide, shape) for into in (1, -1))
        near = (lower & there[0]) | (upper & there[1])
        values = {
            one: value + jnp.where(near, values[swap, *one], 0)
            for one, value in values.items()
            if swap not in one
        }
    return values[()]


# an axis, and the first layer of each range of layers that is reversed
type Swap = tuple[int, tuple[int, ...]]


def _subsets(swaps: Sequence[Swap]) -> list[tuple[Swap, ...]]:
    sets: list[tuple[Swap, ...]] = [()]
    for swap in reversed(swaps):
        sets += [(swap, *one) for one in sets]
    return sets


def _mirror_rows(table: Array, swaps: tuple[Swap, ...], count: int) -> Array:
    """Return the rows [..., K] of each node's mirror image under swaps of `count` layers."""
    return _swap_layers(table, swaps=swaps, count=count) if swaps else table


def _gather_swapped_rows(table: Array, *, swaps: tuple[Swap, ...], count: int) -> Array:
    row, shape = jnp.int32(0), table.shape[:-1]
    for axis, n in enumerate(shape):
        order = np.arange(n, dtype=np.int32)
        for start in dict(swaps).get(axis, ()):
            order[start : start + count] = order[start : start + count][::-1]
        order *= np.int32(prod(shape[axis + 1 :]))
        row = row + lax.broadcast_in_dim(jnp.asarray(order), shape, (axis,))
    return table.reshape(-1, table.shape[-1]).at[row].get(mode="promise_in_bounds")


def _batch_swaps(size: int, table: Array, *, swaps: tuple[Swap, ...], count: int) -> Array:
    return _swap_layers(table, swaps=tuple((axis + 1, at) for axis, at in swaps), count=count)


# It is its own inverse and transpose, so that a reverse pass gathers too and adds nothing.
_swap_layers = primitive(
    "mpm_swapped",
    _gather_swapped_rows,
    lambda table, **_: table,
    batch=_batch_swaps,
    jvp=lambda args, tangents, out, **static: _swap_layers(*tangents, **static),
    transpose=lambda ct, args, **static: [_swap_layers(ct, **static)],
)


def _layers(a: Array, axis: int, side: int) -> list[Array]:
    """Return the layers of an array across an axis as a list, from the outermost of a face inwards.

    A list and not an array: the compiler of a TPU (libtpu 0.0.50.1) fails on a reversed array of
    several scenes, "Check failed: window.pad_low[i] == 0".
    """
    return [lax.index_in_dim(a, i, axis, keepdims=False) for i in range(a.shape[axis])][::side]


def _mirror_velocity(v: list[Array], m: list[Array], into: int) -> list[Array]:
    """Return a velocity component in `FACE_LAYERS` layers, after the face at layer PAD has acted.

    `into` is the sign of the inward direction if material may separate from the face; 0 holds it.
    """
    out, inner = PAD - 1, PAD + 1
    pair = (m[inner] * v[inner] - m[out] * v[out]) * inverse_mass(m[out] + m[inner])
    if into:
        near = into * (v[inner] + v[out]) < 0
        first = jnp.where(near, pair, v[inner])
        beyond = jnp.where(near, -pair, v[out])
        face = into * jnp.maximum(into * v[PAD], 0)
        far = [into * jnp.maximum(into * u, 0) for u in v[:out]]
    else:
        first, beyond, face, far = pair, -pair, jnp.zeros_like(pair), [jnp.zeros_like(pair)] * out
    return [*far, beyond, face, first]


def _select(here: Any, new: Array, old: Array) -> Array:
    """Return `new` where a face is here, without a computation if it is known to be."""
    return new if here is True else jnp.where(here, new, old)
