"""Bodies of matter as they are given, and the particles that carry them through a run.

Kernels want components apart and particles in chunks that fit a core's cache, arrays [C, P] (see
`grid.chunked`); users want arrays [N, D]. `Particles` holds the first, a `Chunks`, and shows the
second as properties, which work under jit, vmap and grad and cost nothing there: slot n is entry
(n // P, n % P), and the particles given at the start fill the first slots in their order.
"""

import dataclasses
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.geometry.vectors import Mat, Vec
from jaxgpu.inputs import ranges
from jaxgpu.inputs.doors import on_host
from jaxgpu.inputs.fields import number, pytree, size

from .grid.grid import Grid
from .tools.collide import Tool
from .tools.sources import Flow

CHUNK = 1024  # at most: the step of so many stays in a core's cache; 256 to 2048 differ by a tenth


class Material(Protocol):
    """What a material must provide; all functions are pure and act on arrays of any one shape.

    A material that sums up its own volume may also have `volume_correction` and `correct_volume`,
    as `Liquid` has.
    """

    def rest(self, like: Array, d: int) -> Any:
        """Internal variables of undeformed matter, arrays shaped as `like`."""
        ...

    def stress(self, internal: Any, gradient: Mat, dt: Any) -> tuple[Any, Mat]:
        """Internal variables after dt with this velocity gradient [1/s]; Kirchhoff stress [Pa]."""
        ...

    def sound_speed(self, density: Any) -> Any:
        """Speed of the fastest wave, m/s."""
        ...

    def kinematic_viscosity(self, density: Any) -> Any:
        """Largest kinematic viscosity, m^2/s."""
        ...


@pytree
class Body:
    """Particles of one material.

    `capacity` slots are kept, of which the first N are filled at the start; the rest wait for an
    injector.
    """

    x: Array  # [N, D] position, m
    material: Any  # a `Material`
    # rest volume of one particle (m^2 in 2-D), density at rest, velocity; slots, N where it is less
    volume: Array | float = number(above=0, unit="m^3")  # [] or [N]
    density: Array | float = number(default=1000.0, above=0, unit="kg/m^3")  # [] or [N]
    v: Array | float = number(default=0.0, unit="m/s")  # [], [D] or [N, D]
    capacity: int = size(default=0, least=0)  # slots of the body; 0 for as many as there are points


@pytree
class Chunks:
    """How particles are stored for the kernels: C chunks of P slots, components apart."""

    x: Vec  # D arrays [C, P] position, m
    v: Vec  # D arrays [C, P] velocity, m/s
    C: Mat  # D x D arrays [C, P] affine velocity, which is the velocity gradient, 1/s
    m: Array  # [C, P] mass, kg; zero in an empty slot
    volume: Array  # [C, P] rest volume, m^3
    internal: Any  # internal variables of the material, arrays [C, P]


