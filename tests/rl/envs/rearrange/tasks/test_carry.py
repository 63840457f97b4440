"""Carrying: grasps, releases, rewards, and the ends of episodes."""

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu import rl
from jaxgpu.inputs.fields import pytree
from jaxgpu.rl.envs.rearrange.robot.fetch import forward_kinematics
from jaxgpu.rl.envs.rearrange.robot.movement import Load
from jaxgpu.rl.envs.rearrange.tasks.carry import grip_center
from jaxgpu.rl.envs.rearrange.tasks.carry_tasks import Rearrange
from jaxgpu.rl.envs.rearrange.tasks.episodes import Episodes, folded_joints
from jaxgpu.rl.envs.rearrange.tasks.task import State, upright_axes


@cache
def task():  # houses are drawn for seconds: tests with them are slow
    return rl.make("rearrange/rearrange")


FEW = {"xla_backend_optimization_level": 0}  # programs that run a few times
PLAY = jax.jit(  # one program for all
    lambda env, state, action: env.step(state, action, KEY), compiler_options=FEW
)
FRAMES = jax.jit(forward_kinematics)
LEFT = jax.jit(lambda env, state, frames: env.left(state, frames))
STILL = np.zeros(11, np.float32)
TAKE, LET, DONE = STILL.copy(), STILL.copy(), STILL.copy()
TAKE[0], LET[0], DONE[10] = 1, -1, 1
KEY = jax.random.key(0)
RESET = jax.jit(lambda env, key: env.reset(key))


def step(state, action):
    return PLAY(task(), state, action)


def start_state(seed=0):
    return RESET(task(), jax.random.key(seed))[0]


def with_thing(state, at):
    """Return the state with the object at another position, and the remaining distance."""
    state = replace(state, thing=jnp.asarray(at, jnp.float32))
    return replace(state, left=LEFT(task(), state, FRAMES(state.joints)))


def reach_state(seed=0, off=(0.0, 0.0, 0.0)):
    """Return a state with the object near the hand, offset along its own axes, and the hand."""
    state = start_state(seed)
    hand = np.asarray(grip_center(FRAMES(state.joints)))
    return with_thing(state, hand + np.asarray(state.thing_axes).T @ np.asarray(off)), hand


def taken_state(seed=0):
    state, _ = reach_state(seed)
    return step(state, TAKE).state


def goal_task(state, off):
    """Return a task whose goal puts the object of `state` at offset `off` from it."""
    made = task().episodes
    goal = made.goal.at[state.episode].set(state.thing - jnp.asarray(off, jnp.float32))
    return replace(task(), episodes=replace(made, goal=goal))


@pytree
class Still(Rearrange):
    """A task whose robot does not move and observes nothing."""

    def drive(self, state, action):
        frames = forward_kinematics(state.joints)
        return replace(state, t=state.t + 1), SimpleNamespace(frames=frames)

    def observe(self, state, frames):
        return ()


BASE, HALF, OTHER = (1.0, 1.2, 0.4), np.array([0.03, 0.02, 0.05]), np.array([0.04, 0.04, 0.03])
ROW = np.array([2.0, 1.5, 0.8, *HALF, 0.8, 0.6])  # the initial position of the object
FLOOR = {"to_target": (2.0, 0.3, 0.1), "to_goal": (3.0, -0.2, 0.4)}  # ways, linear in x and y
CASES = 300


def floor(name, x, y):
    """Return the distance along the floor, m."""
    return FLOOR[name] @ np.array([np.ones_like(x), x, y])


