"""Sensors from measured tables of the package `taxim` (MIT), which is not shipped with this one.

The tables are for two sensors: colours by slope of the gel, fitted to presses of a ball, an image
of the gel at rest, and its height. The file of lengths is the same for both; the true pixel size of
a GelSight Mini is different and can be passed.
"""

import json
from functools import lru_cache
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from jaxgpu.inputs import arguments, ranges
from jaxgpu.inputs.explanations import explain_errors
from jaxgpu.inputs.extras import extra

from .optics import CAMERA_SIZE, GelSight

SENSORS = ("gelsight", "gelsight_mini")
TABLE_SIZE = 129  # entries of the smooth table along each axis


@explain_errors
def gelsight(
    name: str,
    height: int,
    width: int,
    smooth: bool = False,
    blur: float = 0.0,
    pixel: float | None = None,
    dtype=None,
) -> GelSight:
    """Return a sensor whose images have `height` rows and `width` columns.

    Args:
        name: "gelsight" (a dome) or "gelsight_mini" (flat at rest).
        height, width: at least 8; 480 x 640 is the camera's size, 60 x 80 that for policies.
        smooth: interpolate the table, which then has derivatives, instead of using bins. Its images
            differ from those of bins by about 0.5 of 255 on average.
        blur: standard deviation of the smooth table's blur, in entries (129 along each axis).
            Neighbouring bins differ by more than 1 of 255, which is measurement noise, so
            derivatives are meaningful from a blur of about 1.5.
        pixel: the length of a pixel of the camera, m; if None 29.5 micrometres, as in the tables.
        dtype: of the arrays; the default of JAX if None.
    Raises:
        ModuleNotFoundError: the extra `touch` is not installed.
        ValueError: an unknown name, a number out of range, a blur of a table of bins.

    >>> sensor = gelsight("gelsight_mini", 60, 80)
    >>> x, y = jnp.meshgrid(jnp.linspace(-9e-3, 9e-3, 80), jnp.linspace(-7e-3, 7e-3, 60))
    >>> pressed = 3e-3 - jnp.sqrt(jnp.maximum(16e-6 - x**2 - y**2, 0))  # a ball of 4 mm, by 1 mm
    >>> sensor.image(pressed).shape, round(1e3 * float(sensor.depth(pressed).max()), 1)
    ((60, 80, 3), 1.0)
    """
    arguments.word("gelsight: name", name, SENSORS)
    size = ranges.Range(whole=True, one=True, least=8)
    ranges.refuse("gelsight: height", height, size)
    ranges.refuse("gelsight: width", width, size)
    arguments.flag("gelsight: smooth", smooth)
    ranges.numbers("gelsight: blur", blur, (), least=0, most=TABLE_SIZE / 8)
    if blur and not smooth:
        raise ValueError(f"gelsight: blur={blur:g} without smooth; it must be 0; set smooth=True")
    if pixel is not None:
        ranges.numbers("gelsight: pixel", pixel, (), above=0, unit="m")
    root = extra("taxim.calibration", "touch", "gelsight").CALIB_ROOT
    folder = Path(root) / name
    lengths = json.loads((folder / "params.json").read_text())
    model, camera = lengths["simulator"], lengths["sensor"]
    sigma = model["initial_frame_sigma_rel"][0] * CAMERA_SIZE[1]
    shrunk = _resize_matrix(CAMERA_SIZE[0], height), _resize_matrix(CAMERA_SIZE[1], width)
    gel, rest = (
        _apply_matrices(*shrunk, a)
        for a in _rest_gel_and_image(folder, model["frame_mixing_percentage"], sigma)
    )
    table = _color_coefficients(folder)
    table = _blur_table(_sample_table(table), blur) if smooth else table
    down, across, last = _blur_sequence(model, height, width)
    kind = jnp.result_type(float) if dtype is None else dtype
    as_array = lambda a: jnp.asarray(a, kind)
    return GelSight(
        gel=as_array(gel),
        rest=as_array(rest),
        table=as_array(np.moveaxis(table, 2, 0)),
        down=tuple(as_array(weights) for weights in down),
        across=tuple(as_array(weights) for weights in across),
        pixel=1e-3 * camera["pixmm"] if pixel is None else pixel,
        contact=model["contact_scale"],
        smooth=smooth,
        last=last,
    )


