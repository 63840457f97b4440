"""Depth images against a loop over pixels and balls, tools against analytic rays; renderings."""

import io
import sys

import av
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import assert_exports, check_program
from PIL import Image

from jaxgpu.geometry import fill_box, sdf
from jaxgpu.render import Camera, ParticleStyle, gif, mp4, nearest_ball, picture, soft_depth, trace
from jaxgpu.render.capsules import INKS
from jaxgpu.render.ground import draw_floor
from jaxgpu.render.shading import normals, smooth_depth

EYE, TARGET, ANGLE = np.array([0.7, 0.4, 1.9]), np.array([0.1, 0.05, -0.1]), 0.6
CAMERA = Camera(tuple(EYE), tuple(TARGET), (0.1, 1.0, -0.2), ANGLE, 24, 18)


def rays():
    """Return ray directions [18, 24, 3] with unit component along the view axis, in float64."""
    ahead = (TARGET - EYE) / np.linalg.norm(TARGET - EYE)
    right = np.cross(ahead, [0.1, 1.0, -0.2])
    right /= np.linalg.norm(right)
    up = np.cross(right, ahead)
    size = np.tan(ANGLE / 2) / 9  # of a pixel, at unit distance
    row, column = np.mgrid[:18, :24]
    across, above = (column - 11.5) * size, (8.5 - row) * size
    return ahead + across[..., None] * right + above[..., None] * up


def ray_hit(d, centre, radius):
    """Return the parameter at which rays [..., 3] from the eye hit a ball: a quadratic equation."""
    to = EYE - centre
    a, b, c = (d * d).sum(-1), 2 * (d * to).sum(-1), (to * to).sum() - radius**2
    left = b * b - 4 * a * c
    t = (-b - np.sqrt(np.where(left > 0, left, 0))) / (2 * a)
    return np.where((left > 0) & (t > 0) & (radius > 0), t, np.inf)


draw = jax.jit(lambda x, r: nearest_ball(CAMERA, x, r, reach=5))
soft = jax.jit(lambda x, r: soft_depth(CAMERA, x, r, far=4.0, blur=0.05, reach=5))


def balls(seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-0.6, 0.6, (60, 3))
    radius = rng.uniform(0.02, 0.14, 60)
    radius[7] = 0.0  # hidden
    x[8] = EYE + 0.3 * (EYE - TARGET)  # behind the camera
    return x, radius


@pytest.mark.parametrize("seed", range(3))
def test_every_pixel_shows_the_nearest_ball(seed):
    x, radius = balls(seed)
    index, depth = draw(jnp.asarray(x, jnp.float32), jnp.asarray(radius, jnp.float32))
    depths = np.stack([ray_hit(rays(), c, r) for c, r in zip(x, radius)])
    best = depths.min(0)
    seen = np.isfinite(best)
    assert 0.3 < seen.mean() < 1
    # Rays within rounding error of a rim may hit or miss.
    sure = np.stack([ray_hit(rays(), c, 1.001 * r) for c, r in zip(x, radius)]).min(0)
    sure = np.abs(np.where(seen, best, 0) - np.where(np.isfinite(sure), sure, 0)) < 0.02
    assert sure.mean() > 0.95
    np.testing.assert_array_equal(np.isfinite(depth)[sure], seen[sure])
    np.testing.assert_allclose(np.asarray(depth)[sure], best[sure], rtol=2e-4)
    second = np.sort(depths, 0)[1]
    clear = sure & seen & (second > np.where(seen, best, 0) + 1e-3)
    np.testing.assert_array_equal(np.asarray(index)[clear], depths.argmin(0)[clear])
    assert (np.asarray(index)[sure & ~seen] == 60).all()


def test_a_soft_image_is_its_definition():
    x, radius = balls(1)
    x, radius = x[9:], radius[9:]
    d = rays()
    unit = d / np.linalg.norm(d, axis=-1, keepdims=True)
    ahead = (TARGET - EYE) / np.linalg.norm(TARGET - EYE)
    weight, total = 0.1 * np.exp(-4.0 / 0.05), 0.1 * np.exp(-4.0 / 0.05) * 4.0
    for centre, r in zip(x, radius):
        miss = ((centre - EYE - (unit @ (centre - EYE))[..., None] * unit) ** 2).sum(-1)
        z = (centre - EYE) @ ahead
        w = np.maximum(1 - miss / r**2, 0) ** 2 * np.exp(-z / 0.05)
        weight, total = weight + w, total + w * z
    got = soft(jnp.asarray(x, jnp.float32), jnp.asarray(radius, jnp.float32))
    # exp(t / blur) amplifies rounding of 1e-7 x 2 m to 4e-6 of a weight.
    np.testing.assert_allclose(got, total / weight, rtol=2e-4)


