"""Images of pressed gels: compared with the package that their tables are from, and by hand."""

import sys
import warnings
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from taxim.calibration import CALIB_ROOT
from taxim.taxim_jax import TaximJax

from jaxgpu.physics import touch
from jaxgpu.physics.touch import calibration

PIXEL = 2.95e-5  # m, of the camera's 480 x 640


# One program serves all sensors of a size and a structure.
look = jax.jit(lambda sensor, height: sensor.image(height))
pressed_in = jax.jit(lambda sensor, height: sensor.depth(height))


def ball(high, wide, depth, radius=4e-3):
    """Return heights of an off-centre ball in m."""
    y, x = (np.mgrid[:high, :wide] - np.array([high, wide])[:, None, None] / 2) * PIXEL * 480 / high
    near = np.minimum((x - 1e-3) ** 2 + (y + 5e-4) ** 2, radius**2)
    return radius - np.sqrt(radius**2 - near) - depth


def peg(high, wide, depth, radius=4e-3):
    """Return heights of a tilted half cylinder that ends in the image, in m."""
    y, x = (np.mgrid[:high, :wide] - np.array([high, wide])[:, None, None] / 2) * PIXEL * 480 / high
    across, along = 0.966 * y - 0.259 * x, 0.966 * x + 0.259 * y
    inside = (np.abs(across) < radius) & (along < 2.5e-3)
    up = radius - np.sqrt(np.maximum(radius**2 - across**2, 0))
    return np.where(inside, up, radius) - depth


SCENES = {
    "ball": ball(60, 80, 1e-3),
    "peg": peg(60, 80, 0.8e-3),
    "nothing": np.full((60, 80), 5e-4),
}


@jax.jit
def steep_mask(sensor, height):
    """Return a mask of gel pixels with a slope above 1e-3."""
    x, y = sensor._slope(sensor._surface("steep", height))
    return x * x + y * y > 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param("gelsight", marks=pytest.mark.release), "gelsight_mini"]
)
def test_pictures_are_those_of_the_package(name, x64):
    """Compare where the gel slopes: on a flat gel, rounding selects the package's direction bin.

    In float64 the difference is rounding, on a scale of 255. In float32 a slope within 1e-6 of the
    edge of a bin may also fall into the next, about 1 of 255 away, in at most one pixel of 1,000.
    """
    scenes = dict(SCENES)
    if name == "gelsight_mini":
        scenes["ball, larger"] = ball(96, 128, 1.3e-3)
    with (
        jax.numpy_dtype_promotion("standard"),
        jax.numpy_rank_promotion("allow"),
        warnings.catch_warnings(
            action="ignore"
        ),  # the package asks JAX for a device in its old way
    ):
        package = TaximJax(CALIB_ROOT / name)
        wanted = {
            scene: np.asarray(package.render_direct(jnp.asarray(1e3 * height), with_shadow=False))
            for scene, height in scenes.items()
        }
    for scene, height in scenes.items():
        sensor = touch.gelsight(name, *height.shape)
        where = np.asarray(steep_mask(sensor, height))
        # A dome slopes everywhere except at its top, the other shape only near itself.
        assert where.mean() > 0.99 if name == "gelsight" else not where.all()
        if not where.any():
            continue
        assert error(sensor, height, wanted[scene], where) < 1e-5
        if height.shape == (60, 80):
            sensor = touch.gelsight(name, 60, 80, dtype=np.float32)
            assert error(sensor, height.astype(np.float32), wanted[scene], where) < 0.01
            # Entries of the square have the spacing of bins, whose neighbours differ by 1.3.
            sensor = touch.gelsight(name, 60, 80, smooth=True)
            assert error(sensor, height, wanted[scene], where) < 1


def error(sensor, height, wanted, where):
    """Return the mean error of an image, of 255, at given pixels."""
    got = np.asarray(look(sensor, height))
    assert got.dtype == height.dtype
    return 255 * np.abs(got - wanted)[where].mean()


def test_a_flat_gel_pressed_flat_is_pressed_as_deep_and_keeps_its_colour(x64):
    """The coefficients without a slope are the mean over directions of the first bin."""
    sensor = touch.gelsight("gelsight_mini", 24, 32, smooth=True)
    pressed = jnp.full((24, 32), -7e-4)
    np.testing.assert_allclose(pressed_in(sensor, pressed), 7e-4, rtol=1e-12)
    with np.load(CALIB_ROOT / "gelsight_mini" / "polycalib.npz") as table:
        mean = np.stack([table[f"grad_{c}"][0, :124].mean(0) for c in "bgr"], -1) / 255
    y, x = np.mgrid[:24, :32] * 20.0
    powers = np.stack([x * x, y * y, x * y, x, y, 1 + 0 * x], -1)
    want = np.clip(powers @ mean + np.asarray(sensor.rest), 0, 1)
    for height in (pressed, -pressed):  # and where nothing touches
        np.testing.assert_allclose(look(sensor, height), want, atol=1e-12)
    assert np.asarray(pressed_in(sensor, -pressed)).max() < 1e-18  # rounding of its height


