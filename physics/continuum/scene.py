"""What is simulated: bodies of matter, tools that touch them, and where the run is.

A `Scene` says what to run and a `State` where the run is. All quantities are SI; in 2-D a body
is one metre deep, so that masses are kg and stresses Pa there too. Particles are kept in chunks
[C, P] (see `transfer`); `positions` and its kin give plain [N, D] arrays.
"""

from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.geometry.vectors import Mat, Vec
from jaxgpu.pytree import number, pytree, size, static

from . import checks
from .grid.grid import Grid
from .tools.collide import Collider, Tool
from .tools.sources import Collector, Flow, Injector

CHUNK = 1024  # at most: the step of so many stays in a core's cache; 256 to 2048 differ by a tenth


class Material(Protocol):
    """What a material must provide; all functions are pure and act on arrays of any one shape."""

    def rest(self, like: Array, d: int) -> Any:
        """Internal state of undeformed matter, arrays shaped as `like`."""
        ...

    def stress(self, matter: Any, gradient: Mat, dt: Any) -> tuple[Any, Mat]:
        """Internal state after dt with this velocity gradient [1/s]; Kirchhoff stress [Pa]."""
        ...

    def speed(self, density: Any) -> Any:
        """Speed of the fastest wave, m/s."""
        ...

    def diffusivity(self, density: Any) -> Any:
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
    capacity: int = size(default=0, least=0)


@pytree
class Scene:
    """What to run. `prepare` checks it and chooses dt."""

    bodies: tuple[Body, ...]
    grid: Grid = static()
    gravity: tuple[Any, ...] = number(default=(), unit="m/s^2")  # D numbers; none by default
    colliders: tuple[Collider, ...] = ()
    # step; `prepare` chooses
    dt: Array | float | None = number(default=None, above=0, unit="s", one=True, none=True)  # []
    sources: tuple[Injector | Collector, ...] = ()  # act after every step, in this order
    # transfers that do not damp a viscous flow, for twice as many of them; `prepare` chooses
    sharp: bool | None = static(default=None)


@pytree
class Particles:
    """One body's particles; a slot of mass zero is empty."""

    x: Vec  # D arrays [C, P] position, m
    v: Vec  # D arrays [C, P] velocity, m/s
    C: Mat  # D x D arrays [C, P] velocity gradient, 1/s
    m: Array  # [C, P] mass, kg
    volume: Array  # [C, P] rest volume, m^3
    matter: Any  # what the material keeps, arrays [C, P]


@pytree
class State:
    """Where the run is."""

    bodies: tuple[Particles, ...]
    tools: tuple[Tool, ...]  # pose and velocity of each collider
    t: Array  # [] time, s
    flows: tuple[Flow, ...] = ()  # what each source has moved


def init(scene: Scene, shares: int = 1) -> State:
    """State at time zero, in the dtype of the bodies' positions.

    Args:
        scene: as `prepare` returns it.
        shares: the number of chunks of particles will be a multiple of it.
    Raises:
        ValueError, TypeError: parts that do not fit each other, a number outside its range.
    Differentiable in positions, velocities, densities and volumes.

    >>> from jaxgpu.physics.continuum import Liquid
    >>> body = Body(jnp.full((3, 2), 0.5), Liquid(), volume=1e-2)
    >>> state = init(Scene((body,), Grid(0.1, (10, 10))))
    >>> positions(state.bodies[0]).shape, float(state.bodies[0].m.sum())
    ((3, 2), 30.0)
    """
    scene = checks.whole("init", scene)
    dtype = scene.bodies[0].x.dtype
    bodies = tuple(_particles(body, scene.grid, shares) for body in scene.bodies)
    tools = tuple(collider.start(dtype) for collider in scene.colliders)
    flows = tuple(Flow.none() for _ in scene.sources)
    return State(bodies=bodies, tools=tools, t=jnp.zeros((), dtype), flows=flows)


def _particles(body: Body, grid: Grid, shares: int) -> Particles:
    n, d = body.x.shape
    slots = max(n, body.capacity)
    c = -(-slots // (CHUNK * shares)) * shares
    p = -(-slots // (8 * c)) * 8  # alike, so that the last one is not left half empty
    middle = np.add(grid.lower, grid.upper) / 2  # where empty slots wait

    def chunked(values: Array, fill: float) -> Array:
        full = jnp.full((c * p,), fill, body.x.dtype)
        return full.at[:n].set(values).reshape(c, p)

    v = jnp.broadcast_to(jnp.asarray(body.v, body.x.dtype), (n, d))
    volume = jnp.broadcast_to(jnp.asarray(body.volume, body.x.dtype), (n,))
    x = tuple(chunked(body.x[:, i], middle[i]) for i in range(d))
    zero = jnp.zeros_like(x[0])
    return Particles(
        x=x,
        v=tuple(chunked(v[:, i], 0) for i in range(d)),
        C=((zero,) * d,) * d,
        m=chunked(volume * body.density, 0),
        volume=chunked(volume, 0),
        matter=body.material.rest(zero + 1, d),
    )


def positions(particles: Particles) -> Array:
    """Positions [N, D] of the filled slots, m. On the host only: their number depends on data."""
    return _filled(particles, particles.x)


def velocities(particles: Particles) -> Array:
    """Velocities [N, D] of the filled slots, m/s. On the host only."""
    return _filled(particles, particles.v)


def _filled(particles: Particles, vector: Vec) -> Array:
    if isinstance(particles.m, jax.core.Tracer):
        raise TypeError(
            "positions: the particles are being traced, and how many slots are filled is data; "
            "take x, v and m of the slots inside jit, where m = 0 marks an empty one"
        )
    kept = np.asarray(particles.m).ravel() > 0
    return jnp.stack([a.ravel() for a in vector], 1)[kept]