def stand(case, **options):
    """Return a task in a house without walls, the state of a case, and the hand's frame."""
    cells = (np.mgrid[:20, :20] + 0.5) * 0.2
    fields = {
        name: jnp.float32(np.tensordot(c[1:], cells, 1) + c[0])[None] for name, c in FLOOR.items()
    }
    state = folded_joints(jnp.float32(BASE))
    frames = forward_kinematics(state)
    origin, turn = frames.origin[-1], frames.axes[-1]
    hand = origin + 0.03 * turn[0]
    axes = jnp.where(case["held"], turn, upright_axes(jnp.float32(ROW)))
    thing = hand - jnp.where(case["held"], 0.0, jnp.sum(case["off"][:, None] * axes, 0))
    goal = thing - case["above"]
    other = jnp.concatenate(
        [hand + jnp.float32([0, 0, 1]) * case["other"], jnp.float32([*OTHER, 1, 0])]
    )
    things = jnp.stack([other, jnp.float32(ROW)])[None]
    zero = jnp.zeros(1, jnp.int32)
    made = Episodes(
        houses=None,
        boxes=None,
        things=things,
        house=zero,
        target=zero + 1,
        goal=goal[None],
        starts=None,
        **fields,
    )
    load = Load(
        held=case["held"],
        half=jnp.float32(HALF),
        place=jnp.float32([0.03, 0, 0]),
        axes=jnp.eye(3),
    )
    whole = dict(episode=jnp.int32(0), last=jnp.int32(9), left_out=jnp.int32(0))
    state = State(
        joints=state,
        load=load,
        thing=thing,
        thing_axes=axes,
        picked=case["picked"],
        left=jnp.float32(7.0),
        t=case["t"],
        **whole,
    )
    env = Still(made, straight=True, way=0.7, slack=0.01, pick_bonus=4.0, bonus=8.0, **options)
    return env, state, (origin, turn, hand, goal)


def drawn_cases():
    """Return cases [B] and actions [B, 11], on both sides of every threshold.

    In m: `off` is from the object's center to the hand along the object's axes, `above` from the
    goal to the object, and `other` from the hand up to the center of another object.
    """
    rng, B = np.random.default_rng(0), CASES
    held = rng.random(B) < 0.5
    to_float32 = lambda x: np.asarray(x, np.float32)
    signs = rng.choice([-1, 1], (B, 3))
    off = signs * (HALF + rng.uniform(-0.02, 0.02, (B, 3)))
    off = np.where(rng.random((B, 1)) < 0.2, 60 * off, off)  # far away
    flat = rng.uniform(-0.15, 0.15, (B, 2)) * np.where(rng.random((B, 1)) < 0.2, 20, 1)
    above = np.column_stack([flat, rng.uniform(-0.06, 0.4, B)])
    action = np.zeros((B, 11))
    action[:, [0, 10]] = rng.uniform(-1.2, 1.2, (B, 2))
    case = dict(held=held, picked=held | (rng.random(B) < 0.5))
    case |= dict(
        off=to_float32(off), above=to_float32(above), other=to_float32(rng.uniform(0.02, 0.06, B))
    )
    return case | dict(t=rng.integers(2, 9, B).astype(np.int32)), to_float32(action)


@pytest.mark.parametrize("options", [{}, {"safe_drop": True, "crowded": False}])
def test_what_a_step_takes_lets_go_ends_and_pays(options):
    """Compare with NumPy, for a robot at rest in a house without walls."""
    case, action = drawn_cases()

    def play(case, action):
        env, state, hand = stand(case, **options)
        return env.step(state, action, None), state, hand

    play = jax.jit(jax.vmap(play), compiler_options=FEW)
    out, state, hand = jax.tree.map(np.asarray, play(case, action))
    origin, turn, hand, goal = hand
    wanted = expect(case, action, hand, goal, state.thing, **options)
    after = out.state
    np.testing.assert_array_equal(after.load.held, wanted["held"])
    np.testing.assert_array_equal(after.picked, wanted["picked"])
    np.testing.assert_allclose(after.thing, wanted["thing"], atol=1e-6)
    for name in ("success", "failure"):
        np.testing.assert_array_equal(out.info[name], wanted[name])
        assert wanted[name].mean() > 0.03
    np.testing.assert_array_equal(out.terminated, wanted["success"] | wanted["failure"])
    np.testing.assert_array_equal(out.truncated, case["t"] + 1 >= 9)
    np.testing.assert_allclose(out.reward, wanted["reward"], atol=2e-5)
    in_hand = np.einsum("bi,bij->bj", after.load.place, turn) + origin
    at, now = wanted["held"], wanted["sinks"]
    np.testing.assert_allclose(in_hand[at], after.thing[at], atol=1e-6)
    axes = np.einsum("bij,bjk->bik", after.load.axes, turn)
    np.testing.assert_allclose(axes[at], after.thing_axes[at], atol=1e-6)
    np.testing.assert_allclose(after.thing_axes[now][:, 2], np.eye(3)[[2] * now.sum()], atol=1e-6)