def test_a_ball_presses_as_deep_as_it_is_and_the_gel_falls_off_around_it():
    sensor = touch.gelsight("gelsight_mini", 60, 80)
    depth = np.asarray(pressed_in(sensor, ball(60, 80, 1e-3).astype(np.float32)))
    y, x = np.unravel_index(depth.argmax(), depth.shape)
    # The last two blurs, of at most 3 pixels, are on the ball: the sagitta of a pixel is 0.24 mm.
    assert abs(depth.max() - 1e-3) < 2 * (0.24e-3) ** 2 / (2 * 4e-3)
    assert (y, x) == (28, 44)
    # The contact's radius is sqrt(2 R d) = 2.65 mm, 11 pixels; the widest blur extends 7 more.
    ring = depth[28, 44:]
    assert (np.diff(ring) <= 1e-9).all() and ring[11] > 1e-6 and ring[30] < 1e-12


def test_slopes_of_the_smooth_form_by_depth_are_those_of_differences(x64):
    scene = ball(24, 32, 1e-3)
    weights = np.random.default_rng(0).normal(size=(24, 32, 3))
    number = lambda depth, sensor: jnp.sum(weights * sensor.image(scene - depth))
    f, step = jax.jit(jax.value_and_grad(number)), 1e-9
    for blur in (0.0, 1.5):
        sensor = touch.gelsight("gelsight", 24, 32, smooth=True, blur=blur)
        for depth in (0.0, 1.7e-4):
            slope = float(f(depth, sensor)[1])
            near = (f(depth + step, sensor)[0] - f(depth - step, sensor)[0]) / (2 * step)
            # Rounding is 1e-16 x 24 x 32 x 3 / 1e-9. A kink of the table within a step of 3e-5
            # pixels would appear as a fraction of one pixel's slope.
            assert abs(near - slope) < 1e-4 * abs(slope)


def test_the_pixel_scales_all_lengths():
    """A gel is equally steep where heights and pixels are twice as large."""
    small = touch.gelsight("gelsight", 24, 32)
    large = touch.gelsight("gelsight", 24, 32, pixel=2 * PIXEL)
    scene = ball(24, 32, 1e-3).astype(np.float32)
    np.testing.assert_allclose(look(small, scene), look(large, 2 * scene), atol=1e-5)
    depths = pressed_in(small, scene), pressed_in(large, 2 * scene)
    np.testing.assert_allclose(2 * depths[0], depths[1], rtol=1e-4, atol=1e-9)


def test_what_cannot_be_a_picture_is_refused(monkeypatch):
    sensor = touch.gelsight("gelsight", 24, 32)
    with pytest.raises(ValueError, match=r"image: height has shape \[24\]; it must be \[24, 32\]"):
        sensor.image(jnp.zeros(24))
    with pytest.raises(ValueError, match="height=-1 at .*; it must be a finite number of at least"):
        sensor.image(jnp.full((24, 32), -1.0))  # millimetres
    wide = replace(sensor, down=(sensor.down[0] * jnp.inf, *sensor.down[1:]))
    with pytest.raises(ValueError, match=r"depth: down\[0\]=(nan|inf) at"):
        wide.depth(jnp.zeros((24, 32)))
    with pytest.raises(ValueError, match="gelsight: blur=2 without smooth; it must be 0"):
        touch.gelsight("gelsight", 24, 32, blur=2.0)
    monkeypatch.setitem(sys.modules, "taxim.calibration", None)
    monkeypatch.setitem(sys.modules, "taxim", None)
    with pytest.raises(ModuleNotFoundError, match=r'needs taxim; pip install "jaxgpu\[touch\]"'):
        touch.gelsight("gelsight", 24, 32)


def test_a_table_of_bins_becomes_a_square_of_directions():
    """The k-th of n direction bins is about the angle 2 pi (k + 1 / 2) / n - pi."""
    count = 64
    table = np.zeros((count + 1, count, 1, 1))
    table[..., 0, 0] = np.cos(2 * np.pi * (np.arange(count) + 0.5) / count - np.pi)
    square = calibration._sample_table(table)[..., 0, 0]
    at = np.linspace(-1, 1, len(square))
    x, y = np.meshgrid(at, at, indexing="ij")
    size = np.hypot(x, y)
    far = size > 0.1
    np.testing.assert_allclose(square[far], (x / np.where(far, size, 1))[far], atol=2e-3)
