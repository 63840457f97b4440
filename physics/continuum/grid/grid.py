"""The simulation box, the nodes around it, and the boundary conditions at its faces."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.inputs import ranges
from jaxgpu.inputs.fields import number, static

from . import faces
from .faces import PAD, AxisFaces

type Face = Literal["slip", "stick", "periodic"]


@dataclass(frozen=True)
class Grid:
    """A box of cubic cells; hashable, since it determines shapes in the compiled program.

    Faces: "slip" lets material slide along and separate, "stick" holds it, and "periodic" (one per
    axis) joins opposite faces. For Coulomb friction on a face, use a collider.

    >>> Grid(dx=0.1, cells=(10, 20)).upper
    (1.0, 2.0)
    """

    dx: float = number(above=0, unit="m", one=True)  # width of a cell
    cells: tuple[int, ...] = static()  # number along each of 2 or 3 axes
    lower: tuple[float, ...] = number(
        default=(), unit="m"
    )  # corner of the box; the origin by default
    faces: tuple[Face, ...] = ()  # one per axis, "slip" by default

    def __post_init__(self):
        if not isinstance(self.cells, tuple | list | np.ndarray):
            raise TypeError(f"Grid: cells={self.cells!r}; it must be 2 or 3 whole numbers")
        d = len(self.cells)
        whole = all(isinstance(n, int | np.integer) for n in self.cells)
        if d not in (2, 3) or not whole or min(self.cells) < 3:
            raise ValueError(
                f"Grid: cells={self.cells}; it must be 2 or 3 whole numbers, each of at least 3"
            )
        ranges.check("Grid", self)
        if np.ndim(self.lower) != 1:
            raise ValueError(f"Grid: lower={self.lower}; it must have {d} entries, as cells has")
        put = lambda field, value: object.__setattr__(self, field, value)
        put("dx", float(self.dx))
        put("cells", tuple(int(n) for n in self.cells))
        put("lower", tuple(float(a) for a in self.lower) or (0.0,) * d)
        put("faces", tuple(self.faces) or ("slip",) * d)
        if len(self.lower) != d or len(self.faces) != d:
            raise ValueError(
                f"Grid: lower={self.lower} and faces={self.faces}; they must have {d} entries, as "
                f"cells has"
            )
        for face in self.faces:
            if face not in ("slip", "stick", "periodic"):
                raise ValueError(f"Grid: face {face!r}; it must be slip, stick or periodic")

    @property
    def upper(self) -> tuple[float, ...]:
        """Upper corner of the box, m."""
        return tuple(a + n * self.dx for a, n in zip(self.lower, self.cells))

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of nodes along each axis, including the nodes outside the box."""
        return tuple(n + 1 + 2 * PAD for n in self.cells)

    def node_positions(self, rows: Array, dtype) -> tuple[Array, ...]:
        """Return positions of nodes, given by row of the flattened grid, one array per axis, m."""
        found = []
        for axis, n in reversed(list(enumerate(self.shape))):
            found.append(self.axis_positions(axis, dtype)[lax.rem(rows, np.int32(n))])
            rows = lax.div(rows, np.int32(n))
        return tuple(found[::-1])

    def axis_positions(self, axis: int, dtype) -> Array:
        """Return the positions of the nodes along an axis, [shape[axis]] m."""
        return jnp.asarray(self.lower[axis] + (np.arange(self.shape[axis]) - PAD) * self.dx, dtype)

    def coordinate(self, x: Array, axis: int) -> Array:
        """Return positions [m] along an axis in units of dx, counted from the first node."""
        return (x - self.lower[axis]) * (1 / self.dx) + PAD

    def wrap(self, x: Array, axis: int) -> Array:
        """Wrap positions into the box along a periodic axis, m."""
        if self.faces[axis] != "periodic":
            return x
        length = self.cells[axis] * self.dx
        return x - length * jnp.floor((x - self.lower[axis]) * (1 / length))

    def has_faces(self, axis: int) -> tuple[Any, Any]:
        """Return whether an axis's lower and upper face are among these nodes, [] bool each."""
        return True, True

    def sum_copies(self, field: Array) -> Array:
        """Sum the field [nodes, K] scattered by particles over all copies of a node."""
        return self.sum_periodic(field)

    def owned_mass(self, m: Array, rows: Array) -> Array:
        """Return masses `m` [n] of the nodes `rows` [n], 0 where another device owns the node."""
        return m

    def total(self, sums: Any) -> Any:
        """Add up sums over owned nodes, a pytree, over all devices."""
        return sums

    def sum_periodic(self, field: Array) -> Array:
        """Sum the copies of each node along periodic axes in a scattered field [nodes, 4]."""
        field = field.reshape(*self.shape, -1)
        for axis, face in enumerate(self.faces):
            if face == "periodic":
                field = jnp.moveaxis(_sum_periodic_axis(jnp.moveaxis(field, axis, 0)), 0, axis)
        return field.reshape(-1, field.shape[-1])

    def mirror_field(self, m: Array) -> Array:
        """Mirror a scattered quantity [nodes] at the faces, back into the box.

        Nodes beyond a face become the mirror image of inner nodes.
        """

        def mirror_sequentially(m: Array) -> Array:
            for axis, *_, there in self.acting_faces:
                m = faces.mirror_mass(m, axis, there)
            return m

        mirror_vectorized = lambda m: faces.mirror_mass_fused(m, self.acting_faces)
        forms = dict(cpu=mirror_sequentially, tpu=mirror_sequentially, default=mirror_vectorized)
        return lax.platform_dependent(m.reshape(self.shape), **forms).ravel()

    def apply_faces(self, v: Array, m: Array) -> Array:
        """Apply the faces to node velocities [nodes, 4], m/s, with mass [nodes], kg.

        The node beyond a face becomes the mirror image of the first inner one. Otherwise the spline
        of the inner node, an eighth at the face, would let material through and feel an unbalanced
        pressure. A slip face does so only where the two nodes approach it.
        """

        def apply_sequentially(v: Array, m: Array) -> Array:
            for axis, held, slip, there in self.acting_faces:
                v = faces.apply_faces(v, m, axis, held, slip, there)
            return v

        def apply_vectorized(v: Array, m: Array) -> Array:
            columns, d = [v[..., i] for i in range(v.shape[-1])], len(self.cells)
            table = jnp.stack([*columns[:d], m], -1)
            new = faces.apply_faces_fused(lambda rows: rows[:d], table, self.acting_faces)
            return jnp.stack([*new, *columns[d:]], -1)

        shape, v, m = v.shape, v.reshape(*self.shape, -1), m.reshape(self.shape)
        forms = dict(cpu=apply_sequentially, tpu=apply_sequentially, default=apply_vectorized)
        return lax.platform_dependent(v, m, **forms).reshape(shape)

    def apply_faces_fused(
        self, act: Callable[[list[Array]], list[Array]], field: Array
    ) -> list[Array]:
        """Return velocity components [nodes], computed from a field by `act`, after the faces.

        This is one pass over the grid, for GPUs.

        Args:
            act: function of the columns of a field, each node by itself.
            field: [nodes, 4], mass in column D.
        """
        new = faces.apply_faces_fused(act, field.reshape(*self.shape, -1), self.acting_faces)
        return [a.ravel() for a in new]

    @property
    def acting_faces(self) -> list[AxisFaces]:
        """Axes whose faces act on the material, and how they act."""
        return [
            (
                i,
                range(len(self.cells)) if face == "stick" else (i,),
                face == "slip",
                self.has_faces(i),
            )
            for i, face in enumerate(self.faces)
            if face != "periodic"
        ]


def _sum_periodic_axis(field: Array) -> Array:
    """Sum node i and node i + period along the first axis; both get the sum."""
    # A periodic axis has `period` nodes, with PAD copies before them and PAD + 1 after.
    before, after = PAD, PAD + 1
    period = field.shape[0] - before - after
    core = field[before : before + period]
    core = core.at[period - before :].add(field[:before])
    core = core.at[:after].add(field[before + period :])
    return jnp.concatenate([core[period - before :], core, core[:after]])
