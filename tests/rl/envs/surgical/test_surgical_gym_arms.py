"""Surgical Gym's arms: tips against the joints of its scenes, and parameters of every joint."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rl_surgical_gym import goal_offset

from jaxgpu.rl.envs.surgical.kinematics import forward_kinematics
from jaxgpu.rl.envs.surgical.surgical_gym_arms import GYM_ECM, GYM_PSM, GYM_STAR


@pytest.mark.parametrize("name, model", [("psm", GYM_PSM), ("ecm", GYM_ECM)])
def test_tips_are_those_of_the_published_scene(name, model):
    """Sample the ranges of all joints; the rows omit slants of 1e-5 in the frames of joints.

    The axes of the first row are those of the scene in another order and with other signs.
    """
    count = model.arm.joints
    q = np.random.default_rng(0).uniform(model.lower[:count], model.upper[:count], (50, count))
    tips = jax.jit(jax.vmap(lambda q: forward_kinematics(model.arm, q)[0]))(
        jnp.asarray(q, jnp.float32)
    )
    found = np.abs(tips - np.array(model.goal_centre, np.float32)[None])
    wanted = np.abs([goal_offset(name, row) for row in q])
    order = [0, 1, 2] if name == "psm" else [2, 1, 0]
    np.testing.assert_allclose(found, wanted[:, order], atol=1e-4)


def test_every_joint_has_all_numbers_and_begins_within_its_limits():
    for model in (GYM_PSM, GYM_ECM, GYM_STAR):
        rows = {f.name: getattr(model, f.name) for f in dataclasses.fields(model)}
        for given in ("arm", "goal_centre", "dt"):
            rows.pop(given)
        assert len({len(row) for row in rows.values()}) == 1
        start = np.array(model.initial_target) * np.array(model.scale)
        assert np.all((np.array(model.lower) <= start) & (start <= np.array(model.upper)))


def test_targets_cover_what_the_tasks_say():
    """The range is 1 rad to either side, 0 to 254 mm for the fifth joint, and STAR's own two.

    Stiffness over damping is 10 / s, for the PSM's first joint 100 / s, for STAR 200 / 12 / s.
    """
    for model, count in ((GYM_PSM, 9), (GYM_ECM, 6)):
        ends = [model.scale * sign + model.offset for sign in (-1, 1)]
        want = np.array([[-1.0] * count, [1.0] * count])
        want[:, 4] = 0, 0.254
        np.testing.assert_allclose(ends, want, atol=1e-15)
        np.testing.assert_array_equal(model.rate[1:], 10)
        assert not model.initial_target.any() and model.joints == count
    assert (GYM_PSM.rate[0], GYM_ECM.rate[0]) == (100, 10)
    np.testing.assert_allclose(GYM_STAR.scale * 1 + GYM_STAR.offset, 2)
    np.testing.assert_allclose(GYM_STAR.rate, 200 / 12)
    assert [1 / model.dt for model in (GYM_PSM, GYM_ECM, GYM_STAR)] == [400, 200, 400]
    slides = [np.flatnonzero(model.max_velocity != 10).tolist() for model in (GYM_PSM, GYM_ECM)]
    assert slides == [[5], [4]] and np.isinf(GYM_STAR.max_velocity).all()
    assert (GYM_PSM.max_velocity[5], GYM_ECM.max_velocity[4]) == (1, 100)