def expect(case, action, hand, goal, thing, crowded=True, safe_drop=False):
    """Compute the results that the module's documentation implies, in NumPy."""
    held, picked, grips = case["held"], case["picked"], np.clip(action[:, 0], -1, 1)
    box_distance = lambda x, half: np.linalg.norm(np.maximum(np.abs(x) - half, 0), axis=-1)
    own = box_distance(case["off"], HALF)
    other = np.maximum(case["other"] - OTHER[2], 0) if crowded else np.inf
    meets = ~held & (grips > 0.5) & (np.minimum(own, other) <= 0.015)
    right, wrong = meets & (own <= other), meets & (own > other)
    flat, high = np.hypot(*case["above"][:, :2].T), case["above"][:, 2]
    placed = (flat < 0.15) & (high > -0.02) & (high < 0.3)
    lets = held & (grips < -0.5) & (placed | (not safe_drop))
    sinks = lets & placed
    then = thing.copy()
    then[sinks, 2] = goal[sinks, 2]
    now_held, now_picked = held & ~lets | right, picked | right
    says = (action[:, 10] > 0.5) & (case["t"] + 1 > 5)
    success = says & now_picked & ~now_held & placed
    failure = says & ~success | wrong | lets & ~placed
    capped_dist = lambda a, b: np.minimum(np.linalg.norm(a - b, axis=-1), 1.5)
    x, y, _ = BASE
    onward = 0.7 * floor("to_goal", *ROW[:2]) + capped_dist(ROW[:3], goal)
    to_thing = 0.7 * floor("to_target", x, y) + capped_dist(hand, then) + onward
    left = np.where(now_picked, 0.7 * floor("to_goal", x, y) + capped_dist(then, goal), to_thing)
    reward = 7 - left - 0.01 + 4 * (right & ~picked) + 8 * success
    return dict(
        held=now_held,
        picked=now_picked,
        thing=then,
        sinks=sinks,
        success=success,
        failure=failure,
        reward=reward,
    )


@pytest.mark.slow
@pytest.mark.parametrize("beyond, held", [(0.0149, True), (0.0151, False)])
def test_the_hand_takes_what_meets_its_ball(beyond, held):
    """The threshold is 15 mm from a face of the object's box, and no bonus is paid twice."""
    state, _ = reach_state(1)
    state, _ = reach_state(1, (-(float(state.load.half[0]) + beyond), 0.0, 0.0))
    out = step(state, TAKE)
    assert bool(out.state.load.held) == held and not out.terminated
    assert (float(out.reward) > 4) == held
    again = step(replace(out.state, load=state.load), TAKE)
    assert float(again.reward) < 4 if held else True
    assert not step(state, STILL).state.load.held


@pytest.mark.slow
def test_to_take_another_thing_is_a_failure_where_there_are_others():
    state = start_state(2)
    hand = grip_center(FRAMES(state.joints))
    made, house = task().episodes, task().episodes.house[state.episode]
    other = (task().episodes.target[state.episode] + 1) % 3
    things = made.things.at[house, other, :3].set(hand)
    env = replace(task(), episodes=replace(made, things=things))
    out = PLAY(env, state, TAKE)
    assert out.info["failure"] and out.terminated and not out.state.load.held


