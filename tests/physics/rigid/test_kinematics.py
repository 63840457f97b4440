"""Where links are, against products of homogeneous matrices, and how they move."""

import conformance
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rigid_mechanisms import MUJOCO, arm
from scipy.spatial.transform import Rotation

from jaxgpu.physics.rigid import forward_kinematics, from_mjcf
from jaxgpu.physics.rigid.kinematics import inward, link_velocities, outward, project

KINEMATICS = jax.jit(forward_kinematics)


def by_matrices(tree, q):
    """4 by 4 matrices, one joint at a time, with SciPy's rotations."""
    places = []
    for i, (parent, joint, start) in enumerate(zip(tree.parent, tree.joint, tree.starts)):
        T = np.eye(4)
        axis = np.asarray(tree.axis[i])
        if joint == "free":
            w, x, y, z = q[start + 3 : start + 7]
            T[:3, :3], T[:3, 3] = Rotation.from_quat([x, y, z, w]).as_matrix(), q[start : start + 3]
        else:
            T[:3, :3], T[:3, 3] = tree.rotation[i], tree.position[i]
            move = np.eye(4)
            if joint == "revolute":
                move[:3, :3] = Rotation.from_rotvec(axis * q[start]).as_matrix()
            else:
                move[:3, 3] = axis * q[start]
            T = T @ move
        places.append(T if parent < 0 else places[parent] @ T)
    return np.stack(places)


@pytest.mark.parametrize("i", [0, 2, 4])
def test_links_are_where_matrices_put_them(x64, i):
    tree = from_mjcf(MUJOCO["trees"][i]["xml"], dtype=jnp.float64)
    q = np.random.default_rng(i).normal(size=tree.nq)
    frames, want = KINEMATICS(tree, jnp.array(q)), by_matrices(tree, q)
    np.testing.assert_allclose(frames.R, want[:, :3, :3], atol=1e-14)
    np.testing.assert_allclose(frames.x, want[:, :3, 3], atol=1e-14)


@pytest.mark.parametrize("i", [2])
def test_velocities_are_the_rates_of_positions(x64, i):
    tree = from_mjcf(MUJOCO["trees"][i]["xml"], dtype=jnp.float64)
    q, v = jax.random.normal(jax.random.key(i), (2, tree.nv))
    R_dot, x_dot, _ = jax.jit(
        lambda: jax.jvp(lambda q: forward_kinematics(tree, q), (q,), (v,))[1]
    )()
    frames = KINEMATICS(tree, q)
    V = link_velocities(tree, frames, v)
    np.testing.assert_allclose(x_dot, V[:, 3:] + np.cross(V[:, :3], frames.x), atol=1e-12)
    spin = np.cross(V[:, None, :3], np.swapaxes(frames.R, 1, 2))  # of each column
    np.testing.assert_allclose(np.swapaxes(R_dot, 1, 2), spin, atol=1e-12)


def test_power_of_wrenches_is_that_of_the_forces_they_make(x64):
    tree = from_mjcf(MUJOCO["trees"][3]["xml"], dtype=jnp.float64)
    key = jax.random.key(1)
    q, v = jax.random.normal(key, (tree.nq,)), jax.random.normal(key, (tree.nv,))
    wrench = jax.random.normal(key, (len(tree.parent), 6))
    frames = KINEMATICS(tree, q)
    power = np.sum(wrench * link_velocities(tree, frames, v))
    np.testing.assert_allclose(v @ project(tree, frames, wrench), power, rtol=1e-12)


def test_sums_along_the_tree_are_adjoint():
    tree = arm(4)
    x, y = jnp.arange(8.0).reshape(4, 2), jnp.arange(8.0).reshape(4, 2)[::-1]
    np.testing.assert_array_equal(outward(tree, x)[:, 0], np.cumsum(x[:, 0]))
    assert jnp.sum(outward(tree, x) * y) == jnp.sum(x * inward(tree, y))


@pytest.mark.slow
def test_conforms():
    conformance.check(KINEMATICS, arm(2), jnp.array([0.3, -0.8]), differentiable=(1,), batched=(1,))
