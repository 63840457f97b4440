"""Public names that have an example which the tests execute.

An example of a name is its own doctest, or a doctest of another name or a Python block of a page
that uses it. A return type is covered by an example of a function annotated to return it. A base
class or a protocol is covered by an example of a derived class or of one with its methods. Uses are
found by resolving the names of the code as Python would, not by searching for words. All examples
are executed by `tests/core/test_docs.py`.
"""

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import jaxgpu

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "continuum").glob("*.md")),
    ROOT / "README.md",
]
# names without an example here, by reason
EXEMPT = {
    "commands, whose examples are in docs/studies.md": [
        f"jaxgpu.cli.{name}"
        for name in ("main", "list_", "watch_", "report_", "info", "cite", "run_study")
    ],
    "adapters of packages that the tests do not install; tests/rl/check_adapters.py runs them": [
        f"jaxgpu.rl.adapters.{name}"
        for name in (
            "brax.from_brax",
            "gymnax.from_gymnax",
            "gymnasium.to_gymnasium",
            "gymnasium.to_gymnasium_vector",
            "gymnasium.register_gymnasium",
        )
    ],
    "parts of a run's state or program, which users do not construct": [
        "jaxgpu.runs.program.Program",
        "jaxgpu.physics.nbody.clusters.tracers.Tracers",
        "jaxgpu.physics.nbody.clusters.binary.ks_pairs.Pair",
        "jaxgpu.physics.nbody.clusters.binary.ks_pairs.Pairs",
    ],
    "parts of a mechanism, which `rigid.load` makes from a file": [
        *(
            f"jaxgpu.physics.rigid.models.mechanism.{name}"
            for name in """Actuators Bodies Equalities Freedoms Geoms Joints Option Pairs Sites
            Tendons""".split()
        ),
        "jaxgpu.physics.rigid.collision.kernels.Kernel",
        "jaxgpu.physics.rigid.collision.shape.Shape",
        "jaxgpu.physics.rigid.collision.shape.Collision",
    ],
}
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Example:
    """A piece of code that the tests execute."""

    of: str  # the name whose docstring contains it, or the page
    code: str
    scope: dict[str, Any]  # values of names that the code does not import


def modules() -> list[ModuleType]:
    """Return every module of the package except the studies, in order of their names."""
    found = [m.name for m in pkgutil.walk_packages(jaxgpu.__path__, "jaxgpu.")]
    kept = [name for name in ("jaxgpu", *found) if not name.startswith("jaxgpu.studies.")]
    return [module(name) for name in kept]


def module(name: str) -> ModuleType:
    """Import and return the module of a name."""
    return importlib.import_module(name)


def definitions(of: ModuleType) -> list[str]:
    """Return the public functions and classes that a module defines, in source order."""
    tree = ast.parse(inspect.getsource(of))
    kinds = ast.FunctionDef | ast.ClassDef
    return [n.name for n in tree.body if isinstance(n, kinds) and not n.name.startswith("_")]


def public() -> dict[str, Any]:
    """Return the names that users call, by the names of their definitions.

    These are what a package lists in its `__all__`, and what a module of the core defines.
    """
    found: dict[str, Any] = {}
    for module in modules():
        if hasattr(module, "__all__"):
            for name in module.__all__:
                thing = getattr(module, name)
                if callable(thing):
                    found[f"{thing.__module__}.{thing.__name__}"] = thing
        elif module.__name__.count(".") == 1:
            found |= {f"{module.__name__}.{n}": getattr(module, n) for n in definitions(module)}
    return found


