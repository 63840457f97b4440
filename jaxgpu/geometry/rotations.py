"""Rotations of the plane (an angle, [1]) and of space (a unit quaternion, [4]) on component tuples.

All functions use one convention: a quaternion is (w, x, y, z), with the real part first and
Hamilton's product, and it rotates a vector from the body frame to the space frame. Axes may follow
the components of a quaternion, [4, ...], and are preserved.
"""

import jax.numpy as jnp
from jax import Array

from . import vectors
from .vectors import Mat, Vec, matvec, transpose


def identity(d: int, dtype) -> Array:
    """Return the identity rotation: angle 0 or quaternion 1."""
    return jnp.zeros(1, dtype) if d == 2 else jnp.zeros(4, dtype).at[0].set(1)


def matrix(turn: Array) -> Mat:
    """Return the rotation matrix, with entries of shape [...]; a quaternion is normalised first.

    >>> [[int(a) for a in row] for row in matrix(jnp.array([0.0, 0.0, 0.0, 1.0]))]
    [[-1, 0, 0], [0, -1, 0], [0, 0, 1]]
    """
    if turn.shape == (1,):
        c, s = jnp.cos(turn[0]), jnp.sin(turn[0])
        return ((c, -s), (s, c))
    w, x, y, z = unit(turn)
    return (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )


def unit(turn: Array) -> Array:
    """Normalise a quaternion [4, ...] to length one."""
    return turn / jnp.sqrt(jnp.sum(turn * turn, 0))[None]


def product(a, b) -> Vec:
    """Return the product a b of two quaternions, which rotates by b and then by a."""
    (p, q, r, s), (w, x, y, z) = a, b
    return (
        p * w - q * x - r * y - s * z,
        p * x + q * w + r * z - s * y,
        p * y - q * z + r * w + s * x,
        p * z + q * y - r * x + s * w,
    )


def from_rotvec(angle: Array) -> Vec:
    """Return the unit quaternion of a rotation vector [3, ...]: an axis times the angle, rad."""
    half = 0.5 * angle
    square = jnp.sum(half * half, 0)
    turning = square > 1e-12
    size = jnp.sqrt(jnp.where(turning, square, 1))
    # sin(a) / a by its series near zero, where the root is not differentiable
    ratio = jnp.where(turning, jnp.sin(size) / size, 1 - square / 6)
    c = jnp.where(turning, jnp.cos(size), 1 - square / 2)
    return (c, *(ratio[None] * half))


def from_matrix(R: Array) -> Array:
    """Return the unit quaternion [4] of a rotation matrix [3, 3], its largest component positive.

    >>> from_matrix(jnp.diag(jnp.array([-1.0, -1.0, 1.0]))).tolist()
    [0.0, 0.0, 0.0, 1.0]
    """
    (a, b, c), (d, e, f), (g, h, i) = R
    outer = jnp.array(  # 4 q q^T
        [
            [1 + a + e + i, h - f, c - g, d - b],
            [h - f, 1 + a - e - i, b + d, c + g],
            [c - g, b + d, 1 - a + e - i, f + h],
            [d - b, c + g, f + h, 1 - a - e + i],
        ]
    )
    return unit(outer[jnp.argmax(jnp.diagonal(outer))])


def rotate(turn: Array, a: Vec) -> Vec:
    """Rotate a vector from the body frame to the space frame."""
    return matvec(matrix(turn), a)


def rotate_inverse(turn: Array, a: Vec) -> Vec:
    """Rotate a vector from the space frame to the body frame."""
    return matvec(transpose(matrix(turn)), a)


def cross(spin: Array, arm: Vec) -> Vec:
    """Return the velocity spin x arm of points on a rotating body."""
    if len(arm) == 2:
        return (-spin[0] * arm[1], spin[0] * arm[0])
    return vectors.cross(spin, arm)


def moment(arm: Vec, p: Vec) -> Vec:
    """Return arm x p: one component in the plane, three in space."""
    if len(arm) == 2:
        return (arm[0] * p[1] - arm[1] * p[0],)
    return vectors.cross(arm, p)


def integrate(turn: Array, spin: Array, dt) -> Array:
    """Return the orientation after dt at constant angular velocity, exactly."""
    if turn.shape == (1,):
        return turn + dt * spin
    return unit(jnp.stack(product(from_rotvec(dt * spin), turn)))


def momentum(turn: Array, spin: Array, inertia: Array) -> Array:
    """Return the angular momentum [3] of a body with angular velocity `spin`, both in space frame.

    inertia: [3] its principal moments, kg m^2.
    """
    return _apply_principal_moments(turn, spin, inertia)


def angular_velocity(turn: Array, momentum: Array, inertia: Array) -> Array:
    """Return the angular velocity [3], rad/s, of an angular momentum: the inverse of `momentum`.

    >>> turn, moments = identity(3, jnp.float32), jnp.array([1.0, 2.0, 4.0])
    >>> angular_velocity(turn, momentum(turn, jnp.array([1.0, 5.0, 2.0]), moments), moments)
    Array([1., 5., 2.], dtype=float32)
    """
    return _apply_principal_moments(turn, momentum, 1 / inertia)


def _apply_principal_moments(turn: Array, a: Array, moments: Array) -> Array:
    own = rotate_inverse(turn, tuple(a))
    return jnp.stack(rotate(turn, tuple(moments[i] * w for i, w in enumerate(own))))


def free_rotation(turn: Array, momentum: Array, inertia: Array, dt) -> Array:
    """Return the orientation [4] after dt of a body on which no torque acts, in space.

    The energy is |L|^2 c / 2, where c is the middle of the three 1 / I, plus a term per principal
    axis, L_i^2 (1 / I_i - c) / 2. Each term alone generates a known rotation: about L, or about the
    axis. The first commutes with all; the others are applied forwards and backwards, each at half
    the angle (Touma & Wisdom 1994, doi:10.1086/116931; Strang splitting). So L is conserved exactly
    and the motion of a symmetric top is exact. The relative energy error of other bodies is at most
    (|spin| dt)^2 / 50 (400 random bodies) and does not grow with time.
    """
    rates = 1 / inertia
    low, high = jnp.minimum(rates[0], rates[1]), jnp.maximum(rates[0], rates[1])
    middle = jnp.maximum(low, jnp.minimum(high, rates[2]))
    turn = integrate(turn, middle * momentum, dt)
    for axis, share in ((0, 0.5), (1, 0.5), (2, 1.0), (1, 0.5), (0, 0.5)):
        own = rotate_inverse(turn, tuple(momentum))[axis]
        turn = _rotate_about_body_axis(turn, axis, share * dt * (rates[axis] - middle) * own)
    return unit(turn)


def _rotate_about_body_axis(turn: Array, axis: int, angle: Array) -> Array:
    """Rotate a quaternion by an angle about one of the body's own axes."""
    c, s = jnp.cos(angle / 2), jnp.sin(angle / 2)
    j, k = (axis + 1) % 3 + 1, (axis + 2) % 3 + 1
    i = axis + 1
    new = {0: c * turn[0] - s * turn[i], i: c * turn[i] + s * turn[0]}
    new |= {j: c * turn[j] + s * turn[k], k: c * turn[k] - s * turn[j]}
    return jnp.stack([new[n] for n in range(4)])
