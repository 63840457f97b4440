"""Bodies as the user defines them, and the particles that represent them in a run.

Kernels need separate arrays per component and chunks of particles that fit a core's cache, arrays
[C, P] (see `grid.cpu_transfer`); users need arrays [N, D]. `Particles` stores the former as
`Chunks` and has the latter as properties, which work under jit, vmap and grad and cost nothing
there. Slot n is entry (n // P, n % P), and the initial particles fill the first slots in their
order.
"""

import dataclasses
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.geometry.vectors import Mat, Vec
from jaxgpu.inputs import ranges
from jaxgpu.inputs.explanations import on_host
from jaxgpu.inputs.fields import number, pytree, size

from .grid.grid import Grid
from .tools.contact import Tool
from .tools.sources import SourceCounts

CHUNK = 1024  # maximum slots per chunk: a step stays in a core's cache; 256 to 2048 differ by 10 %


class Material(Protocol):
    """Interface of a material. All methods are pure and act on arrays of any one shape.

    A material that integrates its volume may also have `volume_correction` and `correct_volume`, as
    `Liquid` has.
    """

    def rest(self, like: Array, d: int) -> Any:
        """Return the internal variables of undeformed material, arrays shaped as `like`."""
        ...

    def stress(self, internal: Any, gradient: Mat, dt: Any) -> tuple[Any, Mat]:
        """Return internal variables and Kirchhoff stress [Pa] after dt; `gradient` is in 1/s."""
        ...

    def sound_speed(self, density: Any) -> Any:
        """Return the speed of the fastest wave, m/s."""
        ...

    def kinematic_viscosity(self, density: Any) -> Any:
        """Return the largest kinematic viscosity, m^2/s."""
        ...


@pytree
class Body:
    """Initial particles of one material.

    The body has `capacity` slots: the first N hold the initial particles, and the others are empty
    until an injector fills them.
    """

    x: Array  # [N, D] position, m
    material: Any  # a `Material`
    # rest volume of one particle; m^2 in 2-D
    volume: Array | float = number(above=0, unit="m^3")  # [] or [N]
    density: Array | float = number(default=1000.0, above=0, unit="kg/m^3")  # [] or [N] at rest
    v: Array | float = number(default=0.0, unit="m/s")  # [], [D] or [N, D] initial velocity
    capacity: int = size(default=0, least=0)  # number of slots; N if it is less


@pytree
class Chunks:
    """Kernel storage of particles: C chunks of P slots, one array per component."""

    x: Vec  # D arrays [C, P] position, m
    v: Vec  # D arrays [C, P] velocity, m/s
    C: Mat  # D x D arrays [C, P] affine velocity, i.e. the velocity gradient, 1/s
    m: Array  # [C, P] mass, kg; zero in an empty slot
    volume: Array  # [C, P] rest volume, m^3
    internal: Any  # internal variables of the material, arrays [C, P]


@pytree
class Particles:
    """One body's particles: N slots, of which some may be empty, as arrays with leading axis N.

    An empty slot has zero mass and the position of the box's centre; `active` marks the filled
    slots. Leading axes, such as a batch or the frames of a video, precede N.

    >>> from jaxgpu.physics.continuum import Liquid, Scene
    >>> body = Body(jnp.full((3, 2), 0.5), Liquid(), volume=1e-2, v=(1.0, 0.0))
    >>> drop = Scene((body,), Grid(0.1, (10, 10))).init().bodies[0]
    >>> drop.x.shape, drop.x[drop.active].shape, float(drop.m.sum())
    ((8, 2), (3, 2), 30.0)
    >>> drop.replace(v=2 * drop.v).v[0]
    Array([2., 0.], dtype=float32)
    """

    chunks: Chunks

    @property
    def x(self) -> Array:
        """Position [N, D], m."""
        return _stack_components(self.chunks.x)

    @property
    def v(self) -> Array:
        """Velocity [N, D], m/s."""
        return _stack_components(self.chunks.v)

    @property
    def C(self) -> Array:
        """Affine velocity [N, D, D], i.e. the velocity gradient, 1/s."""
        return _stack_components(self.chunks.C)

    @property
    def m(self) -> Array:
        """Mass [N], kg; zero in an empty slot."""
        return _stack_components(self.chunks.m)

    @property
    def volume(self) -> Array:
        """Rest volume [N], m^3."""
        return _stack_components(self.chunks.volume)

    @property
    def active(self) -> Array:
        """Mask [N] of filled slots."""
        return self.m > 0

    @property
    def internal(self) -> Any:
        """Internal variables of the material: J [N] of a liquid, F [N, D, D] of an elastic solid.

        A plastic solid has a `PlasticState` with arrays of both shapes.
        """
        return jax.tree.map(_stack_components, self.chunks.internal, is_leaf=_is_tensor)

    def replace(self, **arrays: Any) -> "Particles":
        """Return a copy with new x [N, D], v [N, D], C [N, D, D], m [N], volume [N] or `internal`.

        Raises:
            ValueError: an array does not broadcast to the shape of the stored one.
        """
        # x is exempt: a particle whose position is not finite is reported as lost
        ranges.check_finite("Particles.replace", **{k: a for k, a in arrays.items() if k != "x"})
        new = {}
        for name, array in arrays.items():
            stored = getattr(self.chunks, name)
            new[name] = jax.tree.map(_split_components, stored, array, is_leaf=_is_tensor)
        return Particles(dataclasses.replace(self.chunks, **new))