def examples() -> Iterator[Example]:
    """Yield all examples that the tests execute, doctests first."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    for module in modules():
        for test in finder.find(module, module.__name__):
            if test.examples:
                code = "".join(one.source for one in test.examples)
                yield Example(test.name, code, vars(module))
    for page in PAGES:
        if blocks := _BLOCK.findall(page.read_text()):
            yield Example(str(page.relative_to(ROOT)), "\n".join(blocks), {})


def uses(example: Example) -> list[Any]:
    """Return the objects that the code refers to through its imports or its module."""
    tree = ast.parse(example.code)
    known = dict(example.scope)
    stored = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and _is_set(n)}
    known = {name: thing for name, thing in known.items() if name not in stored}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                whole = alias.name if alias.asname else alias.name.partition(".")[0]
                known[alias.asname or whole] = importlib.import_module(whole)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("jaxgpu"):
            for alias in node.names:
                known[alias.asname or alias.name] = _member(node.module, alias.name)
    named = [n for n in ast.walk(tree) if isinstance(n, ast.Name | ast.Attribute)]
    return [thing for node in named if (thing := _resolve(node, known)) is not None]


def _is_set(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _member(module: str, name: str) -> Any:
    there = importlib.import_module(module)
    return (
        getattr(there, name)
        if hasattr(there, name)
        else importlib.import_module(f"{module}.{name}")
    )


def _resolve(node: ast.expr, known: dict[str, Any]) -> Any:
    """Return the object that a name or a chain of attributes refers to, or None if unknown."""
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Attribute):
        return getattr(_resolve(node.value, known), node.attr, None)
    return None


def return_classes(thing: Any) -> list[Any]:
    """Return the classes in a function's return annotation."""
    if isinstance(thing, type) or not hasattr(thing, "__annotations__"):
        return []
    return _annotation_classes(thing.__annotations__.get("return"), thing)


def _annotation_classes(annotation: Any, thing: Any) -> list[Any]:
    """Return the classes that an annotation names."""
    inner = inspect.unwrap(thing)
    known = getattr(inner, "__globals__", vars(inspect.getmodule(thing) or jaxgpu))
    text = annotation if isinstance(annotation, str) else None
    if text is None:
        parts = [annotation, *getattr(annotation, "__args__", ())]
        parts = [getattr(part, "__origin__", None) or part for part in parts]
        return [part for part in parts if isinstance(part, type)]
    found = [
        _resolve(node, known)
        for node in ast.walk(ast.parse(text, mode="eval"))
        if isinstance(node, ast.expr)
    ]
    return [one for one in found if isinstance(one, type)]


def find_coverage(names: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Return the source and kind of the example of each name that has one.

    The kinds are `own`, `used`, `returned` and `derived`.
    """
    found: dict[str, tuple[str, str]] = {}
    by_object: dict[int, str] = {id(thing): name for name, thing in names.items()}
    every = list(examples())
    for example in every:
        of = next((n for n in names if example.of == n or example.of.startswith(f"{n}.")), None)
        if of:
            found[of] = (example.of, "own")
    for example in every:
        for thing in uses(example):
            name = by_object.get(id(thing))
            if name and name not in found:
                found[name] = (example.of, "used")
    protocols = [kind for kind in names.values() if getattr(kind, "_is_protocol", False)]
    grown = True
    while grown:
        grown = False
        for name in list(found):
            kinds = [(kind, "returned") for kind in made_classes(names[name])]
            kinds += [(kind, "derived") for kind in getattr(names[name], "__mro__", ())]
            kinds += [(kind, "derived") for kind in protocols if _has_methods(names[name], kind)]
            for kind, way in kinds:
                other = by_object.get(id(kind))
                if other and other not in found:
                    found[other] = (found[name][0], way)
                    grown = True
    return found


def _has_methods(thing: Any, protocol: type) -> bool:
    """Return whether a class has the methods of a protocol."""
    wanted = [name for name in vars(protocol) if not name.startswith("_")]
    return isinstance(thing, type) and all(callable(getattr(thing, name, None)) for name in wanted)


def made_classes(thing: Any) -> list[Any]:
    """Return the classes that a function or the methods of a class return."""
    if isinstance(thing, type):
        methods = [m for n, m in vars(thing).items() if callable(m) and not n.startswith("_")]
        fields = [
            _annotation_classes(kind, thing)
            for kind in vars(thing).get("__annotations__", {}).values()
        ]
        return [kind for one in [*map(return_classes, methods), *fields] for kind in one]
    return return_classes(thing)
