"""Implicit contact of a hand, a part and a fixture: points of one body on the shape of another.

The velocities of the scene are u [13], in this order,

    hand: velocity 3, spin 3;   half opening of the fingers: rate 1;   part: velocity 3, spin 3.

Relative to the owner of B points x_i the other body moves with the twist w = G u [6], its velocity
at the part's centre and its spin. Its surface at x_i moves at v_i = J_i w, with J_i = [1, -r_i x].
The law of the springs, at the distance d_i - dt n_i . v_i after the step, gives the force f_i on
the owner, and -G^T sum J_i^T f_i on u. In contact, f_i grows with v_i by dt K_i,

    K_i = k n n^T + k_t g w w^T + k_t s (1 - n n^T - w w^T),

where w is here the direction in which the surface slides, and s the fraction of the springs'
stretch that friction allows. The secant g from rest is the gain of stretch along w divided by the
length of the slide: 1 where the point sticks, 0 where it slipped before. K_i is symmetric and
positive semidefinite, so the matrix of the implicit step is positive definite for any dt, and the
secant of a force that friction bounds does not overshoot. With J_i^T n_i, J_i^T w_i and (1, r_i)
the sums over the points are three matrix products, two 6 B 6 and one 4 B 4.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.geometry.vectors import Vec, cross, dot, length
from jaxgpu.inputs.fields import pytree, size

from .force_field import ForceField

HIGHEST = jax.lax.Precision.HIGHEST
HAND, OPENING, PART = slice(0, 6), 6, slice(7, 13)


@pytree
class ContactPoints:
    """Contact points of bodies on the shapes of others, frozen over a step.

    All points are evaluated together. The first 2 T are the taxels of both fingers, which the part
    touches. At the others part and fixture or table touch each other. Vectors have components [B].
    """

    distance: Array  # [B] m
    normal: Vec  # out of the shape
    arm: Vec  # from the part's centre, m
    sign: Array  # [B] -1 where the part owns the point, and moves against the twist
    twists: Array  # [3, 6, 13] G of either finger, and of the fixture
    anchors: Vec  # m
    laws: ForceField  # of each point, [B]
    taxels: int = size(least=1)  # T, per finger

    def load(self, u: Array, dt: Array | float) -> tuple[Array, Array]:
        """Return the force [13] on u, and minus its derivative [13, 13] by u."""
        # Fused into the kernels that use them, these values would take a CPU 1.15 times as long.
        velocity = jax.lax.optimization_barrier(self.velocity(u))
        force, anchors = jax.lax.optimization_barrier(self.forces(velocity, dt))
        force = tuple(self.sign * a for a in force)
        wrenches = self._apply_per_group(_sum_points, jnp.stack([*force, *cross(self.arm, force)]))
        stiffness = dt * self._sum_stiffness(velocity, anchors, dt)
        half = jnp.einsum("gij,gjv->giv", stiffness, self.twists, precision=HIGHEST)
        return (
            -jnp.einsum("giv,gi->v", self.twists, wrenches, precision=HIGHEST),
            jnp.einsum("giv,giw->vw", self.twists, half, precision=HIGHEST),
        )

    def velocity(self, u: Array) -> Vec:
        """Return the velocity of the other body's surface relative to the owner, m/s."""
        w = jnp.einsum("giv,v->gi", self.twists, u, precision=HIGHEST)
        i = jnp.arange(len(self.sign))
        left, pads = i < self.taxels, i < 2 * self.taxels
        w = tuple(self.sign * jnp.where(left, a, jnp.where(pads, b, c)) for a, b, c in w.T)
        return tuple(a + b for a, b in zip(w[:3], cross(w[3:], self.arm)))

    def forces(self, velocity: Vec, dt: Array | float) -> tuple[Vec, Vec]:
        """Return the forces on the owner at each point, N, and the new anchors."""
        ahead = self.distance - dt * dot(self.normal, velocity)
        return self.laws.force_components(self.anchors, ahead, self.normal, velocity, dt)

    def _sum_stiffness(self, velocity: Vec, anchors: Vec, dt: Any) -> Array:
        """Return the sums [3, 6, 6] of J^T K J over the points of each twist."""
        along = dot(self.normal, velocity)
        touching = self.distance < dt * along
        slide = tuple(dt * (v - along * n) for v, n in zip(velocity, self.normal))
        path, held = length(slide), length(anchors)
        moves = path > 0
        way = tuple(a / jnp.where(moves, path, 1) for a in slide)
        stretch = length(tuple(a + b for a, b in zip(self.anchors, slide)))
        share = jnp.where(held < stretch, held / jnp.where(stretch > 0, stretch, 1), 1)
        gained = tuple(a - b for a, b in zip(anchors, self.anchors))
        gain = dot(way, gained) / jnp.where(moves, path, 1)
        gain = jnp.where(moves, jnp.clip(gain, 0, 1), 1)
        pull = jnp.where(touching, self.laws.stiffness, 0)
        shear = jnp.where(touching, self.laws.shear_stiffness * share, 0)
        on_way = jnp.where(moves & touching, self.laws.shear_stiffness * gain - shear, 0)
        out, on = (jnp.stack([*a, *cross(self.arm, a)]) for a in (self.normal, way))
        all_ways = jnp.stack([jnp.ones_like(along), *self.arm])
        alike = self._apply_per_group(_gram, shear[None], all_ways[None])
        weights, ways = jnp.stack([pull - shear, on_way]), jnp.stack([out, on])
        return self._apply_per_group(_gram, weights, ways) + jax.vmap(_isotropic_stiffness)(alike)

    def _apply_per_group(self, f: Callable[..., Array], *points: Array) -> Array:
        """Apply f to the points [..., N] of each finger, and to the others; return [3, ...]."""
        count = 2 * self.taxels
        fingers = (a[..., :count].reshape(*a.shape[:-1], 2, self.taxels) for a in points)
        standing = f(*(a[..., count:] for a in points))
        return jnp.concatenate([jax.vmap(f, in_axes=-2)(*fingers), standing[None]])


