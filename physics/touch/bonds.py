"""Points of one body on the shape of another: implicit contact of a hand, a part and a fixture.

The velocities of the scene are u [13], in this order,

    hand: velocity 3, spin 3;   half opening of the fingers: rate 1;   part: velocity 3, spin 3.

Relative to the owner of B points x_i the other body moves with the twist w = G u [6], its velocity
at the part's centre and its spin, so that its surface at x_i moves at v_i = J_i w, with
J_i = [1, -r_i x]. The law of the springs, with the distance d_i - dt n_i . v_i that there will be,
gives the force f_i on the owner, and -G^T sum J_i^T f_i on u. Where there is contact it grows with
v_i by dt K_i,

    K_i = k n n^T + k_t g w w^T + k_t s (1 - n n^T - w w^T),

w the way along which the surface slides, s the share of the springs' stretch that friction lets
stand, and g the secant from rest, what the stretch gains along w over the length of the slide: 1
where it sticks, 0 where it has slipped before. It is symmetric and never negative, so that the
matrix of the implicit step is positive whatever dt is, and the secant of a force that friction
bounds does not overshoot. With J_i^T n_i, J_i^T w_i and (1, r_i) the sums over the points are three
products of matrices, two 6 B 6 and one 4 B 4.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.geometry.rows import cross, dot, length
from jaxgpu.pytree import pytree

from .force_field import ForceField
from .pad import probe

HIGHEST = jax.lax.Precision.HIGHEST
HAND, OPENING, PART = slice(0, 6), 6, slice(7, 13)


@pytree
class Bonds:
    """Points of a body, held against the shape of another, frozen over a step."""

    distance: Array  # [B] m
    normal: Array  # [B, 3] out of the shape
    arm: Array  # [B, 3] from the part's centre, m
    sign: Array  # [B] -1 where the part is the owner of the point, and moves against the twist
    twist: Array  # [6, 13] G
    anchors: Array  # [B, 3] m

    def load(self, law: ForceField, u: Array, dt: Array | float) -> tuple[Array, Array]:
        """Force [13] on u, and how it falls with u, [13, 13]."""
        velocity = self.velocity(u)
        force, anchors = self.forces(law, velocity, dt)
        force = self.sign[:, None] * force
        wrench = jnp.concatenate([jnp.sum(force, 0), jnp.sum(cross(self.arm, force), 0)])
        stiffness = dt * self._stiffness(law, velocity, anchors, dt)
        half = jnp.einsum("ij,jv->iv", stiffness, self.twist, precision=HIGHEST)
        return (
            -jnp.einsum("iv,i->v", self.twist, wrench, precision=HIGHEST),
            jnp.einsum("iv,iw->vw", self.twist, half, precision=HIGHEST),
        )

    def velocity(self, u: Array) -> Array:
        """Of the other body's surface relative to the owner, [B, 3] m/s."""
        w = jnp.einsum("iv,v->i", self.twist, u, precision=HIGHEST)
        return self.sign[:, None] * (
            w[None, :3] + cross(jnp.broadcast_to(w[3:], self.arm.shape), self.arm)
        )

    def forces(self, law: ForceField, velocity: Array, dt: Array | float) -> tuple[Array, Array]:
        """On the owner at each point [B, 3], N, and the new anchors [B, 3]."""
        ahead = self.distance - dt * dot(self.normal, velocity)
        return law.force(self.anchors, ahead, self.normal, velocity, dt)

    def _stiffness(self, law: ForceField, velocity: Array, anchors: Array, dt: Any) -> Array:
        """Sum of J^T K J over the points, [6, 6]."""
        along = dot(self.normal, velocity)
        touching = self.distance < dt * along
        slide = dt * (velocity - along[:, None] * self.normal)
        path, held = length(slide), length(anchors)
        moves = path > 0
        way = slide / jnp.where(moves, path, 1)[:, None]
        stretch = length(self.anchors + slide)
        share = jnp.where(held < stretch, held / jnp.where(stretch > 0, stretch, 1), 1)
        gain = dot(way, anchors - self.anchors) / jnp.where(moves, path, 1)
        gain = jnp.where(moves, jnp.clip(gain, 0, 1), 1)
        pull = jnp.where(touching, law.stiffness, 0).astype(share.dtype)
        shear = jnp.where(touching, law.shear_stiffness * share, 0)
        on_way = jnp.where(moves & touching, law.shear_stiffness * gain - shear, 0)
        p, s = (jnp.concatenate([a, cross(self.arm, a)], 1) for a in (self.normal, way))
        q = jnp.concatenate([jnp.ones_like(self.arm[:, :1]), self.arm], 1)
        gram = lambda k, a: jnp.einsum("bi,bj->ij", k[:, None] * a, a, precision=HIGHEST)
        return gram(pull - shear, p) + gram(on_way, s) + _isotropic(gram(shear, q))


def _isotropic(sums: Array) -> Array:
    """Sum of k J^T J [6, 6] of points, of sum k q q^T [4, 4]."""
    one, (x, y, z) = jnp.eye(3, dtype=sums.dtype), sums[0, 1:]
    zero = jnp.zeros_like(x)
    skew = jnp.stack([jnp.stack(row) for row in ((zero, -z, y), (z, zero, -x), (-y, x, zero))])
    square = sums[1:, 1:]
    return jnp.block([[sums[0, 0] * one, -skew], [skew, jnp.trace(square) * one - square]])


def seen(shape: Any, x: Array, pos: Array, quat: Array) -> tuple[Array, Array]:
    """Distance [B] and normal [B, 3] of a shape at `pos` and `quat`, at points x [B, 3]."""
    still = jnp.zeros_like(pos)
    return probe(shape, x, pos, quat, still, still)[:2]


def of_part(dtype: Any) -> Array:
    """G [6, 13] of the part in space."""
    return jnp.eye(13, dtype=dtype)[PART]


def of_part_from_finger(arm: Array, out: Array) -> Array:
    """G [6, 13] of the part seen from a finger.

    Args:
        arm: [3] from the hand's centre to the part's, m.
        out: [3] the way in which the finger opens, a unit vector.
    """
    zero = jnp.zeros_like(arm[0])
    x, y, z = arm
    # spin x arm = -[arm] spin, taken away
    skew = jnp.stack([jnp.stack(row) for row in ((zero, -z, y), (z, zero, -x), (-y, x, zero))])
    one, none = jnp.eye(3, dtype=arm.dtype), jnp.zeros((3, 3), arm.dtype)
    hand = jnp.block([[-one, skew], [none, -one]])
    opening = jnp.concatenate([-out, jnp.zeros_like(out)])[:, None]
    return jnp.concatenate([hand, opening, of_part(arm.dtype)[:, PART]], 1)
