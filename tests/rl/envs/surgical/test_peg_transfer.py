"""Peg transfer: a manual plan, collisions of a block, and its rest position."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from rl_waypoints import play, wrap_jaw

from jaxgpu import rl
from jaxgpu.rl.envs.surgical import peg_transfer
from jaxgpu.rl.envs.surgical.pick_place import FLOOR

ENV = rl.make("surgical/peg-transfer")
FEW = {"xla_backend_optimization_level": 0}  # programs that run a few times
RESET, STEP = (jax.jit(f, compiler_options=FEW) for f in (ENV.reset, ENV.step))
POSE = jax.jit(ENV.grasp_pose)
BOARD = FLOOR + 0.00725  # where a block's middle rests, m


def step(state, *action):
    return STEP(state, np.float32(action), jax.random.key(0))


def held_state(seed=0, **parts):
    """Return a state that holds the block at its position on its peg."""
    state, _ = RESET(jax.random.key(seed))
    where, across = POSE(state.position, state.object_yaw)
    state = replace(state, tip=where, yaw=across, closed=np.bool_(True), held=np.bool_(True))
    return replace(state, **parts)


def test_a_plan_by_hand_transfers_every_block():
    """The plan is over it, down, grasp, up, over the goal, release."""

    def waypoints(state):
        c, s = np.cos(state.object_yaw), np.sin(state.object_yaw)
        x, y = 0.0025, 0.00433
        grip = np.array([c * x - s * y, s * x + c * y, 0.003])
        yaw = wrap_jaw(state.object_yaw - 2 * np.pi / 3)
        over, at = np.array([0, 0, 0.045]), state.position + grip
        there = np.append(state.goal[:2], state.position[2]) + grip + over
        stops = [at + over, at, at, at + over, there, there]
        return [np.array([*x, yaw, jaw]) for x, jaw in zip(stops, (1, 1, -1, -1, -1, 1))]

    success, states = play(ENV, waypoints)
    assert success.all()
    np.testing.assert_allclose(states[-1].position[:, 2], BOARD, atol=1e-6)


def test_a_block_is_drawn_as_a_triangle_turned_with_it():
    state = held_state(object_yaw=np.float32(0.3))
    start, end, radius, own = map(np.asarray, jax.jit(ENV.solids)(state))
    angles = np.array([np.pi, np.pi / 3, -np.pi / 3]) + 0.3
    corners = 0.007 * np.stack([np.cos(angles), np.sin(angles), 0 * angles], 1)
    np.testing.assert_allclose(start[12:] - np.asarray(state.position), corners, atol=1e-7)
    np.testing.assert_array_equal(end[12:], np.roll(start[12:], 1, 0))
    np.testing.assert_allclose(end[:12] - start[:12], [[0, 0, 0.025]] * 12, atol=1e-7)
    np.testing.assert_array_equal(own, [False] * 12 + [True] * 3)
    np.testing.assert_allclose(radius, [0.001] * 12 + [0.003] * 3, rtol=1e-6)


def test_a_peg_blocks_where_it_would_stand_in_the_wall():
    """Compare with rings of 3 to 11 mm about the pegs, drawn as points below their tops."""
    rng = np.random.default_rng(0)
    place = np.stack([*rng.uniform(-0.06, 0.06, (2, 4000)), rng.uniform(BOARD, BOARD + 0.04, 4000)])
    angles = np.linspace(0, 2 * np.pi, 240, endpoint=False)
    wall = (
        np.linspace(0.003, 0.011, 40)[:, None] * np.stack([np.cos(angles), np.sin(angles)])[:, None]
    )
    wall = wall.reshape(2, -1).T  # of a block about the origin
    is_near = lambda x: (
        min(np.hypot(*(wall + x[:2] - peg).T).min() for peg in peg_transfer.PEGS) < 4e-4
    )
    got = np.asarray(jax.jit(jax.vmap(peg_transfer.is_blocked))(place.T.astype(np.float32)))
    low = place[2] - 0.00725 < FLOOR + 0.025
    away = np.hypot(*(place[:2, None] - peg_transfer.PEGS.T[:, :, None]))
    clear = (np.abs(away - 0.003) > 5e-4).all(0) & (np.abs(away - 0.011) > 5e-4).all(0)
    clear &= np.abs(place[2] - 0.00725 - FLOOR - 0.025) > 1e-6
    for i in np.flatnonzero(clear)[:400]:
        assert got[i] == (low[i] and is_near(place[:, i]))
    assert 50 < got[clear][:400].sum() < 350


def test_a_block_on_its_peg_goes_up_and_not_aside():
    state = held_state()
    for action, moved in (
        ([1.0, 0, 0, 0, -1], [0, 0, 0]),
        ([0, 0, 1.0, 0, -1], [0, 0, 0.01]),
        ([-1.0, 0.5, 0.7, 0, -1], [0, 0, 0.007]),  # the part along the peg
        ([0.1, 0, 0, 0, -1], [0.001, 0, 0]),  # within the hole
        ([0, 0, -1.0, 0, -1], [0, 0, 0]),  # the board
    ):
        after = step(state, *action).state
        np.testing.assert_allclose(after.tip - state.tip, moved, atol=1e-6)
        np.testing.assert_allclose(after.position - state.position, moved, atol=1e-6)


@pytest.mark.parametrize(
    "off, rest",
    [((0, 0), BOARD), ((0.002, 0), BOARD), ((0.006, 0), BOARD + 0.025), ((0.04, 0.017), BOARD)],
)
def test_a_block_let_go_falls_over_a_peg_on_it_or_beside_it(off, rest):
    peg = np.array([*peg_transfer.PEGS[1], FLOOR + 0.05])  # free behind its row
    state = held_state()
    place = (peg + [*off, 0]).astype(np.float32)
    grip = np.asarray(state.tip) - np.asarray(state.position)
    state = replace(state, position=place, tip=place + grip)
    end = step(state, 0, 0, 0, 0, 1).state
    np.testing.assert_allclose(end.position, [*peg[:2] + off, rest], atol=1e-6)
    assert not end.held


def test_success_is_5_mm_aside_and_4_mm_in_height():
    """The goal is SurRoL's, the center of a peg: 3.75 mm above that of a resting block."""
    is_success = jax.jit(ENV.is_success)
    for aside, up, success in ((0.0049, 0, 1), (0.0051, 0, 0), (0, 2e-4, 1), (0, 8.0e-3, 0)):
        state = held_state()
        place = np.asarray(state.goal) + np.float32([aside, 0, BOARD - FLOOR - 0.011 + up])
        assert is_success(replace(state, position=place)) == bool(success)
    rested = replace(state, position=np.float32([*state.goal[:2], BOARD]), held=np.bool_(False))
    assert step(rested, 0, 0, 0, 0, 1).reward == 0
