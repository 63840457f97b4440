"""The description of a mechanism."""

import jax.numpy as jnp
import numpy as np
import pytest
from rigid_mechanisms import arm
from shapes import check_shapes

from jaxgpu.physics.rigid import Link, assemble

BRANCHED = [Link(-1, "free"), Link(0, "prismatic"), Link(0), Link(2)]


def test_counts_and_topology():
    tree = assemble(BRANCHED)
    assert (tree.coordinates, tree.freedoms, tree.starts) == (10, 9, [0, 7, 8, 9])
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