def _sum_points(a: Array) -> Array:
    return jnp.sum(a, -1)


def _gram(weights: Array, ways: Array) -> Array:
    """Return the sum of k a a^T [I, I] over weights [K, N] and vectors [K, I, N]."""
    return jnp.einsum("kin,kjn->ij", weights[:, None] * ways, ways, precision=HIGHEST)


def _isotropic_stiffness(sums: Array) -> Array:
    """Return the sum of k J^T J [6, 6] over points, from the sum of k q q^T [4, 4]."""
    one, (x, y, z) = jnp.eye(3, dtype=sums.dtype), sums[0, 1:]
    zero = jnp.zeros_like(x)
    skew = jnp.stack([jnp.stack(row) for row in ((zero, -z, y), (z, zero, -x), (-y, x, zero))])
    square = sums[1:, 1:]
    return jnp.block([[sums[0, 0] * one, -skew], [skew, jnp.trace(square) * one - square]])


def part_twist(dtype: Any) -> Array:
    """Return G [6, 13] of the part in space."""
    return jnp.eye(13, dtype=dtype)[PART]


def finger_twist(arm: Array, out: Array) -> Array:
    """Return G [6, 13] of the part relative to a finger.

    Args:
        arm: [3] from the hand's centre to the part's, m.
        out: [3] the direction in which the finger opens, a unit vector.
    """
    zero = jnp.zeros_like(arm[0])
    x, y, z = arm
    # spin x arm = -[arm] spin is subtracted
    skew = jnp.stack([jnp.stack(row) for row in ((zero, -z, y), (z, zero, -x), (-y, x, zero))])
    one, none = jnp.eye(3, dtype=arm.dtype), jnp.zeros((3, 3), arm.dtype)
    hand = jnp.block([[-one, skew], [none, -one]])
    opening = jnp.concatenate([-out, jnp.zeros_like(out)])[:, None]
    return jnp.concatenate([hand, opening, part_twist(arm.dtype)[:, PART]], 1)