@pytest.mark.slow
def test_both_images_have_the_derivative_of_differences(x64):
    x, radius = balls(2)
    way = np.cos(np.arange(180.0)).reshape(60, 3)

    @jax.jit
    def depth_slope(h):
        """Return the depth, its derivative, and the index of the ball in each pixel."""

        def depth(h):
            index, d = draw(x + h * way, radius)
            return jnp.where(jnp.isfinite(d), d, 0.0), index

        d, slope, index = jax.jvp(depth, (h,), (1.0,), has_aux=True)
        return d, slope, index

    (depth, slope, _), (after, _, one), (before, _, other) = map(depth_slope, (0.0, 1e-7, -1e-7))
    shown = np.asarray(depth) > 0
    inner = shown & np.roll(shown, 1, 0) & np.roll(shown, -1, 0)
    slope, central = np.where(inner, slope, 0), np.where(inner, (after - before) / 2e-7, 0)
    assert np.abs(slope).max() > 0.5
    np.testing.assert_allclose(np.where(one == other, slope - central, 0), 0, atol=1e-5)

    weight = np.sin(np.arange(18 * 24.0)).reshape(18, 24)

    @jax.jit
    def second(h):
        """Return the image, its derivative along `way`, and the reverse gradient of its sum."""
        given = x[9:] + h * way[9:], radius[9:] + h * np.cos(np.arange(51.0))
        image, slope = jax.jvp(soft, given, (way[9:], np.cos(np.arange(51.0))))
        return image, slope, jax.grad(lambda *a: jnp.sum(weight * soft(*a)), (0, 1))(*given)

    (_, slope, (by_x, by_radius)), (after, *_), (before, *_) = map(second, (0.0, 1e-6, -1e-6))
    # The truncation error of the differences is of second order in steps of 1e-6.
    np.testing.assert_allclose(slope, (after - before) / 2e-6, rtol=1e-5, atol=1e-5)
    along = np.sum(by_x * way[9:]) + np.sum(by_radius * np.cos(np.arange(51.0)))
    np.testing.assert_allclose(along, np.sum(weight * slope), rtol=1e-9)


def test_moving_camera_and_balls_together_changes_nothing():
    x, radius = (jnp.asarray(a, jnp.float32) for a in balls(3))
    q, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))
    q = jnp.asarray(q * np.linalg.det(q), jnp.float32)
    move = lambda a: np.asarray(np.asarray(a) @ np.asarray(q).T, np.float32)
    shift = np.array([3.0, -1.0, 2.0], np.float32)
    other = Camera(move(EYE) + shift, move(TARGET) + shift, move((0.1, 1.0, -0.2)), ANGLE, 24, 18)
    depth = jax.jit(lambda c, x: soft_depth(c, x, radius, far=4.0, blur=0.05, reach=5))
    np.testing.assert_allclose(
        depth(other, jnp.asarray(move(x) + shift)), soft(x, radius), rtol=1e-3
    )


def test_a_walk_along_rays_meets_tools_where_geometry_says():
    centre, turn = np.array([0.05, 0.1, 0.0]), np.array([0.8, 0.36, 0.48, 0.0])
    at, turned = (jnp.asarray(a, jnp.float32) for a in (centre, turn))
    walk = jax.jit(lambda shape: trace(CAMERA, shape, at, turned, far=5.0, steps=128))
    ball = sdf.Ball(0.3)
    depth, normal = walk(ball)
    want = ray_hit(rays(), centre, 0.3)
    rim = np.isfinite(ray_hit(rays(), centre, 0.303)) != np.isfinite(ray_hit(rays(), centre, 0.297))
    np.testing.assert_allclose(np.where(rim, 0, depth), np.where(rim, 0, want), atol=2e-3)
    place = EYE + np.where(np.isfinite(want), want, 0)[..., None] * rays()
    out = (place - centre) / 0.3
    off = np.abs(np.stack(normal, -1) - out).max(-1)
    assert off[np.isfinite(want) & ~rim].max() < 5e-3
    box = sdf.Box((0.25, 0.15, 0.2))
    depth, _ = walk(box)
    # Intersect the slabs of the box in its own frame: R^T of the quaternion (w, x, y, z).
    w, x, y, z = turn
    r = np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ])  # fmt: skip
    o, d = (EYE - centre) @ r, rays() @ r
    one, two = (-np.array([0.25, 0.15, 0.2]) - o) / d, (np.array([0.25, 0.15, 0.2]) - o) / d
    enter, leave = np.minimum(one, two).max(-1), np.maximum(one, two).min(-1)
    want, clear = np.where(enter < leave, enter, np.inf), np.abs(enter - leave) > 0.02
    np.testing.assert_allclose(np.asarray(depth)[clear], want[clear], atol=2e-3)
    assert 0.1 < (clear & np.isfinite(want)).mean() < 0.6


