"""Compiled chunks of steps, cached by shapes for the next run of the same step.

A step is split into a function and its bound numbers (the spec of a bound method, the arguments
of a partial): the function and the shapes determine the program, and the numbers are its operands.
So a second run with another mass, bound or seed reuses the compiled program.
"""

import functools
import inspect
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.devices import memory, precision
from jaxgpu.inputs import arguments, references
from jaxgpu.inputs.explanations import explain_errors, on_host
from jaxgpu.inputs.trace_context import tracing
from jaxgpu.inputs.type_hints import check_arity

from .checkpoint import binary
from .equal_functions import find_equal, find_equal_form
from .placement import device_copy, place_operands, result_sharding
from .saving import identity, settings

_HISTORY_BYTES = 1 << 26  # rows of one chunk, on the device
_ROWS, _SMALL = 4096, 256  # rows of a chunk if each has at most `_SMALL` bytes
_CACHE_SIZE = 8  # most recently used programs of one function
MAX_STEPS = 2**31 - 1  # steps; they are counted in 32 bits
_MARK = "_jaxgpu_long"  # attribute of marked steps

# programs by the function of their step, and deleted with it
_programs: weakref.WeakKeyDictionary[Any, OrderedDict[Any, Any]] = weakref.WeakKeyDictionary()
# the same programs by their digest: functions with equal traces share one
_traced: weakref.WeakValueDictionary[Any, Any] = weakref.WeakValueDictionary()


