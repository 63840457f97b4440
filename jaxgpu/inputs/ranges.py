"""Ranges of numbers: declared on the fields of a spec, checked where the spec is first used.

A field made by `pytree.number` or `pytree.size` carries a `Range`. `check` traverses a spec and
raises an error for the first value outside of its range; `field_ranges` lists the ranges for the
documentation.

Only known values are checked. Traced arrays have no values yet, so invalid numbers are caught by
the public functions that run on the host (`init`, `minimize`, `prepare`, ...). The constructor of a
spec checks nothing, since the same classes also hold gradients, batches and shapes.
"""

import dataclasses
import math
from typing import Any, get_origin

import jax
import numpy as np
from jax.core import Tracer

from . import calls, type_hints

RANGE_KEY = "range"  # in the metadata of a dataclass field


@dataclasses.dataclass(frozen=True)
class Range:
    """Real numbers that a field may hold; for an array, the range of every entry."""

    above: float = -math.inf  # exclusive
    least: float = -math.inf  # inclusive
    below: float = math.inf  # exclusive
    most: float = math.inf  # inclusive
    unit: str = ""  # "m", "rad", "widths of the box"
    whole: bool = False  # integers only
    infinite: bool = False  # inf and -inf are valid
    none: bool = False  # None is valid
    one: bool = False  # a scalar, not an array

    def __post_init__(self) -> None:
        for bound in ("above", "least", "below", "most"):
            value = getattr(self, bound)
            if not isinstance(value, int | float | np.number) or math.isnan(value):
                raise TypeError(f"Range.{bound}={_format_value(value)}; it must be a number")
        low, high = max(self.above, self.least), min(self.below, self.most)
        open_ended = self.above >= high or self.below <= low
        if low > high or (low == high and open_ended):
            raise ValueError(f"Range: above {low:g} and below {high:g}; it must contain a number")

    def violation(self, value: Any) -> str | None:
        """Describe `value` if it is invalid; None if it is valid or not known yet."""
        if value is None:
            return None if self.none else "None"
        if not _has_values(value):
            return None
        ints = (v for v in jax.tree.leaves(value) if isinstance(v, int))
        for large in (v for v in ints if abs(v) > _largest_int(self.whole)):
            return f"{large:.6g}, a whole number beyond {'64' if self.whole else 'its'} bits"
        a, shown = _to_real_array(value, self.whole)
        if a is None:
            return shown
        if self.one and a.ndim:
            return f"an array of shape {list(a.shape)}"
        given, a = a, a.astype(np.float64) if a.dtype == np.float32 else a  # bounds may be finer
        over = (a > self.above) | (self.above == -math.inf)
        under = (a < self.below) | (self.below == math.inf)
        bad = ~(over & (a >= self.least) & under & (a <= self.most))
        bad |= np.isnan(a) | (np.isinf(a) & (not self.infinite))
        if not bad.any():
            return self._find_rounding_violation(given)
        if a.ndim == 0:
            return _format_value(value if isinstance(value, int) else a[bad][0])
        return f"{_format_value(a[bad][0])} at {np.argwhere(bad)[0].tolist()}"

    def _find_rounding_violation(self, a: np.ndarray) -> str | None:
        """Describe a number that becomes invalid in the dtype in which JAX holds it; else None.

        With 64-bit types disabled that is float32. Its largest number is 3.4e38, and devices flush
        those below 1.2e-38 to 0.
        """
        if a.dtype != np.float64 or self.whole or jax.dtypes.canonicalize_dtype(a.dtype) == a.dtype:
            return None
        kind = np.finfo(np.float32)
        bad = (np.abs(a) > kind.max) & np.isfinite(a)
        if self.above == 0:
            bad |= a < kind.tiny
        if self.below == 0:
            bad |= a > -kind.tiny
        if not bad.any():
            return None
        wrong = a[bad].ravel()[0]
        return f"{_format_value(wrong)}, which is {'inf' if abs(wrong) > 1 else '0'} in float32"

    def __str__(self) -> str:
        """Return a phrase that follows "it must be".

        >>> str(Range(above=0, most=1, unit="m")), str(Range(least=4, whole=True))
        ('a finite number above 0 and of at most 1, in m', 'a whole number of at least 4')
        """
        noun = "a whole number" if self.whole else "a finite number"
        noun = "a number or infinity" if self.infinite else noun
        low = f"above {self.above:g}" if self.above > -math.inf else ""
        low = f"of at least {self.least:g}" if self.least > -math.inf else low
        high = f"below {self.below:g}" if self.below < math.inf else ""
        high = f"of at most {self.most:g}" if self.most < math.inf else high
        bounds = " and ".join(part for part in (low, high) if part)
        said = " ".join(part for part in (noun, bounds) if part)
        said += f", in {self.unit}" if self.unit else ""
        return f"{said}, or None" if self.none else said


