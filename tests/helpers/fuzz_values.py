"""Hostile values, and the positions in the arguments of a call where they are put.

`attacks(arguments)` replaces in turn each argument, each field of each spec in it, and each leaf of
a pytree by a value that is invalid there. No value is larger than a machine's memory.
"""

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu.inputs.ranges import RANGE_KEY

DEPTH = 4  # depth of nested specs
LEAVES = 6  # maximum elements of a container


@dataclasses.dataclass(frozen=True)
class Unrelated:
    """A dataclass that no function of the package knows."""

    a: float = 1.0


@dataclasses.dataclass(frozen=True)
class Attack:
    """One hostile call."""

    at: str  # "spec.rate"
    value: str  # "nan"
    given: dict[str, Any]  # the valid arguments
    put: Callable[[Any], Any]  # makes the argument from the hostile value
    bad: Any

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments; a spec that rejects the hostile value on construction raises here."""
        name = self.at.partition(".")[0].partition("[")[0]
        return self.given | {name: self.put(self.bad)}


OTHERS: dict[str, Any] = {
    "None": None,
    "a word": "fast",
    "a list of words": ["a", "b"],
    "a dict": {"a": 1},
    "an unrelated dataclass": Unrelated(),
}
NUMBERS: dict[str, Any] = {
    "nan": float("nan"),
    "inf": float("inf"),
    "-inf": float("-inf"),
    "-1": -1,
    "0": 0,
    "-0.5": -0.5,
    "1e300": 1e300,
    "1e-300": 1e-300,
    "2**63": 2**63,
    "True": True,
    "2.5": 2.5,
    "a string number": "3",
    "an empty array": np.zeros(0),
    "two numbers": np.ones(2, np.float32),
    "complex": 1j,
    "uint8": np.uint8(3),
    "float64": np.float64(1.5),
    "an object array": np.array([None, 1.0], object),
    "an array with one nan": np.array([1.0, np.nan], np.float32),
}
FUNCTIONS: dict[str, Any] = {
    "a function of no argument": lambda: 0.0,
    "a function of nine arguments": lambda a, b, c, d, e, f, g, h, i: a,
    "a function that gives None": lambda *_, **__: None,
    "a function that gives a word": lambda *_, **__: "fast",
    "a function that gives nan": lambda *_, **__: jnp.nan,
    "3": 3,
    "nan": float("nan"),
}
WORDS: dict[str, Any] = {"no such word": "no-such-word", "an empty word": "", "3": 3, "nan": np.nan}
FLAGS: dict[str, Any] = {"no": "no", "2": 2, "nan": np.nan, "two flags": np.array([True, False])}
KEYS: dict[str, Any] = {"a seed": 7, "keys": jax.random.split(jax.random.key(0)), "nan": np.nan}
KEYS |= {"zeros": np.zeros(2)}
OBJECTS: dict[str, Any] = {"3": 3, "nan": np.nan, "an array": np.zeros(3, np.float32)}


def attacks(arguments: dict[str, Any]) -> Iterator[Attack]:
    """Yield every position of the arguments with its hostile values, whole arguments first."""
    places = [place for name, value in arguments.items() for place in _positions(name, value)]
    for at, value, unit, put in sorted(places, key=lambda place: place[0].count(".")):
        if at == "self":  # a method always gets an object of its class
            continue
        for word, bad in hostile_values(value, unit).items():
            yield Attack(at, word, arguments, put, bad)


def hostile_values(value: Any, unit: str = "") -> dict[str, Any]:
    """Return hostile values that replace a valid one, by description."""
    if isinstance(value, bool | np.bool_):
        return OTHERS | FLAGS
    if isinstance(value, int | float | np.number) or _is_array(value) and value.ndim == 0:
        more = {"degrees": 90.0} if unit == "rad" else {}
        return OTHERS | NUMBERS | more
    if _is_array(value):
        return OTHERS | dict(_hostile_arrays(np.asarray(value))) | {"nan": np.nan, "-1": -1}
    if isinstance(value, jax.Array):
        return OTHERS | KEYS
    if isinstance(value, str):
        return OTHERS | WORDS
    if isinstance(value, Path):
        return OTHERS | {"3": 3, "nan": np.nan, "an empty word": ""}
    if callable(value) and not isinstance(value, type) and not dataclasses.is_dataclass(value):
        return OTHERS | FUNCTIONS
    if isinstance(value, tuple | list):
        more = {"nothing": type(value)() if type(value) in (tuple, list) else ()}
        more |= {"one less": value[:-1]} if type(value) in (tuple, list) else {}
        return OTHERS | OBJECTS | more
    if value is None:
        return OTHERS | OBJECTS
    return OTHERS | OBJECTS


def _hostile_arrays(a: np.ndarray) -> Iterator[tuple[str, Any]]:
    """Yield arrays of another shape, of another type, or with other values."""
    if a.dtype.kind == "f" and a.size:
        for word, bad in (("nan", np.nan), ("inf", np.inf), ("-inf", -np.inf)):
            b = a.copy()
            b.flat[a.size // 2] = bad
            yield f"one {word} in it", b
        yield "all nan", np.full_like(a, np.nan)
        yield "1e300 in it", a.astype(np.float64) * 0 + 1e300
        yield "1e-300 in it", a.astype(np.float64) * 0 + 1e-300
    yield "all 0", np.zeros_like(a)
    yield "all -1", (np.zeros_like(a, np.int8 if a.dtype.kind in "ub" else a.dtype) - 1)
    yield "huge whole numbers", np.full(a.shape, 2**62)
    yield "empty", a[:0]
    yield "one less", a[:-1]
    yield "an axis more", a[None]
    yield "flat", a.ravel()[:-1]
    yield "transposed", a.T[:-1]
    yield "complex", a * 1j
    yield "objects", np.full(a.shape, None)
    yield "truth values", np.ones(a.shape, bool)
    yield "uint8", np.ones(a.shape, np.uint8)
    yield "words", np.full(a.shape, "a")
    yield "a list", a.tolist()
    yield "a ragged list", [[1.0], [2.0, 3.0]]


def _positions(at: str, value: Any, unit: str = "", depth: int = DEPTH) -> list[tuple]:
    """Return positions inside a value: path, value there, unit, and replacement function."""
    found: list[tuple[str, Any, str, Callable]] = [(at, value, unit, lambda bad: bad)]
    if depth == 0:
        return found
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            if field.init:
                among = field.metadata.get(RANGE_KEY)
                inner = _positions(
                    f"{at}.{field.name}",
                    getattr(value, field.name),
                    among.unit if among else "",
                    depth - 1,
                )
                found += [
                    (p, v, u, _field_setter(value, field.name, put)) for p, v, u, put in inner
                ]
    elif isinstance(value, tuple | list) and len(value) <= LEAVES:
        for i, part in enumerate(value):
            inner = _positions(f"{at}[{i}]", part, "", depth - 1)
            found += [(p, v, u, _sequence_setter(value, i, put)) for p, v, u, put in inner]
    elif isinstance(value, dict) and len(value) <= LEAVES:
        for key, part in value.items():
            inner = _positions(f"{at}[{key!r}]", part, "", depth - 1)
            found += [(p, v, u, _dict_setter(value, key, put)) for p, v, u, put in inner]
    return found


def _field_setter(spec: Any, name: str, put: Callable) -> Callable:
    return lambda bad: dataclasses.replace(spec, **{name: put(bad)})


def _sequence_setter(parts: Any, i: int, put: Callable) -> Callable:
    def set_item(bad: Any) -> Any:
        new = [*parts[:i], put(bad), *parts[i + 1 :]]
        return type(parts)(*new) if hasattr(parts, "_fields") else type(parts)(new)

    return set_item


def _dict_setter(parts: dict, key: Any, put: Callable) -> Callable:
    return lambda bad: parts | {key: put(bad)}


def _is_array(value: Any) -> bool:
    if isinstance(value, jax.Array):
        return not jnp.issubdtype(value.dtype, jax.dtypes.prng_key)
    return isinstance(value, np.ndarray)
