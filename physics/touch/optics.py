"""Images of a soft gel, seen by a camera from inside, while an object presses it.

Taxim's model (Si & Yuan 2022, doi:10.1109/LRA.2022.3142412): the gel's surface is that of the
object where they surely touch, and falls off from there by blurs from wide to narrow. Its slope at
a pixel gives a polynomial in the pixel's position, which is added to the image of the gel at rest.
All lengths of the model are relative to the image size, so small images are a different model.
`calibration` reads the tables.
"""

from functools import partial

import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.geometry.vectors import Vec, length
from jaxgpu.inputs import ranges
from jaxgpu.inputs.calls import defer_check
from jaxgpu.inputs.fields import number, pytree, static

from .pad import as_float

CAMERA_SIZE = (480, 640)  # rows and columns of the camera, whose pixels the tables use


@pytree
class GelSight:
    """A sensor of the GelSight type; `touch.gelsight` makes one from measured tables.

    Heights h [H, W] of an object are in metres from the highest point of the gel at rest, smaller
    where it is closer to the camera; points below 0 touch. With g <= 0 the gel at rest, j the
    smaller of h and g, and p = -min h, the region surely in contact is

        m = (j - g < -0.4 p) and (h < 0);   z <- j;   z <- j where m, else blur(z), wide to narrow;

    at the end z is blurred once more. In reference pixels (480 x 640, each `pixel` long) its slope
    is s e(a) at the pixel (x, y), and the image is

        colour = rest + sum_k c_k(s, a) (x^2, y^2, xy, x, y, 1)_k,   clipped to 0 ... 1.

    The coefficients c are in a table of bins of arctan s and a. With `smooth` the same table is
    sampled over the square of (s / (1 + s)) e(a) and interpolated bilinearly, which has derivatives
    and no pole. Departures from the paper: no shadows; at rest the smooth table has the mean over
    directions, where rounding selects a bin otherwise.

    Cost per pixel: one multiplication per tap of the blurs (68 at 60 x 80), and 18 gathered
    numbers, or four times 18 if smooth. Taps are added up, and coefficients gathered one power of x
    and y at a time; matrix products, or 18 numbers together, take a CPU a few times as long.
    """

    gel: Array = number(unit="pixels")  # [H, W] the gel at rest, its highest point 0
    rest: Array = number()  # [H, W, 3] the image at rest, 0 to 1
    table: Array = number()  # [6, A, B, 3] coefficients
    down: tuple[Array, ...]  # [K] odd weights of blurs along the first axis, in their order
    across: tuple[Array, ...]  # [K] of the same blurs along the second axis
    pixel: Array | float = number(above=0, unit="m", one=True)  # [] of the camera
    contact: Array | float = number(default=0.4, above=0, below=1, one=True)  # [] fraction of p
    smooth: bool = static(default=False)  # whether the table is over the square, interpolated
    last: bool = static(default=False)  # whether the last blur is the final one, applied everywhere

    def image(self, height: Array) -> Array:
        """Return the RGB image [H, W, 3], 0 to 1, of heights [H, W] in metres.

        Raises:
            ValueError: heights of another shape, not finite, or deeper than the image is high.
        """
        slope = self._slope(self._surface("GelSight.image", height))
        high, wide = self.gel.shape
        y = jnp.arange(high, dtype=slope[0].dtype)[:, None] * (CAMERA_SIZE[0] / high)
        x = jnp.arange(wide, dtype=slope[0].dtype)[None] * (CAMERA_SIZE[1] / wide)
        x, y = jnp.broadcast_arrays(x, y)
        look = _interpolate_table if self.smooth else _look_up_bins
        shade = look(jnp.asarray(self.table), slope, (x * x, y * y, x * y, x, y, jnp.ones_like(x)))
        return jnp.clip(shade + self.rest, 0, 1)

    def depth(self, height: Array) -> Array:
        """Return the depth [H, W] of the pressed gel, m, at least 0, under heights [H, W], m.

        Raises:
            ValueError: heights of another shape, not finite, or deeper than the image is high.
        """
        surface = self._surface("GelSight.depth", height)
        return jnp.maximum(self.gel - surface, 0) * self.pixel

    def _surface(self, name: str, height: Array) -> Array:
        """Return the gel's surface [H, W] under an object, in pixels."""
        ranges.check(name, self)
        ranges.check_finite(name, down=self.down, across=self.across)
        height = ranges.numbers(f"{name}: height", height, jnp.shape(self.gel), unit="m")
        defer_check(partial(_check_depth, name), height, self.pixel)
        height = as_float(height)
        height = height / self.pixel
        joined = jnp.minimum(height, self.gel)
        sure = (joined - self.gel < self.contact * jnp.min(height)) & (height < 0)
        surface = joined
        for i, (down, across) in enumerate(zip(self.down, self.across)):
            surface = _blur_image(_blur_image(surface, across, 1), down, 0)
            if not (self.last and i == len(self.down) - 1):
                surface = jnp.where(sure, joined, surface)
        return surface

    def _slope(self, surface: Array) -> Vec:
        """Return the slopes [H, W] of a surface to the camera, by x and by y, in reference pixels.

        They are central differences of the inner pixels, repeated outwards at the edges.
        """
        high, wide = surface.shape
        y = (surface[:-2, 1:-1] - surface[2:, 1:-1]) * (high / CAMERA_SIZE[0] / 2)
        x = (surface[1:-1, :-2] - surface[1:-1, 2:]) * (wide / CAMERA_SIZE[1] / 2)
        return jnp.pad(x, 1, "edge"), jnp.pad(y, 1, "edge")


