"""Calls from outside of `jit`: one compiled program for a public function, kept for the next call.

A function that is called where nothing is traced runs as one `jax.jit` of itself. Arrays and floats
are the operands of that program, also those inside of specs; whole numbers, words and functions are
compiled into it. Under `jit`, `vmap` and `grad` the function is its plain body. What cannot be
traced, or returns anything but numbers, runs as it is written, and so does each call that fails, so
that errors are those of the body.

Checks of values go through `when_known`: inside of such a program a value is not known, but the
check is only put off. It runs before the program where it looks at arguments alone, and after it
otherwise; where a user traces it does not run at all.
"""

import contextlib
import dataclasses
import enum
import inspect
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.core import Tracer
from jax.extend.core import get_opaque_trace_state
from jax.typing import ArrayLike

from . import kinds
from .references import References, describe, nodes
from .trace_context import tracing

_KEPT = 64  # forms of arguments, and programs, that a function remembers
_OUTSIDE = get_opaque_trace_state()
_WIDE = {"float64", "complex128", "int64", "uint64"}
_ARRAYS = jax.Array | np.ndarray | np.generic
_NUMBERS = _ARRAYS | float | complex
_WORDS = str | int | type | enum.Enum | np.dtype | types.FunctionType | types.BuiltinFunctionType
_NO_ARRAYS = (None, type(None), bool, int, float, str, bytes)  # results that no program gives
_UNKNOWN: Any = object()
_local = threading.local()  # `program`: the one that this thread traces for a call from outside


def when_known(check: Callable[..., Any], *values: Any) -> None:
    """Run `check(*values)` once the values are known; not at all where a user traces them.

    Args:
        check: raises where a value is wrong; what it returns is dropped.
        values: numbers, arrays, or pytrees of them. Without any, the check runs at each call.

    >>> def positive(x):
    ...     if x <= 0:
    ...         raise ValueError(f"root: x={x:g}; it must be above 0")
    >>> when_known(positive, 2.0)
    >>> jax.eval_shape(lambda x: when_known(positive, x), -2.0)
    >>> when_known(positive, -2.0)
    Traceback (most recent call last):
    ValueError: root: x=-2; it must be above 0
    """
    traced = any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(values))
    program = _own() if traced or not values else None
    if program is not None:
        program.checks.append((check, values))
    elif not traced:
        check(*values)


def seen(*values: Any) -> bool:
    """Whether a check of these values will run: they are known, or will be after the program.

    >>> seen(1.0), jax.jit(lambda x: jax.numpy.asarray(seen(x)))(1.0).item()
    (True, False)
    """
    return _own() is not None or not any(isinstance(x, Tracer) for x in jax.tree.leaves(values))


def _own() -> "_Tracing | None":
    """What is being traced for a call from outside of `jit`; None in a program of the user."""
    program = getattr(_local, "program", None)
    return program if program is not None and program.state == get_opaque_trace_state() else None


