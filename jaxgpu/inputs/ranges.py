"""What a number may be: declared once on the field of a spec, checked where a spec is first used.

A field made by `pytree.number` or `pytree.size` carries a `Range`. `check` walks a spec and refuses
the first value outside its range with one sentence; `table` gives the ranges to the documents.

Only what can be seen is checked: arrays that are being traced have no values yet, so the doors that
run on the host (`init`, `minimize`, `prepare`, ...) are where a wrong number is caught. Nothing is
checked when a spec is made, since the same classes carry gradients, batches and shapes.
"""

import dataclasses
import math
from typing import Any, get_origin

import jax
import numpy as np
from jax.core import Tracer

from . import calls, kinds

KEY = "range"  # in the metadata of a dataclass field


@dataclasses.dataclass(frozen=True)
class Range:
    """The real numbers that a field may hold, all entries of an array alike."""

    above: float = -math.inf  # excluded
    least: float = -math.inf  # included
    below: float = math.inf  # excluded
    most: float = math.inf  # included
    unit: str = ""  # "m", "rad", "widths of the box"
    whole: bool = False  # a count
    infinite: bool = False  # inf and -inf are meant
    none: bool = False  # None is meant
    one: bool = False  # no array of them

    def __post_init__(self) -> None:
        for bound in ("above", "least", "below", "most"):
            value = getattr(self, bound)
            if not isinstance(value, int | float | np.number) or math.isnan(value):
                raise TypeError(f"Range.{bound}={_shown(value)}; it must be a number")
        low, high = max(self.above, self.least), min(self.below, self.most)
        open_ended = self.above >= high or self.below <= low
        if low > high or (low == high and open_ended):
            raise ValueError(f"Range: above {low:g} and below {high:g}; it must hold a number")

    def fault(self, value: Any) -> str | None:
        """What is wrong with `value`, said of it; None where nothing is, or nothing can be seen."""
        if value is None:
            return None if self.none else "None"
        if not _visible(value):
            return None
        ints = (v for v in jax.tree.leaves(value) if isinstance(v, int))
        for large in (v for v in ints if abs(v) > _largest_int(self.whole)):
            return f"{large:.6g}, a whole number beyond {'64' if self.whole else 'its'} bits"
        a, shown = _real(value, self.whole)
        if a is None:
            return shown
        if self.one and a.ndim:
            return f"an array of shape {list(a.shape)}"
        given, a = a, a.astype(np.float64) if a.dtype == np.float32 else a  # bounds may be wider
        over = (a > self.above) | (self.above == -math.inf)
        under = (a < self.below) | (self.below == math.inf)
        bad = ~(over & (a >= self.least) & under & (a <= self.most))
        bad |= np.isnan(a) | (np.isinf(a) & (not self.infinite))
        if not bad.any():
            return self._fault_when_rounded(given)
        if a.ndim == 0:
            return _shown(value if isinstance(value, int) else a[bad][0])
        return f"{_shown(a[bad][0])} at {np.argwhere(bad)[0].tolist()}"

    def _fault_when_rounded(self, a: np.ndarray) -> str | None:
        """Of numbers that are right, one that is wrong in the dtype in which JAX holds it.

        Where 64-bit types are off that is float32, whose numbers end at 3.4e38 and, as devices
        take smaller ones for 0, at 1.2e-38.
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
        return f"{_shown(wrong)}, which is {'inf' if abs(wrong) > 1 else '0'} in float32"

    def __str__(self) -> str:
        """A phrase that follows "it must be".

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
    """Refuse a spec that holds a number outside its declared range, or no number where one stands.

    A field without a range is held to the kind of its annotation: a spec of that class, a function,
    a word, True or False. Specs inside the spec are checked too, also those in tuples, lists and
    dictionaries.

    Args:
        name: of the function that was called, which begins the sentence.
        spec: a dataclass whose fields were made by `pytree.number` and `pytree.size`.

    Raises:
        ValueError: a number is not finite or outside its range.
        TypeError: what stands there is no number.

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
            value, hint = getattr(spec, field.name), kinds.hints(type(spec)).get(field.name, Any)
            ranged = KEY in field.metadata
            if ranged:
                refuse(label + field.name, value, field.metadata[KEY])
            counts = ranged and field.metadata[KEY].whole and get_origin(hint) is tuple
            if want := kinds.need(value, hint) if counts or not ranged else None:
                raise TypeError(f"{label}{field.name}={_shown(value)}; it must be {want}")
            if not ranged:
                check(name, value)
    elif isinstance(spec, (tuple, list)):
        for part in spec:
            check(name, part)
    elif isinstance(spec, dict):
        check(name, list(spec.values()))


def refuse(name: str, value: Any, among: Range) -> None:
    """Raise the sentence for a value that is outside a range; `name` begins it.

    >>> refuse("Spring: stiffness", -1.0, Range(above=0, unit="N/m"))
    Traceback (most recent call last):
    ValueError: Spring: stiffness=-1; it must be a finite number above 0, in N/m
    """
    calls.when_known(lambda value: _refuse(name, value, among), value)


def _refuse(name: str, value: Any, among: Range) -> None:
    if shown := among.fault(value):
        no_number = shown.startswith(("'", "None", "an array")) or " of type " in shown
        error = TypeError if no_number else ValueError
        raise error(f"{name}={shown}; it must be {among}")


def numbers(
    name: str, value: Any, shape: tuple[int | str, ...] | None = None, **bounds: Any
) -> Any:
    """The argument as an array, after it has been held against its shape and its range.

    Lists become arrays; integers stay integers; an array that is being traced is held against
    its shape alone.

    Args:
        name: of function and argument, "fit: x".
        value: a number, a list or an array.
        shape: its axes; a letter stands for a length that is free, the same letter for the same
            length: ("N", 3). None takes any shape.
        bounds: as those of `Range`.

    Raises:
        ValueError: another shape, a number that is not finite or outside the bounds.
        TypeError: no real numbers.

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
        raise TypeError(f"numbers: shape={_shown(shape)}; it must be a tuple of axes, or None")
    given, array = value, value
    if isinstance(value, tuple | list) and not _visible(value):
        array = jax.numpy.asarray(value)
    elif not hasattr(value, "dtype"):
        array, shown = _real(value, among.whole)
        if array is None:
            raise TypeError(f"{name}={shown}; it must be {among}")
        given = array
    if shape is not None and not _fits(array.shape, shape):
        want = ", ".join(str(axis) for axis in shape)
        raise ValueError(f"{name} has shape {list(array.shape)}; it must be [{want}]")
    refuse(name, given, among)
    return array