def check(name: str, spec: Any) -> None:
    """Raise if a spec holds a number outside of its range, or a value of another type.

    A field without a range is checked against its annotation: a spec of that class, a function, a
    string, True or False. Nested specs are checked too, also in tuples, lists and dictionaries.

    Args:
        name: of the function that was called; it begins the message.
        spec: a dataclass whose fields were made by `pytree.number` and `pytree.size`.

    Raises:
        ValueError: a number is not finite or outside its range.
        TypeError: a value is not a number, or contradicts its annotation.

    >>> from jaxgpu.inputs.fields import number, pytree
    >>> @pytree
    ... class Spring:
    ...     stiffness: float = number(default=1.0, above=0, unit="N/m")
    >>> check("pull", Spring(float("nan")))
    Traceback (most recent call last):
    ValueError: pull: Spring.stiffness=nan; it must be a finite number above 0, in N/m
    """
    if dataclasses.is_dataclass(spec) and not isinstance(spec, type):
        kind = type(spec).__name__
        label = f"{name}: " if name.endswith(kind) else f"{name}: {kind}."
        for field in dataclasses.fields(spec):
            value, hint = (
                getattr(spec, field.name),
                type_hints.hints(type(spec)).get(field.name, Any),
            )
            ranged = RANGE_KEY in field.metadata
            if ranged:
                refuse(label + field.name, value, field.metadata[RANGE_KEY])
            counts = ranged and field.metadata[RANGE_KEY].whole and get_origin(hint) is tuple
            if want := type_hints.requirement(value, hint) if counts or not ranged else None:
                raise TypeError(f"{label}{field.name}={_format_value(value)}; it must be {want}")
            if not ranged:
                check(name, value)
    elif isinstance(spec, (tuple, list)):
        for part in spec:
            check(name, part)
    elif isinstance(spec, dict):
        check(name, list(spec.values()))


def refuse(name: str, value: Any, among: Range) -> None:
    """Raise an error that begins with `name` if a value is outside of a range.

    >>> refuse("Spring: stiffness", -1.0, Range(above=0, unit="N/m"))
    Traceback (most recent call last):
    ValueError: Spring: stiffness=-1; it must be a finite number above 0, in N/m
    """
    calls.defer_check(lambda value: _check_known_value(name, value, among), value)


def _check_known_value(name: str, value: Any, among: Range) -> None:
    if shown := among.violation(value):
        no_number = shown.startswith(("'", "None", "an array")) or " of type " in shown
        error = TypeError if no_number else ValueError
        raise error(f"{name}={shown}; it must be {among}")


def numbers(
    name: str, value: Any, shape: tuple[int | str, ...] | None = None, **bounds: Any
) -> Any:
    """Return the argument as an array, after checking its shape and its range.

    Lists become arrays and integers stay integers. Of a traced array only the shape is checked.

    Args:
        name: of function and argument, "fit: x".
        value: a number, a list or an array.
        shape: its axes, such as ("N", 3); a letter stands for any length, the same letter for the
            same length. None accepts any shape.
        bounds: the fields of `Range`.

    Raises:
        ValueError: another shape, a number that is not finite or outside the bounds.
        TypeError: not real numbers.

    >>> numbers("centre: x", [[1.0, 2.0, 3.0]], ("N", 3)).shape
    (1, 3)
    >>> numbers("centre: x", [[1.0], [2.0], [3.0]], ("N", 3))
    Traceback (most recent call last):
    ValueError: centre: x has shape [3, 1]; it must be [N, 3]
    """
    among = Range(**bounds)
    if value is None:
        raise TypeError(f"{name}=None; it must be {among}")
    if not isinstance(shape, tuple | list | None):
        raise TypeError(
            f"numbers: shape={_format_value(shape)}; it must be a tuple of axes, or None"
        )
    given, array = value, value
    if isinstance(value, tuple | list) and not _has_values(value):
        array = jax.numpy.asarray(value)
    elif not hasattr(value, "dtype"):
        array, shown = _to_real_array(value, among.whole)
        if array is None:
            raise TypeError(f"{name}={shown}; it must be {among}")
        given = array
    if shape is not None and not _has_shape(array.shape, shape):
        want = ", ".join(str(axis) for axis in shape)
        raise ValueError(f"{name} has shape {list(array.shape)}; it must be [{want}]")
    refuse(name, given, among)
    return array