class Compiled:
    """A function whose calls from outside of `jit` run as one program.

    Args:
        function: of arrays, numbers and specs.
        keeps: of which arguments, "all" or "specs", 64 bits are kept where JAX's flag is off.

    >>> import jax.numpy as jnp
    >>> double = Compiled(lambda x: 2.0 * x)
    >>> double((jnp.ones(2),), {}).tolist()
    [2.0, 2.0]
    """

    def __init__(self, function: Callable[..., Any], keeps: str = "") -> None:
        self.function, self.keeps = function, keeps
        self._known: dict[Any, _How | None] = {}  # by what a program depends on
        self._forms: dict[_Form, _Form | None] = {}  # the first that was equal to each
        self._first: dict[Any, _Form] = {}  # by what it refers to
        self._program: Any = None

    def __call__(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        call = None
        if get_opaque_trace_state() == _OUTSIDE and not jax.config.jax_disable_jit:
            call = self._call(args, kwargs)
        if call is None:
            return self.function(*args, **kwargs)
        with self._precision(call), tracing(call.form.told):
            how = self._how(call)
            if how is not None:
                how.check(call.operands)
                answer = self._answer(how, call.operands)
                if answer is not None:
                    answer.how.check(call.operands, answer.leaves)
                    return answer.how.result(call.operands, answer.leaves)
        result = self.function(*args, **kwargs)  # not in an `except`: its errors are its own
        self._remember(call.key, None)
        return result

    def _precision(self, call: "_Call") -> contextlib.AbstractContextManager:
        kept = call.operands if self.keeps == "all" else []
        if self.keeps == "specs":
            kept = [call.operands[i] for i in call.form.specs]
        wide = any(getattr(x, "dtype", _BOOL).name in _WIDE for x in kept)
        return jax.enable_x64(True) if wide else contextlib.nullcontext()

    def _how(self, call: "_Call") -> "_How | None":
        """What is checked, and how the result is made; None where the function runs as written.

        A trace finds it where arguments of this form are new, so that a refusal compiles nothing.
        """
        how = self._known.get(call.key, _UNKNOWN)  # another thread may clear it
        if how is _UNKNOWN:
            try:
                how = self._program.trace(call.form, call.operands).out_info.how
            except Exception:
                return None
            how.form = call.form
            self._remember(call.key, how)
        return how

    def _answer(self, how: "_How", operands: list[Any]) -> "_Answer | None":
        try:
            return self._program(how.form, operands)
        except Exception:
            return None

    def _remember(self, key: Any, how: "_How | None") -> None:
        if len(self._known) >= _KEPT:
            self._known.clear()
            self._program.clear_cache()
        self._known[key] = how

    def _call(self, args: tuple, kwargs: dict[str, Any]) -> "_Call | None":
        """The arguments, divided; None where nothing is to be computed, or a value is unknown."""
        if self._program is None:
            self._read()
        if self._on_host:
            return None
        names, arrays = self._names, False
        words = (*(names[min(i, len(names) - 1)] for i in range(len(args))), *kwargs)
        operands: list[Any] = []
        places: list[Any] = []
        structures, specs = [], set()
        for word, value in zip(words, (*args, *kwargs.values())):
            leaves, structure = jax.tree.flatten(value)
            structures.append(structure)
            is_spec = dataclasses.is_dataclass(value)
            is_real = is_spec or word in self._floats  # sizes are no leaves of a spec
            for leaf in leaves:
                if isinstance(leaf, _NUMBERS) or (is_real and type(leaf) is int):
                    if isinstance(leaf, Tracer):
                        return None
                    arrays = arrays or word in self._arrays or isinstance(leaf, _ARRAYS)
                    if is_spec:
                        specs.add(len(operands))
                    operands.append(leaf)
                    places.append(None)
                elif isinstance(leaf, _WORDS) or type(leaf).__eq__ is not object.__eq__:
                    places.append((type(leaf), leaf))
                else:  # it equals itself alone, so that a program of it would never be found again
                    return None
        if not arrays:
            return None
        form = _Form(tuple(structures), tuple(kwargs), tuple(places), frozenset(specs))
        try:
            same = self._equal(form)
        except TypeError:  # a value that has no hash
            return None
        if same is None:
            return None
        kinds_of = (jax.config.jax_enable_x64, *map(_kind, operands))
        return _Call(dataclasses.replace(form, told=same.told), operands, (same, *kinds_of))

    def _equal(self, form: "_Form") -> "_Form | None":
        """The first form whose program this one can use; None where that may change unseen.

        Functions that are made anew refer to the same as those before them. Of users' functions and
        classes it is looked up at each call, as what they read may have changed since.
        """
        known, same = form in self._forms, self._forms.get(form)
        if not known or (same is not None and same.told):
            if len(self._forms) >= _KEPT:
                self._forms.clear()
                self._first.clear()
            parts = [part for structure in form.structures for part in nodes(structure)]
            told = describe((form.places, *parts))
            same = None
            if told is not None:
                mine = dataclasses.replace(form, told=(told,) if told.has_user_code else ())
                same = self._first.setdefault((told.parts, form.words, form.specs), mine)
            self._forms[form] = same
        return same

    def _read(self) -> None:
        """Make the program, which is not compiled yet, and read which arguments may be arrays."""
        hints = kinds.hints(self.function)
        self._names = list(inspect.signature(self.function).parameters) or [""]
        self._floats = {word for word, hint in hints.items() if _takes_numbers(hint)}
        returned = hints.get("return", Any)
        # of Python's numbers alone, such a function returns one of Python's
        of_floats = float in getattr(returned, "__args__", ())
        takes = (lambda hint: hint == ArrayLike) if of_floats else _takes_arrays
        self._arrays = {word for word in self._floats if takes(hints[word])}
        self._on_host = returned in _NO_ARRAYS
        program = lambda form, operands: self._traced(form, operands)
        program.__name__ = program.__qualname__ = self.function.__name__
        self._program = jax.jit(program, static_argnums=0)

    def _traced(self, form: "_Form", operands: list[Any]) -> "_Answer":
        args, kwargs = form.arguments(operands)
        own, before = _Tracing(operands), getattr(_local, "program", None)
        _local.program = own
        try:
            result = self.function(*args, **kwargs)
        finally:
            _local.program = before
        spec = type(result) in map(type, (*args, *kwargs.values()))
        return own.answer(result, form.specs if spec else frozenset())


@dataclasses.dataclass(frozen=True)
class _Form:
    """All of the arguments of a call but its numbers: what a program is compiled for."""

    structures: tuple[Any, ...]  # of each argument
    words: tuple[str, ...]  # of the last of them
    places: tuple[Any, ...]  # of each leaf: None of an operand, else type and value
    specs: frozenset[int]  # the operands that are fields of specs
    told: tuple[References, ...] = ()  # what users' functions among them refer to

    def arguments(self, operands: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Arguments and keywords, with these numbers."""
        given = iter(operands)
        leaves = iter([next(given) if place is None else place[1] for place in self.places])
        values = [
            jax.tree.unflatten(form, [next(leaves) for _ in range(form.num_leaves)])
            for form in self.structures
        ]
        cut = len(values) - len(self.words)
        return values[:cut], dict(zip(self.words, values[cut:]))


@dataclasses.dataclass(frozen=True)
class _Call:
    """The arguments of one call: their form, their numbers, and the types of these."""

    form: _Form
    operands: list[Any]
    key: Any  # hashable: two calls of one key run the same program


class _Tracing:
    """A program while it is traced: what is to be checked, and which values are its arguments."""

    def __init__(self, operands: list[Any]) -> None:
        self.state, self.operands = get_opaque_trace_state(), operands
        self.given = {id(x): i for i, x in enumerate(operands) if isinstance(x, Tracer)}
        self.checks: list[tuple[Callable[..., Any], Any]] = []

    def answer(self, result: Any, specs: frozenset[int]) -> "_Answer":
        """The numbers that the program returns, and how result and checks are made of them.

        specs: the arguments that come back as they were given: fields of a spec of which the result
            is a copy.
        """
        leaves = jax.tree.leaves(result)
        if not leaves or not all(isinstance(leaf, _NUMBERS | int) for leaf in leaves):
            raise TypeError("a result that is no number")
        if _carries_functions(result):
            raise TypeError("a result with functions, which may refer to what is traced")
        new: list[Any] = []
        checks = [_Check(check, *self._sources(values, new)) for check, values in self.checks]
        return _Answer(new, _How(*self._sources(result, new), specs, checks))

    def _sources(self, tree: Any, new: list[Any]) -> tuple[Any, list[Any]]:
        """The structure of a pytree, and of each leaf whence it comes and which it is there."""
        leaves, structure = jax.tree.flatten(tree)
        sources: list[tuple[str, Any]] = []
        for leaf in leaves:
            if not isinstance(leaf, Tracer):
                sources.append((_CONSTANT, leaf))
            elif id(leaf) in self.given:
                sources.append((_ARGUMENT, self.given[id(leaf)]))
            else:
                sources.append((_RESULT, len(new)))
                new.append(leaf)
        return structure, sources


_CONSTANT, _ARGUMENT, _RESULT = "constant", "argument", "result"


class _Check:
    """A check of values, passed over where they are the arrays that it saw last."""

    def __init__(self, check: Callable[..., Any], structure: Any, sources: list[Any]) -> None:
        self.check, self.structure, self.sources = check, structure, sources
        self.of_arguments = all(kind != _RESULT for kind, _ in sources)
        self._right: list[Any] = []

    def run(self, operands: list[Any], leaves: list[Any]) -> None:
        """Hold the values of a call to the check."""
        values = [_taken(source, operands, leaves) for source in self.sources]
        if self._right and all(was() is now for was, now in zip(self._right, values)):
            return
        self.check(*jax.tree.unflatten(self.structure, values))
        fixed = values and all(isinstance(x, jax.Array) for x in values)  # they do not change
        self._right = [weakref.ref(x) for x in values] if fixed else []


class _How:
    """How the result of a function is made of what its program returns, and what is checked."""

    form: _Form  # that the program was traced for

    def __init__(
        self, structure: Any, sources: list[Any], specs: frozenset[int], checks: list[_Check]
    ) -> None:
        self.structure, self.sources, self.specs, self.checks = structure, sources, specs, checks

    def check(self, operands: list[Any], leaves: list[Any] | None = None) -> None:
        """Run the checks of arguments, before the program, or those of `leaves`, after it."""
        for check in self.checks:
            if check.of_arguments == (leaves is None):
                check.run(operands, leaves or [])

    def result(self, operands: list[Any], leaves: list[Any]) -> Any:
        """What the function returns. A field of a spec comes back as it was given."""
        values = []
        for kind, at in self.sources:
            value = _taken((kind, at), operands, leaves)
            if isinstance(value, np.ndarray | np.generic):
                if kind == _ARGUMENT and at not in self.specs:
                    value = jax.numpy.asarray(value)
                elif kind == _CONSTANT:  # the caller may write into it
                    value = value.copy()
            values.append(value)
        return jax.tree.unflatten(self.structure, values)


def _taken(source: tuple[str, Any], operands: list[Any], leaves: list[Any]) -> Any:
    kind, at = source
    return leaves[at] if kind == _RESULT else operands[at] if kind == _ARGUMENT else at


@jax.tree_util.register_pytree_node_class
class _Answer:
    """What a program returns: numbers, and beside them how they are put together."""

    def __init__(self, leaves: list[Any], how: _How) -> None:
        self.leaves, self.how = leaves, how

    def tree_flatten(self) -> tuple[Any, _How]:
        return self.leaves, self.how

    @classmethod
    def tree_unflatten(cls, how: _How, leaves: Any) -> "_Answer":
        return cls(list(leaves), how)


_BOOL = np.dtype(bool)


def _kind(x: Any) -> Any:
    """What a program is compiled for in an operand."""
    if isinstance(x, jax.Array):
        return x.aval
    return (x.shape, x.dtype) if hasattr(x, "dtype") else type(x)


def _takes_arrays(hint: Any) -> bool:
    """Whether an argument may be an array by its annotation."""
    parts = (hint, *getattr(hint, "__args__", ()))
    return hint == ArrayLike or any(part in (jax.Array, np.ndarray) for part in parts)


def _takes_numbers(hint: Any) -> bool:
    """Whether a whole number stands for a real one, or for an array, by the annotation."""
    parts = (hint, *getattr(hint, "__args__", ()))
    return hint == ArrayLike or (int not in parts and (float in parts or _takes_arrays(hint)))


def _carries_functions(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return any(map(_carries_functions, value))
    if isinstance(value, dict):
        return any(map(_carries_functions, value.values()))
    if dataclasses.is_dataclass(value):
        fields = (getattr(value, field.name) for field in dataclasses.fields(value))
        return any(isinstance(x, types.FunctionType) or _carries_functions(x) for x in fields)
    return False