def _blur_image(a: Array, weights: Array, axis: int) -> Array:
    """Blur an image [H, W] along an axis, mirrored about its end pixels.

    The barrier keeps the mirrored image; without it each tap would copy it again.
    """
    reach, n = len(weights) // 2, a.shape[axis]
    pads = [(reach, reach) if i == axis else (0, 0) for i in range(2)]
    wide = lax.optimization_barrier(jnp.pad(a, pads, "reflect"))
    parts = [weights[i] * lax.slice_in_dim(wide, i, i + n, axis=axis) for i in range(len(weights))]
    return sum(parts[1:], parts[0])


def _look_up_bins(table: Array, slope: Vec, places: Vec) -> Array:
    """Return the colours [H, W, 3] by the bins of slopes [H, W]; the last bin is the upper end."""
    steps, ways = table.shape[1] - 1, table.shape[2] - 1
    angle = jnp.arctan(length(slope))
    i = jnp.floor(angle * (steps / (jnp.pi / 2))).astype(jnp.int32)
    k = jnp.floor((_direction_angle(slope) + jnp.pi) * (ways / (2 * jnp.pi))).astype(jnp.int32)
    i, k = lax.optimization_barrier((i, k))  # else recomputed for each coefficient
    return _evaluate_polynomial(table, i, k, places)


def _direction_angle(slope: Vec) -> Array:
    """Return the angles of plane vectors, from -pi to pi; 0 for zero vectors.

    One arctangent of a ratio of at most 1 takes a tenth of the time of `arctan2` on a CPU.
    """
    x, y = slope
    near, far = jnp.abs(x), jnp.abs(y)
    most = jnp.maximum(near, far)
    turn = jnp.arctan(jnp.minimum(near, far) / jnp.where(most > 0, most, 1))
    turn = jnp.where(far > near, jnp.pi / 2 - turn, turn)
    turn = jnp.where(x < 0, jnp.pi - turn, turn)
    return jnp.where(y < 0, -turn, turn)


def _interpolate_table(table: Array, slope: Vec, places: Vec) -> Array:
    """Return the colours [H, W, 3] between the four closest entries of a table over slopes."""
    size, most = length(slope), table.shape[1] - 1
    at = [(a / (1 + size) + 1) * (most / 2) for a in slope]
    first = [jnp.clip(jnp.floor(a), 0, most - 1) for a in at]
    u, v = ((a - b)[..., None] for a, b in zip(at, first))
    i, k = lax.optimization_barrier(tuple(b.astype(jnp.int32) for b in first))
    low = (
        _evaluate_polynomial(table, i, k, places) * (1 - v)
        + _evaluate_polynomial(table, i, k + 1, places) * v
    )
    high = (
        _evaluate_polynomial(table, i + 1, k, places) * (1 - v)
        + _evaluate_polynomial(table, i + 1, k + 1, places) * v
    )
    return low * (1 - u) + high * u


def _check_depth(name: str, height: Array, pixel: Array | float) -> None:
    """Raise an error for heights deeper than the image is high, as if given in millimetres."""
    deepest = ranges.Range(least=-CAMERA_SIZE[0] * float(pixel), unit="m")
    ranges.refuse(f"{name}: height", height, deepest)


def _evaluate_polynomial(table: Array, i: Array, k: Array, places: Vec) -> Array:
    """Return the colours [H, W, 3] of table entries i, k [H, W], one power of x and y at a time."""
    terms = [table.at[n, i, k].get(mode="clip") * a[..., None] for n, a in enumerate(places)]
    return sum(terms[1:], terms[0])
