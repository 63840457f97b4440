"""Surgical Gym's arms: tips against the joints of its scenes, and numbers for every joint."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rl_surgical_gym import off

from jaxgpu.rl.envs.surgical.arms import place
from jaxgpu.rl.envs.surgical.rigs import ECM_RIG, PSM_RIG, STAR_RIG


@pytest.mark.parametrize("name, rig", [("psm", PSM_RIG), ("ecm", ECM_RIG)])
def test_tips_are_those_of_the_published_scene(name, rig):
    """Over all of the joints' ranges; the rows leave out slants of 1e-5 in the joints' frames.

    The axes of the first row are those of the scene in another order and with other signs.
    """
    count = rig.arm.joints
    q = np.random.default_rng(0).uniform(rig.lower[:count], rig.upper[:count], (50, count))
    tips = jax.jit(jax.vmap(lambda q: place(rig.arm, q)[0]))(jnp.asarray(q, jnp.float32))
    found = np.abs(tips - np.array(rig.centre, np.float32)[None])
    wanted = np.abs([off(name, row) for row in q])
    order = [0, 1, 2] if name == "psm" else [2, 1, 0]
    np.testing.assert_allclose(found, wanted[:, order], atol=1e-4)


def test_every_joint_has_all_numbers_and_begins_within_its_limits():
    for rig in (PSM_RIG, ECM_RIG, STAR_RIG):
        rows = {f.name: getattr(rig, f.name) for f in dataclasses.fields(rig)}
        for given in ("arm", "centre", "dt"):
            rows.pop(given)
        assert len({len(row) for row in rows.values()}) == 1
        start = np.array(rig.start) * np.array(rig.scale)
        assert np.all((np.array(rig.lower) <= start) & (start <= np.array(rig.upper)))
