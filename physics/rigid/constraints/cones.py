"""Contacts as springs within a cone of friction, a pyramid or an ellipse, in their own frames.

x [C, d] is what a contact sees: along the normal, two tangents, one spin, two rolls, as many as its
dimension d has. Both cones have forces in this frame and a Hessian of d by d, so that one kernel
serves both. A contact that does not act has D = 0.
"""

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import pytree, static

from ..motion.inertia import HIGHEST


@pytree
class Cone:
    """C contacts of one dimension d."""

    elliptic: bool = static()  # whether the cone is an ellipse, not a pyramid
    J: Array  # [C, d, V]
    aref: Array  # [C, d]
    D: Array  # [C] of the edges of a pyramid, or of the normal of an ellipse
    friction: Array  # [C, d - 1]
    mu: Array  # [C] of the regularised cone, ellipses only

    def seen(self, a: Array) -> Array:
        """J a [C, d]."""
        return jnp.einsum("ckv,v->ck", self.J, a, precision=HIGHEST)

    def spread(self, f: Array) -> Array:
        """J^T f [V]."""
        return jnp.einsum("ckv,ck->v", self.J, f, precision=HIGHEST)

    def forces(self, x: Array) -> Array:
        """[C, d] in the frame of the contact."""
        if self.J.shape[1] == 1:
            return jnp.maximum(-self.D[:, None] * x, 0)
        if self.elliptic:
            return _ellipse(self, x).force
        plus, minus = _edges(self, x)
        push = self.D[:, None] * jnp.maximum(-plus, 0), self.D[:, None] * jnp.maximum(-minus, 0)
        normal = jnp.sum(push[0] + push[1], 1, keepdims=True)
        return jnp.concatenate([normal, self.friction * (push[0] - push[1])], 1)

    def curvature(self, x: Array) -> Array:
        """[C, d, d], minus the derivative of the forces by x."""
        if self.J.shape[1] == 1:
            return jnp.where(x < 0, self.D[:, None], 0)[:, :, None]
        if self.elliptic:
            return _ellipse_curvature(self, x)
        plus, minus = (jnp.where(e < 0, self.D[:, None], 0) for e in _edges(self, x))
        normal = jnp.sum(plus + minus, 1)
        across = self.friction * (plus - minus)
        own = self.friction**2 * (plus + minus)
        sides = own[:, :, None] * jnp.eye(own.shape[1], dtype=x.dtype)[None]
        return _bordered(normal, across, sides)

    @property
    def round(self) -> bool:
        """Whether the rows of a contact act together, as those of an ellipse do."""
        return self.elliptic and self.J.shape[1] > 1

    def edges(self, x: Array) -> Array:
        """What the edges of cones that are not round see, [C, 2 (d - 1)]; the normal alone."""
        return x if x.shape[1] == 1 else jnp.concatenate(_edges(self, x), 1)

    def zones(self, x: Array) -> Array:
        """Where the contacts of ellipses are in their cones, [C, 2]: sticking, sliding."""
        e = _ellipse(self, x)
        return jnp.stack([e.bottom, e.middle], 1)

    def along(self, x: Array, way: Array) -> Array:
        """Force along a way [C, d], summed."""
        return jnp.sum(self.forces(x) * way)

    def cost(self, x: Array) -> Array:
        """What the springs store, summed."""
        if self.J.shape[1] == 1:
            return 0.5 * jnp.sum(self.D[:, None] * jnp.minimum(x, 0) ** 2)
        if self.elliptic:
            return jnp.sum(_ellipse(self, x).cost)
        plus, minus = (jnp.minimum(edge, 0) ** 2 for edge in _edges(self, x))
        return 0.5 * jnp.sum(self.D[:, None] * (plus + minus))


def _edges(cone: Cone, x: Array) -> tuple[Array, Array]:
    """What the two edges of each direction of friction see, [C, d - 1] each."""
    side = cone.friction * x[:, 1:]
    return x[:, :1] + side, x[:, :1] - side


@pytree
class _Ellipse:
    """Where contacts are in their cones, and what follows."""

    w: Array  # [C, d] mu, friction
    N: Array  # [C] along the axis of the cone, all scaled
    T: Array  # [C] off it
    away: Array  # [C, d - 1] unit vector off the axis
    Dm: Array  # [C]
    bottom: Array  # [C] sticks
    middle: Array  # [C] slides
    force: Array  # [C, d]
    cost: Array  # [C]


def _ellipse(cone: Cone, x: Array) -> _Ellipse:
    """The three zones of a cone: apart, sliding on its surface, sticking."""
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
    return _Ellipse(
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


def _ellipse_curvature(cone: Cone, x: Array) -> Array:
    """Minus the derivative of the forces.

    Off the axis it is written with unit vectors: a power of T clamped apart from the vector would
    make it indefinite near the apex.
    """
    e = _ellipse(cone, x)
    mu, w, d = cone.mu, e.w, x.shape[1]
    safe = jnp.where(e.T > 0, e.T, 1)
    k = mu * e.N / safe
    across = -mu[:, None] * e.away
    outer = k[:, None, None] * e.away[:, :, None] * e.away[:, None]
    outer = outer + (mu**2 - k)[:, None, None] * jnp.eye(d - 1, dtype=x.dtype)[None]
    square = _bordered(jnp.ones_like(mu), across, outer)
    sliding = e.Dm[:, None, None] * w[:, :, None] * w[:, None] * square
    own = (cone.D / mu**2)[:, None] * w**2
    sticking = own[:, :, None] * jnp.eye(d, dtype=x.dtype)[None]
    return jnp.where(
        e.bottom[:, None, None], sticking, jnp.where(e.middle[:, None, None], sliding, 0)
    )


def _bordered(corner: Array, border: Array, inner: Array) -> Array:
    """Symmetric matrices [C, d, d] of their corner [C], the border beside it and what is within.

    Joined, and not written into zeros: a GPU launches a kernel for every piece that is written.
    """
    first = jnp.concatenate([corner[:, None], border], 1)
    others = jnp.concatenate([border[:, :, None], inner], 2)
    return jnp.concatenate([first[:, None], others], 1)
