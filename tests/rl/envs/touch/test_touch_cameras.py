"""Camera images in tactile tasks, against closed forms and ray marching in float64."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from jaxgpu import rl
from jaxgpu.geometry import rotations
from jaxgpu.physics import touch
from jaxgpu.rl.envs.touch import cameras

PLAIN = touch.GelSight(  # a gel that shows the slope of any object that presses it
    gel=np.zeros((24, 32), np.float32),
    rest=np.full((24, 32, 3), 0.5, np.float32),
    table=np.linspace(-0.2, 0.2, 6 * 9 * 9 * 3, dtype=np.float32).reshape(6, 9, 9, 3) * 1e-3,
    down=(np.ones(1, np.float32),),
    across=(np.ones(1, np.float32),),
    pixel=3e-5,
    smooth=True,
)
INSERTION = rl.make("touch/peg-insertion", observation="rgb", sensor=PLAIN)
SEEN = rl.make("touch/peg-insertion", observation="depth")
RADIUS, HALF = 0.007986 / 2, 0.025  # m, of the peg


def held_state(env, lean=0.0, key=3):
    """Return a state with a rotated hand at its position, and its part leaning between the pads."""
    state = env.reset(jax.random.key(key))[0]
    hand = jnp.asarray(np.roll(Rotation.from_euler("xyz", [0.2, -0.1, 0.7]).as_quat(), 1))
    aslant = rotations.from_rotvec(jnp.array([0.0, lean, 0.0]))
    hand = hand.astype(jnp.float32)
    quat = jnp.stack(rotations.product(hand, aslant))
    scene = replace(state.grasp, hand_quat=hand, part_quat=quat, part=state.grasp.hand)
    return replace(state, grasp=replace(scene, opening=jnp.float32(RADIUS - 4e-4)))


@pytest.mark.slow
def test_gels_see_the_peg_that_leans_between_them():
    """A rod leans about the pads' normal; each pad sees it lean in its own direction."""
    lean = 0.2
    state = jax.jit(lambda: held_state(INSERTION, lean))()
    pictures = np.asarray(jax.jit(lambda s: INSERTION.observe(s)["gels"])(state))
    # Pixels are ordered along the finger, from the palm down, and across it.
    down, across = np.meshgrid(
        ((np.arange(32) + 0.5) / 32 - 0.5) * 640 * 3e-5,
        ((np.arange(24) + 0.5) / 24 - 0.5) * 480 * 3e-5,
    )
    for picture, side in ((pictures[..., :3], 1), (pictures[..., 3:], -1)):
        x, z = side * across, -down  # in the hand's frame
        off = x * np.cos(lean) - z * np.sin(lean)
        along = x * np.sin(lean) + z * np.cos(lean)
        met = (np.abs(off) < RADIUS) & (np.abs(along) < HALF)
        y = np.sqrt(np.maximum(RADIUS**2 - off**2, 0))
        height = np.where(met, (RADIUS - 4e-4) - y, 0.02)
        want = np.asarray(PLAIN.image(height.astype(np.float32)))
        np.testing.assert_allclose(picture, want, atol=1e-4)
        assert np.ptp(want) > 0.01


@pytest.mark.slow
def test_the_wrist_sees_what_a_march_along_its_rays_meets():
    """March to part, fixture, pads and table in float64; distances agree to a tenth of a mm."""
    lean = 0.1
    state = jax.jit(lambda: held_state(SEEN, lean))()
    low = replace(
        state.grasp, hand=jnp.array([0.02, 0.01, 0.09]), part=jnp.array([0.02, 0.01, 0.07])
    )
    scene = replace(low, fixture=jnp.array([-0.02, 0.0, 0.0]))
    got = np.asarray(jax.jit(lambda s: SEEN.observe(s)["wrist"])(replace(state, grasp=scene)))
    hand, part = (
        Rotation.from_quat(np.roll(np.asarray(q, float), -1))
        for q in (scene.hand_quat, scene.part_quat)
    )
    point_at = lambda v: np.asarray(scene.hand, float) + hand.apply(v)
    eye = point_at(cameras.EYE)
    ahead = point_at(cameras.AIM) - eye
    ahead /= np.linalg.norm(ahead)
    right = np.cross(ahead, hand.apply([0, 0, 1]))
    right /= np.linalg.norm(right)
    slope = ((np.arange(64) + 0.5) / 32 - 1) * np.tan(cameras.ANGLE / 2)
    a, b = np.meshgrid(slope, slope)
    way = a[..., None] * right + b[..., None] * np.cross(ahead, right) + ahead

    def distance(x):
        own = part.inv().apply(x - np.asarray(scene.part, float))
        off = np.stack([np.hypot(own[:, 0], own[:, 1]) - RADIUS, np.abs(own[:, 2]) - HALF])
        peg = np.hypot(*np.maximum(off, 0)) + np.minimum(off.max(0), 0)
        pads = []
        for side in (1, -1):
            middle = [0, side * (float(scene.opening) + cameras.PAD[1]), 0]
            q = np.abs(hand.inv().apply(x - np.asarray(scene.hand, float)) - middle) - cameras.PAD
            pads.append(np.linalg.norm(np.maximum(q, 0), axis=1) + np.minimum(q.max(1), 0))
        own = x - np.asarray(scene.fixture, float)
        out = np.hypot(own[:, 0], own[:, 1])
        shape = SEEN.grasp.fixture.shape
        block = np.maximum(
            out - shape.outer, np.abs(own[:, 2] - shape.height / 2) - shape.height / 2
        )
        hole = np.maximum(out - shape.radius, shape.height - shape.depth - own[:, 2])
        return np.min([peg, *pads, np.maximum(block, -hole), x[:, 2]], 0)

    depth = np.full(64 * 64, 1e-3)
    for _ in range(400):
        depth = np.minimum(
            depth + distance(eye + depth[:, None] * way.reshape(-1, 3)) / 2, cameras.FAR
        )
    want = depth.reshape(64, 64) / cameras.FAR
    away = np.abs(got[..., 0] - want)
    assert got.shape == (64, 64, 1) and np.mean(away < 1e-3) > 0.98  # the others are edges
    assert want.min() < 0.25 and 0.01 < np.mean(want < 0.45) < 0.5


def test_an_image_of_each_kind_is_observed_or_refused_by_a_sentence():
    space = INSERTION.observation_space
    assert space["gels"].shape == (24, 32, 6) and set(space) == {"hand", "privileged", "gels"}
    assert SEEN.observation_space["wrist"].shape == (64, 64, 1)
    with pytest.raises(ValueError, match="must be one of privileged, reduced, force, rgb, depth"):
        rl.make("touch/peg-placement", observation="colour")
    blind = replace(INSERTION, sensor=None)
    with pytest.raises(ValueError, match="sensor is None; .* give touch.gelsight"):
        assert blind.observation_space
