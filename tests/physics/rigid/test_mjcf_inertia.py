"""Masses and inertias of MuJoCo's elements against those of solids in closed form."""

from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from jaxgpu.physics.rigid.mjcf_inertia import orientation, read_inertia
from jaxgpu.physics.rigid.solids import solid


def inertia(text, moves=True):
    return read_inertia(ElementTree.fromstring(f"<body>{text}</body>"), moves, False)


@pytest.mark.parametrize("kind, sizes", [("capsule", 2), ("cylinder", 2), ("box", 3)])
def test_a_solid_between_two_points_is_one_along_their_line(kind, sizes):
    rng = np.random.default_rng(1)
    for _ in range(5):
        a, b = rng.normal(size=(2, 3))
        r, density = rng.uniform(0.01, 0.2), rng.uniform(100, 9000)
        ends = " ".join(f"{x:.17g}" for x in (*a, *b))
        (got,) = inertia(f'<geom type="{kind}" fromto="{ends}" size="{r}" density="{density}"/>')
        half = np.linalg.norm(b - a) / 2
        z = (b - a) / (2 * half)
        want = solid(kind, np.array([r] * (sizes - 1) + [half]), None, density)
        np.testing.assert_allclose(got.mass, want.mass)
        np.testing.assert_allclose(got.com, (a + b) / 2, atol=1e-12)
        across, along = want.inertia[0, 0], want.inertia[2, 2]
        whole = across * np.eye(3) + (along - across) * np.outer(z, z)
        np.testing.assert_allclose(got.inertia, whole, rtol=1e-9, atol=1e-9 * across)


def test_inertial_overrides_geoms_and_what_is_fixed_has_none():
    text = '<inertial mass="2" fullinertia="2 3 4 0.1 0.2 0.3"/><geom size="1"/>'
    (one,) = inertia(text)
    np.testing.assert_array_equal(one.inertia, [[2, 0.1, 0.2], [0.1, 3, 0.3], [0.2, 0.3, 4]])
    assert inertia(text, moves=False) == []


def test_orientations_are_those_of_scipy():
    rng = np.random.default_rng(2)
    for _ in range(5):
        w, x, y, z = rng.normal(size=4)
        turn = ElementTree.fromstring(f'<geom quat="{w} {x} {y} {z}"/>')
        want = Rotation.from_quat([x, y, z, w]).as_matrix()
        np.testing.assert_allclose(orientation(turn, False), want, atol=1e-14)
        axis = np.array([x, y, z]) / np.linalg.norm([x, y, z])
        turn = ElementTree.fromstring(f'<geom axisangle="{x} {y} {z} {w}"/>')
        want = Rotation.from_rotvec(axis * w).as_matrix()
        np.testing.assert_allclose(orientation(turn, True), want, atol=1e-14)
