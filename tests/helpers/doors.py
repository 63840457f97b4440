"""Public functions under hostile input: a right answer or one sentence, nothing else.

A `Door` names a public function, how it is called, and arguments that are right. `attacks` makes
the wrong ones: of each argument, and of each field of a spec, in turn. `hold` calls the door with
one of them and demands what the house promises:

- a number outside the range that its field declares is refused;
- a refusal is a ValueError or TypeError of one sentence, `name: what was given; what it must be`,
  raised by our own code and not by a library below it;
- a list, an array of whole numbers and an array of another dtype give the answer of the array that
  they stand for, or are refused;
- anything else is refused, unless the door says that there is a right answer (`right`), which must
  then be finite, that there is a limit (`limits`), or that nan comes out as nan (`nan_passes`).

`doors_<pillar>.py` list the doors, `registry.py` holds them all, and
`tests/core/test_conformance.py` walks them.
"""

import contextlib
import dataclasses
import re
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu.ranges import KEY

ROOT = Path(__file__).parents[2]
OURS = ("jaxgpu", "physics", "numerics", "rl")
SAME = ("list", "integers", "other dtype")  # the same numbers in another form


@dataclasses.dataclass(frozen=True)
class Door:
    """A public function, and what may be done to its arguments."""

    name: str  # "evolution.minimize", as users write it after `jaxgpu.`
    call: Callable[..., Any]  # takes `good` as keywords
    good: dict[str, Any]
    right: tuple[str, ...] = ()  # attacks that have a right answer: "x: zero", or "x: *"
    limits: tuple[str, ...] = ()  # whose right answer is inf, or nan where there is no value
    nan_passes: tuple[str, ...] = ()  # arguments whose nan comes out as nan
    pairs: tuple[tuple[str, str], ...] = ()  # arguments in order, to be given the wrong way round
    normalised: tuple[str, ...] = ()  # arguments that are unit vectors, shares or rotations
    refusals: bool = False  # what its ranges allow is not run: the answer costs seconds
    wide: bool = False  # 64-bit types are switched on
    rtol: float = 1e-3  # of the same numbers in another form
    free: tuple[str, ...] = ()  # arguments that are no data (functions, keys, folders)
    things: tuple[str, ...] = ()  # arguments of one kind: functions, keys, meshes, dictionaries


@dataclasses.dataclass(frozen=True)
class Attack:
    """One wrong, or unusual, way to call a door."""

    name: str  # "spec.sigma: nan"
    arguments: dict[str, Any]
    allowed: bool | None  # by the range that a field declares; None where none is declared
    kind: str
    like: dict[str, Any] | None = None  # arguments with the same answer


def attacks(door: Door) -> Iterator[Attack]:
    """Every argument and every field of a spec replaced, one at a time, by each hostile value."""
    for argument, value in door.good.items():
        if argument in door.free:
            continue
        if argument in door.things:
            for kind, bad in _instead_of(value):
                yield Attack(f"{argument}: {kind}", {**door.good, argument: bad}, None, kind)
            continue
        for path, kind, among, bad, same in _hostile(argument, value, argument in door.normalised):
            allowed = None if among is None else among.fault(bad) is None
            like = None if same is None else {**door.good, argument: same[0]}
            arguments = {**door.good, argument: same[1] if same else bad}
            if among is not None and same is None:
                arguments[argument] = _replaced(value, path, bad)
            yield Attack(f"{path}: {kind}", arguments, allowed, kind, like)
    for low, high in door.pairs:
        swapped = {**door.good, low: door.good[high], high: door.good[low]}
        yield Attack(f"{low}, {high}: reversed", swapped, None, "reversed")


def hostile(door: Door) -> None:
    """Hold the door to what is promised under each attack, and say all that went wrong."""
    faults = []
    for attack in attacks(door):
        try:
            hold(door, attack)
        except AssertionError as error:
            faults.append(str(error).strip().splitlines()[0])
    assert not faults, "\n".join(["", *faults])


def hold(door: Door, attack: Attack) -> None:
    """Call the door, and hold what happens to what is promised."""
    names = {attack.name, f"{attack.name.split(': ')[0]}: *"}
    listed, limit = names & {*door.right, *door.limits}, names & set(door.limits)
    if attack.allowed and door.refusals:
        return
    with jax.enable_x64(door.wide), as_users():
        try:
            answer = door.call(**attack.arguments)
        except Exception as error:
            assert not (attack.allowed and attack.kind == "good"), error
            return refused_well(error)
        shown = f"{door.name}, {attack.name}: answered with {_short(answer)}"
        assert attack.allowed is not False, f"{shown}; its field declares another range"
        if attack.like is not None:
            return _alike(shown, answer, door.call(**attack.like), door.rtol)
        if attack.kind == "nan" and attack.name.split(":")[0] in door.nan_passes:
            assert any(np.isnan(leaf).any() for leaf in _floats(answer)), shown
            return
        assert attack.allowed or listed, f"{shown}; it must be refused, or listed as right"
        finite = all(np.isfinite(leaf).all() for leaf in _floats(answer))
        assert finite or limit, f"{shown}: not finite"


