"""Surgical Gym's arms: tips against the joints of its scenes, and numbers for every joint."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rl_surgical_gym import off

from jaxgpu.rl.envs.surgical.kinematics import forward_kinematics
from jaxgpu.rl.envs.surgical.surgical_gym_arms import GYM_ECM, GYM_PSM, GYM_STAR


@pytest.mark.parametrize("name, model", [("psm", GYM_PSM), ("ecm", GYM_ECM)])
def test_tips_are_those_of_the_published_scene(name, model):
    """Over all of the joints' ranges; the rows leave out slants of 1e-5 in the joints' frames.

    The axes of the first row are those of the scene in another order and with other signs.
    """
    count = model.arm.joints
    q = np.random.default_rng(0).uniform(model.lower[:count], model.upper[:count], (50, count))
    tips = jax.jit(jax.vmap(lambda q: forward_kinematics(model.arm, q)[0]))(
        jnp.asarray(q, jnp.float32)
    )
    found = np.abs(tips - np.array(model.goal_centre, np.float32)[None])
    wanted = np.abs([off(name, row) for row in q])
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
