"""Calls from outside of `jit`: a public function runs as one program, kept for the next call.

A function that is called outside of any trace runs as one `jax.jit` of itself. Arrays and floats
are the operands of that program, including those inside of specs; integers, strings and functions
are compiled into it. Under `jit`, `vmap` and `grad` the function body runs as written. A function
that cannot be traced, or that returns anything but numbers, also runs as written, and so does each
call that fails, so that its errors come from its body.

Checks of values go through `defer_check`. Inside of such a program a value is not known, so the
check is postponed. It runs before the program if it needs arguments only, and after it otherwise.
Inside of a user's trace it does not run at all.
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

from . import type_hints
from .references import References, describe, nodes
from .trace_context import tracing

_CACHE_SIZE = 64  # signatures of calls, and programs, that are cached per function
_OUTSIDE = get_opaque_trace_state()
_WIDE_DTYPES = {"float64", "complex128", "int64", "uint64"}
_ARRAY_TYPES = jax.Array | np.ndarray | np.generic
_OPERAND_TYPES = _ARRAY_TYPES | float | complex
_STATIC_TYPES = (
    str | int | type | enum.Enum | np.dtype | types.FunctionType | types.BuiltinFunctionType
)
_HOST_RETURN_TYPES = (
    None,
    type(None),
    bool,
    int,
    float,
    str,
    bytes,
)  # return types that no program has
_UNKNOWN: Any = object()
_local = threading.local()  # `program`: the one that this thread traces for a call outside `jit`


def defer_check(check: Callable[..., Any], *values: Any) -> None:
    """Run `check(*values)` once the values are known, and not at all in a user's trace.

    Args:
        check: raises if a value is invalid; its result is ignored.
        values: numbers, arrays, or pytrees of them. Without any, the check runs at each call.

    >>> def positive(x):
    ...     if x <= 0:
    ...         raise ValueError(f"root: x={x:g}; it must be above 0")
    >>> defer_check(positive, 2.0)
    >>> jax.eval_shape(lambda x: defer_check(positive, x), -2.0)
    >>> defer_check(positive, -2.0)
    Traceback (most recent call last):
    ValueError: root: x=-2; it must be above 0
    """
    traced = any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(values))
    program = _current_trace() if traced or not values else None
    if program is not None:
        program.checks.append((check, values))
    elif not traced:
        check(*values)


def can_check(*values: Any) -> bool:
    """Return True if a check of these values will run: now, or after the program.

    >>> can_check(1.0), jax.jit(lambda x: jax.numpy.asarray(can_check(x)))(1.0).item()
    (True, False)
    """
    return _current_trace() is not None or not any(
        isinstance(x, Tracer) for x in jax.tree.leaves(values)
    )


def _current_trace() -> "_TraceState | None":
    """Return the trace of a call from outside of `jit`; None within a user's program."""
    program = getattr(_local, "program", None)
    return program if program is not None and program.state == get_opaque_trace_state() else None


