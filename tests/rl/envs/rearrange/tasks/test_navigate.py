"""Navigation: a controller that follows the path arrives; rewards and success."""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu import rl

pytestmark = pytest.mark.slow  # houses are drawn for seconds


@cache
def task():
    return rl.make("rearrange/navigate")


COPIES = 64


def follow_field(steps=150):
    """Drive down the distance field; return first and last states, rewards and success."""
    state, seen = jax.jit(jax.vmap(task().reset))(jax.random.split(jax.random.key(0), COPIES))
    first = state

    def move(loop, key):
        state, seen, playing, total, success = loop
        _, ahead, aside = seen[:, 5], seen[:, 6], seen[:, 7]
        angle = jnp.arctan2(aside, ahead)
        turn = jnp.clip(angle / 0.0873, -1, 1)
        drive = jnp.where(jnp.abs(angle) < 0.5, 1.0, 0.0)
        out = jax.vmap(task().step)(
            state, jnp.stack([turn, drive], -1), jax.random.split(key, COPIES)
        )
        keep = lambda a, b: jnp.where(playing.reshape(-1, *(1,) * (a.ndim - 1)), a, b)
        total = total + jnp.where(playing, out.reward, 0)
        success = success | (playing & out.info["success"])
        state = jax.tree.map(keep, out.state, state)
        return (state, keep(out.observation, seen), playing & ~out.terminated, total, success), None

    none = jnp.zeros(COPIES)
    start = (state, seen, none == 0, none, none > 0)
    (state, _, _, total, success), _ = jax.jit(
        lambda start: jax.lax.scan(move, start, jax.random.split(jax.random.key(1), steps))
    )(start)
    return first, state, np.asarray(total), np.asarray(success)


def test_who_follows_the_shortest_way_arrives_and_is_paid_for_it():
    """Six of seven copies must arrive.

    The folded arm extends 0.7 m ahead of the base's center. Driving straight at a corner, or at a
    position beside a wall, therefore stops the robot early. The sum of rewards is the covered
    distance plus the bonus, up to rounding.
    """
    first, last, total, success = follow_field()
    assert success.mean() > 0.85
    np.testing.assert_allclose(total, first.left - last.left + 10.0 * success, atol=2e-4)
    assert np.asarray(first.left)[success].min() > 0.5
    assert not np.asarray(last.left_out).any()


def test_with_a_stop_the_robot_says_when_it_is_there():
    """Stopping within the radius is success, elsewhere failure, except in the first five steps."""
    env = rl.make("rearrange/navigate", stop=True, episodes=task().episodes)
    state, _ = jax.jit(env.reset)(jax.random.key(2))
    goal = env.episodes.goal[state.episode]
    step = jax.jit(env.step)
    says = jnp.array([0.0, 0.0, 1.0])
    for off, t, ends, success in ((0.0, 9, 1, 1), (0.0, 2, 0, 0), (0.4, 9, 1, 0)):
        base = jnp.array([goal[0] + off, goal[1], 0.0])
        there = replace(state, joints=replace(state.joints, base=base), t=jnp.int32(t))
        out = step(there, says, jax.random.key(0))
        assert (bool(out.terminated), bool(out.info["success"])) == (bool(ends), bool(success))


def test_first_episodes_of_a_training_are_staggered_and_no_others():
    many = rl.vectorize(task(), 32)
    last = jax.jit(many.reset)(jax.random.key(0)).state.last
    assert len(np.unique(last)) > 20 and int(last.min()) >= 1 and int(last.max()) <= 500
    assert int(task().reset(jax.random.key(0))[0].last) == 500