def test_normals_of_a_depth_image_are_those_of_the_ball():
    camera = Camera((0.0, 0.3, 2.0), (0.0, 0.0, 0.0), angle=0.35, width=80, height=80)
    depth = jax.jit(lambda x: nearest_ball(camera, x, 0.25, reach=40)[1])(jnp.zeros((1, 3)))
    got = np.stack(jax.jit(normals)(camera, depth), -1)
    out = np.stack(camera.unproject(jnp.where(jnp.isfinite(depth), depth, 0)), -1) / 0.25
    facing = np.isfinite(depth) & (out @ np.array([0.0, 0.3, 2.0]) > 1.2)
    assert facing.sum() > 500
    # A pixel spans 0.035 of the radius: one-sided differences have an error of half of it.
    assert np.abs(got - out)[facing].max() < 0.05


def test_smoothing_keeps_planes_and_edges():
    row, column = np.mgrid[:12, :16].astype(np.float32)
    step = np.where(column < 8, 1 + 0.01 * row, 3.0).astype(np.float32)
    step[:, 15] = np.inf
    got = np.asarray(smooth_depth(jnp.asarray(step), jnp.float32(0.1), 3))
    np.testing.assert_allclose(got[3:-3], step[3:-3], rtol=1e-6)
    bump = step.copy()
    bump[5, 3] += 0.05
    assert abs(np.asarray(smooth_depth(jnp.asarray(bump), 0.1, 3))[5, 3] - step[5, 3]) < 0.02


@pytest.mark.slow
def test_a_shadow_lies_on_the_floor_away_from_the_sun():
    camera = Camera((0.0, 3.0, 0.01), (0.0, 0.0, 0.0), angle=0.6, width=60, height=60)
    empty = jnp.full((60, 60), jnp.inf)
    drop = fill_box((-0.1, 0.3, -0.1), (0.1, 0.5, 0.1), 0.02, sdf.Moved(sdf.Ball(0.1), (0, 0.4, 0)))
    put = jax.jit(lambda x, r: draw_floor(camera, jnp.ones((60, 60, 3)), empty, x, r, 0.0))
    image, depth = put(drop, 0.015)
    np.testing.assert_allclose(depth, 3.0, rtol=2e-3)  # the camera is 0.2 degrees off the zenith
    x, height, z = camera.unproject(depth)
    np.testing.assert_allclose(height, 0, atol=1e-5)
    dark = np.asarray(image[..., 0]) < 0.7  # the floor in the sun has 0.83
    # The sun is at (0.45, 0.8, 0.4): a drop 0.4 m up casts its shadow 0.4 (0.45, 0.4) / 0.8 away.
    np.testing.assert_allclose(np.asarray(x)[dark].mean(), -0.225, atol=0.02)
    np.testing.assert_allclose(np.asarray(z)[dark].mean(), -0.2, atol=0.02)
    bare, _ = put(drop, 0.0)  # nothing is drawn, as before the first drop of a jet
    np.testing.assert_allclose(bare[..., 0], 0.83, rtol=1e-5)


@pytest.mark.slow
def test_a_picture_is_one_portable_program():
    shape = sdf.Cylinder(0.2, 0.1, axis=1)
    solid = (shape, jnp.array([0.2, 0.1, 0.2]), jnp.array([1.0, 0.0, 0.0, 0.0]))
    x = jnp.asarray(balls(4)[0][:9], jnp.float32)
    camera = Camera((0.0, 0.5, 2.0), (0.0, 0.0, 0.0), width=12, height=9)

    def draw(x):
        look = ParticleStyle(0.1, reach=2, smoothing=2)
        return picture(camera, x, 0 * x + 0.5, look, solids=(solid,), floor=-0.6)

    draw = jax.jit(draw)
    image = draw(x)
    assert image.shape == (9, 12, 3) and 0 <= image.min() and image.max() <= 1
    assert len(np.unique(np.round(image, 3))) > 30
    soft = lambda x: soft_depth(camera, x, 0.1, far=3.0, blur=0.05, reach=1)
    draw_both = lambda x: (draw(x), soft(x))
    check_program(draw_both, x)
    assert_exports(draw_both, x)
    two = jax.jit(jax.vmap(draw))(jnp.stack([x, 0.5 * x]))
    off = np.abs(np.asarray(two[1] - draw(0.5 * x))).max(-1) > 1e-5
    assert off.mean() < 0.02  # a pixel on an edge may go either way by rounding


