"""Variables of a search space: real, whole, categorical, Boolean and permuted.

Every algorithm searches a box of real numbers. A variable says how its part of a point of the unit
box [0, 1]^D is read: a real number as it is, a whole number as the cell it falls into, a category
as the greatest of as many numbers as there are categories, and a permutation as the order of its
numbers (random keys; Bean 1994, doi:10.1287/ijoc.6.2.154). All values of a discrete variable are
equally likely to a uniform point. Bounds are leaves, so that spaces can be mapped over.

A whole number of more than 2^22 values takes two numbers of the box, as float32 cannot tell so
many cells apart: a first that says where, and a second that adds up to 2^-11 of the range. Their
sum is taken in whole numbers, so that every value is reached; within 2^-11 of the ends values are
rarer.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.core import Tracer

from jaxgpu.inputs import ranges
from jaxgpu.inputs.doors import on_host
from jaxgpu.inputs.fields import number, pytree, size, static

from .problem import ordered

_CELLS = 1 << 22  # values of a whole number that one number of the box tells apart
_LEAST, _MOST = -(2**31), 2**31 - 1


@pytree
class Real:
    """Real numbers with common bounds, or an array of bounds."""

    lower: Array | float = number()  # [...] smallest value, of the shape or one for all
    upper: Array | float = number()  # [...] largest value
    shape: tuple[int, ...] | None = static(default=None)  # by default that of the bounds
    logarithmic: bool = static(default=False)  # uniform in the logarithm; then lower is above 0

    def size(self) -> int:
        """Numbers of the box it takes."""
        return math.prod(_shape(self))

    def check(self) -> None:
        """Refuse bounds that are no numbers, reversed, or of another shape."""
        dtype = jax.dtypes.canonicalize_dtype(float)
        if not _checked("Real", self):
            return
        ordered("Real", self.lower, self.upper, dtype)
        low, high = (np.asarray(b, np.float64) for b in (self.lower, self.upper))
        if self.logarithmic and (low <= 0).any():
            raise ValueError(
                f"Real: lower={low[low <= 0].flat[0]:g}; it must be above 0 where the variable is "
                "logarithmic"
            )
        if ((high > low) & (high.astype(dtype) == low.astype(dtype))).any():
            raise ValueError(
                f"Real: lower={np.min(low):.17g}, upper={np.max(high):.17g}; {dtype.name} has no "
                "two numbers there; search the difference from one of them"
            )

    @on_host
    def prepared(self) -> "Real":
        """With bounds that are arrays, and so may become operands of a program."""
        dtype = jax.dtypes.canonicalize_dtype(float)
        low, high = (jnp.asarray(bound, dtype) for bound in (self.lower, self.upper))
        return Real(low, high, self.shape, self.logarithmic)

    def read(self, u: Array) -> Array:
        """The value at u [size] of the unit box."""
        u = u.reshape(_shape(self))
        low, high = (jnp.asarray(b, u.dtype) for b in (self.lower, self.upper))
        if self.logarithmic:
            ratio = high / low
            # bounds may be further apart than the greatest float
            value = jnp.exp(jnp.log(low) + u * (jnp.log(high) - jnp.log(low)))
            value = jnp.where(jnp.isfinite(ratio), low * ratio**u, value)
            return jnp.clip(value, low, high)
        return jnp.clip(low + u * (high - low), low, high)


@pytree
class Integer:
    """Whole numbers of 32 bits, both bounds included.

    Bounds that are traced are taken to hold at most 2^22 values.
    """

    lower: Array | int = number(whole=True, least=_LEAST, most=_MOST)  # [...] smallest value
    upper: Array | int = number(whole=True, least=_LEAST, most=_MOST)  # [...] largest value
    shape: tuple[int, ...] | None = static(default=None)  # by default that of the bounds
    # whether there are more than 2^22 values; None: as the bounds say, where they can be seen
    wide: bool | None = static(default=None)

    def size(self) -> int:
        """Numbers of the box it takes."""
        return math.prod(_shape(self)) * (2 if self._wide() else 1)

    def check(self) -> None:
        """Refuse bounds that are no whole numbers of 32 bits, reversed, or of another shape."""
        if _checked("Integer", self):
            ordered("Integer", self.lower, self.upper, np.int64)

    @on_host
    def prepared(self) -> "Integer":
        """With bounds that are arrays, and so may become operands of a program."""
        low, high = (jnp.asarray(bound, jnp.int32) for bound in (self.lower, self.upper))
        return Integer(low, high, self.shape, self._wide())

    def _wide(self) -> bool:
        if self.wide is not None:
            return self.wide
        if not _visible(self):
            return False
        count = np.asarray(self.upper, np.int64) - np.asarray(self.lower, np.int64) + 1
        return bool((count > _CELLS).any())

    @on_host
    def read(self, u: Array) -> Array:
        """The value at u [size] of the unit box, int32."""
        low, high = (jnp.asarray(b, jnp.int32) for b in (self.lower, self.upper))
        if self._wide():
            first, second = u.reshape(2, *_shape(self))
            return _far(first, second, low, high)
        count = (high - low + 1).astype(u.dtype)
        cell = jnp.floor(u.reshape(_shape(self)) * count).astype(jnp.int32)
        return jnp.clip(low + cell, low, high)


def _far(first: Array, second: Array, low: Array, high: Array) -> Array:
    """The value of a wide range: 32 bits of a place in it, times the number of values."""
    unsigned = lambda i: lax.bitcast_convert_type(i, jnp.uint32)
    top = (1 << 24) - 1
    a, b = (jnp.clip(u * (1 << 24), 0, top).astype(jnp.int32) for u in (first, second))
    # a twice over is the place of both ends to the last bit; b moves it by up to 2^21 of 2^32
    place = unsigned((a << 8) | (a >> 16)) + unsigned((b - a) >> 3)
    count = unsigned(high) - unsigned(low) + 1  # 2^32 wraps to 0
    cell = jnp.where(count == 0, place, _high_word(place, count))
    return lax.bitcast_convert_type(unsigned(low) + cell, jnp.int32)


def _high_word(a: Array, b: Array) -> Array:
    """The upper 32 of the 64 bits of a product of two uint32."""
    half = 0xFFFF
    low, cross = (a & half) * (b & half), (a >> 16) * (b & half)
    other = (a & half) * (b >> 16)
    middle = (low >> 16) + (cross & half) + (other & half)
    return (a >> 16) * (b >> 16) + (cross >> 16) + (other >> 16) + (middle >> 16)


def _shape(one: Real | Integer) -> tuple[int, ...]:
    if one.shape is not None:
        return one.shape
    return np.broadcast_shapes(np.shape(one.lower), np.shape(one.upper))


def _visible(one: Real | Integer) -> bool:
    return not any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(one))


def _checked(name: str, one: Real | Integer) -> bool:
    """Refuse bounds out of their ranges or of another shape; whether their values can be seen."""
    ranges.check(name, one)
    if one.shape is not None:
        _sizes(name, one.shape)
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
    return _visible(one)


def _sizes(name: str, shape: Any) -> None:
    """Refuse what is no shape."""
    whole = isinstance(shape, tuple) and all(isinstance(n, int | np.integer) for n in shape)
    if not whole or min(shape, default=1) < 1:
        raise TypeError(f"{name}: shape={shape!r}; it must be a tuple of sizes of at least 1")


@pytree
class Categorical:
    """One of `count` things without order, as their numbers 0 ... count - 1."""

    count: int = size(least=1)  # things to choose from
    shape: tuple[int, ...] = static(default=())  # of the choices; () for one

    def size(self) -> int:
        """Numbers of the box it takes."""
        return self.count * math.prod(self.shape)

    def check(self) -> None:
        """Refuse a number of things that is none, and what is no shape."""
        ranges.check("Categorical", self)
        _sizes("Categorical", self.shape)

    def read(self, u: Array) -> Array:
        """The value at u [size] of the unit box, int32."""
        return jnp.argmax(u.reshape(*self.shape, self.count), axis=-1).astype(jnp.int32)


@pytree
class Boolean:
    """True or false."""

    shape: tuple[int, ...] = static(default=())  # of the values; () for one

    def size(self) -> int:
        """Numbers of the box it takes."""
        return math.prod(self.shape)

    def check(self) -> None:
        """Refuse what is no shape."""
        _sizes("Boolean", self.shape)

    def read(self, u: Array) -> Array:
        """The value at u [size] of the unit box."""
        return u.reshape(self.shape) >= 0.5


@pytree
class Permutation:
    """An order of 0 ... count - 1."""

    count: int = size(least=1)  # things to be ordered

    def size(self) -> int:
        """Numbers of the box it takes."""
        return self.count

    def check(self) -> None:
        """Refuse a number of things that is none."""
        ranges.check("Permutation", self)

    def read(self, u: Array) -> Array:
        """The value at u [size] of the unit box, [count] int32."""
        return jnp.argsort(u, stable=True).astype(jnp.int32)
