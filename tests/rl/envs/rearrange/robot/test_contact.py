"""Penetration depths in boxes against numerical searches that share no closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
from room_boxes import axes_of, distance
from scipy.optimize import linprog

from jaxgpu.rl.envs.rearrange.robot.contact import (
    Boxes,
    capsule_depths,
    cuboid_depths,
    cylinder_depths,
    exit_direction,
    point_distances,
    ray_lengths,
)

RNG = np.random.default_rng(3)


def random_boxes(count, rng=RNG):
    """Return random centers, half sizes and yaws, and the boxes; some are thin or flat."""
    middle = rng.uniform(-1, 1, (count, 3))
    half = rng.uniform(0.01, 0.6, (count, 3))
    yaw = rng.uniform(-4, 4, count) * (rng.random(count) < 0.7)  # upright ones too
    rows = np.concatenate([middle, half, np.cos(yaw)[:, None], np.sin(yaw)[:, None]], 1)
    return middle, half, yaw, Boxes(jnp.asarray(rows))


def test_capsules_are_as_far_as_a_search_along_them_finds(x64):
    """Search 2,001 points per segment: one is within half a step of the nearest point.

    From there the distance changes by at most that squared, over twice the distance.
    """
    middle, half, yaw, boxes = random_boxes(25)
    start, end = RNG.uniform(-1.5, 1.5, (2, 40, 3))
    end[:4] = start[:4]  # spheres
    end[4:7, :2] = start[4:7, :2]  # upright ones, parallel to faces
    radius = RNG.uniform(0.01, 0.2, 40)
    depth = jax.jit(capsule_depths)(boxes, start, end, radius)
    t = np.linspace(0, 1, 2_001)[:, None]
    for i in range(40):
        x = start[i] + t * (end[i] - start[i])
        step = np.linalg.norm(end[i] - start[i]) / 4_000
        for k in range(25):
            found = distance(x, middle[k], half[k], yaw[k]).min()
            if found > 0:
                over = found - (radius[i] - depth[i, k])
                assert -1e-12 <= over <= min(step, step**2 / found) + 1e-12
            else:
                assert depth[i, k] >= radius[i]


def test_a_capsule_moved_out_as_said_is_just_free(x64):
    """The normal is the shortest way out of one box, for depths less than the radius."""
    _, _, _, boxes = random_boxes(25)
    start, end = RNG.uniform(-1.5, 1.5, (2, 40, 3))
    radius = RNG.uniform(0.05, 0.4, 40)
    depth = jax.jit(capsule_depths)(boxes, start, end, radius)
    meet = np.argwhere((depth > 1e-3) & (depth < radius[:, None] - 1e-3))[:40]
    assert len(meet) == 40
    i, k = meet.T
    way = jax.jit(jax.vmap(exit_direction))(Boxes(boxes.rows[k]), start[i], end[i])
    way = way * depth[i, k][:, None]
    again = jax.jit(capsule_depths)(boxes, start[i] + way, end[i] + way, radius[i])
    np.testing.assert_allclose(again[np.arange(len(i)), k], 0, atol=1e-9)


def test_a_cylinder_meets_a_box_where_a_disc_meets_its_outline_between_its_heights(x64):
    middle, half, yaw, boxes = random_boxes(300)
    x, low, high, radius = np.array([0.2, -0.1]), -0.2, 0.4, 0.3
    got = jax.jit(cylinder_depths, static_argnums=(2, 3, 4))(boxes, x, low, high, radius)
    for k in range(300):
        flat = np.array([*x, middle[k, 2]])
        away = distance(flat, middle[k], half[k], yaw[k])
        above = low >= middle[k, 2] + half[k, 2] or high <= middle[k, 2] - half[k, 2]
        if above:
            assert got[k] <= 0
        elif away > 0:
            np.testing.assert_allclose(got[k], radius - away, atol=1e-12)
        else:
            assert got[k] > radius


def do_overlap(a, b):
    """Return whether boxes (center, half, axes) have a common point, by a linear program."""
    rows = np.concatenate([s * axes for _, _, axes in (a, b) for s in (1, -1)])
    bound = np.concatenate([h + s * (axes @ m) for m, h, axes in (a, b) for s in (1, -1)])
    return linprog(np.zeros(3), A_ub=rows, b_ub=bound, bounds=[(None, None)] * 3).status == 0


def test_boxes_meet_where_a_linear_program_finds_a_common_point(x64):
    """The other box may have any rotation."""
    middle, half, yaw, boxes = random_boxes(60)
    turn = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
    x, size = np.array([0.1, 0.2, -0.1]), np.array([0.6, 0.3, 0.1])
    depth = np.asarray(jax.jit(cuboid_depths)(boxes, x, turn, size))
    assert 10 < (depth > 0).sum() < 50
    for k in range(60):
        assert do_overlap((x, size, turn), (middle[k], half[k], axes_of(yaw[k]))) == (depth[k] > 0)


def test_a_box_on_a_board_lies_as_deep_as_it_is_sunk(x64):
    """The depth is vertical, where the axes are parallel in pairs."""
    board = Boxes(jnp.array([[0.0, 0.0, 0.7, 1.0, 0.5, 0.02, np.cos(0.3), np.sin(0.3)]]))
    for sunk in (-0.01, 0.0, 1e-3):
        x = jnp.array([0.3, 0.2, 0.72 + 0.05 - sunk])
        depth = jax.jit(cuboid_depths)(
            board, x, jnp.asarray(axes_of(1.0)), jnp.array([0.03, 0.04, 0.05])
        )
        np.testing.assert_allclose(depth, sunk, atol=1e-12)


def test_points_and_rays_beside_a_march(x64):
    """March in steps of 0.5 mm along each ray; results agree to one step."""
    middle, half, yaw, boxes = random_boxes(25)
    x, angle = np.array([0.05, 0.1, 0.02]), np.linspace(0, 6, 13)
    away = [distance(x, *box) for box in zip(middle, half, yaw)]
    np.testing.assert_allclose(jax.jit(point_distances)(boxes, x), away, atol=1e-12)
    outside = np.array(away) > 0
    boxes = Boxes(boxes.rows[outside])
    way = (np.cos(angle), np.sin(angle))
    got = np.asarray(jax.jit(ray_lengths)(boxes, x, way, 2.0))
    steps = np.arange(0, 2.0, 5e-4)
    for i, a in enumerate(angle):
        path = x + steps[:, None] * np.array([np.cos(a), np.sin(a), 0])
        near = [distance(path, *box) for box, out in zip(zip(middle, half, yaw), outside) if out]
        hit = np.flatnonzero(np.min(near, 0) <= 0)
        want = steps[hit[0]] if hit.size else 2.0
        assert abs(got[i] - want) <= 5.1e-4 or not hit.size and got[i] > 1.999