class Call:
    """Function split from its bound arguments: numbers, which are operands, and static values.

    Integers and truth values bound by a partial are static, as sizes are; a spec's fields are
    static or not as declared.

    >>> call = Call(functools.partial(jnp.add, 2.0))
    >>> call.operands, call.function is jnp.add, call.bind(call.operands)(3.0).item()
    ([2.0], True, 5.0)
    """

    def __init__(self, f: Callable[..., Any]) -> None:
        if not callable(f):
            raise TypeError(f"Call: f={arguments.format_value(f)}; it must be a function")
        args: tuple[Any, ...] = ()
        named: dict[str, Any] = {}
        while True:
            if isinstance(f, functools.partial):
                args, named, f = (*f.args, *args), {**f.keywords, **named}, f.func
            elif inspect.ismethod(f) and not jax.tree_util.all_leaves([f.__self__]):
                args, f = (f.__self__, *args), f.__func__
            else:
                break
        self.function = find_equal(f)
        at_leaves, structure = jax.tree.flatten_with_path((args, named))
        self._constant_offsets = [_is_static(at, leaf) for at, leaf in at_leaves]
        pairs = [(leaf, fixed) for (_, leaf), fixed in zip(at_leaves, self._constant_offsets)]
        self.operands = [leaf for leaf, fixed in pairs if not fixed]
        static = tuple(leaf for leaf, fixed in pairs if fixed)
        self.structure, self._static = find_equal_form(structure, static)

    def key(self) -> Any:
        """Return a hashable key that determines the program; None if it is unknown.

        Its last part holds the references of the function and of its bound arguments.
        """
        nodes = references.nodes(self.structure)
        inside = references.describe((self.function, self._static, *nodes))
        return None if inside is None else (self.structure, self._static, inside)

    def named_arguments(self) -> dict[str, Any]:
        """Return the bound arguments of the function by the names of its parameters."""
        args, named = self.arguments(self.operands)
        try:
            names = list(inspect.signature(self.function).parameters)
        except (TypeError, ValueError):  # a function written in C
            names = []
        names += [f"[{i}]" for i in range(len(names), len(args))]
        return dict(zip(names, args)) | named

    def arguments(self, operands: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the bound positional and keyword arguments, with these operands."""
        rest, static = iter(operands), iter(self._static)
        leaves = [next(static if fixed else rest) for fixed in self._constant_offsets]
        return jax.tree.unflatten(self.structure, leaves)

    @explain_errors
    @on_host
    def bind(self, operands: Sequence[Any]) -> Callable[..., Any]:
        """Bind these operands to the function again."""
        count = self._constant_offsets.count(False)
        if len(operands) != count:
            raise ValueError(
                f"Call.bind: {len(operands)} operands; the function needs {count}; give as many"
            )
        args, named = self.arguments(operands)
        return functools.partial(self.function, *args, **named) if args or named else self.function


def _is_static(at: tuple[Any, ...], leaf: Any) -> bool:
    if isinstance(leaf, jax.Array | np.ndarray | np.generic | float | complex):
        return False
    bare = len(at) == 2  # an argument itself, not a field of one
    return bare or not isinstance(leaf, int)


def mark_slow[**P, R](step: Callable[P, R]) -> Callable[P, R]:
    """Mark `step` as slow to compile: `run` then compiles its measure once, as its own program.

    Its measure is a separate program, compiled once for the start and the state after each step.
    Measures of other steps are compiled a second time, as a part of their chunks.

    Raises:
        TypeError: `step` is not callable.

    >>> @mark_slow
    ... def million(x):
    ...     return jax.lax.fori_loop(0, 10**6, lambda _, x: x + 1, x)
    >>> million(0).item()
    1000000
    """
    return arguments.mark_step("program.long: step", step, _MARK)


@dataclass
class Program:
    """Shared parts of equal runs, which are compiled when they are first needed."""

    row: Any  # shapes and dtypes of the measures of one state
    digests: dict[str, str]  # of step, measure and `until`, by name
    called: list[Any]  # host functions that the program calls
    measure: Any = None  # compiled: the measures of one state
    words: Any = field(init=False)  # the row, with keys as arrays of words
    # compiled chunks by capacity, the maximum of steps; the number of steps is an argument
    chunks: dict[int, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shapes = binary.describe(self.row)[1]
        self.words = jax.tree.unflatten(jax.tree.structure(self.row), shapes)


class Loop:
    """State, functions with operands, and program of one run.

    `state` is a strongly typed copy, on every device over which one of its arrays is sharded.
    With `jax.disable_jit` nothing is traced, and the functions are called with values.

    >>> loop = Loop(lambda s: {"x": 2 * s["x"]}, lambda s: s["x"], None, {"x": 1.0}, None, 8)
    >>> loop.compile()
    >>> rows, steps, ended = loop.advance(0, 3)
    >>> float(loop.state["x"]), rows.tolist(), steps, ended
    (8.0, [2.0, 4.0, 8.0], 3, False)
    """

    @explain_errors
    @on_host
    def __init__(
        self,
        step: Callable[..., Any],
        measure: Callable[..., Any],
        until: Callable[..., Any] | None,
        state: Any,
        key: Array | None,
        longest: int,
    ) -> None:
        memory.check_size("run: a copy of the state", memory.size(state))
        state = jax.tree.map(device_copy, state)
        self.state = state = place_operands(state, state)  # replicate scalars on the mesh
        self.calls = [Call(step), Call(measure), *([] if until is None else [Call(until)])]
        self.key, self.keyed = key, key is not None
        carried = [call.operands for call in self.calls]
        self.operands = place_operands(state, (carried, np.uint32(0) if key is None else key))
        self.whole = result_sharding(state)
        # traced once for all uses, and inlined into any program
        self._step_shapes = jax.jit(self._call_step, inline=True)
        self._row = jax.jit(self._call_measure, inline=True)
        self.compile_time = 0.0
        self._plain = bool(jax.config.jax_disable_jit)
        self._long = self._plain or getattr(self.calls[0].function, _MARK, False)
        self.program = self._find_program(state)
        self.capacity = self._chunk_capacity(longest)

    def rows(self, count: int, new: Any = np.zeros) -> Any:
        """Return a history of `count` rows of zeros; random keys are stored as uint32 words."""
        make = lambda leaf: new((count, *leaf.shape), leaf.dtype)
        return jax.tree.map(make, self.program.words)

    def initial_rows(self) -> Any:
        """Return the history [1, ...] of the state, as `rows`, by a separate program."""
        if not jax.tree.leaves(self.program.row):
            return self.program.row
        row = jax.device_get(self._compile_measure()(self.operands, self.state))
        return jax.tree.map(lambda leaf: leaf[None], row)

    def compile(self) -> None:
        """Compile the chunk, unless an earlier run did, and check that it fits into memory."""
        program, state, apart = self.program, self.state, []
        if self._plain:
            return
        if self._long and jax.tree.leaves(program.row):
            apart = [self._compile_measure()]
        if self.capacity not in program.chunks:
            began = time.perf_counter()
            kept = jax.tree.map(lambda leaf: leaf.sharding, state)  # each output is the next input
            row = () if self._long else program.words
            chunk = jax.jit(
                functools.partial(self._run_chunk, row, self.capacity),
                donate_argnums=0,
                out_shardings=(kept, self.whole, self.whole, self.whole),
                compiler_options=self._compiler_options(),
            )
            with tracing(self._told):
                lowered = chunk.lower(state, self.operands, np.int32(0), np.int32(1))
                program.chunks[self.capacity] = lowered.compile()
            self.compile_time += time.perf_counter() - began
        name = getattr(self.calls[0].function, "__name__", "a step")
        held = memory.size((state, self.operands))
        for compiled in (program.chunks[self.capacity], *apart):
            memory.check(compiled, f"run of {name}", held)

    def advance(self, done: int, count: int) -> tuple[Any, int, bool]:
        """Advance by at most `count` steps; return the rows, their number, and if the run ended."""
        if not self._long:
            return self._advance(done, count)
        rows, made, ended = [], 0, False
        while made < count and not ended:
            _, one, ended = self._advance(done + made, 1)
            rows += [self.initial_rows()] if one else []
            made += one
        rows = rows or [self.rows(0)]
        return jax.tree.map(lambda *leaves: np.concatenate(leaves), *rows), made, ended

    def digests(self) -> dict[str, str]:
        """Return digests of the program, the measure and the start, including their numbers."""
        if not self.program.digests:  # they equal those of a run with jit
            with jax.disable_jit(False), tracing(self._told):
                self.program.digests |= self._trace_digests(self.state, self.program.called)
        names = {"program": 0, "measure": 1}
        numbers = {n: identity.arrays_digest(self.operands[0][i]) for n, i in names.items()}
        found = {n: identity.combine_digests(self.program.digests[n], numbers[n]) for n in names}
        found["program"] = identity.combine_digests(found["program"], str(settings.loose_flags()))
        return found | {"start": identity.arrays_digest(self.state)}

    def host_digest(self) -> str:
        """Return the digest of the values that host functions, called by the program, read now."""
        return identity.combine_digests(*map(references.digest, self.program.called))

    def _advance(self, done: int, count: int) -> tuple[Any, int, bool]:
        if self._plain:
            return self._advance_without_jit(done)
        chunk = self.program.chunks[self.capacity]
        given = self.operands, np.int32(done), np.int32(count)
        self.state, rows, steps, ended = chunk(self.state, *given)
        made = int(steps)
        return jax.tree.map(lambda leaf: leaf[:made], jax.device_get(rows)), made, bool(ended)

    def _advance_without_jit(self, done: int) -> tuple[Any, int, bool]:
        """Advance by one step without a program, or by none if the run ends before it."""
        if self._call_until(self.operands, self.state):
            return (), 0, True
        new = self._step_shapes(self.operands, self.state, np.int32(done))
        refuse_changed("run: step", self.state, new)
        self.state = jax.tree.map(device_copy, new)
        return (), 1, bool(self._call_until(self.operands, self.state))

    def _compile_measure(self) -> Any:
        """Return the compiled measure; with jit disabled, the measure itself."""
        program = self.program
        if self._plain:
            return lambda *given: jax.tree.map(jnp.asarray, self._measure_words(*given))
        if program.measure is None:
            began = time.perf_counter()
            options = self._compiler_options()
            row = jax.jit(self._measure_words, out_shardings=self.whole, compiler_options=options)
            with tracing(self._told):
                program.measure = row.lower(self.operands, self.state).compile()
            self.compile_time += time.perf_counter() - began
        return program.measure

    def _find_program(self, state: Any) -> Program:
        """Return the program of an earlier equal run, or a new one.

        It is found by the references of the functions, or by the digest of their traces if the
        references are unknown.
        """
        keys = [call.key() for call in self.calls]
        # without known references it is traced for this loop only
        self._told = (object(),) if None in keys else tuple(key[-1] for key in keys)
        if self._plain:
            row = jax.eval_shape(lambda row: row, self._row(self.operands, state))
            return Program(row, {}, [])
        shapes = self.keyed, self._input_key(state)
        at = None if None in keys else (*keys, shapes)
        try:
            kept = _programs.setdefault(self.calls[0].function, OrderedDict())
            found = None if at is None else kept.get(at)
        except TypeError:  # an unhashable function
            return self._make_program(state)
        if found is None:
            found = self._make_program(state)
            digest = shapes, str(self._compiler_options()), self._long, *found.digests.values()
            if (
                not found.called
            ):  # host functions are new objects at each trace, with different closures
                found = _traced.setdefault(digest, found)
            at = digest if at is None else at
        kept[at] = found
        kept.move_to_end(at)
        while len(kept) > _CACHE_SIZE:
            kept.popitem(last=False)
        return found

    def _input_key(self, state: Any) -> Any:
        """Return structure, types and shardings of inputs, and settings that change programs."""
        leaves, structure = jax.tree.flatten((state, self.operands))
        kinds = tuple((jax.typeof(x), getattr(x, "sharding", None)) for x in leaves)
        return structure, kinds, settings.compiler_settings()

    def _chunk_capacity(self, longest: int) -> int:
        """Return the capacity of a chunk, for whose rows there is a buffer.

        It is the same for all runs with small rows, and a power of two for others, so that runs of
        different lengths share a program.
        """
        size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(self.program.words))
        if size == 0 or self._long:
            return MAX_STEPS
        few = 1 << max(0, longest - 1).bit_length()
        return _ROWS if size <= _SMALL else max(1, min(few, _HISTORY_BYTES // size))

    def _make_program(self, state: Any) -> Program:
        with tracing(self._told):
            self._check_fixed_point(state)
            row = jax.eval_shape(self._row, self.operands, state)
            called: list[Any] = []
            return Program(row, self._trace_digests(state, called), called)

    def _compiler_options(self) -> Any:
        return precision.options_of(self.calls[0].function)

    def _run_chunk(
        self, row: Any, room: int, state: Any, operands: Any, first: Array, count: Array
    ) -> tuple[Any, Any, Array, Array]:
        rows = jax.tree.map(lambda leaf: jnp.zeros((room, *leaf.shape), leaf.dtype), row)

        def is_running(carry: tuple[Array, Array, Any, Any]) -> Array:
            return (carry[0] < count) & ~carry[1]

        def body(carry: tuple[Array, Array, Any, Any]) -> tuple[Array, Array, Any, Any]:
            i, _, state, rows = carry
            state = self._step_shapes(operands, state, first + i)
            if jax.tree.leaves(rows):
                new = self._measure_words(operands, state)
                rows = jax.tree.map(lambda buffer, row: buffer.at[i].set(row), rows, new)
            return i + 1, self._call_until(operands, state), state, rows

        begin = jnp.int32(0), self._call_until(operands, state), state, rows
        made, ended, state, rows = jax.lax.while_loop(is_running, body, begin)
        return state, rows, made, ended

    def _call_step(self, operands: Any, state: Any, i: Any) -> Any:
        carried, key = operands
        keys = (jax.random.fold_in(key, i),) if self.keyed else ()
        return call_checked("run: step", self.calls[0].bind(carried[0]), state, *keys)

    def _measure_words(self, operands: Any, state: Any) -> Any:
        """Return the measures with keys as arrays of words, since the host stores only arrays."""
        return jax.tree.map(binary.numbers_of, self._row(operands, state))

    def _call_measure(self, operands: Any, state: Any) -> Any:
        return call_checked("run: measure", self.calls[1].bind(operands[0][1]), state)

    def _call_until(self, operands: Any, state: Any) -> Array:
        if len(self.calls) < 3:
            return jnp.zeros((), bool)
        try:
            ended = call_checked("run: until", self.calls[2].bind(operands[0][2]), state)
        except jax.errors.ConcretizationTypeError as error:
            raise TypeError(
                f"run: until cannot be traced by JAX ({type(error).__name__}); it must compare "
                "with jax.numpy, without bool(), float(), if, and, or"
            ) from error
        kinds = [jax.typeof(leaf) for leaf in jax.tree.leaves(ended)]
        if not jax.tree_util.all_leaves([ended]) or kinds[0].shape or kinds[0].dtype != bool:
            given = ", ".join(f"{kind.dtype}{list(kind.shape)}" for kind in kinds) or "nothing"
            raise TypeError(
                f"run: until returns {given}; it must be one bool; compare a number of the state, "
                "and reduce arrays by jnp.any or jnp.all"
            )
        return jnp.asarray(ended)

    def _trace_digests(self, state: Any, called: list[Any]) -> dict[str, str]:
        """Return digests of the functions without their bound numbers; collect host functions."""
        step = lambda operands, state: self._step_shapes(operands, state, np.int32(0))
        traced = {"program": step, "measure": self._row, "until": self._call_until}
        return {
            name: identity.program_digest(jax.make_jaxpr(f)(self.operands, state), called)
            for name, f in traced.items()
        }

    def _check_fixed_point(self, state: Any) -> None:
        new = jax.eval_shape(
            lambda operands, x: self._step_shapes(operands, x, np.int32(0)), self.operands, state
        )
        refuse_changed("run: step", state, new)


@explain_errors
@on_host
def call_checked(name: str, function: Callable[..., Any], *given: Any) -> Any:
    """Call a user's function, which must take these arguments and return numbers.

    >>> call_checked("run: step", lambda x: 2 * x, 3.0)
    6.0
    >>> call_checked("run: step", lambda: 2.0, 3.0)
    Traceback (most recent call last):
    TypeError: run: step=a function that cannot be called with 1 arguments; it must take 1
    >>> call_checked("run: step", lambda x: "fast", 3.0)
    Traceback (most recent call last):
    TypeError: run: step returns 'fast'; it must return numbers, or arrays of numbers
    """
    check_arity(name, function, *given)
    found = function(*given)
    try:
        return arguments.arrays("", found)
    except TypeError as error:
        what = str(error).partition(";")[0].removeprefix("=")
        raise TypeError(
            f"{name} returns {what}; it must return numbers, or arrays of numbers"
        ) from None


def refuse_changed(name: str, before: Any, after: Any) -> None:
    """Raise if a step changes the arrays, shapes or types of a state.

    >>> refuse_changed("run: step", {"x": np.zeros(3)}, {"x": np.zeros(2)})
    Traceback (most recent call last):
    TypeError: run: step changes ['x'] float64[3] to ['x'] float64[2]; it must keep arrays,...
    """
    to_aval = lambda x: x if hasattr(x, "dtype") else jax.typeof(x)
    was, now = (
        [
            f"{jax.tree_util.keystr(at)} {to_aval(x).dtype}{list(to_aval(x).shape)}".lstrip()
            for at, x in jax.tree.leaves_with_path(tree)
        ]
        for tree in (before, after)
    )
    changed = [f"{one} to {other}" for one, other in zip(was, now) if one != other]
    if changed or len(was) != len(now):
        what = changed[0] if changed else f"{len(was)} arrays to {len(now)}"
        raise TypeError(f"{name} changes {what}; it must keep arrays, shapes and types")
