"""The script of mobile pick: its inputs, its hand motions, and its high rate of grasps."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu import rl
from jaxgpu.rl.envs.rearrange.robot import Joints, forward_kinematics
from jaxgpu.rl.envs.rearrange.robot.fetch import LIFT
from jaxgpu.rl.envs.rearrange.robot.reachability import grip_center
from jaxgpu.rl.envs.rearrange.tasks import script

pytestmark = pytest.mark.slow  # houses are drawn for seconds


@cache
def task():
    return rl.make("rearrange/mobile-pick")


KEY = jax.random.key(0)


def test_it_reads_the_arm_the_way_and_the_thing_out_of_an_observation():
    state, seen = jax.jit(task().reset)(KEY)
    frames = forward_kinematics(state.joints)
    np.testing.assert_allclose(script._arm_angles(seen), state.joints.arm, atol=1e-6)
    off = np.asarray(frames.axes[0]) @ np.asarray(state.thing - grip_center(frames))
    np.testing.assert_allclose(seen[script.HAND_TO_OBJECT], off, atol=1e-5)
    way, slope = task().hand_path(state, frames)
    assert float(seen[script.WAY]) == pytest.approx(min(float(way), task().near))
    np.testing.assert_allclose(seen[script.AHEAD], -frames.axes[0] @ slope, atol=1e-5)
    floor = task().floor_path(state, state.joints.base[:2])
    assert float(seen[script.ROUTE][0]) == pytest.approx(float(floor), rel=1e-5)
    action = task().script(seen)
    assert task().action_space.low <= action.min() and action.max() <= task().action_space.high


def test_the_hand_goes_and_turns_where_it_is_to():
    """The hand moves 3 mm; the projected return of the arm displaces it by at most half."""
    arm = jnp.array([0.3, 0.4, 0.2, 1.0, -0.3, 0.8, 0.1])

    def hand(arm):
        frames = forward_kinematics(Joints(jnp.zeros(3), jnp.float32(LIFT), jnp.zeros(2), arm))
        return np.asarray(grip_center(frames)), np.asarray(frames.axes[-1, 0])

    (x, axis), shift = hand(arm), np.array([0.002, -0.001, 0.002])
    reached, _ = hand(arm + script._arm_step(arm, jnp.asarray(shift), axis, jnp.zeros(7)))
    along = (reached - x) @ shift / (shift @ shift)
    assert 0.5 < along < 1.1
    back = 0.1 * jnp.ones(7)
    free = script._arm_step(arm, jnp.zeros(3), axis, back)
    still = np.linalg.norm(hand(arm + free)[0] - x)
    assert still < 0.5 * np.linalg.norm(hand(arm + back)[0] - x)


@pytest.mark.release
def test_it_takes_most_things():
    env = task()
    done = jax.jit(lambda key: rl.evaluate(env, env.script, key, 32, 300).success)(KEY)
    assert np.mean(np.asarray(done)) > 0.7


@pytest.mark.parametrize(
    "name, told", [("mobile-pick-dynamic", {}), ("mobile-pick", {"pixels": 8})]
)
def test_it_is_refused_where_it_knows_nothing(name, told):
    env = rl.make(f"rearrange/{name}", **told)
    with pytest.raises(TypeError, match="script: it needs Fetch without forces"):
        assert env.script


def test_what_is_no_observation_is_refused():
    seen = jnp.zeros(task().observation_space.shape)
    for bad, sentence in (
        (seen[:-1], r"has shape \[66\]; it must be \[67\]"),
        (seen * jnp.nan, "nan"),
    ):
        with pytest.raises(ValueError, match=f"script: observation.*{sentence}"):
            task().script(bad)
