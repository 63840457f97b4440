"""Variables of a search space: real, integer, categorical, Boolean and permutation.

Every algorithm searches a box of real numbers. A variable decodes its part of a point of the unit
box [0, 1]^D. A real variable is scaled to its bounds, an integer is the cell that contains the
coordinate, a category is the argmax of one coordinate per category, and a permutation is the order
of its coordinates (random keys; Bean 1994, doi:10.1287/ijoc.6.2.154). For a uniform point, all
values of a discrete variable are equally likely. Bounds are leaves, so spaces can be mapped over.

An integer with more than 2^22 values takes two coordinates, because float32 cannot distinguish so
many cells. The first gives the position, and the second adds up to 2^-11 of the range. They are
added in integer arithmetic, so every value is reached; values within 2^-11 of the bounds are rarer.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.core import Tracer

from jaxgpu.inputs import ranges
from jaxgpu.inputs.explanations import on_host
from jaxgpu.inputs.fields import number, pytree, size, static

from .problem import check_order

_CELLS = 1 << 22  # number of integer values that one coordinate of the box can distinguish
_LEAST, _MOST = -(2**31), 2**31 - 1


@pytree
class Real:
    """Real numbers with common bounds, or an array of bounds."""

    lower: Array | float = number()  # [...] smallest value, of `shape` or one for all
    upper: Array | float = number()  # [...] largest value
    shape: tuple[int, ...] | None = static(default=None)  # default: shape of the bounds
    logarithmic: bool = static(default=False)  # uniform in the logarithm; requires lower > 0

    def size(self) -> int:
        """Return the number of coordinates of the unit box that encode the variable."""
        return math.prod(_shape(self))

    def check(self) -> None:
        """Raise if bounds are not numbers, reversed, or of the wrong shape."""
        dtype = jax.dtypes.canonicalize_dtype(float)
        if not _check_bounds("Real", self):
            return
        check_order("Real", self.lower, self.upper, dtype)
        low, high = (np.asarray(b, np.float64) for b in (self.lower, self.upper))
        if self.logarithmic and (low <= 0).any():
            raise ValueError(
                f"Real: lower={low[low <= 0].flat[0]:g}; it must be above 0 for a logarithmic "
                "variable"
            )
        if ((high > low) & (high.astype(dtype) == low.astype(dtype))).any():
            raise ValueError(
                f"Real: lower={np.min(low):.17g}, upper={np.max(high):.17g}; {dtype.name} cannot "
                "tell them apart; search the difference from one of them"
            )

    @on_host
    def as_arrays(self) -> "Real":
        """Return the variable with arrays as bounds, which can be operands of a program."""
        dtype = jax.dtypes.canonicalize_dtype(float)
        low, high = (jnp.asarray(bound, dtype) for bound in (self.lower, self.upper))
        return Real(low, high, self.shape, self.logarithmic)

    def decode(self, u: Array) -> Array:
        """Return the value encoded by u [size] of the unit box."""
        u = u.reshape(_shape(self))
        low, high = (jnp.asarray(b, u.dtype) for b in (self.lower, self.upper))
        if self.logarithmic:
            ratio = high / low
            # the ratio of the bounds may overflow
            value = jnp.exp(jnp.log(low) + u * (jnp.log(high) - jnp.log(low)))
            value = jnp.where(jnp.isfinite(ratio), low * ratio**u, value)
            return jnp.clip(value, low, high)
        return jnp.clip(low + u * (high - low), low, high)


@pytree
class Integer:
    """Integers of 32 bits, both bounds included.

    Traced bounds are assumed to span at most 2^22 values.
    """

    lower: Array | int = number(whole=True, least=_LEAST, most=_MOST)  # [...] smallest value
    upper: Array | int = number(whole=True, least=_LEAST, most=_MOST)  # [...] largest value
    shape: tuple[int, ...] | None = static(default=None)  # default: shape of the bounds
    # whether there are more than 2^22 values; None: derived from the bounds, if they are known
    wide: bool | None = static(default=None)

    def size(self) -> int:
        """Return the number of coordinates of the unit box that encode the variable."""
        return math.prod(_shape(self)) * (2 if self._is_wide() else 1)

    def check(self) -> None:
        """Raise if bounds are not 32-bit integers, reversed, or of the wrong shape."""
        if _check_bounds("Integer", self):
            check_order("Integer", self.lower, self.upper, np.int64)

    @on_host
    def as_arrays(self) -> "Integer":
        """Return the variable with arrays as bounds, which can be operands of a program."""
        low, high = (jnp.asarray(bound, jnp.int32) for bound in (self.lower, self.upper))
        return Integer(low, high, self.shape, self._is_wide())

    def _is_wide(self) -> bool:
        if self.wide is not None:
            return self.wide
        if not _has_known_bounds(self):
            return False
        count = np.asarray(self.upper, np.int64) - np.asarray(self.lower, np.int64) + 1
        return bool((count > _CELLS).any())

    @on_host
    def decode(self, u: Array) -> Array:
        """Return the value encoded by u [size] of the unit box, int32."""
        low, high = (jnp.asarray(b, jnp.int32) for b in (self.lower, self.upper))
        if self._is_wide():
            first, second = u.reshape(2, *_shape(self))
            return _decode_wide(first, second, low, high)
        count = (high - low + 1).astype(u.dtype)
        cell = jnp.floor(u.reshape(_shape(self)) * count).astype(jnp.int32)
        return jnp.clip(low + cell, low, high)


def _decode_wide(first: Array, second: Array, low: Array, high: Array) -> Array:
    """Return the value in a wide range: a 32-bit position in it, times the number of values."""
    to_uint32 = lambda i: lax.bitcast_convert_type(i, jnp.uint32)
    top = (1 << 24) - 1
    a, b = (jnp.clip(u * (1 << 24), 0, top).astype(jnp.int32) for u in (first, second))
    # repeating the bits of a reaches both bounds exactly; b moves the result by <= 2^21 of 2^32
    place = to_uint32((a << 8) | (a >> 16)) + to_uint32((b - a) >> 3)
    count = to_uint32(high) - to_uint32(low) + 1  # 2^32 wraps to 0
    cell = jnp.where(count == 0, place, _high_word(place, count))
    return lax.bitcast_convert_type(to_uint32(low) + cell, jnp.int32)


def _high_word(a: Array, b: Array) -> Array:
    """Return the upper 32 of the 64 bits of a product of two uint32."""
    half = 0xFFFF
    low, cross = (a & half) * (b & half), (a >> 16) * (b & half)
    other = (a & half) * (b >> 16)
    middle = (low >> 16) + (cross & half) + (other & half)
    return (a >> 16) * (b >> 16) + (cross >> 16) + (other >> 16) + (middle >> 16)


def _shape(one: Real | Integer) -> tuple[int, ...]:
    if one.shape is not None:
        return one.shape
    return np.broadcast_shapes(np.shape(one.lower), np.shape(one.upper))


def _has_known_bounds(one: Real | Integer) -> bool:
    return not any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(one))


def _check_bounds(name: str, one: Real | Integer) -> bool:
    """Raise if bounds are out of range or misshapen; return whether their values are known."""
    ranges.check(name, one)
    if one.shape is not None:
        _check_shape(name, one.shape)
    low, high = np.shape(one.lower), np.shape(one.upper)
    try:
        found = np.broadcast_shapes(low, high)
        fits = one.shape is None or np.broadcast_shapes(found, one.shape) == one.shape
        fits = fits and 0 not in found
    except ValueError:
        fits = False
    if not fits:
        want = (
            "one shape, of at least one number,"
            if one.shape is None
            else f"the shape {list(one.shape)}, or a number"
        )
        raise ValueError(
            f"{name}: lower has shape {list(low)}, upper {list(high)}; they must have {want}"
        )
    return _has_known_bounds(one)


def _check_shape(name: str, shape: Any) -> None:
    """Raise if `shape` is not a tuple of positive integers."""
    whole = isinstance(shape, tuple) and all(isinstance(n, int | np.integer) for n in shape)
    if not whole or min(shape, default=1) < 1:
        raise TypeError(f"{name}: shape={shape!r}; it must be a tuple of sizes of at least 1")


@pytree
class Categorical:
    """One of `count` unordered categories, as an index 0 ... count - 1."""

    count: int = size(least=1)  # number of categories
    shape: tuple[int, ...] = static(default=())  # of the values; () for one

    def size(self) -> int:
        """Return the number of coordinates of the unit box that encode the variable."""
        return self.count * math.prod(self.shape)

    def check(self) -> None:
        """Raise if the number of categories or the shape is invalid."""
        ranges.check("Categorical", self)
        _check_shape("Categorical", self.shape)

    def decode(self, u: Array) -> Array:
        """Return the category encoded by u [size] of the unit box, int32."""
        return jnp.argmax(u.reshape(*self.shape, self.count), axis=-1).astype(jnp.int32)


@pytree
class Boolean:
    """A Boolean variable."""

    shape: tuple[int, ...] = static(default=())  # of the values; () for one

    def size(self) -> int:
        """Return the number of coordinates of the unit box that encode the variable."""
        return math.prod(self.shape)

    def check(self) -> None:
        """Raise if the shape is invalid."""
        _check_shape("Boolean", self.shape)

    def decode(self, u: Array) -> Array:
        """Return the value encoded by u [size] of the unit box."""
        return u.reshape(self.shape) >= 0.5


@pytree
class Permutation:
    """A permutation of 0 ... count - 1."""

    count: int = size(least=1)  # number of permuted items

    def size(self) -> int:
        """Return the number of coordinates of the unit box that encode the variable."""
        return self.count

    def check(self) -> None:
        """Raise if the number of items is invalid."""
        ranges.check("Permutation", self)

    def decode(self, u: Array) -> Array:
        """Return the permutation encoded by u [size] of the unit box, [count] int32."""
        return jnp.argsort(u, stable=True).astype(jnp.int32)
