"""Tasks with masses: friction lifts and places an object or fails, and a table stops the base."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu import rl
from jaxgpu.rl.envs.rearrange import houses, tasks
from jaxgpu.rl.envs.rearrange.robot import Movement, Servos, fetch
from jaxgpu.rl.envs.rearrange.robot.fetch import Joints, forward_kinematics

pytestmark = pytest.mark.slow  # a program of all of a robot with its masses

FLOOR = (5.0, 5.0, -0.05, 9.0, 9.0, 0.05, 1.0, 0.0)
TABLE, TOP = (5.85, 5.0, 0.35, 0.35, 0.6, 0.35, 1.0, 0.0), 0.7
BASE, HALF = (5.0 - 0.05, 5.0, 0.0), (0.03, 0.025, 0.05)
THING, GOAL = (5.6, 5.0, TOP + HALF[2]), (5.6, 5.25, TOP + HALF[2])
OPEN, SHUT = -1.0, 1.0


def postures(heights):
    """Return arms [2, H, 7] pointing down above object and goal, by Newton's method."""

    def pose_error(arm, place):
        joints = Joints(jnp.array(BASE), jnp.float32(0.386), jnp.array([0.0, fetch.HEAD_DOWN]), arm)
        frames = forward_kinematics(joints)
        ahead, side, _ = frames.axes[-1]
        where = 5 * (frames.origin[-1] - place)
        return jnp.concatenate([where, ahead + jnp.eye(3)[2], 0.3 * (side - jnp.eye(3)[1])])

    def turn(arm, place):
        J, r = jax.jacobian(pose_error)(arm, place), pose_error(arm, place)
        low, high = fetch.limits(arm.dtype)
        return jnp.clip(
            arm - 0.5 * jnp.linalg.solve(J.T @ J + 1e-2 * jnp.eye(7), J.T @ r), low, high
        )

    def solve_arm(place):
        arm = jax.lax.fori_loop(0, 200, lambda _, arm: turn(arm, place), jnp.array(fetch.REST))
        return arm, jnp.abs(pose_error(arm, place)).max()

    places = np.array([[[*x[:2], x[2] + h] for h in heights] for x in (THING, GOAL)], np.float32)
    arms, wrong = jax.jit(jax.vmap(jax.vmap(solve_arm)))(places)
    assert wrong.max() < 0.02
    return np.asarray(arms)


def table_episodes():
    """Return episodes with a floor, a table, the object and the goal, instead of a house."""
    made = tasks.grasp_episodes(houses.generate_many(range(1)), count=1)
    boxes = jnp.zeros_like(made.boxes).at[..., 2].set(-1e3).at[..., 6].set(1.0)
    boxes = boxes.at[:, 0].set(jnp.array(FLOOR)).at[:, 1].set(jnp.array(TABLE))
    row = jnp.array([*THING, *HALF, 1.0, 0.0])
    return replace(
        made,
        boxes=boxes,
        things=jnp.broadcast_to(row, made.things.shape),
        goal=jnp.array([GOAL]),
        starts=jnp.broadcast_to(jnp.array(BASE), made.starts.shape),
        to_target=0 * made.to_target,
        to_goal=0 * made.to_goal,
    )


@pytest.fixture(scope="module")
def script_steps():
    """Return steps [S, T] of four scripts: normal and low friction, a drop, driving on."""
    env = rl.make("rearrange/rearrange-dynamic", end_action=False, episodes=table_episodes())
    (high, low), (over, onto) = postures((0.14, 0.02))
    # Each row has the arm's posture, the grip, the forward motion of the base, and the steps.
    take = [(high, OPEN, 0, 8), (low, OPEN, 0, 4), (low, SHUT, 0, 3), (high, 0, 0, 4)]
    place = [(over, 0, 0, 5), (onto, 0, 0, 4), (onto, OPEN, 0, 3), (over, 0, 0, 3)]
    drop = [(high, 0, -1, 8), (high, OPEN, 0, 7)]
    against = [(high, OPEN, 1, 34)]
    scripts = []
    for legs in (take + place, take + place, take + drop, against):
        rows = [np.tile([grip, ahead, *arm], (n, 1)) for arm, grip, ahead, n in legs]
        scripts.append(np.concatenate(rows))
    friction = jnp.array([1.0, 0.005, 1.0, 1.0])

    def play(script, friction):
        geoms = env.movement.model.geoms
        geoms = replace(geoms, friction=geoms.friction.at[:, 0].set(friction))
        movement = replace(env.movement, model=replace(env.movement.model, geoms=geoms))
        here = replace(env, movement=movement)

        def move(state, row):
            arm = jnp.clip((row[2:] - state.driven.arm) / movement.max_joint, -1, 1)
            action = jnp.concatenate([row[:1], jnp.zeros(1), row[1:2], arm])
            out = here.step(state, action, jax.random.key(0))
            return out.state, out

        first = here.reset(jax.random.key(0))[0]
        return first, jax.lax.scan(move, first, script)[1]

    return env, jax.jit(jax.vmap(play))(jnp.asarray(np.stack(scripts), jnp.float32), friction)


def test_friction_takes_lifts_and_places_and_what_is_slippery_stays(script_steps):
    """34 N at a friction of 0.005 carry 0.35 N of the object's weight of 0.88 N."""
    env, (first, out) = script_steps
    picked, success, failure = out.state.picked, out.info["success"], out.info["failure"]
    assert picked[0].any() and success[0, -1] and not failure[0].any()
    np.testing.assert_allclose(out.state.thing[0, -1], GOAL, atol=0.01)
    assert not picked[1].any() and abs(out.state.thing[1, -1, 2] - THING[2]) < 0.01
    assert picked[2].any() and failure[2, -1] and not success[2].any()
    assert not out.info["left_out"].any()
    # The servos of the fingers press with 1000 N/m beyond the object's size.
    held = out.state.driven.press[0, 14]
    open_to = out.state.driven.physics.qpos[0, 14, 11:13].mean()
    np.testing.assert_allclose(held, 1000 * (open_to + 0.01), rtol=1e-2)
    # The reward is the covered distance, a bonus for the first grasp, and one per step of success.
    paid = out.reward[0].sum() - (first.left[0] - out.state.left[0, -1])
    assert float(paid) == pytest.approx(5.0 + 10.0 * float(success[0].sum()), abs=1e-3)
    # In the last script the base drives on to the table and stops at its edge.
    ahead = out.state.joints.base[3, :, 0]
    assert 5.5 - fetch.BASE_RADIUS - 0.002 < ahead.max() < 5.5 - fetch.BASE_RADIUS + 0.002


@pytest.mark.parametrize(
    "given, said",
    [
        ({"safe_drop": True}, "safe_drop=True"),
        ({"crowded": False}, "crowded=False"),
        ({"episodes": "wide"}, "wider than the 84 mm"),
        ({"movement": Movement()}, "it must be Servos"),
    ],
)
def test_what_has_no_use_by_contact_is_refused(given, said):
    if "episodes" in given:
        made = table_episodes()
        given = {"episodes": replace(made, things=made.things.at[..., 3:5].set(0.05))}
    with pytest.raises((TypeError, ValueError), match=said):
        rl.make("rearrange/place-dynamic", **{"episodes": table_episodes(), **given})


def test_a_task_without_forces_takes_no_servos():
    env = rl.make("rearrange/mobile-pick", movement=Servos(), episodes=table_episodes())
    state, _ = env.reset(jax.random.key(0))
    with pytest.raises(TypeError, match="whose name ends in -dynamic"):
        env.step(state, jnp.zeros(10), jax.random.key(0))