def table(cls: type) -> list[tuple[str, str]]:
    """Field and range of a class, for its page in the documents.

    >>> from jaxgpu.inputs.fields import number, pytree
    >>> @pytree
    ... class Spring:
    ...     stiffness: float = number(default=1.0, above=0, unit="N/m")
    >>> table(Spring)
    [('stiffness', 'a finite number above 0, in N/m')]
    """
    if not dataclasses.is_dataclass(cls):
        raise TypeError(f"ranges.table: cls={_shown(cls)}; it must be a dataclass")
    fields = dataclasses.fields(cls)
    return [(field.name, str(field.metadata[KEY])) for field in fields if KEY in field.metadata]


def _visible(value: Any) -> bool:
    """Whether it has values: not an array that is traced, nor only a shape or a placeholder."""
    if isinstance(value, Tracer | jax.ShapeDtypeStruct):
        return False
    if isinstance(value, tuple | list):  # a vector of which one component is traced
        return all(_visible(part) for part in value)
    return type(value) is not object


def _largest_int(whole: bool) -> int:
    """The largest whole number that JAX takes: of a size, which is no array, that of 64 bits."""
    kind = np.int64 if whole else jax.dtypes.canonicalize_dtype(np.int64)
    return int(np.iinfo(kind).max)


def _real(value: Any, whole: bool) -> tuple[np.ndarray | None, str]:
    """The values in an array, or None and what stands there instead of real numbers."""
    if isinstance(value, str):
        return None, repr(value)
    if isinstance(value, int) and abs(value) >= 1 << 63:  # NumPy would make an object of it
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
        return None, f"{_shown(value)} of type {a.dtype}"
    return a if a.dtype.kind in "iuf" else a.astype(np.float64), ""


def _shown(value: Any) -> str:
    """A number or a small thing, short enough for a sentence."""
    if isinstance(value, float | np.floating):
        text = f"{value:g}"
    else:
        text = str(value) if isinstance(value, np.generic) else repr(value)
    text = " ".join(text.split())  # an array's goes over lines
    return text if len(text) <= 40 else text[:37] + "..."


def finite(name: str, **given: Any) -> None:
    """Refuse arguments in which a number is not finite; what is traced passes.

    Args:
        name: of the function that was called.
        given: numbers, arrays, or pytrees of them, by the names of its arguments.

    Raises:
        ValueError: the first that is not finite, or not in the precision that JAX has.

    >>> finite("seen", x=(np.zeros(2), np.array([1.0, np.inf])))
    Traceback (most recent call last):
    ValueError: seen: x[1]=inf at [1]; it must be a finite number
    """
    for at, leaf in jax.tree.leaves_with_path(given):
        dtype = getattr(leaf, "dtype", type(leaf))
        if dtype is float or dtype is not int and jax.numpy.issubdtype(dtype, np.floating):
            word = f"{at[0].key}{jax.tree_util.keystr(at[1:])}"
            refuse(f"{name}: {word}", leaf, Range())


def _fits(got: tuple[int, ...], want: tuple[int | str, ...]) -> bool:
    """Whether a shape is the one asked for; a letter takes the first length it meets."""
    free: dict[str, int] = {}
    same = lambda n, axis: n == (free.setdefault(axis, n) if isinstance(axis, str) else axis)
    return len(got) == len(want) and all(same(n, axis) for n, axis in zip(got, want))
