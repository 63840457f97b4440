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

from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.ad_checkpoint import checkpoint_name

from jaxgpu.geometry.vectors import Mat, Vec, add, scale

from .grid.every import every
from .grid.faces import inverse
from .grid.grid import Grid
from .grid.sparse import over_mass
from .grid.stencil import ROW, base
from .grid.table import replaced, stacked
from .grid.transfer import moments, spread
from .grid.volume import excess
from .materials.liquid import corrects_volume
from .particles import Body, Chunks, Particles, State
from .tools import collide, sources
from .tools.collide import Tool

if TYPE_CHECKING:
    from .scene import Scene

FIELD = "continuum momentum and mass"  # names the grid in a rematerialisation policy
EVERY = 16  # steps from one look at how full the grid is to the next: sound crosses some 5 cells


def step(
    scene: "Scene", state: State, correction: Array | int = 1, grid: Grid | None = None
) -> State:
    """The state after scene.dt; `Scene.step` is its public form.

    Args:
        scene: with dt given, as `Scene.prepare` returns it.
        state: as `Scene.init` returns it.
        correction: for how many steps, with this one, the volume of liquids is led to the density
            of the grid now; 0 leaves it. See `correction_steps`.
        grid: the nodes of the scene's grid that this device has, if they are shared among several
            with the particles, as `devices` does; else all of them.
    Cost in 3-D: about 700 operations and 900 bytes of grid traffic a particle, and the grid.
    """
    if scene.dt is None:
        raise ValueError("step: the scene has no dt; use scene.prepare(), or give dt in seconds")
    grid, dt = grid or scene.grid, scene.dt
    bodies = [particles.chunks for particles in state.bodies]
    known: list[Any] = [None] * len(bodies)
    fields, field = [], None
    if scene.sharp:
        plain = [_to_spread(None, chunks, grid, dt) for chunks in bodies]
        fields = [spread(x, q, grid.shape) for x, q, _ in plain]
        field = _summed(fields, grid)
        known = _grid_velocities(grid, [x for x, _, _ in plain], field)
    sent = [
        _to_spread(body.material, chunks, grid, dt, there)
        for body, chunks, there in zip(scene.bodies, bodies, known)
    ]
    parts = [spread(x, q, grid.shape) for x, q, _ in sent]
    summed = _summed(parts, grid)
    if field is None:
        fields, field = parts, summed
    else:  # the second pass carries neither mass nor what the grid has already: the two add up
        field = field + summed
    v, tools = _update_grid(scene, grid, dt, state.tools, field)
    if any(corrects_volume(body.material) for body in scene.bodies):
        # the excess travels in the column of mass, which velocities leave free
        rest = partial(_rest_volume, scene, grid, fields, field)
        with_excess = lambda v: replaced(v, len(grid.cells), excess(rest(), grid))
        v = lax.cond(jnp.asarray(correction) > 0, with_excess, lambda v: v, v)
    moved = tuple(
        Particles(_from_grid(x, v, internal, chunks, grid, dt, body, correction))
        for (x, _, internal), chunks, body in zip(sent, bodies, scene.bodies)
    )
    t = state.t + dt
    moved, flows = sources.flow(scene, moved, tools, state.flows, (state.t, t))
    return State(bodies=moved, tools=tools, t=t, flows=flows)


def correction_steps(i: Array, steps: int | Array) -> Array:
    """What `step` takes as `correction` at number i of so many steps: sixteen of them at a time.

    A look at how full the grid is costs a sixth of a step, and so a hundredth of sixteen.

    >>> correction_steps(jnp.array([0, 1, 16, 17]), 20)
    Array([16,  0,  4,  0], dtype=int32)
    """
    return jnp.where(i % EVERY == 0, jnp.minimum(EVERY, steps - i), 0)


def _summed(fields: list[Array], grid: Grid) -> Array:
    """What all bodies, on all devices, have spread, [nodes, 4]."""
    field = sum(fields[1:], fields[0])
    # named, so that a rollout may keep it: with it, the reverse pass repeats no transfer
    return checkpoint_name(grid.summed(field), FIELD)


def _to_spread(material: Any, chunks: Chunks, grid: Grid, dt: Any, known: Any = None):
    """Grid coordinates, what each particle spreads, and its internal variables after the step.

    Without a material it spreads no stress. What is `known`, a velocity and its gradient, is left
    out, and so is the mass then.
    """
    d = len(chunks.x)

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
        a, internal = [[inertia * b for b in row] for row in slope], None
        if material is not None:
            internal, tau = material.stress(p.internal, p.C, dt)
            force = (-4 * dt / grid.dx) * p.volume
            a = [[a[i][j] + force * tau[i][j] for j in range(d)] for i in range(d)]
        q0 = [p.m * v[i] - sum(a[i][j] * f[j] for j in range(d)) for i in range(d)]
        return x, [*q0, mass, *(a[i][j] for j in range(d) for i in range(d))], internal

    return every(one, (chunks, known))


