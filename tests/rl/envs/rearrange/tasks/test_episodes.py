"""Episodes: possible as stated, and rejected for houses without any."""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from room_boxes import distance

from jaxgpu import rl
from jaxgpu.rl.envs.rearrange.tasks import episodes

pytestmark = pytest.mark.slow  # houses are drawn for seconds


@cache
def get_episodes():
    return rl.make("rearrange/mobile-pick").episodes


def test_things_and_goals_are_in_reach_of_free_places_and_starts_have_a_way():
    nav = np.asarray(get_episodes().houses.nav)
    for e, n in enumerate(np.asarray(get_episodes().house)):
        cells = (np.argwhere(nav[n]) + 0.5) * 0.1
        thing = np.asarray(get_episodes().things)[n, get_episodes().target[e]]
        for x in (thing[:3], np.asarray(get_episodes().goal[e])):
            assert np.hypot(*(cells - x[:2]).T).min() < episodes.ARM_REACH
            assert episodes.HEIGHTS[0] < x[2] < episodes.HEIGHTS[1]
        for x, y, _ in np.asarray(get_episodes().starts[e]):
            assert nav[n, int(x / 0.1), int(y / 0.1)]
            way = get_episodes().path_length(get_episodes().to_goal, e, jnp.array([x, y]))
            straight = np.hypot(*(np.asarray(get_episodes().goal[e])[:2] - (x, y)))
            assert (
                way > straight - episodes.ARM_REACH - 0.15
            )  # not shorter than a straight line, except by the size of cells


def test_goals_lie_on_what_bears_them():
    """The object at its goal touches a box from above and penetrates none."""
    for e, n in enumerate(np.asarray(get_episodes().house)[:6]):
        thing = np.asarray(get_episodes().things, float)[n, get_episodes().target[e]]
        foot = np.asarray(get_episodes().goal[e], float) - (0, 0, thing[5])
        rows = np.asarray(get_episodes().boxes, float)[n]
        away = [distance(foot, r[:3], r[3:6], np.arctan2(r[7], r[6])) for r in rows]
        assert min(away) < 1e-3


def test_a_house_without_anything_to_fetch_is_refused_or_passed_over():
    houses = get_episodes().houses
    bare = jax.tree.map(lambda x: x[:2], houses)
    count = bare.objects.count.at[0].set(0)
    bare = jax.tree_util.tree_map(lambda x: x, bare)
    bare = type(bare)(
        **{**vars(bare), "objects": type(bare.objects)(**{**vars(bare.objects), "count": count})}
    )
    with pytest.raises(ValueError, match=r"house 0: none of its 0 small objects .*; give another"):
        episodes.fetch_episodes(bare, 1)
    assert set(np.asarray(episodes.fetch_episodes(bare, 2, skip=True).house)) == {1}
    with pytest.raises(TypeError, match="leading axis"):
        episodes.fetch_episodes(jax.tree.map(lambda x: x[0], houses))


def test_houses_and_episodes_with_a_number_that_is_none_are_refused():
    houses = get_episodes().houses
    holed = replace(houses, rooms=houses.rooms.at[0, 0, 1].set(jnp.nan))
    with pytest.raises(ValueError, match=r"visit_episodes: House.rooms=nan at \[0, 0, 1\]"):
        episodes.visit_episodes(holed)
    tall = replace(houses, surfaces=replace(houses.surfaces, yaw=-jnp.inf))
    with pytest.raises(ValueError, match=r"Surfaces.yaw=-inf; it must be a finite number"):
        rl.vectorize(
            rl.make("rearrange/mobile-pick", episodes=replace(get_episodes(), houses=tall))
        )
    with pytest.raises(ValueError, match=r"Episodes.boxes=nan; it must be a finite number"):
        rl.vectorize(rl.make("rearrange/navigate", episodes=replace(get_episodes(), boxes=jnp.nan)))


def test_the_way_over_the_floor_leads_to_where_the_arm_gets_there_and_no_farther():
    """A posture without contact grasps the object from the end cells of the path."""
    ends = np.asarray(get_episodes().to_target)
    for e, n in list(enumerate(np.asarray(get_episodes().house)))[::5]:
        cells = (np.argwhere(ends[e] < 0.05) + 0.5) * episodes.WIDTH
        thing = np.asarray(get_episodes().things)[n, get_episodes().target[e]]
        assert len(cells) and (np.hypot(*(cells - thing[:2]).T) < episodes.ARM_REACH + 0.2).all()
        near = np.asarray(get_episodes().near_target)[e]
        assert near.shape == (20**3,) and near.min() < 0.15 and np.isfinite(near).all()