@pytree
class State:
    """State of a scene at one time."""

    bodies: tuple[Particles, ...]
    tools: tuple[Tool, ...]  # pose and velocity of each collider
    t: Array  # [] time, s
    flows: tuple[SourceCounts, ...] = ()  # numbers of particles moved by each source

    @on_host
    def view(self) -> dict[str, np.ndarray]:
        """Return each body's positions [..., N, D] for `jaxgpu.show`, NaN in empty slots."""
        return {
            f"body {i + 1}": np.where(np.asarray(body.active)[..., None], body.x, np.nan)
            for i, body in enumerate(self.bodies)
        }


def _is_tensor(stored: Any) -> bool:
    return isinstance(stored, tuple)


def _stack_components(stored: Any) -> Any:
    """Stack components [..., C, P], nested in tuples, to an array [..., N, ...]."""
    if not isinstance(stored, tuple):
        return stored.reshape(*stored.shape[:-2], -1)
    if not stored:  # a 3-D solid has no out-of-plane stretch
        return ()
    nested = isinstance(stored[0], tuple)
    return jnp.stack([_stack_components(part) for part in stored], -2 if nested else -1)


def _split_components(like: Any, array: Any) -> Any:
    """Split an array [N, ...] into components nested as `like`, inverse of `_stack_components`."""
    if isinstance(like, tuple) and not like:
        return ()
    shape, dtype = jax.eval_shape(_stack_components, like).shape, jax.tree.leaves(like)[0].dtype
    array = jnp.broadcast_to(jnp.asarray(array, dtype), shape)

    def part(array: Array, like: Any) -> Any:
        if isinstance(like, tuple):
            return tuple(part(array[:, i], below) for i, below in enumerate(like))
        return array.reshape(like.shape)

    return part(array, like)


def empty_chunks(body: Body, grid: Grid, shape: tuple[int, ...]) -> Chunks:
    """Return chunks of empty slots of a body, arrays of this shape [C, P]."""
    d, dtype = body.x.shape[1], body.x.dtype
    middle = np.add(grid.lower, grid.upper) / 2  # position of empty slots
    zero = jnp.zeros(shape, dtype)
    return Chunks(
        x=tuple(jnp.full(shape, a, dtype) for a in middle),
        v=(zero,) * d,
        C=((zero,) * d,) * d,
        m=zero,
        volume=zero,
        internal=body.material.rest(zero, d),
    )


def fill(body: Body, grid: Grid, shares: int) -> Particles:
    """Return the particles that fill a body, in chunks that divide evenly among `shares`."""
    n, d = body.x.shape
    shape = chunk_shape(max(n, body.capacity), shares)
    waiting = empty_chunks(body, grid, shape)
    put = lambda slots, values: slots.ravel().at[:n].set(values).reshape(shape)
    v = jnp.broadcast_to(jnp.asarray(body.v, body.x.dtype), (n, d))
    volume = jnp.broadcast_to(jnp.asarray(body.volume, body.x.dtype), (n,))
    chunks = dataclasses.replace(
        waiting,
        x=tuple(put(a, body.x[:, i]) for i, a in enumerate(waiting.x)),
        v=tuple(put(a, v[:, i]) for i, a in enumerate(waiting.v)),
        m=put(waiting.m, volume * body.density),
        volume=put(waiting.volume, volume),
    )
    return Particles(chunks)


def chunk_shape(slots: int, shares: int = 1) -> tuple[int, int]:
    """Return the number of chunks, a multiple of `shares`, and slots per chunk for `slots`."""
    c = -(-slots // (CHUNK * shares)) * shares
    return c, -(-slots // (8 * c)) * 8  # equal sizes: the last chunk is not half empty
