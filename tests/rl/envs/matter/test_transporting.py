"""Transporting: the jet pushes the block by its lost momentum, and a manual plan succeeds."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matter_checks import places, play

from jaxgpu import rl
from jaxgpu.rl.envs.matter import transporting

ENV = rl.make("matter/transporting")


def hand_plan():
    """Return a plan: rise to the block and rotate to it in 0.4 s, then follow it."""
    early = jnp.arange(ENV.max_steps) < 20
    turn = -np.pi / 2 / 0.4 / 5
    moves = ((0.0, 0.8), (0.5, 0.0), (turn, 0.0))
    return jnp.stack([jnp.where(early, a, b) for a, b in moves], 1)


def test_the_nozzle_stays_40_mm_from_the_faces():
    lower, upper = (np.asarray(a, float) for a in (ENV.workspace.lower, ENV.workspace.upper))
    np.testing.assert_allclose(lower, 0.04, rtol=1e-6)
    np.testing.assert_allclose(lower + upper, ENV.simulation.grid.upper, rtol=1e-6)


@pytest.mark.slow
def test_a_plan_made_by_hand_drives_the_block_home():
    played, (hand, still, random) = play(ENV, hand_plan(), 0 * hand_plan())
    assert abs(still) < 0.1 and max(random, still) + 0.15 < hand
    states, seen = played[0]
    assert seen["success"][-1] and not played[1][1]["success"][-1]
    for i in (5, 30, 47):
        at = jax.tree.map(lambda a, i=i: a[i], states).matter
        (water, full), block = places(at.bodies[0]), np.asarray(at.tools[1].x, float)
        apart = np.abs(water - block[:, None]).sum(0)[full].mean()
        loss = abs(block[0] - 0.27) + 0.1 * apart
        np.testing.assert_allclose(seen["loss"][i], loss, rtol=1e-4)


def test_the_loss_is_the_distance_from_the_goal_and_a_share_of_that_from_the_water():
    water = SimpleNamespace(
        x=jnp.array([[0.3, 0.1], [0.1, 0.4], [9.0, 9.0]]), m=jnp.array([1.0, 1.0, 0.0])
    )
    state = SimpleNamespace(bodies=[water], tools=[None, SimpleNamespace(x=jnp.array([0.2, 0.2]))])
    goal = transporting.TransportGoal(goal=0.5, tolerance=0.01, attraction=0.4)
    np.testing.assert_allclose(goal.loss(state, ()), 0.3 + 0.4 * (0.2 + 0.3) / 2, rtol=1e-6)


def test_the_block_has_the_inertia_of_a_square_plate_or_of_a_cube():
    for at in ((0.1, 0.1), (0.1, 0.1, 0.1)):
        block, side = transporting._make_block(at), 2 * transporting.BLOCK
        mass = transporting.DENSITY[len(at)] * side ** len(at)
        assert block.mass == mass and set(block.inertia) == {mass * side**2 / 6}
        assert len(block.inertia) == (1 if len(at) == 2 else 3)


def test_a_block_stands_up_by_a_quarter_of_a_turn():
    (angle,) = transporting._quarter_turn(2)
    w, *axis = transporting._quarter_turn(3)
    assert angle == np.pi / 2 and axis[:2] == [0, 0]
    np.testing.assert_allclose(2 * np.arctan2(axis[2], w), np.pi / 2)
