"""Fetch among boxes: it slides along them and never penetrates one, for any action."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.spatial.transform import Rotation
from room_boxes import axes_of, distance, room

from jaxgpu.rl.envs.rearrange.robot import fetch, movement
from jaxgpu.rl.envs.rearrange.robot.fetch import Joints, forward_kinematics
from jaxgpu.rl.envs.rearrange.robot.movement import Load, Movement, load_pose

COPIES = 100
EMPTY = Load(
    held=jnp.zeros(COPIES, bool),
    half=jnp.zeros((COPIES, 3)),
    place=jnp.zeros((COPIES, 3)),
    axes=jnp.broadcast_to(jnp.eye(3), (COPIES, 3, 3)),
)


# All tests share one program, compiled with few optimizations.
@partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
def move(movement, rows, joints, load, action):
    step = lambda joints, load, action: movement.move(rows, joints, load, action)
    return jax.vmap(step)(joints, load, action)


FRAMES = jax.jit(jax.vmap(forward_kinematics))


def starts(count=COPIES, seed=0):
    """Return robots with folded arms, random positions in the middle of the room and yaws."""
    rng = np.random.default_rng(seed)
    base = rng.uniform((-0.9, -0.9, -np.pi), (0.9, 0.9, np.pi), (count, 3))
    to_batch = lambda x: jnp.broadcast_to(jnp.asarray(x, jnp.float32), (count, *np.shape(x)))
    return Joints(
        base=jnp.asarray(base, jnp.float32),
        torso=to_batch(0.386),
        head=to_batch((0.0, fetch.HEAD_DOWN)),
        arm=to_batch(fetch.REST),
    )


def depth(joints, boxes):
    """Return the penetration depth [B] in boxes, m, by points on the links and about the base."""
    start, end, radius = (np.asarray(x, float) for x in fetch.capsules(FRAMES(joints)))
    t = np.linspace(0, 1, 41)[:, None, None, None]
    along = start + t * (end - start)  # [41, B, 14, 3]
    worst = np.full(len(start), -np.inf)
    foot = np.asarray(joints.base, float)
    for middle, half, yaw in boxes:
        capsules = radius[:14] - distance(along, middle, half, yaw).min(0)
        worst = np.maximum(worst, capsules.max(-1))
        if abs(middle[2] - 0.19) < half[2] + 0.17:
            flat = np.concatenate([foot[:, :2], np.full((len(foot), 1), middle[2])], 1)
            worst = np.maximum(worst, fetch.BASE_RADIUS - distance(flat, middle, half, yaw))
    return worst


def drive_random(joints, load, steps, seed):
    """Yield the states of robots that drive ahead with random turns and arm motions."""
    rng = np.random.default_rng(seed)
    rows, boxes = room()
    for _ in range(steps):
        action = rng.uniform(-1, 1, (COPIES, 9))
        action[:, 1] = 1.0  # ahead, always
        moved = move(Movement(), rows, joints, load, jnp.asarray(action, jnp.float32))
        joints = moved.joints
        yield moved, boxes


@pytest.mark.slow
def test_a_robot_driven_into_walls_never_gets_into_one():
    """No point of 41 per link is 1 mm deep in 100 x 40 steps, and no box is omitted."""
    stopped = []
    for moved, boxes in drive_random(starts(), EMPTY, 40, 1):
        assert depth(moved.joints, boxes).max() < 1e-3
        assert not moved.left_out.any()
        stopped.append([~moved.base_free, ~moved.arm_free])
    hit = np.mean(stopped, (0, 2))
    assert hit[0] > 0.2 and hit[1] > 0.05  # walls were met, by base and arm


@pytest.mark.slow
def test_what_is_held_never_gets_into_a_wall_either():
    """Test boxes of three sizes, held askew: no point on their edges is 1 mm deep."""
    rng = np.random.default_rng(5)
    turn = Rotation.from_rotvec(jnp.asarray(rng.normal(size=(COPIES, 3)), jnp.float32)).as_matrix()
    half = jnp.asarray(rng.uniform(0.02, 0.12, (COPIES, 3)), jnp.float32)
    load = Load(
        held=jnp.ones(COPIES, bool),
        half=half,
        place=jnp.tile(jnp.array([0.05, 0.0, 0.0]), (COPIES, 1)),
        axes=turn,
    )
    edge = np.array([x for x in np.ndindex(9, 9, 9) if sum(i in (0, 8) for i in x) >= 2]) / 4 - 1
    met = 0
    for moved, boxes in drive_random(starts(), load, 40, 2):
        middle, axes = jax.vmap(load_pose)(moved.frames, load)
        points = middle[:, None] + np.einsum("pi,bi,bij->bpj", edge, half, axes)
        inside = 0.0
        for m, h, yaw in boxes:
            local = (np.asarray(points, float) - m) @ axes_of(yaw).T
            inside = max(inside, (h - np.abs(local)).min(-1).max())
        assert inside < 1e-3
        met += int((~moved.base_free).sum())
    assert met > 100


def test_what_meets_a_box_is_put_out_of_it_along_its_normal_or_stays():
    """The base moves in the plane and the arm to first order, by at most the last step.

    Without sliding there is no such correction: base and arm stay where they were.
    """
    slope = np.float32([0.2, 0, -0.1, 0, 0, 0, 0.05])

    @jax.jit
    def shifts(depth, normals):
        lanes = lambda spec: jax.vmap(spec._push_base_out, (None, 0))(depth, normals)
        specs = Movement(), Movement(slide=False)
        return [lanes(spec) for spec in specs], [
            spec._turn_arm_back(depth, slope) for spec in specs
        ]

    normals = np.float32([[1, 0, 0], [0, 1, 0], [0.6, -0.8, 0], [0, -0.6, 0.8], [0.1, 0, 0.995]])
    (put, stays), (turned, still) = jax.tree.map(np.asarray, shifts(np.float32(0.01), normals))
    np.testing.assert_allclose(np.sum(put * normals, 1), [0.01] * 4 + [0], rtol=1e-5)
    aside = put[:, 0] * normals[:, 1] - put[:, 1] * normals[:, 0]
    np.testing.assert_allclose(aside, 0, atol=1e-8)
    assert turned @ slope < -0.01 and (turned[slope == 0] == 0).all()
    assert not put[:, 2].any() and not stays.any() and not still.any()
    far = np.asarray(shifts(np.float32(5), normals)[0][0])
    np.testing.assert_allclose(np.linalg.norm(far[:3], axis=1), Movement().max_forward, rtol=1e-5)


def test_the_base_slides_along_a_wall_at_the_speed_of_its_tangent():
    """Walls across x and y are hit at 60 degrees from their normals: sin 60 of 0.1 m per step."""
    rows, _ = room()
    yaw = np.pi / 3
    close = np.float32([0.0, -1.2, 0.0, 2.2, 0.0, 2.1, 0.0])  # the arm close to the body
    base = np.float32([[1.5, -1.0, yaw], [-0.5, -1.5, yaw - np.pi / 2]])
    joints = replace(
        starts(), base=np.tile(base, (COPIES // 2, 1)), arm=np.tile(close, (COPIES, 1))
    )
    ahead = np.zeros((COPIES, 9), np.float32)
    ahead[:, 1] = 1.0
    places = []
    for _ in range(20):
        joints = move(Movement(), rows, joints, EMPTY, ahead).joints
        places.append(np.asarray(joints.base[:2]))
    last = np.array(places)[-4:]
    for i, (across, along) in enumerate(((0, 1), (1, 0))):
        assert np.ptp(last[:, i, across]) < 1e-3
        np.testing.assert_allclose(np.diff(last[:, i, along]), 0.1 * np.sin(yaw), atol=1e-5)


def test_the_hand_does_not_jump_through_a_board():
    """A board of 1 cm is below the stretched arm, which swings at it by up to half a radian."""
    absent = jnp.array([[0.0, 0.0, -900.0, 0.1, 0.1, 0.1, 1.0, 0.0]])
    board = jnp.array([[1.0, 0.0, 0.9, 0.6, 0.6, 0.005, 1.0, 0.0]])
    rows = movement.Boxes(jnp.concatenate([board, jnp.tile(absent, (8, 1))]))
    joints = replace(
        starts(),
        base=jnp.zeros((COPIES, 3)),
        arm=jnp.tile(jnp.zeros(7).at[1].set(-0.3), (COPIES, 1)),
    )
    rng = np.random.default_rng(0)
    for _ in range(12):
        action = np.zeros((COPIES, 9))
        action[:, 3], action[:, 4:] = (
            rng.uniform(0.2, 1, COPIES),
            rng.uniform(-0.1, 0.1, (COPIES, 5)),
        )
        moved = move(Movement(max_joint=0.5), rows, joints, EMPTY, jnp.asarray(action, jnp.float32))
        joints = moved.joints
        assert moved.frames.origin[:, -1, 2].min() > 0.9
    assert (~moved.arm_free).any()


def test_the_arm_slides_along_a_board():
    """An arm that is pressed on a board rotates as it does above the board."""
    board = jnp.array([[1.0, 0.0, 0.9, 0.6, 0.6, 0.005, 1.0, 0.0]])
    rows = movement.Boxes(jnp.tile(board, (9, 1)))
    joints = replace(
        starts(),
        base=jnp.zeros((COPIES, 3)),
        arm=jnp.tile(jnp.zeros(7).at[1].set(0.2), (COPIES, 1)),
    )
    down = jnp.zeros((COPIES, 9)).at[:, 3].set(0.2)
    for _ in range(8):
        joints = move(Movement(), rows, joints, EMPTY, down).joints
    pressed = down.at[:, 2].set(jnp.linspace(-1, 1, COPIES))
    slid = move(Movement(), rows, joints, EMPTY, pressed)
    assert not slid.arm_free.any()
    turned = np.asarray(slid.joints.arm - joints.arm)[:, 0]
    np.testing.assert_allclose(turned, 0.196 * np.linspace(-1, 1, COPIES), atol=2e-3)
    start, end, radius = (np.asarray(x) for x in fetch.capsules(slid.frames))
    hand = np.minimum(start, end)[:, -3:, 2] - radius[-3:]
    assert hand.min() > 0.905 - 1e-3


def test_the_hulls_that_choose_boxes_hold_the_robot():
    """Capsules of any posture are within the margins about the arm's frames and the base."""
    rng = np.random.default_rng(2)
    low, high = fetch.limits(jnp.float32)
    arm = rng.uniform(np.maximum(low, -3), np.minimum(high, 3), (500, 7))
    head = rng.uniform((-1.57, -0.76), (1.57, 1.45), (500, 2))
    joints = Joints(
        *(jnp.asarray(x, jnp.float32) for x in (np.zeros((500, 3)), np.zeros(500), head, arm))
    )
    frames = FRAMES(joints)
    start, end, radius = (np.asarray(x) for x in fetch.capsules(frames))
    ends, wide = np.stack([start, end]), radius[:, None]
    body, arm = slice(0, 4), slice(4, None)
    reach = np.linalg.norm(ends[:, :, body, :2], axis=-1) + radius[body]
    assert reach.max() < movement.BODY_REACH
    points = np.asarray(frames.origin[:, 6:])
    low, high = points.min(1), points.max(1)
    over = np.maximum(
        low[:, None] - (ends - wide)[:, :, arm], (ends + wide)[:, :, arm] - high[:, None]
    )
    assert over.max() < movement.LIMB_REACH
