"""Contact with tools: signed-distance shapes that are fixed, prescribed or free to move.

Inside a tool, and within a cell of it, a node's velocity relative to the tool loses its
approaching normal part, and Coulomb's law slows the tangential part with the impulse just given:

    u = v - v_tool,  u_n = u . n < 0:   u_t <- u_t max(0, 1 + mu u_n / |u_t|),  u_n <- 0

The spline of a node extends over a cell and a half. The spline of the first unaffected node, one to
two cells away, thus ends at the surface on average: a tool displaces its own volume. If a nearer
node were unaffected, the surface would cut its spline and nothing would balance the pressure on the
cut: an eighth of it at one cell, more than all of it at half a cell. Only velocities on the grid
change; particles are never pushed. A free tool takes the opposite impulse and torque: momentum and
angular momentum of material and tool are conserved to rounding. In 3-D its angular momentum is part
of the state (`Momentum`).

Contact may begin earlier and smoothly (`SoftContact`), so that a tool which has not arrived yet has
a gradient. At a distance d outside hard contact a node's velocity approaches the one that hard
contact would give it at the rate k,

    k(d) = rate (e - 1) / (exp(d / length) - 1),   v <- v + (1 - exp(-k dt)) (v_hard - v),

without bound at d = 0, so that all derivatives are continuous there, and `rate` at d = `length`.
The idea is that of FluidLab (Xian et al. 2023, arXiv:2303.02346), which mixes exp(-d / length) of
v_hard into v at every step of any length; here the outcome does not depend on dt.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.geometry import rotations as pose
from jaxgpu.geometry.vectors import Vec, dot, unit
from jaxgpu.inputs import ranges
from jaxgpu.inputs.fields import number, pytree, static

MIN_RATIO = 1e-6  # minimum of d / length; keeps 1 / d^2 of a reverse pass finite


@pytree
class SoftContact:
    """Range and rate of soft contact with a tool; `prepare` requires both to be above zero.

    After Xian et al. (2023), arXiv:2303.02346; the equation is in the module's docstring.
    """

    length: Array | float = number(above=0, unit="m", one=True)  # []
    # at a distance `length` from hard contact
    rate: Array | float = number(default=100.0, above=0, unit="1/s", one=True)  # []

    def share(self, d: Array, dt: Array | float) -> Array:
        """Return the fraction of hard contact, 0 to 1, that a step of dt applies at distance d.

        d: [...] m from hard contact, negative within. dt: [] s.

        >>> share = SoftContact(0.01, rate=100.0).share(jnp.array([-1.0, 0.01, 1.0]), 0.01)
        >>> [round(float(a), 4) for a in share]  # 1 - 1 / e at one length
        [1.0, 0.6321, 0.0]
        """
        ranges.check("SoftContact.share", self)
        ranges.check_finite("SoftContact.share", d=d, dt=dt)
        out = d > 0
        x = jnp.maximum(jnp.where(out, d / self.length, 1), MIN_RATIO)
        firm = (np.e - 1) * self.rate * dt
        return jnp.where(out, -jnp.expm1(firm * jnp.exp(-x) / jnp.expm1(-x)), 1)


@pytree
class Momentum:
    """Angular momentum of a tool about its centre of mass, and the spin that it belongs to.

    If `Tool.spin` is set to another value, the difference is added before the next step.
    """

    L: Array  # [3] angular momentum, kg m^2/s
    spin: Array  # [3] angular velocity, rad/s


@pytree
class Tool:
    """Pose and velocity of a collider."""

    x: Array  # [D] position of its centre of mass, m
    turn: Array  # [1] angle, rad, in 2-D; [4] unit quaternion (w, x, y, z) in 3-D
    v: Array  # [D] velocity, m/s
    spin: Array  # [1] or [3] angular velocity, rad/s
    momentum: Momentum | None = None  # only of a free tool in 3-D


@pytree
class Collider:
    """A rigid tool. With `mass` gravity and contact move it, otherwise its motion is prescribed."""

    shape: Any  # an `sdf` shape in the tool's frame
    x: Any = number(unit="m")  # [D] initial position
    turn: Any = number(default=None, none=True)  # [1] or [4] initial orientation; None is upright
    v: Any = number(default=0.0, unit="m/s")  # [D] velocity
    spin: Any = number(default=0.0, unit="rad/s")  # [1] or [3] angular velocity
    friction: Array | float = number(default=0.0, least=0, one=True)  # [] Coulomb's mu
    stick: bool = static(default=False)  # material neither slips nor separates on contact
    # free if `mass` and `inertia`, the principal moments in the tool's frame, are given
    mass: Array | float | None = number(default=None, above=0, unit="kg", one=True, none=True)  # []
    inertia: Any = number(default=None, above=0, unit="kg m^2", none=True)  # [1] or [3]
    soft: SoftContact | None = None  # contact at a distance; None for hard contact only

    def start(self, dtype) -> Tool:
        """Return the tool at time zero."""
        x = jnp.asarray(self.x, dtype)
        upright = pose.identity(x.shape[0], dtype)
        turn = upright if self.turn is None else jnp.asarray(self.turn, dtype)
        spin = jnp.zeros(1 if x.shape[0] == 2 else 3, dtype) + jnp.asarray(self.spin, dtype)
        momentum = None
        if self.mass is not None and x.shape[0] == 3:
            momentum = Momentum(pose.momentum(turn, spin, self.moments(spin)), spin)
        v = jnp.zeros_like(x) + jnp.asarray(self.v, dtype)
        return Tool(x=x, turn=turn, v=v, spin=spin, momentum=momentum)

    def moments(self, spin: Array) -> Array:
        """Return the principal moments of inertia, one per component of `spin`, kg m^2."""
        return jnp.asarray(self.inertia, spin.dtype) + jnp.zeros_like(spin)


def apply_contact(
    collider: Collider, tool: Tool, nodes: Vec, v: Vec, m: Array, reach: float, dt: Any
) -> tuple[Vec, Array, Array]:
    """Return node velocities after contact with one tool, and its impulse and angular impulse.

    Args:
        nodes: D arrays [nodes] position, m.
        v: D arrays [nodes] velocity, m/s.
        m: [nodes] mass, kg.
        reach: distance outside its surface at which the tool acts, m.
        dt: s, for which soft contact acts.
    Returns:
        velocities, impulse [D] in N s and angular impulse [1] or [3] in N m s about the tool's x.
    Differentiable in the tool, the shape, friction and v; piecewise where contact begins, unless
    it is soft.
    """
    arm = tuple(p - tool.x[i] for i, p in enumerate(nodes))
    local = pose.rotate_inverse(tool.turn, arm)
    # without barriers XLA would fuse the shape into every consumer and evaluate it repeatedly
    barrier = lax.optimization_barrier
    distance, pull = jax.vjp(lambda x: barrier(collider.shape.distance(barrier(x))), local)
    (normal,) = pull(jnp.ones_like(distance))
    # gradients of sampled distances and blends are shorter than one, at centres zero
    n = barrier(pose.rotate(tool.turn, unit(normal)))
    carried = tuple(tool.v[i] + w for i, w in enumerate(pose.cross(tool.spin, arm)))
    u = tuple(a - b for a, b in zip(v, carried))
    # only approaching nodes are changed: contact never pulls, unless it sticks
    if collider.stick:
        after = carried
    else:
        slid = _apply_friction(u, n, collider.friction)
        hit = dot(u, n) < 0
        after = tuple(jnp.where(hit, b + s, a) for a, b, s in zip(v, carried, slid))
    if collider.soft is None:
        new = tuple(jnp.where(distance < reach, b, a) for a, b in zip(v, after))
    else:
        share = collider.soft.share(distance - reach, dt)
        new = tuple((1 - share) * a + share * b for a, b in zip(v, after))
    new = barrier(new)
    # the tool gains each node's loss of momentum: their sum is conserved for any contact law
    change = tuple(m * (a - b) for a, b in zip(v, new))
    impulse = jnp.stack([a.sum() for a in change])
    torque = jnp.stack([a.sum() for a in pose.moment(arm, change)])
    return new, impulse, torque


def _apply_friction(u: Vec, n: Vec, friction) -> Vec:
    """Return the relative velocity after the normal part is removed and friction has acted."""
    # friction removes at most mu times the normal impulse, -normal per mass, and never reverses u
    normal = jnp.minimum(dot(u, n), 0)
    along = tuple(a - normal * b for a, b in zip(u, n))
    square = dot(along, along)
    moving = square > 0  # at rest the root has no derivative
    size = jnp.sqrt(jnp.where(moving, square, 1))
    left = jnp.where(moving, jnp.maximum(1 + friction * normal / size, 0), 0)
    return tuple(left * a for a in along)


def advance_tool(
    collider: Collider, tool: Tool, impulse: Array, torque: Array, gravity: Array, dt
) -> Tool:
    """Advance a tool by dt; impulse and torque act on it if it is free.

    Positions use semi-implicit Euler. In 3-D the torque is added to the angular momentum, which is
    unchanged without torque, and the tool rotates for dt as a free body (`pose.free_rotation`).
    Differentiable in everything; if `Tool.momentum` is None in 3-D, L is computed from spin.
    """
    v, spin, momentum = tool.v, tool.spin, tool.momentum
    if collider.mass is None:
        turn = pose.integrate(tool.turn, spin, dt)
        return Tool(x=tool.x + dt * v, turn=turn, v=v, spin=spin, momentum=momentum)
    v = v + dt * gravity + impulse / collider.mass
    inertia = collider.moments(spin)
    if spin.shape == (1,):
        spin = spin + torque / inertia
        turn = pose.integrate(tool.turn, spin, dt)
    else:
        # L is stored, and not computed again from spin, whose rounding would accumulate
        known, seen = (0, jnp.zeros_like(spin)) if momentum is None else (momentum.L, momentum.spin)
        L = known + pose.momentum(tool.turn, spin - seen, inertia) + torque
        turn = pose.free_rotation(tool.turn, L, inertia, dt)
        spin = pose.angular_velocity(turn, L, inertia)
        momentum = None if momentum is None else Momentum(L, spin)
    return Tool(x=tool.x + dt * v, turn=turn, v=v, spin=spin, momentum=momentum)