def test_a_film_keeps_its_frames_and_colours():
    images = np.zeros((3, 20, 30, 3))
    images[0, :, :, 0], images[1, :, :15, 1], images[2, 5:] = 1, 0.5, 0.8
    film = Image.open(io.BytesIO(gif(images, 0.04)))
    assert film.n_frames == 3 and film.size == (30, 20) and film.info["duration"] == 40
    for k in range(3):
        film.seek(k)
        shown = np.asarray(film.convert("RGB")) / 255
        np.testing.assert_allclose(shown, images[k], atol=0.02)


def test_a_film_of_few_inks_keeps_their_shades():
    images = np.zeros((2, 8, 8, 3), np.uint8)
    images[0, 2, 2], images[1, 3, 3] = np.round(255 * np.array([INKS[2], INKS[3]]))
    shown = Image.open(io.BytesIO(gif(images, inks=INKS)))
    for frame, spot in ((0, (2, 2)), (1, (3, 3))):
        shown.seek(frame)
        near = np.array(shown.convert("RGB").getpixel(spot), int) - images[frame][spot]
        assert np.abs(near).max() <= 7  # a shade: 255 / 41


def test_a_film_for_browsers_keeps_its_frames_and_colours():
    rows, columns = np.mgrid[:41, :60] // 2 / 30  # the format keeps one colour a block of 2 x 2
    images = np.stack([np.stack([rows, columns, 0 * rows + k / 4], -1) for k in range(5)])
    with av.open(io.BytesIO(mp4(images, 0.04))) as film:
        stream = film.streams.video[0]
        assert stream.average_rate == 25 and stream.codec_context.name == "h264"
        shown = np.stack([f.to_ndarray(format="rgb24") for f in film.decode(stream)]) / 255
    assert shown.shape == (5, 40, 60, 3)  # colours are kept at half the size, so it must be even
    np.testing.assert_allclose(shown, images[:, :40], atol=0.04)


def test_bad_input_gets_a_sentence(monkeypatch):
    x, ahead = jnp.zeros((1, 3)), {"eye": (0.0, 0.0, 1.0), "target": (0.0, 0.0, 0.0)}
    for fields, words in (
        ({"width": 0}, "nearest_ball: Camera.width=0; it must be a whole number of at least 1"),
        (
            {"angle": 40.0},
            "nearest_ball: Camera.angle=40; it must be a finite number above 0 and below",
        ),
        ({"target": (0.0, 0.0, 1.0)}, "eye and target must differ"),  # it was an image of nan
        ({"up": (0.0, 0.0, 2.0)}, "up must not be parallel to the line"),
        ({"eye": (0.0, 1.0)}, r"nearest_ball: Camera.eye has shape \[2\]; it must be \[3\]"),
    ):
        with pytest.raises(ValueError, match=words):
            nearest_ball(Camera(**ahead | fields), x, 0.1)
    with pytest.raises(ValueError, match=r"radius has shape \[3\]; it must be \[\] or \[1\]"):
        nearest_ball(Camera(**ahead), x, jnp.ones(3))
    with pytest.raises(ValueError, match="gif: images=200 at .*; it must be a finite number of at"):
        gif(np.full((1, 2, 2, 3), 200))  # all that was above 1 was white
    with pytest.raises(ValueError, match="gif: images have shape"):
        gif(np.zeros((4, 4, 3)))
    with pytest.raises(ValueError, match="mp4: images have shape"):
        mp4(np.zeros((0, 4, 4, 3)))
    monkeypatch.setitem(sys.modules, "av", None)  # as if it were not installed
    with pytest.raises(ModuleNotFoundError, match=r'mp4 needs av; pip install "jaxgpu\[viz\]"'):
        mp4(np.zeros((1, 4, 4, 3)))