def field_ranges(cls: type) -> list[tuple[str, str]]:
    """Return the fields of a class and their ranges, for its documentation.

    >>> from jaxgpu.inputs.fields import number, pytree
    >>> @pytree
    ... class Spring:
    ...     stiffness: float = number(default=1.0, above=0, unit="N/m")
    >>> field_ranges(Spring)
    [('stiffness', 'a finite number above 0, in N/m')]
    """
    if not dataclasses.is_dataclass(cls):
        raise TypeError(f"ranges.field_ranges: cls={_format_value(cls)}; it must be a dataclass")
    fields = dataclasses.fields(cls)
    return [
        (field.name, str(field.metadata[RANGE_KEY]))
        for field in fields
        if RANGE_KEY in field.metadata
    ]


def _has_values(value: Any) -> bool:
    """Return True if it has values: it is not a traced array, a shape or a placeholder."""
    if isinstance(value, Tracer | jax.ShapeDtypeStruct):
        return False
    if isinstance(value, tuple | list):  # one component of a vector may be traced
        return all(_has_values(part) for part in value)
    return type(value) is not object


def _largest_int(whole: bool) -> int:
    """Return the largest integer that JAX holds; 64-bit for sizes, which are not arrays."""
    kind = np.int64 if whole else jax.dtypes.canonicalize_dtype(np.int64)
    return int(np.iinfo(kind).max)


def _to_real_array(value: Any, whole: bool) -> tuple[np.ndarray | None, str]:
    """Return the values as an array; or None and a description if they are not real numbers."""
    if isinstance(value, str):
        return None, repr(value)
    if isinstance(value, int) and abs(value) >= 1 << 63:  # NumPy would make an object array
        return None, f"{value:.6g}, a whole number beyond 64 bits"
    try:
        a = np.asarray(value)
    except (TypeError, ValueError):
        return None, f"a value of type {type(value).__name__}"
    if a.dtype == object and a.size and a.ndim == 0:
        return None, f"a value of type {type(value).__name__}"
    real = jax.numpy.issubdtype(a.dtype, np.integer)
    real |= not whole and jax.numpy.issubdtype(a.dtype, np.floating)
    if not real and not (a.size == 0 and a.dtype != object):
        return None, f"{_format_value(value)} of type {a.dtype}"
    return a if a.dtype.kind in "iuf" else a.astype(np.float64), ""


def _format_value(value: Any) -> str:
    """Format a value in at most 40 characters, for an error message."""
    if isinstance(value, float | np.floating):
        text = f"{value:g}"
    else:
        text = str(value) if isinstance(value, np.generic) else repr(value)
    text = " ".join(text.split())  # the text of an array has several lines
    return text if len(text) <= 40 else text[:37] + "..."


def check_finite(name: str, **given: Any) -> None:
    """Raise if an argument holds a number that is not finite; traced values pass.

    Args:
        name: of the function that was called.
        given: numbers, arrays, or pytrees of them, by the names of its arguments.

    Raises:
        ValueError: the first number that is not finite, or overflows in JAX's precision.

    >>> check_finite("seen", x=(np.zeros(2), np.array([1.0, np.inf])))
    Traceback (most recent call last):
    ValueError: seen: x[1]=inf at [1]; it must be a finite number
    """
    for at, leaf in jax.tree.leaves_with_path(given):
        dtype = getattr(leaf, "dtype", type(leaf))
        if dtype is float or dtype is not int and jax.numpy.issubdtype(dtype, np.floating):
            word = f"{at[0].key}{jax.tree_util.keystr(at[1:])}"
            refuse(f"{name}: {word}", leaf, Range())


def _has_shape(got: tuple[int, ...], want: tuple[int | str, ...]) -> bool:
    """Return True if a shape matches; a letter takes the first length that it is compared with."""
    free: dict[str, int] = {}
    is_same_length = lambda n, axis: (
        n == (free.setdefault(axis, n) if isinstance(axis, str) else axis)
    )
    return len(got) == len(want) and all(is_same_length(n, axis) for n, axis in zip(got, want))
