"""Names that the code of a function reads from its module, and its operations without names."""

import dis
import functools
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

# packages whose functions and classes do not change while a process runs
FIXED_PACKAGES = set(
    "jaxgpu jax jaxlib numpy scipy optax flax ml_dtypes math cmath functools operator itertools "
    "builtins typing collections dataclasses enum abc types numbers contextlib inspect re".split()
)
# names by which a function may read values that its code does not name
_UNTRACKED_NAMES = set(
    "eval exec globals open input __import__ __globals__ f_globals __builtins__".split()
)
_LOAD_OPERATIONS = ("LOAD_GLOBAL", "LOAD_NAME")
_ATTRIBUTE_OPERATIONS = (
    "LOAD_ATTR",
    "LOAD_METHOD",
    "LOAD_SUPER",
    "STORE_ATTR",
    "DELETE_ATTR",
    "IMPORT_",
)


class Reads(NamedTuple):
    """Names that a code object, and the code objects within it, read."""

    chains: tuple[tuple[str, ...], ...]  # from a global name on, such as ("module", "rate")
    untracked: bool  # it may read values that no chain of names covers
    rebinds: bool  # it assigns to variables of the enclosing function


@functools.lru_cache(maxsize=4096)
def find_reads(code: types.CodeType) -> Reads:
    """Return the names that a code object reads, in the order in which it reads them.

    >>> find_reads((lambda x: np.random.normal() * rate).__code__).chains
    (('np', 'random', 'normal'), ('rate',))
    """
    chains: dict[tuple[str, ...], None] = {}
    chain: tuple[str, ...] = ()
    untracked, rebinds = not _UNTRACKED_NAMES.isdisjoint(code.co_names), False
    for step in _instructions(code):
        if chain and step.opname.startswith(_ATTRIBUTE_OPERATIONS[:2]):
            chain = (*chain, step.argval)
            continue
        if chain:
            chains[chain] = None
        chain = (step.argval,) if step.opname in _LOAD_OPERATIONS else ()
        if step.opname == "IMPORT_NAME":
            untracked |= step.argval.partition(".")[0] not in FIXED_PACKAGES
        rebinds |= step.opname == "STORE_DEREF" and step.argval in code.co_freevars
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            found = find_reads(inner)
            chains |= dict.fromkeys(found.chains)
            untracked, rebinds = untracked or found.untracked, rebinds or found.rebinds
    return Reads(tuple(chains), untracked, rebinds)


class CodeContents(NamedTuple):
    """Bytecode, constants and names of a code object, without its location in the source."""

    parts: tuple[Any, ...]  # hashable: bytecode, constants, arguments and names of variables


@functools.lru_cache(maxsize=4096)
def code_contents(code: types.CodeType) -> CodeContents:
    """Return all of a code object except its name, its docstring, its file and its lines.

    >>> def double(x):
    ...     "Return twice x."
    ...     return 2 * x
    >>> code_contents(double.__code__) == code_contents((lambda x: 2 * x).__code__)
    True
    >>> code_contents(double.__code__) == code_contents((lambda x: 2.0 * x).__code__)
    False
    """
    loaded = {x.arg for x in dis.get_instructions(code) if x.opcode in dis.hasconst}
    constants = [_tag_constant(x) for i, x in enumerate(code.co_consts) if i in loaded]
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    names = code.co_names, code.co_varnames, code.co_cellvars, code.co_freevars
    return CodeContents((code.co_code, code.co_exceptiontable, *constants, *counts, *names))


def _tag_constant(value: Any) -> Any:
    """Return a constant with its type and repr: 2, 2.0 and True differ, as do 0.0 and -0.0."""
    if isinstance(value, types.CodeType):
        return code_contents(value)
    if isinstance(value, tuple):
        return tuple(map(_tag_constant, value))
    return type(value), repr(value)


def operations(code: types.CodeType) -> Iterator[tuple[str, Any]]:
    """Yield the operations of a code object and its nested code objects, with their constants.

    They contain names of attributes, but no names of variables or functions, no docstrings and no
    line numbers. Constants may have any immutable type.

    >>> def double(x):
    ...     "Return twice x."
    ...     return 2 * x
    >>> [*operations(double.__code__)] == [*operations((lambda y: 2 * y).__code__)]
    True
    """
    steps = _instructions(code)
    places = {step.offset: i for i, step in enumerate(steps)}
    names: dict[str, int] = {}  # numbered in the order of their use
    for i, step in enumerate(steps):
        inside = step.argval
        if isinstance(inside, types.CodeType):
            yield from operations(inside)
            inside = None
        elif step.opcode in dis.hasjrel:
            inside = next(
                (places[at] for at in range(inside, steps[-1].offset + 1) if at in places), i
            )
        elif step.opname in _LOAD_OPERATIONS:
            inside = names.setdefault(inside, len(names))
        elif step.opcode not in dis.hasconst and not step.opname.startswith(_ATTRIBUTE_OPERATIONS):
            inside = step.arg
        yield step.opname, inside


def _instructions(code: types.CodeType) -> list[dis.Instruction]:
    """Return the instructions of a code object without its asserts, as under `python -O`."""
    steps = [x for x in dis.get_instructions(code) if x.opname not in ("EXTENDED_ARG", "NOP")]
    asserts = [_source_span(x) for x in steps if x.opname == "LOAD_ASSERTION_ERROR"]
    if not asserts:
        return steps
    is_within = lambda place: any(a[0] <= place[0] and place[1] <= a[1] for a in asserts)
    return [x for x in steps if not is_within(_source_span(x))]


def _source_span(step: dis.Instruction) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the start and the end of an instruction in the source."""
    at = step.positions or dis.Positions()
    return (at.lineno or 0, at.col_offset or 0), (at.end_lineno or 0, at.end_col_offset or 0)
