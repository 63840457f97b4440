"""Public functions under hostile input: the result is a correct answer or one error message.

An `ApiCase` is a public function, its call, and valid arguments. `attacks` yields
hostile ones: each argument, and each field of a spec, is replaced in turn. `check_attack` calls the
function with one of them and asserts these rules:

- a value outside the range that its field declares raises an error;
- an error is a ValueError or TypeError with one sentence, `name: the value; what it must be`,
  raised by this package and not by a library below it;
- lists, integer arrays and arrays of another dtype give the answer of the arrays that they
  represent, or raise: all arguments together, and one at a time if that raises;
- any other input raises, unless the case lists a correct answer (`right`), which must then be
  finite, lists a limit (`limits`), or lets nan pass through (`nan_passes`).

Invalid input is passed in a plain call. A traceable case gets its answer from one program per
shape, after a trace with known values, so that its checks can see them: a separate operation costs
as much to compile as dozens inside a program.

`cases_<package>.py` list the cases, `registry.py` collects them, and
`tests/core/test_conformance.py` tests them.
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

from jaxgpu.inputs.ranges import RANGE_KEY

ROOT = Path(__file__).parents[2]
OURS = ("jaxgpu", "physics", "numerics", "rl")
OTHER_FORMS = ("list", "integers", "other dtype")  # the same values in another representation


@dataclasses.dataclass(frozen=True)
class ApiCase:
    """An API case: a public function, valid arguments, and the permitted outcomes of attacks."""

    name: str  # "evolution.minimize", as users write it after `jaxgpu.`
    call: Callable[..., Any]  # takes `good` as keywords
    good: dict[str, Any]
    right: tuple[str, ...] = ()  # attacks with a correct answer: "x: zero", or "x: *"
    limits: tuple[str, ...] = ()  # attacks whose correct answer is inf, or nan if undefined
    nan_passes: tuple[str, ...] = ()  # arguments whose nan gives nan
    pairs: tuple[tuple[str, str], ...] = ()  # ordered arguments, to be swapped
    normalised: tuple[str, ...] = ()  # arguments that are unit vectors, fractions or rotations
    refusals: bool = False  # values inside the ranges are not run: a run takes seconds
    wide: bool = False  # run with 64-bit types enabled
    rtol: float = 1e-3  # tolerance between representations
    free: tuple[str, ...] = ()  # arguments to leave alone (functions, keys, folders)
    things: tuple[str, ...] = ()  # arguments of one type: functions, keys, meshes, dictionaries
    host: str = ""  # why it needs the values of its arrays; "" if it can be traced
    alike: str = ""  # a `steppers.Stepper` that is run instead, as it starts the same way
    beyond: bool = False  # its float64 needs values outside float32's range

    @property
    def is_program(self) -> bool:
        """True if the case takes arrays and can be traced."""
        return not self.host and bool(split(self, self.good)[0])


@dataclasses.dataclass(frozen=True)
class Attack:
    """One invalid or unusual way to call a public function."""

    name: str  # "spec.sigma: nan"
    arguments: dict[str, Any]
    allowed: bool | None  # by the declared range of the field; None if there is none
    kind: str
    like: dict[str, Any] | None = None  # arguments with the same answer


def split(door: ApiCase, given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split arguments into arrays or pytrees of arrays and numbers, and all others."""
    kept = {k: v for k, v in given.items() if k not in door.things and _is_data(v)}
    return kept, {k: v for k, v in given.items() if k not in kept}


def attacks(door: ApiCase) -> Iterator[Attack]:
    """Yield an attack for each hostile value of each argument and each field of a spec."""
    for argument, value in door.good.items():
        if argument in door.free:
            continue
        if argument in door.things:
            for kind, bad in _hostile_objects(value):
                yield Attack(f"{argument}: {kind}", {**door.good, argument: bad}, None, kind)
            continue
        for path, kind, among, bad in _hostile_values(argument, value, argument in door.normalised):
            allowed = None if among is None else among.violation(bad) is None
            given = bad if among is None else _replace_field(value, path, bad)
            yield Attack(f"{path}: {kind}", {**door.good, argument: given}, allowed, kind)
    for low, high in door.pairs:
        swapped = {**door.good, low: door.good[high], high: door.good[low]}
        yield Attack(f"{low}, {high}: reversed", swapped, None, "reversed")


def other_forms(door: ApiCase, one_at_a_time: bool = False) -> Iterator[Attack]:
    """Yield the arrays as lists, as integers and in another dtype, together or one at a time."""
    arrays = {
        name: np.asarray(value)
        for name, value in door.good.items()
        if name not in (*door.free, *door.things) and _is_array(value)
    }
    groups = [{name: a} for name, a in arrays.items()] if one_at_a_time else [arrays]
    for group in groups:
        for kind in OTHER_FORMS:
            forms = {k: _convert(a, kind) for k, a in group.items()}
            forms = {k: form for k, form in forms.items() if form is not None}
            if forms:
                like = {k: np.asarray(form, arrays[k].dtype) for k, form in forms.items()}
                name = f"{', '.join(forms)}: {kind}"
                yield Attack(name, {**door.good, **forms}, None, kind, {**door.good, **like})


