"""Rays against capsules: closed forms, a search along the ray, and rendered images."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu.geometry import sdf
from jaxgpu.render import Balls, Camera, Capsules, ParticleStyle, capsules

SEEN = Camera((3.0, 0.0, 0.5), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), width=24, height=24)


def scene(seed, count=3):
    """Make random capsules near the origin; the last one is a sphere."""
    rng = np.random.default_rng(seed)
    start, end = rng.normal(0, 0.4, (2, count, 3))
    end[-1] = start[-1]
    rows = (start, end, rng.uniform(0.05, 0.3, count), rng.random((count, 3)))
    return Capsules(*(jnp.asarray(x) for x in (*rows, -1.0, 0.5)))


def gap(scene, x):
    """Return the distance from points [K, 3] to the capsules, by definition."""
    gaps = []
    for a, b, r in zip(*map(np.asarray, (scene.start, scene.end, scene.radius))):
        s = np.clip(((x - a) @ (b - a)) / max((b - a) @ (b - a), 1e-300), 0, 1)
        gaps.append(np.linalg.norm(x - a - s[:, None] * (b - a), axis=1) - r)
    return np.min(gaps, 0)


def test_rays_stop_on_the_first_surface(x64):
    """Hits are on the surface, their rays outside before; rays without a hit are never inside."""
    meet, hits = jax.jit(capsules.first_hit), 0
    for seed in range(5):
        rng, made = np.random.default_rng(seed), scene(seed)
        eye = 3 * rng.normal(size=3) + np.array([4.0, 0, 0])
        way = rng.normal(0, 0.3, (200, 3)) - eye
        way /= np.linalg.norm(way, axis=1, keepdims=True)
        far, which = meet(made, tuple(jnp.asarray(eye)), tuple(jnp.asarray(way.T)))
        far, hit = np.asarray(far), np.asarray(far) < capsules.FAR
        hits += hit.sum()
        assert np.abs(gap(made, eye + far[hit, None] * way[hit])).max() < 1e-12
        for part in np.linspace(0, 0.999, 200):
            before = eye + part * np.where(hit, far, 20)[:, None] * way
            assert gap(made, before).min() > 0
        first = jax.tree.map(lambda x: x[:1] if x.ndim else x, made)
        there = np.abs(gap(first, eye + far[hit, None] * way[hit])) < 1e-12
        np.testing.assert_array_equal(np.asarray(which)[hit] == 0, there)
    assert hits > 100


def test_a_picture_shows_the_ball_on_its_floor_and_its_shadow():
    """The outline follows from the camera's geometry; below the ball the floor is in shadow."""
    ball = lambda r: Capsules(
        start=jnp.zeros((1, 3)),
        end=jnp.zeros((1, 3)),
        radius=jnp.full(1, r),
        colour=jnp.array([[1.0, 0.0, 0.0]]),
        floor=jnp.float32(-0.5),
        tile=jnp.float32(0.5),
    )
    picture = jax.jit(lambda r: ball(r).picture(SEEN, 1))
    with_ball, without = (np.asarray(picture(r)) for r in (0.3, 1e-4))
    red = with_ball[..., 0] > 2 * with_ball[..., 1]
    rows, columns = np.mgrid[:24, :24] + 0.5
    away = np.hypot(rows - 12, columns - 12) / float(SEEN.focal_length)
    outline = np.tan(np.arcsin(0.3 / np.sqrt(9.25)))  # of a sphere straight ahead
    sure = np.abs(away - outline) > 0.01
    np.testing.assert_array_equal(red[sure], (away < outline)[sure])
    dark = (with_ball.sum(-1) < without.sum(-1) - 0.3) & ~red
    assert 3 < dark.sum() < 60 and with_ball.min() >= 0 and with_ball.max() <= 1


def test_a_depth_camera_sees_the_first_surface(x64):
    """The point at the depth of every pixel is on a capsule or on the floor."""
    camera = Camera((3.0, 0.4, 0.5), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), width=24, height=24)

    @jax.jit
    def look(made):
        """Return depths, the positions at them, and positions 2 m ahead."""
        depth = made.depth(camera)
        there = camera.unproject(jnp.where(jnp.isfinite(depth), depth, 1.0))
        return depth, jnp.stack(there, -1), jnp.stack(camera.unproject(jnp.full((24, 24), 2.0)), -1)

    for seed in range(3):
        made = scene(seed)
        depth, there, up = map(np.asarray, look(made))
        on_floor = np.abs(there[..., 2] - float(made.floor)) < 1e-9
        on_one = np.abs(gap(made, there.reshape(-1, 3)).reshape(24, 24)) < 1e-7
        seen = np.isfinite(depth)
        assert (on_floor | on_one)[seen].all() and on_floor[seen].any() and on_one[seen].any()
        # Pixels without a hit point upwards, or far away.
        up = up - np.asarray(camera.eye)
        assert (~seen).any() and (up[~seen][:, 2] > -1e-3 * 2).all()


def test_a_depth_camera_sees_balls_glass_and_a_floor():
    """The scene has a ball before a floor and a glass ball that is closer than its background."""
    camera = Camera((0.0, 2.0, 4.0), (0.0, 0.0, 0.0), width=33, height=33)
    x, style = jnp.zeros((1, 3)), ParticleStyle(0.5, smoothing=0)
    glass = (sdf.Ball(0.3), jnp.array([1.0, 0.0, 0.0]), jnp.array([1.0, 0.0, 0.0, 0.0]))
    made = Balls(x, jnp.ones((1, 3)), style, (glass,), floor=-0.5)

    @jax.jit
    def look():
        depth = made.depth(camera)
        return depth, jnp.stack(camera.unproject(depth), -1)

    depth, there = map(np.asarray, look())
    np.testing.assert_allclose(depth[16, 16], 20**0.5 - 0.5, atol=2e-3)
    np.testing.assert_allclose(there[30, 2, 1], -0.5, atol=1e-4)
    gap = np.linalg.norm(there - np.array([1.0, 0.0, 0.0]), axis=-1)
    assert np.abs(gap - 0.3).min() < 2e-3 and gap.min() > 0.3 - 2e-3
