"""Friction cones of contacts, pyramidal or elliptic, as springs in the contact frames.

x [C, d] is J a - aref in the contact frame: along the normal, two tangents, one torsion and two
rolling axes, of which a contact of dimension d has the first d. Both cones have forces in this
frame and a Hessian of d by d, so one implementation serves both. An inactive contact has D = 0.
"""

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import pytree, static

from ..motion.inertia import HIGHEST


@pytree
class Cone:
    """Constraint rows of C contacts with the same dimension d."""

    elliptic: bool = static()  # whether the cone is elliptic, not pyramidal
    J: Array  # [C, d, V]
    aref: Array  # [C, d]
    D: Array  # [C] of the edges of a pyramid, or of the normal of an elliptic cone
    friction: Array  # [C, d - 1]
    mu: Array  # [C] of the regularised cone, elliptic only

    def mul_jac_vec(self, a: Array) -> Array:
        """Return J a [C, d]."""
        return jnp.einsum("ckv,v->ck", self.J, a, precision=HIGHEST)

    def mul_jac_t_vec(self, f: Array) -> Array:
        """Return J^T f [V]."""
        return jnp.einsum("ckv,ck->v", self.J, f, precision=HIGHEST)

    def forces(self, x: Array) -> Array:
        """Return the forces [C, d] in the contact frames."""
        if self.J.shape[1] == 1:
            return jnp.maximum(-self.D[:, None] * x, 0)
        if self.elliptic:
            return _find_zones(self, x).force
        plus, minus = _edge_residuals(self, x)
        push = self.D[:, None] * jnp.maximum(-plus, 0), self.D[:, None] * jnp.maximum(-minus, 0)
        normal = jnp.sum(push[0] + push[1], 1, keepdims=True)
        return jnp.concatenate([normal, self.friction * (push[0] - push[1])], 1)

    def curvature(self, x: Array) -> Array:
        """Return minus the derivative [C, d, d] of the forces by x."""
        if self.J.shape[1] == 1:
            return jnp.where(x < 0, self.D[:, None], 0)[:, :, None]
        if self.elliptic:
            return _elliptic_curvature(self, x)
        plus, minus = (jnp.where(e < 0, self.D[:, None], 0) for e in _edge_residuals(self, x))
        normal = jnp.sum(plus + minus, 1)
        across = self.friction * (plus - minus)
        own = self.friction**2 * (plus + minus)
        sides = own[:, :, None] * jnp.eye(own.shape[1], dtype=x.dtype)[None]
        return _assemble_bordered(normal, across, sides)

    @property
    def round(self) -> bool:
        """True if the rows of a contact are coupled, as in an elliptic cone."""
        return self.elliptic and self.J.shape[1] > 1

    def edges(self, x: Array) -> Array:
        """Return x of the edges of a pyramid, [C, 2 (d - 1)], or of the normal if d = 1."""
        return x if x.shape[1] == 1 else jnp.concatenate(_edge_residuals(self, x), 1)

    def zones(self, x: Array) -> Array:
        """Return masks [C, 2] of elliptic contacts that stick and that slide."""
        e = _find_zones(self, x)
        return jnp.stack([e.bottom, e.middle], 1)

    def project_force(self, x: Array, way: Array) -> Array:
        """Return the sum of the forces along directions `way` [C, d]."""
        return jnp.sum(self.forces(x) * way)

    def cost(self, x: Array) -> Array:
        """Return the energy stored in the springs, summed."""
        if self.J.shape[1] == 1:
            return 0.5 * jnp.sum(self.D[:, None] * jnp.minimum(x, 0) ** 2)
        if self.elliptic:
            return jnp.sum(_find_zones(self, x).cost)
        plus, minus = (jnp.minimum(edge, 0) ** 2 for edge in _edge_residuals(self, x))
        return 0.5 * jnp.sum(self.D[:, None] * (plus + minus))


def _edge_residuals(cone: Cone, x: Array) -> tuple[Array, Array]:
    """Return x [C, d - 1] of the two pyramid edges of each friction direction."""
    side = cone.friction * x[:, 1:]
    return x[:, :1] + side, x[:, :1] - side


@pytree
class _EllipticZones:
    """Zones of elliptic contacts, with their forces and costs."""

    w: Array  # [C, d] scales of x: mu, friction
    N: Array  # [C] scaled x along the axis of the cone
    T: Array  # [C] norm of scaled x across the axis
    away: Array  # [C, d - 1] unit vector across the axis
    Dm: Array  # [C]
    bottom: Array  # [C] whether it sticks
    middle: Array  # [C] whether it slides
    force: Array  # [C, d]
    cost: Array  # [C]


def _find_zones(cone: Cone, x: Array) -> _EllipticZones:
    """Return the zone of each elliptic contact: separated, sliding on the cone, sticking."""
    mu = cone.mu
    w = jnp.concatenate([mu[:, None], cone.friction], 1)
    U = w * x
    N, side = U[:, 0], U[:, 1:]
    square = jnp.sum(side * side, 1)
    off = square > 0
    T = jnp.where(off, jnp.sqrt(jnp.where(off, square, 1)), 0)
    away = side / jnp.where(off, T, 1)[:, None]
    apart = mu * T <= N
    bottom = ~apart & (mu * N + T <= 0)
    middle = ~apart & ~bottom
    Dm = cone.D / (mu**2 * (1 + mu**2))
    gap = N - mu * T
    slide = jnp.concatenate([-mu[:, None], mu[:, None] * away * cone.friction], 1)
    slide = (Dm * gap)[:, None] * slide
    own = (cone.D / mu**2)[:, None] * w**2
    held = 0.5 * jnp.sum(own * x * x, 1)
    return _EllipticZones(
        w=w,
        N=N,
        T=T,
        away=away,
        Dm=Dm,
        bottom=bottom,
        middle=middle,
        force=jnp.where(bottom[:, None], -own * x, jnp.where(middle[:, None], slide, 0)),
        cost=jnp.where(bottom, held, jnp.where(middle, 0.5 * Dm * gap**2, 0)),
    )


def _elliptic_curvature(cone: Cone, x: Array) -> Array:
    """Return minus the derivative of the forces.

    Across the axis it uses unit vectors: a power of T, clamped separately from the vector, would
    make it indefinite near the apex.
    """
    e = _find_zones(cone, x)
    mu, w, d = cone.mu, e.w, x.shape[1]
    safe = jnp.where(e.T > 0, e.T, 1)
    k = mu * e.N / safe
    across = -mu[:, None] * e.away
    outer = k[:, None, None] * e.away[:, :, None] * e.away[:, None]
    outer = outer + (mu**2 - k)[:, None, None] * jnp.eye(d - 1, dtype=x.dtype)[None]
    square = _assemble_bordered(jnp.ones_like(mu), across, outer)
    sliding = e.Dm[:, None, None] * w[:, :, None] * w[:, None] * square
    own = (cone.D / mu**2)[:, None] * w**2
    sticking = own[:, :, None] * jnp.eye(d, dtype=x.dtype)[None]
    return jnp.where(
        e.bottom[:, None, None], sticking, jnp.where(e.middle[:, None, None], sliding, 0)
    )


def _assemble_bordered(corner: Array, border: Array, inner: Array) -> Array:
    """Return symmetric matrices [C, d, d] from a corner [C], a border and an inner block.

    They are concatenated, because a GPU launches a kernel for every block written into zeros.
    """
    first = jnp.concatenate([corner[:, None], border], 1)
    others = jnp.concatenate([border[:, :, None], inner], 2)
    return jnp.concatenate([first[:, None], others], 1)
