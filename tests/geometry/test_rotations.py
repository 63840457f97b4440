"""Rotations against SciPy and against small steps; quaternions are (w, x, y, z)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from jaxgpu.geometry import rotations

RNG = np.random.default_rng(3)
P, Q = RNG.normal(size=(2, 4))
P, Q = P / np.linalg.norm(P), Q / np.linalg.norm(Q)
X = RNG.normal(size=(3, 6))


def scipy_of(q):
    return Rotation.from_quat(q, scalar_first=True)


def test_a_quaternion_turns_the_body_into_space(x64):
    x = tuple(jnp.asarray(X))
    there = rotations.rotate(jnp.asarray(Q), x)
    np.testing.assert_allclose(jnp.stack(there, 1), scipy_of(Q).apply(X.T), atol=1e-14)
    np.testing.assert_allclose(rotations.rotate_inverse(jnp.asarray(Q), there), X, atol=1e-14)


def test_products_matrices_and_vectors_are_scipys(x64):
    both = jnp.stack(rotations.product(jnp.asarray(P), jnp.asarray(Q)))
    want = (scipy_of(P) * scipy_of(Q)).as_matrix()
    np.testing.assert_allclose(jnp.array(rotations.matrix(both)), want, atol=1e-14)
    again = rotations.from_matrix(jnp.asarray(want))
    np.testing.assert_allclose(jnp.array(rotations.matrix(again)), want, atol=1e-14)
    for size in (0.0, 1e-9, 1e-5, 0.3, 3.0):
        vector = size * X[:, 0] / np.linalg.norm(X[:, 0])
        got = jnp.stack(rotations.from_rotvec(jnp.asarray(vector)))
        want = Rotation.from_rotvec(vector).as_quat(scalar_first=True)
        np.testing.assert_allclose(got, want, atol=1e-15)


def test_quaternions_of_half_turns_and_turns_close_to_them(x64):
    """The real part is zero or small there, so one of three other rows must be selected."""
    axes = np.concatenate([np.eye(3), np.eye(3) + 0.4, RNG.normal(size=(20, 3))])
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    angles = np.pi - np.array([0.0, 1e-8, 1e-3, -1e-3, 0.1])
    turns = Rotation.from_rotvec((angles[:, None, None] * axes).reshape(-1, 3))
    got = np.asarray(jax.jit(jax.vmap(rotations.from_matrix))(turns.as_matrix()))
    want = turns.as_quat(scalar_first=True)
    largest = np.take_along_axis(want, np.abs(want).argmax(1)[:, None], 1)
    # If two components have the same size, either may count as the largest.
    sign = np.sign(np.sum(got * want, 1, keepdims=True))
    assert np.all((sign == np.sign(largest)) | (np.abs(largest) < 0.71))
    np.testing.assert_allclose(got, sign * want, atol=2e-15)


def test_axes_may_follow_the_components(x64):
    many = jnp.asarray(RNG.normal(size=(4, 2, 5)))
    got = jnp.array(rotations.matrix(many))
    for i, j in ((0, 0), (1, 3)):
        want = scipy_of(np.asarray(many[:, i, j])).as_matrix()
        np.testing.assert_allclose(got[:, :, i, j], want, atol=1e-14)


@pytest.mark.parametrize("d", [2, 3])
def test_a_constant_spin_turns_by_its_angle(x64, d):
    turn = jnp.array([0.4]) if d == 2 else jnp.asarray(Q)
    spin = jnp.array([1.7]) if d == 2 else jnp.array([0.3, -1.1, 0.8])
    rotated = jax.jit(rotations.integrate)
    parts = turn
    for _ in range(10):
        parts = rotated(parts, spin, 0.05)
    np.testing.assert_allclose(rotated(turn, spin, 0.5), parts, atol=1e-14)

    @jax.jit
    def speeds(dt):
        """Return the velocity of a point as a derivative, and as computed from the spin."""
        point = tuple(X[:d, 0])
        rotate_by = lambda dt: jnp.stack(
            rotations.rotate(rotations.integrate(turn, spin, dt), point)
        )
        arm = rotations.rotate(turn, point)
        return jax.jacfwd(rotate_by)(dt), jnp.stack(rotations.cross(spin, arm))

    np.testing.assert_allclose(*speeds(0.0), atol=1e-14)
