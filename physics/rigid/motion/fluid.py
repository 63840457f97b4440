"""Forces of the surrounding fluid: on a body's inertia box, or on its geoms as ellipsoids.

They are MuJoCo's two models (doi:10.1109/IROS.2012.6386109 and its manual's chapter on fluid
forces). Both are functions of the linear and angular velocity of a point in a body-fixed frame,
and the rest of this module treats them alike.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..models.mechanism import Mechanism
from .inertia import HIGHEST, Motion
from .poses import Poses, cross, quat_mul, quat_to_mat


@dataclass(frozen=True)
class FluidPoints:
    """N points at which the fluid exerts a force."""

    body: np.ndarray | slice  # [N]
    at: Array  # [3, N] m
    frame: Array  # [3, 3, N]
    law: Callable[[Array], Array]  # angular, linear velocity [6, N] in the frame to torque, force

    def velocity(self, m: Motion, wind: Array) -> Array:
        """Return angular and linear velocity [6, N] relative to the fluid, in the frame."""
        turn, shift = m.velocity[:3, self.body], m.velocity[3:, self.body]
        shift = shift + cross(turn, self.at - m.origin[:, self.body]) - wind[:, None]
        return jnp.concatenate([self.from_world(turn), self.from_world(shift)])

    def slope(self, v: Array) -> Array:
        """Return the derivative [6, 6, N] of torque and force by angular and linear velocity."""
        seeds = jnp.broadcast_to(jnp.eye(6, dtype=v.dtype)[:, :, None], (6, *v.shape))
        return jax.vmap(lambda seed: jax.jvp(self.law, (v,), (seed,))[1], out_axes=1)(seeds)

    def from_world(self, a: Array) -> Array:
        """Rotate world vectors [3, N, ...] into the frame."""
        frame = self.frame.reshape(*self.frame.shape, *(1,) * (a.ndim - 2))
        return jnp.sum(frame * a[:, None], 0)


def forces(model: Mechanism, where: Poses, m: Motion) -> Array:
    """Return the fluid forces [V]."""
    total = jnp.zeros(model.layout.nv, where.pos.dtype)
    for wet in _fluid_points(model, where):
        moment, force = jnp.split(wet.law(wet.velocity(m, model.option.wind)), 2)
        to_world = lambda a, wet=wet: jnp.sum(wet.frame * a[None], 1)
        total = total + m.dof_forces(
            model.layout, wet.body, wet.at, to_world(moment), to_world(force)
        )
    return total


def resistance(model: Mechanism, where: Poses, m: Motion) -> Array:
    """Return minus the derivative [V, V] of the forces by velocities, at fixed coordinates.

    As in MuJoCo's implicitfast, the matrix of each point is made symmetric, except for free bodies
    without children.
    """
    layout = model.layout
    alone = np.isin(np.arange(layout.nbody), layout.dof_body[layout.lone_dofs])
    total = jnp.zeros((layout.nv, layout.nv), where.pos.dtype)
    for wet in _fluid_points(model, where):
        v = wet.velocity(m, model.option.wind)
        B = wet.slope(v)
        B = jnp.where(alone[wet.body], B, (B + B.swapaxes(0, 1)) / 2)
        shift, turn = m.jacobian(layout, wet.at, jnp.asarray(layout.moves_body[wet.body], v.dtype))
        J = jnp.concatenate([wet.from_world(turn), wet.from_world(shift)])
        total = total - jnp.einsum("knv,kln,lnw->vw", J, B, J, precision=HIGHEST)
    return total


def _fluid_points(model: Mechanism, where: Poses) -> list[FluidPoints]:
    """Return the boxes of bodies, and the geoms as ellipsoids, if there are any."""
    layout, geoms, bodies = model.layout, model.geoms, model.bodies
    shapes = np.array(layout.geom_wet, int)
    of_shape = np.array(layout.geom_body, int)[shapes]
    out = []
    boxes = np.setdiff1d(np.arange(layout.nbody), of_shape) if shapes.size else slice(None)
    if layout.nbody > len(set(of_shape)) + 1:  # the world has no box
        frame = quat_to_mat(quat_mul(where.quat[:, boxes], bodies.iquat[boxes].T))
        out.append(
            FluidPoints(
                boxes, where.centre[:, boxes], frame, lambda v: _box_forces(model, boxes, v)
            )
        )
    if shapes.size:
        at, quat = where.to_world(of_shape, geoms.pos[shapes], geoms.quat[shapes])
        out.append(
            FluidPoints(
                of_shape, at, quat_to_mat(quat), lambda v: _ellipsoid_forces(model, shapes, v)
            )
        )
    return out


def _box_forces(model: Mechanism, body: np.ndarray | slice, v: Array) -> Array:
    """Return torques and forces [6, N] on the inertia boxes of bodies.

    f_i = -3 beta pi s v_i - rho b_j b_k |v_i| v_i / 2 and
    g_i = -beta pi s^3 w_i - rho b_i (b_j^4 + b_k^4) |w_i| w_i / 64
    along the principal axes, with b the sides of the box and s their mean, rho the density, beta
    the viscosity.
    """
    w, v = jnp.split(v, 2)
    mass, i = model.bodies.mass[body], model.bodies.inertia[body].T
    heavy = mass > 1e-15
    mass = jnp.where(heavy, mass, 1)
    other = jnp.stack([i[1] + i[2] - i[0], i[0] + i[2] - i[1], i[0] + i[1] - i[2]])
    b = jnp.sqrt(jnp.maximum(6 * other / mass[None], 1e-15))
    s = jnp.mean(b, 0)[None]
    rho, beta = model.option.density, model.option.viscosity
    fourth = b**4
    pairs = jnp.sum(fourth, 0)[None] - fourth
    force = -3 * beta * np.pi * s * v - 0.5 * rho * _other_products(b) * jnp.abs(v) * v
    moment = -beta * np.pi * s**3 * w - rho / 64 * b * pairs * jnp.abs(w) * w
    return jnp.where(heavy[None], jnp.concatenate([moment, force]), 0)


def _ellipsoid_forces(model: Mechanism, geom: np.ndarray, v: Array) -> Array:
    """Return torques and forces [6, N] on geoms, as ellipsoids with semi-axes r.

    The added mass m_A and inertia I_A give the force rho (m_A v) x w and the torque
    rho ((m_A v) x v + (I_A w) x w). The Magnus lift is c_M rho V w x v. With u = v / |v|,
    q_i = r_j r_k and the projected area A = pi sqrt(sum q^4 u^2 / sum q^2 u^2), the Kutta lift is
    c_K rho A |v|^2 (sum q^2 u^2 / sum q^4 u^2) ((q^2 u) x u) x u. The drag is Stokes drag on a
    sphere of the mean size, plus rho |v| (c_b A + c_s (A_max - A)) v. The drag torque about each
    axis has the same form, with the largest moments of area.
    """
    w, v = jnp.split(v, 2)
    c = model.geoms.fluid.T  # [12, N]
    blunt, slender, angular, kutta, magnus = (c[k][None] for k in range(1, 6))
    r = _semi_axes(model, geom)
    rho, beta = model.option.density, model.option.viscosity
    speed = _norm(v)
    u = v / jnp.where(speed > 0, speed, 1)

    along = c[6:9] * v
    moment = cross(along, v) + cross(c[9:12] * w, w)
    force = cross(along, w) + magnus * (4 / 3 * np.pi) * jnp.prod(r, 0)[None] * cross(w, v)

    q = _other_products(r)
    largest = jnp.max(q, 0, keepdims=True)
    q = (q / largest) ** 2
    second, fourth = _sum_components(q * u * u), _sum_components(q * q * u * u)
    second, fourth = (jnp.where(speed > 0, x, 1) for x in (second, fourth))
    area = np.pi * largest * jnp.sqrt(fourth / second)
    lift = cross(cross(q * u, u), u) * (second / fourth)
    force = force + kutta * area * speed * speed * lift
    drag = blunt * area + slender * (np.pi * largest - area)
    force = rho * (force - drag * speed * v)

    wide = jnp.sort(r, 0)
    most = 8 / 15 * np.pi * (wide[1] * wide[2] ** 4)[None]
    across = jnp.maximum(jnp.roll(r, -1, 0), jnp.roll(r, -2, 0))
    about = 8 / 15 * np.pi * r * across**4
    turned = _norm(w * (angular * about + slender * (most - about)))
    moment = rho * (moment - turned * w)

    width = 2 / 3 * _sum_components(r)
    viscous = -beta * np.pi * jnp.concatenate([width**3 * w, 3 * width * v])
    return c[:1] * (jnp.concatenate([moment, force]) + viscous)


def _semi_axes(model: Mechanism, geom: np.ndarray) -> Array:
    """Return the semi-axes [3, N] of the ellipsoids that represent geoms."""
    size = model.geoms.size[geom]
    kind = np.array(model.layout.geom_kind)[geom]
    x, y, z = size.T
    rod = (kind == "capsule") | (kind == "cylinder")
    thick = jnp.where((kind == "sphere") | rod, x, y)
    long = jnp.where(rod, jnp.where(kind == "capsule", x + y, y), z)
    return jnp.stack([x, thick, jnp.where(kind == "sphere", x, long)])


def _other_products(a: Array) -> Array:
    """Return the products [3, N] of the two other components."""
    return jnp.stack([a[1] * a[2], a[0] * a[2], a[0] * a[1]])


def _sum_components(a: Array) -> Array:
    return jnp.sum(a, 0, keepdims=True)


def _norm(a: Array) -> Array:
    """Return the norms [1, N]; their derivative at zero is zero."""
    square = _sum_components(a * a)
    return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1)), 0)
