"""The description of a mechanism."""

import jax.numpy as jnp
import numpy as np
import pytest
from rigid_mechanisms import arm
from scipy.spatial.transform import Rotation
from shapes import check_shapes

from jaxgpu.physics.rigid import Link, assemble

BRANCHED = [Link(-1, "free"), Link(0, "prismatic"), Link(0), Link(2)]


def test_counts_and_topology():
    tree = assemble(BRANCHED)
    assert (tree.nq, tree.nv, tree.starts) == (10, 9, [0, 7, 8, 9])
    moved_by = [set(np.flatnonzero(row)) for row in tree.ancestry]
    root = set(range(6))
    assert moved_by == [root, root | {6}, root | {7}, root | {7, 8}]
    np.testing.assert_array_equal(tree.rest_position, [0, 0, 0, 1, 0, 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(tree.scalar, [7, 8, 9])


def test_shapes_and_dtypes_are_as_said(x64):
    assert check_shapes(arm(5, jnp.float64))["N"] == 5
    assert check_shapes(assemble(BRANCHED[1:][:0] or [Link(-1)]))["L"] == 1
    assert arm(5, jnp.float64).mass.dtype == jnp.float64 and arm(5).mass.dtype == jnp.float32


def test_axes_are_made_of_unit_length():
    np.testing.assert_allclose(assemble([Link(-1, axis=(0, 3, 4))]).axis[0], [0, 0.6, 0.8])


@pytest.mark.parametrize(
    "links, message",
    [
        ([], "no links; give at least one"),
        ([Link(-1, "ball")], "joint='ball'; use one of revolute, prismatic, free"),
        ([Link(0)], "parent=0; name an earlier link"),
        ([Link(-1), Link(0, "free")], "link 1 is free but has parent=0"),
        ([Link(-1, axis=(0, 0, 0))], "give a direction"),
        ([Link(-1, mass=-1.0)], "mass=-1.0 kg; it must not be negative"),
        ([Link(-1, lower=1.0, upper=0.0)], "the first must be less"),
    ],
)
def test_a_wrong_link_is_named(links, message):
    with pytest.raises(ValueError, match=message):
        assemble(links)


def test_gravity_is_three_numbers():
    with pytest.raises(ValueError, match=r"gravity has shape \[2\]; it must be \[3\]"):
        assemble([Link(-1)], gravity=(0, -9.81))


def test_free_links_begin_where_they_were_put_and_are_damped(x64):
    """The quaternion is that of the rotation, whichever of its components is largest."""
    for seed in range(8):
        R = Rotation.random(rng=seed)
        link = Link(-1, "free", position=(1, 2, 3), rotation=R.as_matrix(), damping=2.0)
        tree = assemble([Link(-1), link], dtype=jnp.float64)
        q, (x, y, z, w) = np.asarray(tree.rest_position), R.as_quat()
        np.testing.assert_array_equal(q[:4], [0, 1, 2, 3])
        want = np.array([w, x, y, z])
        np.testing.assert_allclose(q[4:] * np.sign(q[4:] @ want), want, atol=1e-15)
        np.testing.assert_array_equal(tree.damping, [0] + [2] * 6)