def check_attacks(door: ApiCase) -> None:
    """Test the case under each attack, and report all violations together."""
    faults, programs = [], {}

    def try_attack(attack: Attack) -> bool:
        try:
            return check_attack(door, attack, programs)
        except AssertionError as error:
            faults.append(str(error).strip().splitlines()[0])
            return True

    for attack in attacks(door):
        try_attack(attack)
    refused = {attack.kind for attack in other_forms(door) if not try_attack(attack)}
    for attack in other_forms(door, one_at_a_time=True):
        if attack.kind in refused:
            try_attack(attack)
    assert not faults, "\n".join(["", *faults])


def check_attack(door: ApiCase, attack: Attack, programs: dict | None = None) -> bool:
    """Call the function with an attack, assert the rules, and return whether it answered.

    programs: compiled programs of the case, shared by attacks with the same shapes.
    """
    programs = {} if programs is None else programs
    names = {attack.name, f"{attack.name.split(': ')[0]}: *"}
    listed, limit = names & {*door.right, *door.limits}, names & set(door.limits)
    passes = attack.kind == "nan" and attack.name.split(":")[0] in door.nan_passes
    if attack.allowed and door.refusals:
        return True
    with jax.enable_x64(door.wide), as_users(), cheap_programs():
        try:
            if attack.like is not None:
                answer, want = _get_both_answers(door, attack.arguments, attack.like)
            elif attack.allowed or listed or passes:
                answer = _get_answer(door, attack, programs)
            else:
                answer = door.call(**attack.arguments)
        except Exception as error:
            assert not (attack.allowed and attack.kind == "good"), error
            assert_clear_refusal(error)
            return False
        shown = f"{door.name}, {attack.name}: answered with {_shorten(answer)}"
        assert attack.allowed is not False, f"{shown}; its field declares another range"
        if attack.like is not None:
            _assert_close(shown, answer, want, door.rtol)
        elif passes:
            assert any(np.isnan(leaf).any() for leaf in _floating_leaves(answer)), shown
        else:
            assert attack.allowed or listed, f"{shown}; it must be refused, or listed as right"
            finite = all(np.isfinite(leaf).all() for leaf in _floating_leaves(answer))
            assert finite or limit, f"{shown}: not finite"
    return True


def _get_answer(door: ApiCase, attack: Attack, programs: dict) -> Any:
    """Return the answer of a case, from a compiled program if these values can be traced."""
    given, argument = attack.arguments, attack.name.split(":")[0]
    arrays, others = split(door, given)
    key = tuple((name, id(value)) for name, value in others.items())
    if not door.host and arrays:
        with contextlib.suppress(Exception):  # a plain call tells what is refused
            shapes = [(np.shape(a), jnp.result_type(a)) for a in jax.tree.leaves(arrays)]
            if (argument, key, *shapes) not in programs:  # trace once per set of shapes
                known = jax.tree.map(lambda a: jnp.asarray(a) if _is_array(a) else a, arrays)
                jax.eval_shape(lambda: door.call(**known, **others))
                programs[argument, key, *shapes] = others
            if key not in programs:  # keep `others` alive, so that no object gets their id
                programs[key] = others, jax.jit(lambda arrays: door.call(**arrays, **others))
            return programs[key][1](arrays)
    return door.call(**given)


def _get_both_answers(
    door: ApiCase, given: dict[str, Any], like: dict[str, Any]
) -> tuple[Any, Any]:
    """Return the answers to two representations of the same values; equal programs compile once."""
    if door.is_program:
        with contextlib.suppress(Exception):  # a plain call tells what is refused
            both = [known_program(lambda form=form: door.call(**form)) for form in (given, like)]
            texts = [program.lower(arrays).as_text() for program, arrays in both]
            (one, arrays), (other, likes) = both
            same = texts[0] == texts[1] and all(map(np.array_equal, arrays, likes))
            answer = one(arrays)
            return answer, answer if same else other(likes)
    return door.call(**given), door.call(**like)


def known_program(f: Callable[[], Any]) -> tuple[Any, list[Any]]:
    """Return a program that was traced with known values, and these values, its argument.

    If they were constants of the program, XLA would fold them during compilation, which is very
    slow.
    """
    closed, out = jax.make_jaxpr(f, return_shape=True)()
    tree = jax.tree.structure(out)

    def program(arrays: list[Any]) -> Any:
        return jax.tree.unflatten(tree, jax.core.eval_jaxpr(closed.jaxpr, arrays))

    return jax.jit(program), list(closed.consts)


