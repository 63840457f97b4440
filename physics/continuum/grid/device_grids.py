"""Grids shared by several devices: one slab of planes per device, or a full copy per device.

Devices form a row along one axis of the grid. A slab has the planes that a device owns, and as many
beyond its cuts as its particles reach until they migrate, so planes about a cut are on both sides
of it. There each device sends the contributions of its own particles, and both add the same two
numbers. Their nodes therefore stay identical, and no other data is exchanged.
"""

from dataclasses import dataclass, fields
from math import prod
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .grid import Grid

DRIFT = 1  # planes by which a particle may have crossed a cut


def _fields(grid: Grid) -> dict[str, Any]:
    return {field.name: getattr(grid, field.name) for field in fields(Grid)}


def exchange_halos(down: Any, up: Any, mesh_axis: str) -> tuple[Any, Any]:
    """Send `down` and `up` to the neighbours; return the arrays from below and from above.

    Zeros at the ends of the row.
    """
    pairs = [(i, i + 1) for i in range(lax.axis_size(mesh_axis) - 1)]
    from_below = lax.ppermute(up, mesh_axis, pairs)
    return from_below, lax.ppermute(down, mesh_axis, [(j, i) for i, j in pairs])


@dataclass(frozen=True, kw_only=True)
class Replica(Grid):
    """The full grid, with a copy on every device to which that device scatters its particles."""

    mesh_axis: str  # name of the mesh's axis along which the devices lie

    @staticmethod
    def from_grid(grid: Grid, mesh_axis: str) -> "Replica":
        """Return this grid as a copy on every device; within `jax.shard_map`."""
        return Replica(**_fields(grid), mesh_axis=mesh_axis)

    def sum_copies(self, field: Array) -> Array:
        """Sum the fields of all devices, over the full grid, [nodes, K]."""
        return self.sum_periodic(lax.psum(field, self.mesh_axis))


@dataclass(frozen=True)
class Cut:
    """Division of a grid into slabs, one per device; hashable."""

    axis: int  # axis of the grid that is cut; not a periodic one
    planes: int  # planes that a device has in memory
    reach: int  # planes beyond its cuts that a device needs
    devices: int  # number of devices

    @property
    def zone(self) -> int:
        """Number of planes about a cut that both sides have."""
        return 2 * self.reach + 2


@dataclass(frozen=True, kw_only=True)
class Slab(Grid):
    """The planes of one device, numbered from its first, which its particles are in or near.

    With cuts c_i, a particle whose first node is in plane b has home i where c_i <= b < c_i+1.
    """

    cut: Cut
    mesh_axis: str  # name of the mesh's axis along which the devices lie
    cuts: Array  # [devices + 1] int32 first plane of each slab, and the end of the last
    start: Array  # [] int32 index of the first plane in memory

    @staticmethod
    def from_grid(grid: Grid, cut: Cut, mesh_axis: str, cuts: Array) -> "Slab":
        """Return the slab of this device; within `jax.shard_map`."""
        me, last = lax.axis_index(mesh_axis), grid.shape[cut.axis] - cut.planes
        start = jnp.clip(cuts[me] - cut.reach, 0, last)
        whole = cuts[me + 1] == grid.shape[cut.axis]  # the slab extends to the box's face
        start = jnp.where(whole, last, start)
        return Slab(**_fields(grid), cut=cut, mesh_axis=mesh_axis, cuts=cuts, start=start)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of nodes of this device along each axis."""
        whole = super().shape
        return tuple(self.cut.planes if i == self.cut.axis else n for i, n in enumerate(whole))

    def coordinate(self, x: Array, axis: int) -> Array:
        """Return positions [m] along an axis in units of dx, counted from the slab's first node."""
        whole = super().coordinate(x, axis)
        return whole - self.start.astype(x.dtype) if axis == self.cut.axis else whole

    def axis_positions(self, axis: int, dtype) -> Array:
        """Return the positions of the slab's nodes along an axis, m."""
        if axis != self.cut.axis:
            return super().axis_positions(axis, dtype)
        whole = Grid(**_fields(self)).axis_positions(axis, dtype)
        return lax.dynamic_slice_in_dim(whole, self.start, self.cut.planes)

    def has_faces(self, axis: int) -> tuple[Any, Any]:
        """Return whether an axis's lower and upper face are among these nodes, [] bool each."""
        if axis != self.cut.axis:
            return super().has_faces(axis)
        me = lax.axis_index(self.mesh_axis)
        return self.cuts[me] == 0, self.cuts[me + 1] == super().shape[axis]

    def sum_copies(self, field: Array) -> Array:
        """Add the neighbours' scattered fields on the shared planes of the slab, [nodes, K]."""
        cut, rows = self.cut, field.reshape(*self.shape, -1)
        me = lax.axis_index(self.mesh_axis)
        starts = (self.cuts[me + i] - cut.reach - self.start for i in (0, 1))
        low, high = (jnp.clip(at, 0, cut.planes - cut.zone) for at in starts)
        take = lambda rows, at: lax.dynamic_slice_in_dim(rows, at, cut.zone, cut.axis)
        from_below, from_above = exchange_halos(take(rows, low), take(rows, high), self.mesh_axis)
        for at, planes in ((low, from_below), (high, from_above)):  # zeros at the ends of the row
            new = take(rows, at) + planes
            rows = lax.dynamic_update_slice_in_dim(rows, new, at, cut.axis)
        return self.sum_periodic(rows.reshape(field.shape))

    def owned_mass(self, m: Array, rows: Array) -> Array:
        """Return masses `m` [n] of the nodes `rows` [n], 0 where another device owns the node."""
        stride = np.int32(prod(self.shape[self.cut.axis + 1 :]))
        plane = lax.rem(lax.div(rows, stride), np.int32(self.cut.planes)) + self.start
        me = lax.axis_index(self.mesh_axis)
        after = (plane >= self.cuts[me]) | (me == 0)
        before = (plane < self.cuts[me + 1]) | (me == self.cut.devices - 1)
        return jnp.where(after & before, m, 0)

    def total(self, sums: Any) -> Any:
        """Add up sums over the nodes of each device, a pytree, over all devices."""
        return lax.psum(sums, self.mesh_axis) if sums else sums

    def contains(self, x: Array, m: Array) -> Array:
        """Return whether all particles are near enough to home for complete sums, [] bool.

        Args:
            x: [...] m, position along the axis that is cut.
            m: [...] mass; empty slots may be anywhere.
        """
        b = jnp.floor(self.coordinate(x, self.cut.axis) - 0.5) + self.start.astype(x.dtype)
        me = lax.axis_index(self.mesh_axis)
        low, high = (self.cuts[me + i].astype(x.dtype) for i in (0, 1))
        lower, upper = self.has_faces(self.cut.axis)  # particles outside the box count at its face
        near = ((b >= low - DRIFT) | lower) & ((b < high + DRIFT) | upper)
        return jnp.all((near & jnp.isfinite(x)) | (m == 0))