def hand_frame(state):
    """Return the center and the axes of the object in the gripper's frame."""
    frames = FRAMES(state.joints)
    turn, hand = np.asarray(frames.axes[-1]), np.asarray(frames.origin[-1])
    return turn @ (np.asarray(state.thing) - hand), turn @ np.asarray(state.thing_axes).T


@pytest.mark.slow
def test_what_is_held_is_rigid_in_the_gripper():
    state = taken_state(1)
    for i in range(5):
        action = jax.random.uniform(jax.random.key(i), (11,), minval=-0.4, maxval=0.4)
        after = step(state, action.at[0].set(0.0)).state
        (was, was_axes), (now, now_axes) = (hand_frame(s) for s in (state, after))
        np.testing.assert_allclose(now, was, atol=2e-6)  # rounding of numbers up to 10 m
        np.testing.assert_allclose(now_axes, was_axes, atol=2e-6)
        state = after


@pytest.mark.slow
@pytest.mark.parametrize(
    "off, placed",
    [
        ((0.10, 0.10, 0.29), True),
        ((0.11, 0.11, 0.1), False),
        ((0.0, 0.0, 0.31), False),
        ((0.0, 0.0, -0.03), False),
    ],
)
def test_the_thing_is_placed_within_15_cm_and_up_to_30_cm_above_its_goal(off, placed):
    """Elsewhere a release fails the episode. Once placed, the object sinks until the end action."""
    state = taken_state(1)
    env = goal_task(state, off)
    out = PLAY(env, state, LET)
    assert bool(out.info["failure"]) == (not placed) and not out.info["success"]
    if placed:
        np.testing.assert_allclose(out.state.thing[2], env.goal(state)[2], atol=1e-6)
        np.testing.assert_array_equal(out.state.thing[:2], state.thing[:2])
    early = PLAY(env, replace(out.state, t=jnp.int32(3)), DONE)
    assert not early.terminated
    late = PLAY(env, replace(out.state, t=jnp.int32(5)), DONE)
    assert bool(late.info["success"]) == placed and late.terminated


@pytest.mark.slow
def test_rewards_add_up_to_the_way_that_was_covered_and_bonuses():
    """This holds for any path; a sum of 40 float32 rewards is within 1e-5 per step of 10 m."""
    state, _ = reach_state(1)
    first, total = float(state.left), 0.0
    actions = jax.random.uniform(jax.random.key(5), (40, 11), minval=-1, maxval=1)
    actions = actions.at[:, 0].set(0.0).at[0].set(TAKE).at[:, 10].set(-1.0)
    for action in actions:
        out = step(state, action)
        state, total = out.state, total + float(out.reward)
    assert state.picked
    np.testing.assert_allclose(total, first - float(state.left) + 5.0, atol=1e-5)
    np.testing.assert_allclose(state.left, LEFT(task(), state, FRAMES(state.joints)), atol=1e-5)


@pytest.mark.slow
def test_the_way_of_the_hand_is_told_more_finely_where_it_is_short():
    """The vector is in units of 0.3 m if shorter, else of its length, in the base's frame."""
    for off in ((0.02, 0.01, -0.03), (0.5, 0.0, 0.0)):
        state, _ = reach_state(1, off)
        frames = FRAMES(state.joints)
        _, hand, fine, *_ = task().vector(state, frames)
        away = np.asarray(frames.axes[0]) @ (
            np.asarray(state.thing) - np.asarray(grip_center(frames))
        )
        np.testing.assert_allclose(hand, away, atol=1e-6)
        np.testing.assert_allclose(fine, away / max(np.linalg.norm(off), 0.3), atol=1e-5)


