"""The box in which matter moves, the nodes around it, and what its faces do to velocity."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu import ranges
from jaxgpu.pytree import number, static

PAD = 2  # nodes outside each face, so that a particle on a face has its whole stencil
NEAR = PAD + 2  # nodes that a face acts on: those outside, its own and the first one within

type Face = Literal["slip", "stick", "periodic"]


@dataclass(frozen=True)
class Grid:
    """A box of cubic cells; hashable, it shapes the compiled program.

    Faces: "slip" lets matter slide along and leave, "stick" holds it, and "periodic" (one per
    axis) joins opposite faces. Coulomb friction on a face is a collider's business.

    >>> Grid(dx=0.1, cells=(10, 20)).upper
    (1.0, 2.0)
    """

    dx: float = number(above=0, unit="m", one=True)  # width of a cell
    cells: tuple[int, ...] = static()  # along each of 2 or 3 axes
    lower: tuple[float, ...] = number(
        default=(), unit="m"
    )  # corner of the box; the origin by default
    faces: tuple[Face, ...] = ()  # a kind for each axis, "slip" by default

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
        """The opposite corner of the box, m."""
        return tuple(a + n * self.dx for a, n in zip(self.lower, self.cells))

    @property
    def shape(self) -> tuple[int, ...]:
        """Nodes along each axis, those outside the box counted in."""
        return tuple(n + 1 + 2 * PAD for n in self.cells)

    def node_positions(self, rows: Array, dtype) -> tuple[Array, ...]:
        """Position of nodes, given by row of the flattened grid, an array along each axis, m."""
        found = []
        for axis, n in reversed(list(enumerate(self.shape))):
            found.append(self.places(axis, dtype)[lax.rem(rows, np.int32(n))])
            rows = lax.div(rows, np.int32(n))
        return tuple(found[::-1])

    def places(self, axis: int, dtype) -> Array:
        """Positions of the nodes along an axis, [shape[axis]] m."""
        return jnp.asarray(self.lower[axis] + (np.arange(self.shape[axis]) - PAD) * self.dx, dtype)

    def coordinate(self, x: Array, axis: int) -> Array:
        """Position [m] along an axis in units of dx, counted from the first node."""
        return (x - self.lower[axis]) * (1 / self.dx) + PAD

    def wrapped(self, x: Array, axis: int) -> Array:
        """Position brought back into the box along a periodic axis, m."""
        if self.faces[axis] != "periodic":
            return x
        length = self.cells[axis] * self.dx
        return x - length * jnp.floor((x - self.lower[axis]) * (1 / length))

    def faced(self, axis: int) -> tuple[Any, Any]:
        """Whether the lower and the upper face of an axis lie among these nodes, [] bool each."""
        return True, True

    def summed(self, field: Array) -> Array:
        """What particles have spread, [nodes, K], with all that others have spread on a node."""
        return self.joined(field)

    def owned(self, m: Array, rows: Array) -> Array:
        """Mass [n] of the nodes with these rows; none where another device counts it, too."""
        return m

    def total(self, sums: Any) -> Any:
        """Sums over nodes, a pytree, with those of all devices added, which own them apart."""
        return sums

    def joined(self, field: Array) -> Array:
        """A spread field with the copies of each node summed along periodic axes, [nodes, 4]."""
        field = field.reshape(*self.shape, -1)
        for axis, face in enumerate(self.faces):
            if face == "periodic":
                field = jnp.moveaxis(_joined(jnp.moveaxis(field, axis, 0)), 0, axis)
        return field.reshape(-1, field.shape[-1])

    def folded(self, m: Array) -> Array:
        """What was spread on nodes [nodes], with what lies beyond faces mirrored back into the box.

        Nodes beyond a face become the mirror image of those within.
        """
        m = m.reshape(self.shape)
        for axis, face in enumerate(self.faces):
            if face != "periodic":
                m = _folded(m, axis, self.faced(axis))
        return m.ravel()

    def bounded(self, v: Array, m: Array) -> Array:
        """Node velocities after the faces have acted: [nodes, 4], m/s; mass [nodes], kg.

        The node beyond a face becomes the mirror image of the first one within: else the spline
        of that one, an eighth at the face, lets matter through and feels a pressure that nothing
        balances. A slip face does so only where the pair approaches it.
        """
        shape, v, m = v.shape, v.reshape(*self.shape, -1), m.reshape(self.shape)
        for axis, face in enumerate(self.faces):
            if face != "periodic":
                held = range(len(self.cells)) if face == "stick" else (axis,)
                v = _faced(v, m, axis, held, face == "slip", self.faced(axis))
        return v.reshape(shape)


def inverse(m: Array) -> Array:
    """1 / m of masses, kg; 0 where m is nothing, below 1e-18 in float32 and 1e-36 in float64.

    The rim of a spline leaves such masses on nodes, and 1 / m^2 of the reverse pass overflowed.

    >>> import jax
    >>> inverse(jnp.array([0.5, 0.0, 1e-30])), float(jax.grad(inverse)(jnp.float32(1e-30)))
    (Array([2., 0., 0.], dtype=float32), 0.0)
    """
    # below 10 sqrt(tiny), where every device has float64's digits but float32's exponents
    heavy = m > 10 * max(float(np.sqrt(np.finfo(m.dtype).tiny)), 1e-37)
    return jnp.where(heavy, 1 / jnp.where(heavy, m, 1), 0)


def _faced(
    v: Array, m: Array, axis: int, held: Iterable[int], slip: bool, there: tuple[Any, Any]
) -> Array:
    """Velocities [..., 4] after the lower and the upper face of an axis, which are apart."""
    starts, near = {1: 0, -1: m.shape[axis] - NEAR}, []
    for (side, start), here in zip(starts.items(), there):
        mass, before = (lax.slice_in_dim(a, start, start + NEAR, axis=axis) for a in (m, v))
        mass, u = (jnp.moveaxis(a, axis, 0)[::side] for a in (mass, before))
        for i in held:
            u = u.at[..., i].set(_mirrored(u[..., i], mass, into=side if slip else 0))
        near.append(_where(here, jnp.moveaxis(u[::side], 0, axis), before))
    # XLA 0.12 on a CPU fuses these and reads layers that it has already written, but for a barrier
    for start, new in zip(starts.values(), lax.optimization_barrier(near)):
        v = lax.dynamic_update_slice_in_dim(v, new, start, axis)
    return v


def _mirrored(v: Array, m: Array, into: int) -> Array:
    """One component [NEAR, ...] after the face at node PAD of the first axis has acted.

    `into` is the sign that points into the box where matter may leave the face; 0 holds it.
    """
    out, inner = PAD - 1, PAD + 1
    pair = (m[inner] * v[inner] - m[out] * v[out]) * inverse(m[out] + m[inner])
    if into:
        near = into * (v[inner] + v[out]) < 0
        first = jnp.where(near, pair, v[inner])
        beyond = jnp.where(near, -pair, v[out])
        face = into * jnp.maximum(into * v[PAD], 0)
        far = into * jnp.maximum(into * v[:out], 0)
    else:
        first, beyond, face, far = pair, -pair, jnp.zeros_like(pair), jnp.zeros_like(v[:out])
    return jnp.concatenate([far, jnp.stack([beyond, face, first])])


def _where(here: Any, new: Array, old: Array) -> Array:
    """The new one where a face is here; nothing is computed where that is known."""
    return new if here is True else jnp.where(here, new, old)


def _folded(m: Array, axis: int, there: tuple[Any, Any]) -> Array:
    """Mass after the lower and the upper face of an axis."""
    n = 2 * PAD + 1
    last = m.shape[axis] - n
    # both at once where no layer belongs to both
    lower, upper = zip((0, last), there)
    for faces in ((lower, upper),) if last >= n else ((lower,), (upper,)):
        starts = [start for start, _ in faces]
        near = [lax.slice_in_dim(m, start, start + n, axis=axis) for start in starts]
        # the middle of each is its face
        near = [_where(here, a + jnp.flip(a, axis), a) for a, (_, here) in zip(near, faces)]
        for start, new in zip(starts, lax.optimization_barrier(near)):  # as in `_faced`
            m = lax.dynamic_update_slice_in_dim(m, new, start, axis)
    return m


def _joined(field: Array) -> Array:
    """Sum node i and node i + period along the first axis; both get the sum."""
    # a periodic axis has `period` nodes; PAD copies lie before them and PAD + 1 behind
    before, after = PAD, PAD + 1
    period = field.shape[0] - before - after
    core = field[before : before + period]
    core = core.at[period - before :].add(field[:before])
    core = core.at[:after].add(field[before + period :])
    return jnp.concatenate([core[period - before :], core, core[:after]])