def blur_weights(sigma: float) -> np.ndarray:
    """Return the weights [K] of a blur of `sigma` pixels, with K odd and the sum 1.

    Taxim's rule uses the half width at which a Gaussian falls to 1e-5 as the full width, which
    truncates it near 1.9 standard deviations.

    >>> len(blur_weights(30.5)), blur_weights(0.2).tolist()
    (117, [1.0])
    """
    half = np.sqrt(-2 * np.log(1e-5 * np.sqrt(2 * np.pi) * sigma)) * sigma
    count = int(np.round(half)) // 2 * 2 + 1
    bell = np.exp(-0.5 * ((np.arange(count) - count // 2) / sigma) ** 2)
    return bell / bell.sum()


def _blur_matrix(n: int, sigma: float) -> np.ndarray:
    """Return the matrix [n, n] that blurs a line of n pixels, mirrored about its end pixels."""
    bell = blur_weights(sigma)
    reach = np.arange(len(bell)) - len(bell) // 2
    at = np.abs(np.arange(n)[:, None] + reach)
    matrix = np.zeros((n, n))
    np.add.at(matrix, (np.arange(n)[:, None], np.minimum(at, 2 * n - 2 - at)), bell)
    return matrix


def _resize_matrix(n: int, count: int) -> np.ndarray:
    """Return the matrix [count, n] that resizes a line of n pixels linearly, without aliasing."""
    scale = n / count
    middle = (np.arange(count) + 0.5) * scale - 0.5
    near = np.maximum(0, 1 - np.abs(middle[:, None] - np.arange(n)) / max(scale, 1))
    return near / near.sum(1, keepdims=True)


def _apply_matrices(down: np.ndarray, across: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Multiply an array [H, W, ...] by matrices along its first two axes."""
    return np.moveaxis(np.tensordot(across, np.tensordot(down, a, 1), (1, 1)), 0, 1)


def _blur_sequence(
    model: dict, height: int, width: int
) -> tuple[list[np.ndarray], list[np.ndarray], bool]:
    """Return the weights of blurs wider than a pixel, down and across, and if the last is."""
    x, y = (list(part) for part in model["deform_pyramid_sigma_rel"])
    x_last, y_last = model["deform_final_sigma_rel"]
    down = [blur_weights(sigma * height) for sigma in (*y, y_last)]
    across = [blur_weights(sigma * width) for sigma in (*x, x_last)]
    wide = [max(len(a), len(b)) > 1 for a, b in zip(down, across)]
    drop_narrow = lambda blurs: [blur for blur, is_wide in zip(blurs, wide) if is_wide]
    return drop_narrow(down), drop_narrow(across), wide[-1]


@lru_cache(maxsize=len(SENSORS))
def _rest_gel_and_image(folder: Path, share: float, sigma: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the gel at rest [480, 640], pixels, and its image [480, 640, 3], 0 to 1."""
    high, wide = CAMERA_SIZE
    gel = _apply_matrices(
        _blur_matrix(high, 2.0),
        _blur_matrix(wide, 2.0),
        np.load(folder / "gelmap.npy").astype(float),
    )
    with np.load(folder / "dataPack.npz") as data:
        first = data["f0"][..., ::-1] / 255
    mixed = (
        share * _apply_matrices(_blur_matrix(high, sigma), _blur_matrix(wide, sigma), first)
        + (1 - share) * first
    )
    return gel - gel.max(), mixed


@lru_cache(maxsize=len(SENSORS))
def _color_coefficients(folder: Path) -> np.ndarray:
    """Return coefficients [125, 125, 6, 3] of red, green, blue; the file swaps red and blue."""
    with np.load(folder / "polycalib.npz") as table:
        return np.stack([table[f"grad_{c}"] for c in "bgr"], -1) / 255


def _sample_table(table: np.ndarray) -> np.ndarray:
    """Sample a table of bins of angle and direction over the square of (s / (1 + s)) e(a).

    Bins are interpolated between their centres, directions periodically. Above slopes of 999 the
    last bin is used, and within one entry of rest the mean over directions.
    """
    n, count = TABLE_SIZE, table.shape[0] - 1
    at = np.linspace(-1, 1, n)
    x, y = np.meshgrid(at, at, indexing="ij")
    size = np.hypot(x, y)
    slope = np.minimum(size, 0.999) / (1 - np.minimum(size, 0.999))
    i = np.arctan(slope) * (count / (np.pi / 2)) - 0.5
    k = (np.arctan2(y, x) + np.pi) * (count / (2 * np.pi)) - 0.5
    low, left = np.clip(np.floor(i), 0, count - 1).astype(int), np.floor(k).astype(int)
    u, v = np.clip(i - low, 0, 1)[..., None, None], (k - left)[..., None, None]
    row = lambda i: table[i, left % count] * (1 - v) + table[i, (left + 1) % count] * v
    square = row(low) * (1 - u) + row(low + 1) * u
    square[size < 2 / (n - 1)] = table[0, :count].mean(0)
    return square


def _blur_table(square: np.ndarray, blur: float) -> np.ndarray:
    """Blur both axes of a square table by a Gaussian of width `blur`; 0 leaves it unchanged."""
    matrix = _blur_matrix(len(square), blur) if blur else np.eye(len(square))
    return _apply_matrices(matrix, matrix, square)