@pytest.mark.slow
def test_a_picture_with_the_camera_and_what_it_hides():
    """The vector beside an image contains no entries of the map."""
    env = rl.make("rearrange/place", pixels=16, episodes=task().episodes)
    _, seen = jax.jit(env.reset)(KEY)
    assert seen["depth"].shape == (16, 16, 1) and seen["state"].shape == (35,)
    assert 0 < float(seen["depth"].min()) <= float(seen["depth"].max()) <= 1
    assert env.observation_space["state"].shape == (35,)


@pytest.mark.slow
def test_who_only_fetches_is_led_to_the_thing_also_once_it_is_taken():
    """Otherwise the distance to a goal that it lacks would reduce the reward of the grasp."""
    state, fetch = start_state(), rl.make("rearrange/mobile-pick", episodes=task().episodes)
    base, later = state.joints.base[:2], replace(state, picked=jnp.bool_(True))
    assert float(fetch.floor_path(later, base)) == float(fetch.floor_path(state, base)) > 0
    assert float(task().floor_path(later, base)) != float(task().floor_path(state, base))
    for env in (fetch, task()):
        assert sum(map(len, env.vector(state, FRAMES(state.joints)))) == env.vector_size == 35


@pytest.mark.slow
def test_the_way_through_free_space_is_told_and_paid():
    """The path leads to the object, then to the goal; in open space it is nearly straight."""
    state, hand = reach_state(1, (-0.2, 0.0, 0.0))
    frames = FRAMES(state.joints)
    told = task().privileged_obs(state, frames)
    assert [len(part) for part in told] == [3, 16, 9, 1, 3]
    turn = np.asarray(frames.axes[0])
    ahead = turn.T @ np.asarray(told[4])
    to_thing = np.asarray(state.thing) - hand
    assert ahead @ to_thing > 0.6 * np.linalg.norm(to_thing)
    near = float(task().hand_path(state, frames)[0])
    assert 0.05 < near < 0.6 and float(told[3][0]) == pytest.approx(near)
    later = replace(state, picked=jnp.bool_(True))
    way, slope = task().object_path(state, state.thing)
    np.testing.assert_allclose(
        task().privileged_obs(later, frames)[3][0], min(float(way), task().near), rtol=1e-6
    )
    np.testing.assert_allclose(
        turn.T @ np.asarray(task().privileged_obs(later, frames)[4]), -slope, atol=1e-5
    )
    fetch = rl.make("rearrange/mobile-pick", episodes=task().episodes)
    floor = float(fetch.floor(state))
    np.testing.assert_allclose(fetch.left(state, frames), floor + near, rtol=1e-5)


@pytest.mark.slow
def test_episodes_without_a_thing_are_refused_where_one_is_to_be_taken():
    env = rl.make("rearrange/mobile-pick", episodes=rl.make("rearrange/navigate").episodes)
    with pytest.raises(
        ValueError, match="have no near_target, like those of tasks.visit_episodes; make"
    ):
        env.reset(KEY)


@pytest.mark.slow
def test_ways_are_straight_where_it_is_asked_for():
    """Distances and rewards are from center to center, as published, and need no field."""
    made = replace(task().episodes, near_target=None, near_goal=None)
    env = rl.make("rearrange/mobile-pick", episodes=made, straight=True, near=jnp.inf)
    state, hand = reach_state(1, (-0.2, 0.1, 0.0))
    frames = FRAMES(state.joints)
    off = hand - np.asarray(state.thing)
    np.testing.assert_allclose(env.hand_path(state, frames)[0], np.linalg.norm(off), rtol=1e-5)
    np.testing.assert_allclose(
        env.hand_path(state, frames)[1], off / np.linalg.norm(off), atol=1e-5
    )
    paid = env.left(state, frames) - env.floor(state)
    np.testing.assert_allclose(paid, np.linalg.norm(off), rtol=1e-4)
    goal = np.asarray(env.goal(state)) - np.asarray(state.thing)
    way = env.object_path(state, state.thing)[0]
    np.testing.assert_allclose(way, np.linalg.norm(goal), rtol=1e-5)