class CompiledFunction:
    """Function whose calls from outside of `jit` run as one program.

    Args:
        function: a function of arrays, numbers and specs.
        keeps: "all" or "specs": the arguments whose 64-bit values enable 64-bit types.

    >>> import jax.numpy as jnp
    >>> double = CompiledFunction(lambda x: 2.0 * x)
    >>> double((jnp.ones(2),), {}).tolist()
    [2.0, 2.0]
    """

    def __init__(self, function: Callable[..., Any], keeps: str = "") -> None:
        self.function, self.keeps = function, keeps
        self._known: dict[Any, _ResultRecipe | None] = {}  # by the key of a call
        self._forms: dict[_CallForm, _CallForm | None] = {}  # first form equal to each
        self._first: dict[Any, _CallForm] = {}  # by the references of a form
        self._program: Any = None

    def __call__(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        call = None
        if get_opaque_trace_state() == _OUTSIDE and not jax.config.jax_disable_jit:
            call = self._split_arguments(args, kwargs)
        if call is None:
            return self.function(*args, **kwargs)
        with self._precision_context(call), tracing(call.form.told):
            how = self._find_recipe(call)
            if how is not None:
                how.check(call.operands)
                answer = self._run_program(how, call.operands)
                if answer is not None:
                    answer.how.check(call.operands, answer.leaves)
                    return answer.how.result(call.operands, answer.leaves)
        result = self.function(*args, **kwargs)  # outside of `except`, which would chain its errors
        self._cache_recipe(call.key, None)
        return result

    def _precision_context(self, call: "_CallArguments") -> contextlib.AbstractContextManager:
        kept = call.operands if self.keeps == "all" else []
        if self.keeps == "specs":
            kept = [call.operands[i] for i in call.form.specs]
        wide = any(getattr(x, "dtype", _BOOL).name in _WIDE_DTYPES for x in kept)
        return jax.enable_x64(True) if wide else contextlib.nullcontext()

    def _find_recipe(self, call: "_CallArguments") -> "_ResultRecipe | None":
        """Return the checks and the assembly of the result; None if the function runs as written.

        A new signature is traced to find them, so that a call that raises compiles nothing.
        """
        how = self._known.get(call.key, _UNKNOWN)  # another thread may clear the cache
        if how is _UNKNOWN:
            try:
                how = self._program.trace(call.form, call.operands).out_info.how
            except Exception:
                return None
            how.form = call.form
            self._cache_recipe(call.key, how)
        return how

    def _run_program(self, how: "_ResultRecipe", operands: list[Any]) -> "_ProgramOutput | None":
        try:
            return self._program(how.form, operands)
        except Exception:
            return None

    def _cache_recipe(self, key: Any, how: "_ResultRecipe | None") -> None:
        if len(self._known) >= _CACHE_SIZE:
            self._known.clear()
            self._program.clear_cache()
        self._known[key] = how

    def _split_arguments(self, args: tuple, kwargs: dict[str, Any]) -> "_CallArguments | None":
        """Split arrays from static values; return None if there is no array or one is traced."""
        if self._program is None:
            self._inspect_signature()
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
            is_real = is_spec or word in self._floats  # sizes are not leaves of a spec
            for leaf in leaves:
                if isinstance(leaf, _OPERAND_TYPES) or (is_real and type(leaf) is int):
                    if isinstance(leaf, Tracer):
                        return None
                    arrays = arrays or word in self._arrays or isinstance(leaf, _ARRAY_TYPES)
                    if is_spec:
                        specs.add(len(operands))
                    operands.append(leaf)
                    places.append(None)
                elif isinstance(leaf, _STATIC_TYPES) or type(leaf).__eq__ is not object.__eq__:
                    places.append((type(leaf), leaf))
                else:  # equal to itself only: a program compiled for it would never be found again
                    return None
        if not arrays:
            return None
        form = _CallForm(tuple(structures), tuple(kwargs), tuple(places), frozenset(specs))
        try:
            same = self._find_equal_form(form)
        except TypeError:  # an unhashable value
            return None
        if same is None:
            return None
        kinds_of = (jax.config.jax_enable_x64, *map(_operand_type, operands))
        return _CallArguments(
            dataclasses.replace(form, told=same.told), operands, (same, *kinds_of)
        )

    def _find_equal_form(self, form: "_CallForm") -> "_CallForm | None":
        """Return the first form whose program this one can use; None if it may change unnoticed.

        A function that is defined again may refer to the same values as an earlier one. References
        of users' functions and classes are looked up at each call, as what they read may have
        changed.
        """
        known, same = form in self._forms, self._forms.get(form)
        if not known or (same is not None and same.told):
            if len(self._forms) >= _CACHE_SIZE:
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

    def _inspect_signature(self) -> None:
        """Make the program, not compiled yet, and find the arguments that may be arrays."""
        hints = type_hints.hints(self.function)
        self._names = list(inspect.signature(self.function).parameters) or [""]
        self._floats = {word for word, hint in hints.items() if _takes_numbers(hint)}
        returned = hints.get("return", Any)
        # given Python numbers only, such a function returns a Python number
        of_floats = float in getattr(returned, "__args__", ())
        takes = (lambda hint: hint == ArrayLike) if of_floats else _takes_arrays
        self._arrays = {word for word in self._floats if takes(hints[word])}
        self._on_host = returned in _HOST_RETURN_TYPES
        program = lambda form, operands: self._trace(form, operands)
        program.__name__ = program.__qualname__ = self.function.__name__
        self._program = jax.jit(program, static_argnums=0)

    def _trace(self, form: "_CallForm", operands: list[Any]) -> "_ProgramOutput":
        args, kwargs = form.arguments(operands)
        own, before = _TraceState(operands), getattr(_local, "program", None)
        _local.program = own
        try:
            result = self.function(*args, **kwargs)
        finally:
            _local.program = before
        spec = type(result) in map(type, (*args, *kwargs.values()))
        return own.answer(result, form.specs if spec else frozenset())


@dataclasses.dataclass(frozen=True)
class _CallForm:
    """Signature of a call, all but its numeric operands: what a program is compiled for."""

    structures: tuple[Any, ...]  # pytree structure of each argument
    words: tuple[str, ...]  # names of the keyword arguments, which come last
    places: tuple[Any, ...]  # per leaf: None for an operand, else its type and value
    specs: frozenset[int]  # indices of operands that are fields of specs
    told: tuple[References, ...] = ()  # references of users' functions among the arguments

    def arguments(self, operands: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return positional and keyword arguments with these operands."""
        given = iter(operands)
        leaves = iter([next(given) if place is None else place[1] for place in self.places])
        values = [
            jax.tree.unflatten(form, [next(leaves) for _ in range(form.num_leaves)])
            for form in self.structures
        ]
        cut = len(values) - len(self.words)
        return values[:cut], dict(zip(self.words, values[cut:]))


@dataclasses.dataclass(frozen=True)
class _CallArguments:
    """Arguments of one call: their form, their operands, and the key of their program."""

    form: _CallForm
    operands: list[Any]
    key: Any  # hashable: calls with equal keys run the same program


class _TraceState:
    """State of a program while it is traced: postponed checks, and values that are arguments."""

    def __init__(self, operands: list[Any]) -> None:
        self.state, self.operands = get_opaque_trace_state(), operands
        self.given = {id(x): i for i, x in enumerate(operands) if isinstance(x, Tracer)}
        self.checks: list[tuple[Callable[..., Any], Any]] = []

    def answer(self, result: Any, specs: frozenset[int]) -> "_ProgramOutput":
        """Return the numbers that the program returns, with the recipe for result and checks.

        specs: the operands that are returned unchanged, as fields of a copied spec.
        """
        leaves = jax.tree.leaves(result)
        if not leaves or not all(isinstance(leaf, _OPERAND_TYPES | int) for leaf in leaves):
            raise TypeError("a result that is not a number")
        if _carries_functions(result):
            raise TypeError("a result with functions, which may refer to traced values")
        new: list[Any] = []
        checks = [
            _PostponedCheck(check, *self._find_sources(values, new))
            for check, values in self.checks
        ]
        return _ProgramOutput(new, _ResultRecipe(*self._find_sources(result, new), specs, checks))

    def _find_sources(self, tree: Any, new: list[Any]) -> tuple[Any, list[Any]]:
        """Return the structure of a pytree and the source of each leaf: its kind and its index."""
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


class _PostponedCheck:
    """Postponed check, which is skipped for the same arrays as in the last call."""

    def __init__(self, check: Callable[..., Any], structure: Any, sources: list[Any]) -> None:
        self.check, self.structure, self.sources = check, structure, sources
        self.of_arguments = all(kind != _RESULT for kind, _ in sources)
        self._right: list[Any] = []

    def run(self, operands: list[Any], leaves: list[Any]) -> None:
        """Run the check with the values of a call."""
        values = [_get_source_value(source, operands, leaves) for source in self.sources]
        if self._right and all(was() is now for was, now in zip(self._right, values)):
            return
        self.check(*jax.tree.unflatten(self.structure, values))
        fixed = values and all(isinstance(x, jax.Array) for x in values)  # these are immutable
        self._right = [weakref.ref(x) for x in values] if fixed else []


class _ResultRecipe:
    """Recipe: how to assemble a function's result from a program's output, and which checks run."""

    form: _CallForm  # form that the program was traced for

    def __init__(
        self,
        structure: Any,
        sources: list[Any],
        specs: frozenset[int],
        checks: list[_PostponedCheck],
    ) -> None:
        self.structure, self.sources, self.specs, self.checks = structure, sources, specs, checks

    def check(self, operands: list[Any], leaves: list[Any] | None = None) -> None:
        """Run the checks of arguments before the program, or the checks of `leaves` after it."""
        for check in self.checks:
            if check.of_arguments == (leaves is None):
                check.run(operands, leaves or [])

    def result(self, operands: list[Any], leaves: list[Any]) -> Any:
        """Return the result of the function. A field of a spec is returned as it was given."""
        values = []
        for kind, at in self.sources:
            value = _get_source_value((kind, at), operands, leaves)
            if isinstance(value, np.ndarray | np.generic):
                if kind == _ARGUMENT and at not in self.specs:
                    value = jax.numpy.asarray(value)
                elif kind == _CONSTANT:  # a copy, as the caller may write into it
                    value = value.copy()
            values.append(value)
        return jax.tree.unflatten(self.structure, values)


def _get_source_value(source: tuple[str, Any], operands: list[Any], leaves: list[Any]) -> Any:
    kind, at = source
    return leaves[at] if kind == _RESULT else operands[at] if kind == _ARGUMENT else at


@jax.tree_util.register_pytree_node_class
class _ProgramOutput:
    """Output of a program: its numbers, and as static data the recipe that assembles them."""

    def __init__(self, leaves: list[Any], how: _ResultRecipe) -> None:
        self.leaves, self.how = leaves, how

    def tree_flatten(self) -> tuple[Any, _ResultRecipe]:
        return self.leaves, self.how

    @classmethod
    def tree_unflatten(cls, how: _ResultRecipe, leaves: Any) -> "_ProgramOutput":
        return cls(list(leaves), how)


_BOOL = np.dtype(bool)


def _operand_type(x: Any) -> Any:
    """Return the shape and type of an operand, for which a program is compiled."""
    if isinstance(x, jax.Array):
        return x.aval
    return (x.shape, x.dtype) if hasattr(x, "dtype") else type(x)


def _takes_arrays(hint: Any) -> bool:
    """Return True if an argument may be an array by its annotation."""
    parts = (hint, *getattr(hint, "__args__", ()))
    return hint == ArrayLike or any(part in (jax.Array, np.ndarray) for part in parts)


def _takes_numbers(hint: Any) -> bool:
    """Return True if an integer counts as a real number or an array by the annotation."""
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
