"""Steps for adding an algorithm, a material, an environment, a sensor or a function.

CONTRIBUTING.md has a recipe for each. `missing` reads the files of a checkout as text and names,
for each missing step, the file and the line to add.
"""

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Category:
    """A kind of public definition: its location and the further files that must mention it.

    In the lines, `{name}` is the definition and `{module}` the file that contains it.
    """

    packages: tuple[str, ...]
    is_one: Callable[[Any], bool]  # whether a definition in a module of the package is of this kind
    steps: tuple[tuple[str, str], ...]  # further files, and the line to add to each


type Definition = ast.FunctionDef | ast.ClassDef


def _definitions(module: Path) -> list[Definition]:
    body = ast.parse(module.read_text()).body
    found = [n for n in body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    return [node for node in found if node.name[0] != "_"]


def _decorators(node: Definition) -> list[str]:
    return [ast.unparse(d) for d in getattr(node, "decorator_list", ())]


def _is_algorithm(node: Definition) -> bool:
    bases = " ".join(ast.unparse(base) for base in getattr(node, "bases", ()))
    return bool(re.search(r"(Algorithm|Strategy|Elitist)\['", bases))


def _is_material(node: Definition) -> bool:
    return any(isinstance(n, ast.FunctionDef) and n.name == "stress" for n in ast.walk(node))


def _is_environment(node: Definition) -> bool:
    return isinstance(node, ast.ClassDef) and any(
        text.startswith("register(") for text in _decorators(node)
    )


def _is_function(node: Definition) -> bool:
    return isinstance(node, ast.FunctionDef) and "explain_errors" in _decorators(node)


IN_ALGORITHMS = "tests/helpers/steppers.py", '"{name}": {package}.{name}(...), in ALGORITHMS'
ALGORITHM_ROW = "docs/evolution.md", "| `{name}` | source | departures |"
CATEGORIES = (
    Category(
        ("jaxgpu/evolution/single",),
        _is_algorithm,
        (
            IN_ALGORITHMS,
            ("tests/evolution/single/test_single.py", '"{module}": (single.{name}(...), in RUNS'),
            ALGORITHM_ROW,
        ),
    ),
    Category(("jaxgpu/evolution/multi",), _is_algorithm, (IN_ALGORITHMS, ALGORITHM_ROW)),
    Category(
        ("physics/continuum/materials",),
        _is_material,
        (
            ("tests/helpers/cases_continuum.py", '"{name}": continuum.{name}(), in MATERIALS'),
            ("tests/physics/continuum/test_materials.py", "{name}(...), in LAWS"),
            ("docs/continuum.md", "| `{name}` | equation |"),
        ),
    ),
    Category(
        ("rl/envs/classic", "rl/envs/locomotion", "rl/envs/surgical"),
        _is_environment,
        (("docs/rl.md", "a row with its name in backticks to the table of environments"),),
    ),
    Category(
        ("numerics/bessel",),
        _is_function,
        (
            (
                "tests/helpers/cases_numerics.py",
                'special(numerics.{name}) or ApiCase("numerics.{name}", ...), in CASES',
            ),
            ("docs/bessel.md", "a row or a sentence with `{name}`"),
        ),
    ),
)


def missing(root: Path) -> Iterator[str]:
    """Yield "file: line to add" for each missing step in the checkout `root`."""
    for kind in CATEGORIES:
        for package in kind.packages:
            for module in sorted((root / package).glob("*.py")):
                for node in _definitions(module):
                    if module.stem != "__init__" and kind.is_one(node):
                        yield from _missing_steps(root, package, module.stem, node, kind)
    yield from _missing_sensors(root)


def _missing_steps(
    root: Path, package: str, module: str, node: Definition, kind: Category
) -> Iterator[str]:
    name, called = node.name, _registered_name(node)
    init = (root / package / "__init__.py").read_text()
    if f'"{name}"' not in init:
        line = f"from .{module} import {name}"
        yield f'{package}/__init__.py: add {line!r}, and "{name}" to __all__'
    if not called and f"`{module}`" not in (ast.get_docstring(ast.parse(init)) or ""):
        yield f"{package}/__init__.py: name `{module}` in the reading order of its docstring"
    files = (root / "tests").rglob("test_*.py")
    tests = [file.read_text() for file in files if file.name != "test_recipes.py"]
    short = f'"{called.rpartition("/")[2] or name}"'
    long = called if "/" in called else name
    if not any(_has_word(text, name) or short in text or _has_word(text, long) for text in tests):
        folder = package.replace("jaxgpu/", "")
        yield f"tests/{folder}/test_{module}.py: add a test that compares {name} with an oracle"
    for file, line in kind.steps:
        text = line.format(name=name, module=module, package=package.rpartition("/")[2])
        if not _has_word((root / file).read_text(), called or name):
            yield f"{file}: add {text}"


def _registered_name(node: Definition) -> str:
    """Return the name under which an environment is registered, or an empty string."""
    calls = [text for text in _decorators(node) if text.startswith("register(")]
    return ast.literal_eval(calls[0][len("register(") : -1].split(",")[0]) if calls else ""


def _has_word(text: str, word: str) -> bool:
    return bool(re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text))


def _missing_sensors(root: Path) -> Iterator[str]:
    source = root / "physics/rigid/models/sensors.py"
    kinds = next(
        ast.literal_eval(node.value)
        for node in ast.parse(source.read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "SENSOR_TYPES"
    )
    reading, test, page = (
        (root / file).read_text()
        for file in (
            "physics/rigid/sensors/readings.py",
            "tests/physics/rigid/test_sensors.py",
            "docs/rigid.md",
        )
    )
    for kind in kinds.values():
        framed = kind in ("force", "torque") or kind.startswith("frame")
        if not framed and f'"{kind}"' not in reading:
            yield f'physics/rigid/sensors/readings.py: add "{kind}": a function, in _PLAIN'
        if f"<{kind}" not in test:
            yield f"tests/physics/rigid/test_sensors.py: add <{kind} .../> to ROBOT"
        if f"`{kind}`" not in page:
            yield f"docs/rigid.md: add `{kind}` to the row of sensors"
