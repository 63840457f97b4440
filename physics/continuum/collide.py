"""Tools that matter meets: signed-distance shapes that stand, are led, or move freely.

Inside a tool, and within a cell of it, a node's velocity relative to the tool loses its
approaching normal part, and Coulomb's law slows the tangential part with the impulse just given:

    u = v - v_tool,  u_n = u . n < 0:   u_t <- u_t max(0, 1 + mu u_n / |u_t|),  u_n <- 0

The spline of a node reaches a cell and a half, so that the first node left free, one to two cells
away, ends at the surface on average: a tool displaces its own volume. Were a nearer node left free,
the surface would cut its spline and nothing would balance the pressure on the cut: an eighth of it
at one cell, more than all of it at half a cell.
Only velocities on the grid change and particles are never pushed. A free
tool takes the opposite impulse and torque: the momentum of matter and tool is kept to rounding.

Contact may set in earlier and smoothly (`soft`), so that a tool which has not arrived yet has a
gradient.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.physics.continuum import pose
from jaxgpu.physics.continuum.soft import Soft
from jaxgpu.physics.continuum.tensor import Vec, dot
from jaxgpu.pytree import pytree, static


@pytree
class Tool:
    """Where a collider is and how it moves."""

    x: Array  # [D] position of its centre of mass, m
    turn: Array  # [1] angle, rad, in 2-D; [4] unit quaternion (w, x, y, z) in 3-D
    v: Array  # [D] velocity, m/s
    spin: Array  # [1] or [3] angular velocity, rad/s


@pytree
class Collider:
    """A rigid shape. With `mass` it is free and moved by gravity and matter, else it is led."""

    shape: Any  # an `sdf` shape, in the tool's own frame
    x: Any  # [D] position at the start, m
    turn: Any = None  # [1] or [4] orientation at the start; none is upright
    v: Any = 0.0  # [D] velocity, m/s
    spin: Any = 0.0  # [1] or [3] angular velocity, rad/s
    friction: Array | float = 0.0  # [] Coulomb's mu; 0 slips
    stick: bool = static(default=False)  # hold what touches, also against leaving
    mass: Array | float | None = None  # [] kg; free where given
    inertia: Any = None  # [1] or [3] principal moments in its own frame, kg m^2
    soft: Soft | None = None  # how contact sets in further out; at once if none

    def start(self, dtype) -> Tool:
        """The tool at time zero."""
        x = jnp.asarray(self.x, dtype)
        upright = pose.upright(x.shape[0], dtype)
        turn = upright if self.turn is None else jnp.asarray(self.turn, dtype)
        spin = jnp.zeros(1 if x.shape[0] == 2 else 3, dtype) + jnp.asarray(self.spin, dtype)
        return Tool(x=x, turn=turn, v=jnp.zeros_like(x) + jnp.asarray(self.v, dtype), spin=spin)


def touch(
    collider: Collider, tool: Tool, nodes: Vec, v: Vec, m: Array, reach: float, dt: Any
) -> tuple[Vec, Array, Array]:
    """Node velocities after contact with one tool, and the impulse and its torque on the tool.

    Args:
        nodes: D arrays [nodes] position, m.
        v: D arrays [nodes] velocity, m/s.
        m: [nodes] mass, kg.
        reach: how far outside its surface the tool acts, m.
        dt: s, for which soft contact acts.
    Returns:
        velocities, impulse [D] in N s and angular impulse [1] or [3] in N m s about the tool's x.
    Differentiable in the tool, the shape, friction and v; piecewise where contact sets in, unless
    it is soft.
    """
    arm = tuple(p - tool.x[i] for i, p in enumerate(nodes))
    local = pose.unturned(tool.turn, arm)
    # fused with what reads it, a shape would be evaluated anew for every reader
    apart = lax.optimization_barrier
    distance, pull = jax.vjp(lambda x: apart(collider.shape.distance(apart(x))), local)
    (normal,) = pull(jnp.ones_like(distance))
    n = apart(pose.turned(tool.turn, _unit(normal)))
    carried = tuple(tool.v[i] + w for i, w in enumerate(pose.cross(tool.spin, arm)))
    u = tuple(a - b for a, b in zip(v, carried))
    if collider.stick:
        after = carried
    else:
        slid = _slide(u, n, collider.friction)
        hit = dot(u, n) < 0
        after = tuple(jnp.where(hit, b + s, a) for a, b, s in zip(v, carried, slid))
    if collider.soft is None:
        new = tuple(jnp.where(distance < reach, b, a) for a, b in zip(v, after))
    else:
        share = collider.soft.share(distance - reach, dt)
        new = tuple((1 - share) * a + share * b for a, b in zip(v, after))
    new = apart(new)
    change = tuple(m * (a - b) for a, b in zip(v, new))
    impulse = jnp.stack([a.sum() for a in change])
    torque = jnp.stack([a.sum() for a in pose.moment(arm, change)])
    return new, impulse, torque


def _unit(a: Vec) -> Vec:
    """A slope of length one; sampled distances and blends have shorter ones, centres none."""
    square = dot(a, a)
    some = square > 0
    share = jnp.where(some, 1 / jnp.sqrt(jnp.where(some, square, 1)), 0)
    return tuple(share * b for b in a)


def _slide(u: Vec, n: Vec, friction) -> Vec:
    """Relative velocity after the normal part is gone and friction has acted."""
    normal = jnp.minimum(dot(u, n), 0)
    along = tuple(a - normal * b for a, b in zip(u, n))
    square = dot(along, along)
    moving = square > 0
    size = jnp.sqrt(jnp.where(moving, square, 1))
    left = jnp.where(moving, jnp.maximum(1 + friction * normal / size, 0), 0)
    return tuple(left * a for a in along)


def advance(
    collider: Collider, tool: Tool, impulse: Array, torque: Array, gravity: Array, dt
) -> Tool:
    """The tool after dt, pushed if it is free.

    Semi-implicit Euler; angular momentum in the tool's principal frame, gyroscopic term included.
    """
    v, spin = tool.v, tool.spin
    if collider.mass is not None:
        v = v + dt * gravity + impulse / collider.mass
        inertia = jnp.asarray(collider.inertia, v.dtype) + jnp.zeros_like(spin)
        spin = pose.spun(tool.turn, spin, inertia, torque, dt)
    return Tool(x=tool.x + dt * v, turn=pose.rotated(tool.turn, spin, dt), v=v, spin=spin)
