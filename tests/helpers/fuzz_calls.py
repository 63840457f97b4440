"""Valid calls of every public name, from the API cases and from the executed examples.

An example is executed with each call in it recorded: the function and its arguments.
"""

import ast
import contextlib
import dataclasses
import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax

sys.path.append(str(Path(__file__).parents[2] / "docs" / "make"))
examples = importlib.import_module("examples")

TWICE = 2  # recorded calls of one name per example
# public names that are not called with hostile values, by reason
SPARED = {
    "starts, joins or ends processes; tests/core/test_processes.py runs them": (
        "jaxgpu.devices.processes.",
        "jaxgpu.runs.interrupt.",
    ),
    "commands, held to their words by tests/core/test_cli.py": ("jaxgpu.cli.",),
    "adapters of packages that the tests have not": ("jaxgpu.rl.adapters.",),
    "opens a window": ("jaxgpu.render.show",),
}


@dataclasses.dataclass(frozen=True)
class Call:
    """A public function or method, and valid arguments."""

    name: str  # "jaxgpu.evolution.solve.minimize", or "evolution.minimize" of a case
    f: Callable[..., Any]
    arguments: dict[str, Any]
    wide: bool = False
    long: bool = False  # True if a valid call takes too long to be made

    def __call__(self, arguments: dict[str, Any]) -> Any:
        """Call the function with these arguments."""
        plain, named = [], {}
        for word, value in arguments.items():
            if word[0].isdigit():
                plain.append(value)
            else:
                named[word] = value
        with jax.enable_x64(self.wide):
            return self.f(*plain, **named)


@functools.cache
def public_names() -> dict[str, Any]:
    """Return every public function and class, by the name of its definition."""
    kept = examples.public()
    out = tuple(prefix for prefixes in SPARED.values() for prefix in prefixes)
    return {name: thing for name, thing in kept.items() if not name.startswith(out)}


@functools.cache
def public_methods() -> dict[str, Any]:
    """Return every public method of every public class."""
    found = {}
    for name, thing in public_names().items():
        if isinstance(thing, type):
            for word, member in inspect.getmembers_static(thing):
                inner = getattr(member, "__func__", member)
                ours = getattr(inner, "__module__", "") or ""
                if word[0] != "_" and callable(inner) and ours.startswith("jaxgpu"):
                    found[f"{name}.{word}"] = inner
    return found


def chunks() -> dict[str, list[str]]:
    """Return the work units: each table of cases, and each module or page with its public names."""
    from registry import TABLES

    work: dict[str, list[str]] = {table: [] for table in TABLES}
    where = examples.find_coverage(public_names())
    for name, thing in public_names().items():
        place, way = where.get(name, ("", ""))
        if way in ("own", "used"):
            page = place.endswith(".md")
            work.setdefault(place if page else _defining_module(place), []).append(name)
        if isinstance(thing, type) or way not in ("own", "used"):
            work.setdefault(thing.__module__, []).append(name)
    return work


def chunk_calls(chunk: str, names: list[str]) -> Iterator[Call]:
    """Yield the calls of one work unit."""
    if chunk.startswith("cases_"):
        for door in importlib.import_module(chunk).CASES:
            yield Call(door.name, door.call, door.good, door.wide, door.refusals)
        return
    recorder = Recorder(names)
    for example in examples.examples():
        if example.of == chunk or (
            not chunk.endswith(".md") and _defining_module(example.of) == chunk
        ):
            with contextlib.suppress(Exception):
                recorder.run(example)
    yield from recorder.calls


class Recorder:
    """Executes examples and records their calls of some public names."""

    def __init__(self, names: list[str]) -> None:
        self.of = {id(thing): name for name, thing in public_names().items() if name in names}
        self.kinds = {id(thing): name for name, thing in public_names().items()}
        self.calls: list[Call] = []

    def run(self, example: Any) -> None:
        """Execute the code of an example, with its calls recorded."""
        tree = ast.fix_missing_locations(_CallRewriter().visit(ast.parse(example.code)))
        scope = dict(example.scope) | {"__name__": "example", "_called": self.record_call}
        exec(compile(tree, example.of, "exec"), scope)

    def record_call(self, f: Any, *args: Any, **kwargs: Any) -> Any:
        """Record a call, and make it."""
        name, function, first = self._find_name(f)
        if name and not _has_tracers((first, args, kwargs)):
            given = _bind(function, (*first, *args), kwargs)
            same = [call for call in self.calls if call.name == name]
            if len(same) < TWICE and all(set(given) != set(call.arguments) for call in same):
                wide = bool(jax.config.jax_enable_x64)
                self.calls.append(Call(name, function, given, wide))
        return f(*args, **kwargs)

    def _find_name(self, f: Any) -> tuple[str, Any, tuple]:
        if name := self.of.get(id(f)):
            return name, f, ()
        owner = getattr(f, "__self__", None)
        if owner is None or inspect.ismodule(owner):
            return "", f, ()
        word = getattr(f, "__name__", "")
        kind = owner if isinstance(owner, type) else type(owner)
        for base in kind.__mro__:
            if word in vars(base) and id(base) in self.kinds:
                if isinstance(owner, type):
                    return f"{self.kinds[id(base)]}.{word}", f, ()
                return f"{self.kinds[id(base)]}.{word}", getattr(kind, word), (owner,)
        return "", f, ()


class _CallRewriter(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        function = ast.Name("_called", ast.Load())
        return ast.Call(function, [node.func, *node.args], node.keywords)


def _bind(f: Any, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return arguments by name; those without a name are numbered."""
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    found: dict[str, Any] = {}
    named = True
    for i, value in enumerate(args):
        one = parameters[i] if i < len(parameters) else None
        named &= one is not None and one.kind is one.POSITIONAL_OR_KEYWORD
        found[one.name if named and one is not None else f"{i}"] = value
    if any(word[0].isdigit() for word in found):
        found = {f"{i}": value for i, value in enumerate(args)}
    return found | kwargs


def _has_tracers(tree: Any) -> bool:
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(tree))


def _defining_module(name: str) -> str:
    """Return the module that contains a definition."""
    while name and name not in sys.modules:
        name = name.rpartition(".")[0]
    return name
