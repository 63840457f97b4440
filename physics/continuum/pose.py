"""Rotations of the plane (an angle, [1]) and of space (a unit quaternion, [4]) on component tuples.

Quaternions are (w, x, y, z) and turn a vector of the tool's own frame into one of space.
"""

import jax.numpy as jnp
from jax import Array

from jaxgpu.physics.continuum.tensor import Mat, Vec, matvec, transpose


def upright(d: int, dtype) -> Array:
    """No rotation: angle 0 or quaternion 1."""
    return jnp.zeros(1, dtype) if d == 2 else jnp.zeros(4, dtype).at[0].set(1)


def matrix(turn: Array) -> Mat:
    """Rotation matrix, entries of shape [].

    >>> [[int(a) for a in row] for row in matrix(jnp.array([0.0, 0.0, 0.0, 1.0]))]
    [[-1, 0, 0], [0, -1, 0], [0, 0, 1]]
    """
    if turn.shape == (1,):
        c, s = jnp.cos(turn[0]), jnp.sin(turn[0])
        return ((c, -s), (s, c))
    w, x, y, z = turn / jnp.sqrt(jnp.sum(turn * turn))
    return (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )


def turned(turn: Array, a: Vec) -> Vec:
    """A vector of the tool's frame, in space."""
    return matvec(matrix(turn), a)


def unturned(turn: Array, a: Vec) -> Vec:
    """A vector of space, in the tool's frame."""
    return matvec(transpose(matrix(turn)), a)


def cross(spin: Array, arm: Vec) -> Vec:
    """Velocity spin x arm of points on a turning body."""
    if len(arm) == 2:
        return (-spin[0] * arm[1], spin[0] * arm[0])
    return _cross(spin, arm)


def moment(arm: Vec, p: Vec) -> Vec:
    """arm x p: one component in the plane, three in space."""
    if len(arm) == 2:
        return (arm[0] * p[1] - arm[1] * p[0],)
    return _cross(arm, p)


def _cross(a, b) -> Vec:
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def rotated(turn: Array, spin: Array, dt) -> Array:
    """Orientation after dt at constant angular velocity, exactly."""
    if turn.shape == (1,):
        return turn + dt * spin
    half = 0.5 * dt * spin
    square = jnp.sum(half * half)
    some = square > 1e-12
    angle = jnp.sqrt(jnp.where(some, square, 1))
    # sin(a) / a by its series near zero, where the root has no slope
    ratio = jnp.where(some, jnp.sin(angle) / angle, 1 - square / 6)
    c = jnp.where(some, jnp.cos(angle), 1 - square / 2)
    x, y, z = ratio * half
    w0, x0, y0, z0 = turn
    new = jnp.stack(
        [
            c * w0 - x * x0 - y * y0 - z * z0,
            c * x0 + x * w0 + y * z0 - z * y0,
            c * y0 - x * z0 + y * w0 + z * x0,
            c * z0 + x * y0 - y * x0 + z * w0,
        ]
    )
    return new / jnp.sqrt(jnp.sum(new * new))


def spun(turn: Array, spin: Array, inertia: Array, torque: Array, dt) -> Array:
    """Angular velocity after an angular impulse and the gyroscopic torque of dt."""
    if turn.shape == (1,):
        return spin + torque / inertia
    own = jnp.stack(unturned(turn, tuple(spin)))
    push = jnp.stack(unturned(turn, tuple(torque)))
    gyroscopic = jnp.stack(_cross(inertia * own, own))
    return jnp.stack(turned(turn, tuple(own + (push + dt * gyroscopic) / inertia)))
