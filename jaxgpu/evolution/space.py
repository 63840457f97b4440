"""Search spaces: pytrees of real, whole, categorical, Boolean and permuted variables.

Every algorithm searches a box of real numbers. A space says how a point of the unit box [0, 1]^D
is read: a real number as it is, a whole number as the cell it falls into, a category as the
greatest of as many numbers as there are categories, and a permutation as the order of its numbers
(random keys; Bean 1994, doi:10.1287/ijoc.6.2.154). All values of a discrete variable are equally
likely to a uniform point. Bounds are leaves, so that spaces can be mapped over.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.evolution.problem import Problem, box
from jaxgpu.pytree import pytree, static


@pytree
class Real:
    """Real numbers, `shape` of them, with common bounds or an array of bounds of that shape."""

    lower: Array | float  # [...] smallest value, of the shape or one for all
    upper: Array | float  # [...] largest value
    shape: tuple[int, ...] = static(default=())
    logarithmic: bool = static(default=False)  # uniform in the logarithm

    def size(self) -> int:
        """Numbers of the box it takes."""
        return math.prod(self.shape)

    def read(self, u: Array) -> Array:
        """The value at u [size] of the unit box."""
        u = u.reshape(self.shape)
        low, high = (jnp.asarray(b, u.dtype) for b in (self.lower, self.upper))
        if self.logarithmic:
            return jnp.clip(low * (high / low) ** u, low, high)
        return jnp.clip(low + u * (high - low), low, high)


@pytree
class Integer:
    """Whole numbers, both bounds included."""

    lower: Array | int  # [...] smallest value, of the shape or one for all
    upper: Array | int  # [...] largest value
    shape: tuple[int, ...] = static(default=())

    def size(self) -> int:
        """Numbers of the box it takes."""
        return math.prod(self.shape)

    def read(self, u: Array) -> Array:
        """The value at u [size] of the unit box, int32."""
        low, high = (jnp.asarray(b, jnp.int32) for b in (self.lower, self.upper))
        count = (high - low + 1).astype(u.dtype)
        cell = jnp.floor(u.reshape(self.shape) * count).astype(jnp.int32)
        return jnp.clip(low + cell, low, high)


@pytree
class Categorical:
    """One of `count` things without order, as their numbers 0 ... count - 1."""

    count: int = static()
    shape: tuple[int, ...] = static(default=())

    def size(self) -> int:
        """Numbers of the box it takes."""
        return self.count * math.prod(self.shape)

    def read(self, u: Array) -> Array:
        """The value at u [size] of the unit box, int32."""
        return jnp.argmax(u.reshape(*self.shape, self.count), axis=-1).astype(jnp.int32)


@pytree
class Boolean:
    """True or false."""

    shape: tuple[int, ...] = static(default=())

    def size(self) -> int:
        """Numbers of the box it takes."""
        return math.prod(self.shape)

    def read(self, u: Array) -> Array:
        """The value at u [size] of the unit box."""
        return u.reshape(self.shape) >= 0.5


@pytree
class Permutation:
    """An order of 0 ... count - 1."""

    count: int = static()

    def size(self) -> int:
        """Numbers of the box it takes."""
        return self.count

    def read(self, u: Array) -> Array:
        """The value at u [size] of the unit box, [count] int32."""
        return jnp.argsort(u, stable=True).astype(jnp.int32)


KINDS = (Real, Integer, Categorical, Boolean, Permutation)


def _variables(space: Any) -> tuple[list[Any], Any]:
    found, tree = jax.tree.flatten(space, is_leaf=lambda node: isinstance(node, KINDS))
    for one in found:
        if not isinstance(one, KINDS):
            names = ", ".join(kind.__name__ for kind in KINDS)
            raise TypeError(f"space: {one!r} is no variable; it must be one of {names}")
    if not found:
        raise ValueError("space: it holds no variable; give at least one")
    return found, tree


def dimension(space: Any) -> int:
    """Numbers of the unit box that a space takes.

    >>> dimension({"rate": Real(0.0, 1.0), "kind": Categorical(3), "order": Permutation(4)})
    8
    """
    return sum(one.size() for one in _variables(space)[0])


def read(space: Any, u: Array) -> Any:
    """The point of the space at u [D] of the unit box.

    >>> space = {"n": Integer(1, 4), "flag": Boolean()}
    >>> {k: v.item() for k, v in read(space, jnp.array([0.9, 0.6])).items()}
    {'flag': True, 'n': 3}
    """
    found, tree = _variables(space)
    values, at = [], 0
    for one in found:
        values.append(one.read(u[at : at + one.size()]))
        at += one.size()
    return jax.tree.unflatten(tree, values)


def problem(function: Any, space: Any) -> Problem:
    """The problem of a function of points of the space, on the unit box.

    Args:
        function: of one point to its objective, a scalar, or objectives [m], or a pair of them and
            the total violation.
        space: pytree of variables.
    """

    def inner(u: Array) -> Any:
        out = function(read(space, u))
        f, violation = out if isinstance(out, tuple) else (out, None)
        f = jnp.atleast_1d(jnp.asarray(f)).astype(u.dtype)
        return f if violation is None else (f, jnp.asarray(violation).astype(u.dtype))

    unit = box(0.0, 1.0, dimension(space))
    out = jax.eval_shape(inner, unit.lower)
    f = out[0] if isinstance(out, tuple) else out
    if f.ndim != 1:
        raise ValueError(f"problem: f has shape {f.shape}; it must be a scalar or [objectives]")
    return Problem(unit, inner, f.shape[0])