def _grid_velocities(grid: Grid, places: list[Vec], field: Array) -> list[tuple[Vec, Mat]]:
    """Velocity and its gradient of each body as its particles would take them from this field."""
    d = len(grid.cells)
    v = grid.bounded(field * inverse(field[:, d])[:, None], field[:, d])
    take = lambda given: _affine_velocity(*given, grid=grid)
    return [every(take, (x, moments(x, v, grid.shape, d))) for x in places]


def _affine_velocity(x: Vec, m: Any, grid: Grid) -> tuple[Vec, Mat]:
    """Velocity and its gradient from the moments of the grid at particles."""
    axes = range(len(x))
    f = [a - base(a, n) for a, n in zip(x, grid.shape)]
    slope = lambda i, j: (4 / grid.dx) * (m[j + 1][i] - f[j] * m[0][i])
    return tuple(m[0]), tuple(tuple(slope(i, j) for j in axes) for i in axes)


def _rest_volume(scene: "Scene", grid: Grid, fields: list[Array], field: Array) -> Array:
    """Volume at rest of the matter that was spread on each node, [nodes]."""
    d = len(grid.cells)
    if len(fields) == 1:
        return field[:, d] / scene.bodies[0].density
    parts = [f[:, d : d + 1] / body.density for f, body in zip(fields, scene.bodies)]
    return _summed(parts, grid)[:, 0]


def _update_grid(
    scene: "Scene", grid: Grid, dt: Array | float, tools: tuple[Tool, ...], field: Array
) -> tuple[Array, tuple[Tool, ...]]:
    """Velocity of every node after forces, tools and faces, [nodes, 4]; the tools after dt."""
    d, dtype = len(grid.cells), field.dtype
    forces = scene.gravity if len(scene.gravity) else (0.0,) * d
    gravity = jnp.stack([jnp.asarray(g, dtype) for g in forces])
    reach = 1.0001 * grid.dx  # a plane through nodes holds the next row whatever the rounding

    def update(first: Array, rows: Array):
        m = rows[:, d]
        share, pushes = inverse(m), []
        v = tuple(rows[:, i] * share + dt * gravity[i] for i in range(d))
        at = first + jnp.arange(len(m), dtype=jnp.int32)
        nodes, owned = grid.node_positions(at, dtype), grid.owned(m, at)
        for collider, tool in zip(scene.colliders, tools):
            v, *push = collide.touch(collider, tool, nodes, v, owned, reach, dt)
            pushes.append(push)
        empty = [jnp.zeros_like(m)] * (ROW - d)
        return stacked([*v, *empty]), pushes

    if not scene.colliders:
        by_block = lambda field: grid.bounded(over_mass(update, field, grid.shape)[0], field[:, d])

        def fallen(columns: list[Array]) -> list[Array]:
            share = inverse(columns[d])
            return [columns[i] * share + dt * gravity[i] for i in range(d)]

        def at_once(field: Array) -> Array:
            v = grid.bounded_at_once(fallen, field)
            return jnp.stack([*v, *[jnp.zeros_like(v[0])] * (ROW - d)], 1)

        return lax.platform_dependent(field, cpu=by_block, default=at_once), ()
    v, pushes = over_mass(update, field, grid.shape)
    free = [collider.mass is not None for collider in scene.colliders]
    felt = iter(grid.total([push for push, moves in zip(pushes, free) if moves]))
    pushes = [next(felt) if moves else push for push, moves in zip(pushes, free)]
    moved = tuple(
        collide.advance(collider, tool, *push, gravity=gravity, dt=dt)
        for collider, tool, push in zip(scene.colliders, tools, pushes)
    )
    return grid.bounded(v, field[:, d]), moved


def _from_grid(
    x: Vec,
    v: Array,
    internal: Any,
    chunks: Chunks,
    grid: Grid,
    dt: Any,
    body: Body,
    correction: Any,
) -> Chunks:
    """Chunks with velocity, its gradient and position taken from the grid."""
    d, corrected = len(x), corrects_volume(body.material)
    gathered = moments(x, v, grid.shape, d + corrected)
    if corrected:
        sound = body.material.sound_speed(body.density) * dt / grid.dx
        cells = jnp.asarray(correction, v.dtype) * sound
        internal = body.material.correct_volume(internal, gathered[0].pop(), cells)

    def one(args):
        x, m, mass, position = args
        full = mass > 0
        v, c = jax.tree.map(lambda a: jnp.where(full, a, 0), _affine_velocity(x, m, grid))
        moved = tuple(grid.wrapped(a + dt * b, i) for i, (a, b) in enumerate(zip(position, v)))
        return moved, v, c

    position, velocity, c = every(one, (x, gathered, chunks.m, chunks.x))
    return Chunks(x=position, v=velocity, C=c, m=chunks.m, volume=chunks.volume, internal=internal)
