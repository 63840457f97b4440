"""One step of the material point method with affine transfers (MLS-MPM).

Each particle's stress goes to the grid along with its momentum, velocities are updated there, and
particles take their new velocity and its gradient back. Explicit, symplectic Euler. Hu, Fang, Ge,
Qu, Zhu, Pradhana & Jiang (2018), doi:10.1145/3197517.3201293, eqs. 17 and 18; affine momentum by
Jiang, Schroeder, Selle, Teran & Stomakhin (2015), doi:10.1145/2766996.

With node offset o and position f in the stencil, momentum spreads as Q_0 + sum_d o_d Q_d,

    Q_0 = m v - A f,  Q_d = A e_d,  A = dx (m C - dt V tau 4 / dx^2)

so that 13 numbers a particle go out, and C comes back as 4 / dx (M_d - f_d v).

To spread S and take back G damps a wave of number k by some 0.03 (k dx)^4, which is a share of each
step. Where that would drown a viscosity (`Scene.sharp`) velocities are spread by S (2 - G S) in
place of S, so that the share is squared: XPIC(2) of Hammerquist & Nairn (2017),
doi:10.1016/j.cma.2017.01.035, here with affine velocities, so that it keeps momentum and angular
momentum as S and G do.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.ad_checkpoint import checkpoint_name

from jaxgpu.geometry.vectors import Mat, Vec, add, scale

from .grid.grid import Grid, inverse
from .grid.sparse import over_mass
from .grid.stencil import ROW, base
from .grid.transfer import moments, spread
from .grid.volume import excess
from .scene import Body, Particles, Scene, State
from .tools import collide, sources

FIELD = "continuum momentum and mass"  # names the grid in a rematerialisation policy
EVERY = 16  # steps from one look at how full the grid is to the next: sound crosses some 5 cells


def step(scene: Scene, state: State, held: Array | int = 1, axis: str | None = None) -> State:
    """Advance by scene.dt.

    Args:
        scene: with dt given, as `prepare` returns it.
        state: as `init` returns it.
        held: number of steps, with this one, for which liquids with `held` are led to the density
            of the grid; 0 leaves them. See `due`.
        axis: of a `jax.shard_map` over which the particles are spread, as `devices` does; every
            device has the whole grid, on which their shares are summed.
    Differentiable in the scene (materials, gravity, tools, dt) and the state; reverse and forward.
    Cost in 3-D: about 700 operations and 900 bytes of grid traffic a particle, and the grid.
    """
    if scene.dt is None:
        raise ValueError("step: the scene has no dt; use prepare(scene), or give dt in seconds")
    if axis and scene.sources:
        raise ValueError("step: a scene with injectors or collectors runs on one device; axis=None")
    grid, whole = scene.grid, lambda field: lax.psum(field, axis) if axis else field
    # named, so that a rollout may keep it: with it, the reverse pass repeats no transfer
    total = lambda parts: checkpoint_name(grid.joined(whole(sum(parts[1:], parts[0]))), FIELD)
    known = [None] * len(scene.bodies)
    if scene.sharp:
        plain = [_send(None, particles, grid, scene.dt) for particles in state.bodies]
        fields = [spread(x, q, grid.shape) for x, q, _ in plain]
        field = total(fields)
        known = _known(grid, [x for x, _, _ in plain], field)
    sent = [
        _send(body.material, particles, grid, scene.dt, there)
        for body, particles, there in zip(scene.bodies, state.bodies, known)
    ]
    parts = [spread(x, q, grid.shape) for x, q, _ in sent]
    if scene.sharp:
        field = field + total(parts)
    else:
        fields, field = parts, total(parts)
    v, tools = _on_grid(scene, state.tools, field)
    if any(_held(body) for body in scene.bodies):
        rest = lambda: _at_rest(scene, fields, field, whole)
        full = lambda v: v.at[:, len(grid.cells)].set(excess(rest(), grid))
        v = lax.cond(jnp.asarray(held) > 0, full, lambda v: v, v)
    bodies = tuple(
        _receive(x, v, matter, particles, grid, scene.dt, body, held)
        for (x, _, matter), particles, body in zip(sent, state.bodies, scene.bodies)
    )
    t = state.t + scene.dt
    bodies, flows = sources.flow(scene, bodies, tools, state.flows, (state.t, t))
    return State(bodies=bodies, tools=tools, t=t, flows=flows)


def due(i: Array, steps: int) -> Array:
    """What `step` takes as `held` at number i of so many steps, for sixteen of them at a time.

    A look at how full the grid is costs a sixth of a step, and so a hundredth of sixteen.

    >>> due(jnp.array([0, 1, 16, 17]), 20)
    Array([16,  0,  4,  0], dtype=int32)
    """
    return jnp.where(i % EVERY == 0, jnp.minimum(EVERY, steps - i), 0)


def _send(material: Any, particles: Particles, grid: Grid, dt, known: Any = None):
    """Grid coordinates, what each particle spreads, and its matter after the step.

    Without a material it spreads no stress. What is `known`, a velocity and its gradient, is left
    out, and so is the mass then.
    """
    d = len(particles.x)

    def one(given):
        p, known = given
        x = tuple(grid.coordinate(a, i) for i, a in enumerate(p.x))
        f = [a - base(a, n) for a, n in zip(x, grid.shape)]
        v, slope, mass = p.v, p.C, p.m
        if known is not None:
            v = tuple(a - b for a, b in zip(v, known[0]))
            slope = add(slope, scale(-1, known[1]))
            mass = jnp.zeros_like(p.m)
        inertia = grid.dx * p.m
        a, matter = [[inertia * b for b in row] for row in slope], None
        if material is not None:
            matter, tau = material.stress(p.matter, p.C, dt)
            force = (-4 * dt / grid.dx) * p.volume
            a = [[a[i][j] + force * tau[i][j] for j in range(d)] for i in range(d)]
        q0 = [p.m * v[i] - sum(a[i][j] * f[j] for j in range(d)) for i in range(d)]
        return x, [*q0, mass, *(a[i][j] for j in range(d) for i in range(d))], matter

    return lax.map(jax.checkpoint(one), (particles, known))


def _known(grid: Grid, places: list[Vec], field: Array) -> list:
    """Velocity and its gradient of each body as its particles would take them from this field."""
    d = len(grid.cells)
    v = grid.bounded(field * inverse(field[:, d])[:, None], field[:, d])
    take = jax.checkpoint(lambda given: _taken(*given, grid))
    return [lax.map(take, (x, moments(x, v, grid.shape, d))) for x in places]


def _taken(x: Vec, m: Any, grid: Grid) -> tuple[Vec, Mat]:
    """Velocity and its gradient from the moments of the grid at particles."""
    axes = range(len(x))
    f = [a - base(a, n) for a, n in zip(x, grid.shape)]
    slope = lambda i, j: (4 / grid.dx) * (m[j + 1][i] - f[j] * m[0][i])
    return tuple(m[0]), tuple(tuple(slope(i, j) for j in axes) for i in axes)


def _held(body: Body) -> bool:
    """Whether the material holds its volume to that of the grid."""
    return getattr(body.material, "held", None) is not None


def _at_rest(scene: Scene, fields: list[Array], field: Array, whole: Callable) -> Array:
    """Volume at rest of the matter that was spread on each node, [nodes]."""
    d = len(scene.grid.cells)
    if len(fields) == 1:
        return field[:, d] / scene.bodies[0].density
    parts = [f[:, d : d + 1] / body.density for f, body in zip(fields, scene.bodies)]
    return checkpoint_name(scene.grid.joined(whole(sum(parts[1:], parts[0]))), FIELD)[:, 0]


def _on_grid(scene: Scene, tools, field: Array):
    """Velocity of every node after forces, tools and faces, [nodes, 4]; the tools after dt."""
    grid, d, dtype = scene.grid, len(scene.grid.cells), field.dtype
    forces = scene.gravity if len(scene.gravity) else (0.0,) * d
    gravity = jnp.stack([jnp.asarray(g, dtype) for g in forces])
    reach = 1.0001 * grid.dx  # a plane through nodes holds the next row whatever the rounding

    def some(first: Array, rows: Array):
        m = rows[:, d]
        share, pushes = inverse(m), []
        v = tuple(rows[:, i] * share + scene.dt * gravity[i] for i in range(d))
        nodes = grid.places(first + jnp.arange(len(m), dtype=jnp.int32), dtype)
        for collider, tool in zip(scene.colliders, tools):
            v, *push = collide.touch(collider, tool, nodes, v, m, reach, scene.dt)
            pushes.append(push)
        empty = [jnp.zeros_like(m)] * (ROW - d)
        return jnp.stack([*v, *empty], 1), pushes

    v, pushes = over_mass(some, field, grid.shape)
    moved = tuple(
        collide.advance(collider, tool, *push, gravity, scene.dt)
        for collider, tool, push in zip(scene.colliders, tools, pushes)
    )
    return grid.bounded(v, field[:, d]), moved


def _receive(
    x: Vec, v: Array, matter: Any, particles: Particles, grid: Grid, dt, body: Body, held: Any
) -> Particles:
    """Particles with velocity, its gradient and position taken from the grid."""
    d = len(x)
    gathered = moments(x, v, grid.shape, d + _held(body))
    if _held(body):
        sound = body.material.speed(body.density) * dt / grid.dx
        cells = jnp.asarray(held, v.dtype) * sound
        matter = body.material.hold(matter, gathered[0].pop(), cells)

    def one(args):
        x, m, mass, position = args
        full = mass > 0
        v, c = jax.tree.map(lambda a: jnp.where(full, a, 0), _taken(x, m, grid))
        moved = tuple(grid.wrapped(a + dt * b, i) for i, (a, b) in enumerate(zip(position, v)))
        return moved, v, c

    position, velocity, c = lax.map(jax.checkpoint(one), (x, gathered, particles.m, particles.x))
    return Particles(
        x=position, v=velocity, C=c, m=particles.m, volume=particles.volume, matter=matter
    )