@pytree
class Particles:
    """One body's particles, N slots of which some may be empty, as arrays that begin with N.

    An empty slot has no mass and waits in the middle of the box; `active` tells which are filled.
    Leading axes, as those of a batch or of the frames of a film, stay in front.

    >>> from jaxgpu.physics.continuum import Liquid, Scene
    >>> body = Body(jnp.full((3, 2), 0.5), Liquid(), volume=1e-2, v=(1.0, 0.0))
    >>> drop = Scene((body,), Grid(0.1, (10, 10))).init().bodies[0]
    >>> drop.x.shape, drop.x[drop.active].shape, float(drop.m.sum())
    ((8, 2), (3, 2), 30.0)
    >>> drop.updated(v=2 * drop.v).v[0]
    Array([2., 0.], dtype=float32)
    """

    chunks: Chunks

    @property
    def x(self) -> Array:
        """Position [N, D], m."""
        return _joined(self.chunks.x)

    @property
    def v(self) -> Array:
        """Velocity [N, D], m/s."""
        return _joined(self.chunks.v)

    @property
    def C(self) -> Array:
        """Affine velocity [N, D, D], which is the velocity gradient, 1/s."""
        return _joined(self.chunks.C)

    @property
    def m(self) -> Array:
        """Mass [N], kg; zero in an empty slot."""
        return _joined(self.chunks.m)

    @property
    def volume(self) -> Array:
        """Rest volume [N], m^3."""
        return _joined(self.chunks.volume)

    @property
    def active(self) -> Array:
        """Which slots are filled, [N] bool."""
        return self.m > 0

    @property
    def internal(self) -> Any:
        """Internal variables of the material: J [N] of a liquid, F [N, D, D] of an elastic solid.

        A solid that yields has a `PlasticState` of both kinds.
        """
        return jax.tree.map(_joined, self.chunks.internal, is_leaf=_is_tensor)

    def updated(self, **arrays: Any) -> "Particles":
        """A copy with other x [N, D], v [N, D], C [N, D, D], m [N], volume [N] or `internal`.

        Raises:
            ValueError: a shape that does not broadcast to the one that is there.
        """
        # a particle whose place is no number is lost, which is counted
        ranges.finite("Particles.updated", **{k: a for k, a in arrays.items() if k != "x"})
        new = {}
        for name, array in arrays.items():
            stored = getattr(self.chunks, name)
            new[name] = jax.tree.map(_parted, stored, array, is_leaf=_is_tensor)
        return Particles(dataclasses.replace(self.chunks, **new))


@pytree
class State:
    """Where the run is."""

    bodies: tuple[Particles, ...]
    tools: tuple[Tool, ...]  # pose and velocity of each collider
    t: Array  # [] time, s
    flows: tuple[Flow, ...] = ()  # what each source has moved

    @on_host
    def view(self) -> dict[str, np.ndarray]:
        """What `jaxgpu.show` shows: each body's places [..., N, D], nan where a slot is empty."""
        return {
            f"body {i + 1}": np.where(np.asarray(body.active)[..., None], body.x, np.nan)
            for i, body in enumerate(self.bodies)
        }


def _is_tensor(stored: Any) -> bool:
    return isinstance(stored, tuple)


def _joined(stored: Any) -> Any:
    """An array [..., N, ...] of components [..., C, P], which are nested in tuples."""
    if not isinstance(stored, tuple):
        return stored.reshape(*stored.shape[:-2], -1)
    if not stored:  # a solid in space has no stretch out of the plane
        return ()
    nested = isinstance(stored[0], tuple)
    return jnp.stack([_joined(part) for part in stored], -2 if nested else -1)


def _parted(like: Any, array: Any) -> Any:
    """Components [C, P] of an array [N, ...], nested as `like`: the inverse of `_joined`."""
    if isinstance(like, tuple) and not like:
        return ()
    shape, dtype = jax.eval_shape(_joined, like).shape, jax.tree.leaves(like)[0].dtype
    array = jnp.broadcast_to(jnp.asarray(array, dtype), shape)

    def part(array: Array, like: Any) -> Any:
        if isinstance(like, tuple):
            return tuple(part(array[:, i], below) for i, below in enumerate(like))
        return array.reshape(like.shape)

    return part(array, like)


def empty(body: Body, grid: Grid, shape: tuple[int, ...]) -> Chunks:
    """Chunks of empty slots of a body, arrays of this shape [C, P]."""
    d, dtype = body.x.shape[1], body.x.dtype
    middle = np.add(grid.lower, grid.upper) / 2  # where empty slots wait
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
    """The particles of a body at the start, in chunks whose number is a multiple of `shares`."""
    n, d = body.x.shape
    shape = slotted(max(n, body.capacity), shares)
    waiting = empty(body, grid, shape)
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


def slotted(slots: int, shares: int = 1) -> tuple[int, int]:
    """Chunks, a multiple of `shares`, and how many slots each has, for at least so many slots."""
    c = -(-slots // (CHUNK * shares)) * shares
    return c, -(-slots // (8 * c)) * 8  # alike, so that the last one is not left half empty
