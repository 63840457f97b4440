"""Blocks with a hole: their distances against dense points on their surface."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial import cKDTree

from jaxgpu.geometry.sockets import RoundSocket, SquareSocket

DEPTH, HEIGHT, STEP = 0.023, 0.028, 2.5e-4
RNG = np.random.default_rng(3)


def plane(u, v):
    return np.stack([a.ravel() for a in np.meshgrid(u, v)], 1)


def grid(low, high):
    return np.linspace(low, high, int(round((high - low) / STEP)) + 1)


def test_a_square_socket_is_as_far_as_its_surface():
    a, b, out = 0.004, 0.003, 0.008
    is_inside = lambda p, x, y: (np.abs(p[:, 0]) < x) & (np.abs(p[:, 1]) < y)
    floor = HEIGHT - DEPTH
    faces = [np.insert(plane(grid(-out, out), grid(-out, out)), 2, z, 1) for z in (0.0, HEIGHT)]
    faces[1] = faces[1][~is_inside(faces[1], a, b)]
    faces.append(np.insert(plane(grid(-a, a), grid(-b, b)), 2, floor, 1))
    for x, y, low in ((out, out, 0.0), (a, b, floor)):
        for side in (-1, 1):
            faces.append(np.insert(plane(grid(-y, y), grid(low, HEIGHT)), 0, side * x, 1))
            faces.append(np.insert(plane(grid(-x, x), grid(low, HEIGHT)), 1, side * y, 1))
    socket = SquareSocket((a, b), DEPTH, (out, out), HEIGHT)
    cloud = np.concatenate(faces)
    x = RNG.uniform((-0.01, -0.01, -0.003), (0.01, 0.01, 0.034), (4000, 3))
    solid = (np.abs(x[:, :2]) < out).all(1) & (x[:, 2] > 0) & (x[:, 2] < HEIGHT)
    solid &= ~(is_inside(x, a, b) & (x[:, 2] > floor))
    compare(socket, cloud, x, solid)


def test_a_round_socket_is_as_far_as_its_surface():
    """The half plane of radius and height suffices by symmetry."""
    radius, out = 0.0041, 0.009
    corners = [(0, 0), (out, 0), (out, HEIGHT), (radius, HEIGHT), (radius, HEIGHT - DEPTH)]
    corners = np.array([*corners, (0, HEIGHT - DEPTH)])
    sides = zip(corners, corners[1:])
    line = np.concatenate([np.linspace(p, q, 2000) for p, q in sides])
    x = np.insert(RNG.uniform((0, -0.003), (0.012, 0.034), (4000, 2)), 1, 0.0, 1)
    solid = (x[:, 0] < out) & (x[:, 2] > 0) & (x[:, 2] < HEIGHT)
    solid &= ~((x[:, 0] < radius) & (x[:, 2] > HEIGHT - DEPTH))
    angle = RNG.uniform(-np.pi, np.pi, len(x))
    turned = np.stack([x[:, 0] * np.cos(angle), x[:, 0] * np.sin(angle), x[:, 2]], 1)
    cloud = np.insert(line, 1, 0.0, 1)
    compare(RoundSocket(radius, DEPTH, out, HEIGHT), cloud, x, solid, turned)


def compare(socket, cloud, x, solid, seen=None):
    near, _ = cKDTree(cloud).query(x)
    got = np.asarray(socket.distance(tuple(jnp.asarray(x if seen is None else seen).T)), float)
    assert ((got < 0) == solid)[np.abs(got) > 1e-6].all()
    # The nearest point of the surface is within half a diagonal of the grid from a sampled point.
    spacing = STEP / np.sqrt(2)
    assert (np.abs(got) <= near + 1e-7).all()
    assert (np.abs(got) >= np.sqrt(np.maximum(near**2 - spacing**2, 0)) - 1e-6).all()


@pytest.mark.parametrize("clearance", [0.5e-3, 0.114e-3])
def test_walls_of_the_hole_are_half_the_clearance_away(clearance):
    peg = 0.007986
    socket = RoundSocket(0.5 * (peg + clearance), DEPTH, 0.03, HEIGHT)
    x = jnp.array([0.5 * peg, 0.0, 0.02])
    assert float(socket.distance(tuple(x))) == pytest.approx(0.5 * clearance, abs=1e-9)