@contextlib.contextmanager
def as_users() -> Iterator[None]:
    """The settings that users have, who promote dtypes and ranks in silence."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def refused_well(error: Exception) -> None:
    """Hold an error to the form of the house: one sentence, our own."""
    text = str(error)
    last = traceback.extract_tb(error.__traceback__)[-1].filename
    shown = f"{type(error).__name__}: {text}"
    assert isinstance(error, (ValueError, TypeError)), f"no sentence: {shown}"
    ours = any(ROOT / top in Path(last).resolve().parents for top in OURS)
    assert ours, f"raised in {last}: {shown}"
    assert re.match(r"^[\w.\[\]/-]+[:=].*; ", text), f"no sentence of the house: {shown}"
    assert "\n" not in text and len(text) < 500, f"more than a sentence: {shown}"


def _hostile(path: str, value: Any, unit: bool) -> Iterator[tuple]:
    """Path, kind, declared range, value, and a pair of values (usual, unusual) with one answer."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            among = field.metadata.get(KEY)
            if among is not None:
                for kind, bad in _numbers_for(getattr(value, field.name), among.whole):
                    yield f"{path}.{field.name}", kind, among, bad, None
        return
    if isinstance(value, str):
        yield from ((path, kind, None, bad, None) for kind, bad in _words_for())
        return
    if isinstance(value, bool) or callable(value) or value is None:
        return
    if isinstance(value, int | float | np.generic) or getattr(value, "ndim", None) == 0:
        for kind, bad in _numbers_for(value, isinstance(value, int)):
            yield path, kind, None, bad, None
        yield path, "None", None, None, None
    elif hasattr(value, "ndim") and not jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        for kind, bad in _arrays_for(np.asarray(value), unit):
            same = None
            if kind in SAME:
                as_float = np.asarray(bad, value.dtype)
                same = (as_float, bad)
            yield path, kind, None, bad, same
        yield path, "None", None, None, None


def _numbers_for(value: Any, whole: bool) -> Iterator[tuple[str, Any]]:
    yield "nan", float("nan")
    yield "inf", float("inf")
    yield "-inf", float("-inf")
    yield "zero", 0 if whole else 0.0
    yield "negative", -3 if whole else -0.5
    yield "word", "fast"
    yield "complex", 1j
    if np.ndim(value) == 0:
        yield "empty", np.zeros(0)


def _instead_of(value: Any) -> Iterator[tuple[str, Any]]:
    """Things of another kind than a function, a key, a mesh, a device, ..."""
    yield "word", "fast"
    yield "number", 3
    yield "zero", 0
    yield "nan", float("nan")
    yield "array", np.zeros(3)
    yield "None", None
    yield "list", [value]


def _words_for() -> Iterator[tuple[str, Any]]:
    yield "unknown", "no-such-word"
    yield "empty", ""
    yield "number", 3
    yield "None", None
    yield "list", ["a", "b"]


def _arrays_for(a: np.ndarray, unit: bool) -> Iterator[tuple[str, Any]]:
    if a.dtype.kind == "f" or a.dtype.name == "bfloat16":
        for kind, bad in (("nan", np.nan), ("inf", np.inf), ("-inf", -np.inf)):
            if a.size:
                b = a.copy()
                b.flat[a.size // 2] = bad
                yield kind, b
        yield "integers", np.rint(a).astype(np.int32)
        yield "other dtype", a.astype(np.float32 if a.dtype == np.float64 else np.float64)
    yield "zero", np.zeros_like(a)
    yield "negative", -a
    yield "list", a.tolist()
    yield "empty", a[:0]
    yield "wrong length", a[:-1]
    if a.ndim >= 2:
        yield "narrow", a[..., :-1]
        yield "flat", a.ravel()
    if a.ndim == 2:
        yield "transposed", a.T
    if unit:
        yield "not normalised", a * a.dtype.type(2)
    yield "words", np.full(a.shape, "a")
    yield "complex", a * 1j


def _replaced(spec: Any, path: str, bad: Any) -> Any:
    return dataclasses.replace(spec, **{path.rpartition(".")[2]: bad})


def _floats(answer: Any) -> list[np.ndarray]:
    leaves = [leaf for leaf in jax.tree.leaves(answer) if hasattr(leaf, "dtype") or _is_float(leaf)]
    plain = [
        leaf for leaf in leaves if not jnp.issubdtype(jnp.result_type(leaf), jax.dtypes.prng_key)
    ]
    return [
        np.asarray(leaf, np.float64)
        for leaf in plain
        if jnp.issubdtype(jnp.result_type(leaf), jnp.floating)
    ]


def _is_float(leaf: Any) -> bool:
    return isinstance(leaf, float)


def _alike(shown: str, answer: Any, want: Any, rtol: float) -> None:
    got, want = _floats(answer), _floats(want)
    assert len(got) == len(want), shown
    for a, b in zip(got, want):
        finite = np.abs(b[np.isfinite(b)])
        scale = finite.max(initial=0.0)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * scale, err_msg=shown)


def _short(answer: Any) -> str:
    return re.sub(r"\s+", " ", repr(answer))[:160]