@contextlib.contextmanager
def as_users() -> Iterator[None]:
    """Apply the default settings of users: implicit promotion of dtypes and ranks."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


@contextlib.contextmanager
def cheap_programs() -> Iterator[None]:
    """Compile without most optimizations: in a third of the time, to the same values."""
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    try:
        yield
    finally:
        jax.config.update("jax_disable_most_optimizations", before)


def assert_clear_refusal(error: Exception) -> None:
    """Assert that an error is one sentence in the package's format, raised by the package."""
    text = str(error)
    last = traceback.extract_tb(error.__traceback__)[-1].filename
    shown = f"{type(error).__name__}: {text}"
    assert isinstance(error, (ValueError, TypeError)), f"no sentence: {shown}"
    ours = any(ROOT / top in Path(last).resolve().parents for top in OURS)
    assert ours, f"raised in {last}: {shown}"
    assert re.match(r"^[\w.\[\]/-]+[:=].*; ", text), f"no sentence of the house: {shown}"
    assert "\n" not in text and len(text) < 500, f"more than a sentence: {shown}"


def _hostile_values(path: str, value: Any, unit: bool) -> Iterator[tuple]:
    """Yield path, kind, declared range and hostile value."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            among = field.metadata.get(RANGE_KEY)
            if among is not None:
                for kind, bad in _hostile_numbers(getattr(value, field.name), among.whole):
                    yield f"{path}.{field.name}", kind, among, bad
    elif isinstance(value, str):
        yield from ((path, kind, None, bad) for kind, bad in _hostile_strings())
    elif isinstance(value, bool) or callable(value) or value is None:
        return
    elif isinstance(value, int | float | np.generic) or getattr(value, "ndim", None) == 0:
        for kind, bad in (*_hostile_numbers(value, isinstance(value, int)), ("None", None)):
            yield path, kind, None, bad
    elif _is_array(value):
        for kind, bad in (*_hostile_arrays(np.asarray(value), unit), ("None", None)):
            yield path, kind, None, bad


def _is_array(value: Any) -> bool:
    if not hasattr(value, "dtype") or np.ndim(value) == 0:
        return False
    return not jnp.issubdtype(value.dtype, jax.dtypes.prng_key)


def _is_data(value: Any) -> bool:
    leaves = jax.tree.leaves(value)
    numbers = (np.ndarray, np.generic, jax.Array, float)
    return bool(leaves) and all(isinstance(leaf, numbers) for leaf in leaves)


def _convert(a: np.ndarray, kind: str) -> Any:
    """Return the same values, rounded for integers, or None if there is no such representation."""
    if kind == "list":
        return a.tolist()
    if a.dtype.kind != "f" and a.dtype.name != "bfloat16":
        return None
    if kind == "integers":
        return np.rint(a).astype(np.int32)
    return a.astype(np.float32 if a.dtype == np.float64 else np.float64)


def _hostile_numbers(value: Any, whole: bool) -> Iterator[tuple[str, Any]]:
    yield "nan", float("nan")
    yield "inf", float("inf")
    yield "-inf", float("-inf")
    yield "zero", 0 if whole else 0.0
    yield "negative", -3 if whole else -0.5
    yield "word", "fast"
    yield "complex", 1j
    if np.ndim(value) == 0:
        yield "empty", np.zeros(0)


def _hostile_objects(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield values of another type than a function, a key, a mesh or a device."""
    yield "word", "fast"
    yield "number", 3
    yield "zero", 0
    yield "nan", float("nan")
    yield "array", np.zeros(3)
    yield "None", None
    yield "list", [value]


def _hostile_strings() -> Iterator[tuple[str, Any]]:
    yield "unknown", "no-such-word"
    yield "empty", ""
    yield "number", 3
    yield "None", None
    yield "list", ["a", "b"]


def _hostile_arrays(a: np.ndarray, unit: bool) -> Iterator[tuple[str, Any]]:
    if a.dtype.kind == "f" or a.dtype.name == "bfloat16":
        for kind, bad in (("nan", np.nan), ("inf", np.inf), ("-inf", -np.inf)):
            if a.size:
                b = a.copy()
                b.flat[a.size // 2] = bad
                yield kind, b
    yield "zero", np.zeros_like(a)
    yield "negative", -a
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


def _replace_field(spec: Any, path: str, bad: Any) -> Any:
    return dataclasses.replace(spec, **{path.rpartition(".")[2]: bad})


def _floating_leaves(answer: Any) -> list[np.ndarray]:
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


def _assert_close(shown: str, answer: Any, want: Any, rtol: float) -> None:
    got, want = _floating_leaves(answer), _floating_leaves(want)
    assert len(got) == len(want), shown
    for a, b in zip(got, want):
        finite = np.abs(b[np.isfinite(b)])
        scale = finite.max(initial=0.0)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * scale, err_msg=shown)


def _shorten(answer: Any) -> str:
    return re.sub(r"\s+", " ", repr(answer))[:160]
