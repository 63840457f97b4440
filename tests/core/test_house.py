"""Rules of the code base that keep the package small and clear.

Each test checks every file and reports all violations. The size limits leave room for all code that
is clear; CONTRIBUTING.md says when a file or a function should be two.
"""

import ast
import dataclasses
import functools
import importlib
import pkgutil
import re
import subprocess
import sys
import types
from pathlib import Path

import jax.numpy as jnp
import pytest
from field_shapes import check_shapes

import jaxgpu
from jaxgpu.inputs.fields import pytree

ROOT = Path(__file__).parents[2]


def python_files(*tops):
    """Return the Python files below folders, each once: links are not followed."""
    files = (file for top in tops for file in (ROOT / top).rglob("*.py"))
    return sorted(f for f in files if not any(part.is_symlink() for part in f.parents))


PACKAGE = python_files("jaxgpu", "physics", "numerics", "rl")
SOURCES = [*PACKAGE, *python_files("benchmarks", "docs/make")]
TESTS = python_files("tests")
LINES, BODY, PARAMETERS, NESTING = 500, 70, 13, 3

# A part may import the parts listed here; a part without an entry may import only the core.
MAY_IMPORT = {
    "numerics": {"numerics"},
    "physics": {"physics", "numerics"},
    "evolution": {"evolution", "numerics"},
    "rl": {"rl", "physics", "numerics", "evolution"},
    "studies": {"studies", "rl", "physics", "numerics", "evolution"},
    "cli": {"studies"},
    "core": set(),
}
PILLARS = {"numerics", "physics", "evolution", "rl", "studies", "cli"}
PRONOUNS = set(
    """them those these they both who whom whose some any all nobody everybody everyone somebody
    someone""".split()
)


@functools.cache
def tree(file):
    return ast.parse(file.read_text())


def name(file):
    return str(file.relative_to(ROOT))


def location(file, node):
    return f"{name(file)}:{node.lineno}"


def part(file):
    """Return the part of the package that a file belongs to."""
    parts = file.relative_to(ROOT).parts
    if parts[0] == "jaxgpu":
        inner = parts[1].removesuffix(".py")
        return inner if inner in PILLARS else "core"
    return parts[0]


def module_name(file):
    """Return the name under which a file of the package is imported."""
    parts = file.relative_to(ROOT).with_suffix("").parts
    parts = parts if parts[0] == "jaxgpu" else ("jaxgpu", *parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def functions(node):
    return [n for n in ast.walk(node) if isinstance(n, ast.FunctionDef)]


def assert_none(offenders):
    """Fail if there are offenders, and list all of them, one per line."""
    found = list(offenders)
    assert not found, "\n".join(["", *found])


# --- sizes -------------------------------------------------------------------------------------


def body_lines(function):
    """Count the lines from the first statement after the docstring to the end of a function."""
    first = function.body[0]
    skip = ast.get_docstring(function) is not None
    if skip and len(function.body) == 1:
        return 0
    start = function.body[1].lineno if skip else first.lineno
    return function.end_lineno - start + 1


def depth(function):
    inner = [n for child in function.body for n in functions(child) if n is not function]
    return 1 + max((depth(n) for n in inner), default=0)


def parameters(function):
    given = function.args
    count = len(given.args) + len(given.kwonlyargs) + len(given.posonlyargs)
    return count - bool(given.args and given.args[0].arg in ("self", "cls"))


def size_faults(file):
    lines = len(file.read_text().splitlines())
    if lines > LINES:
        yield f"{name(file)}: {lines} lines"
    for f in functions(tree(file)):
        for count, most, what in (
            (body_lines(f), BODY, "lines"),
            (parameters(f), PARAMETERS, "parameters"),
            (depth(f), NESTING, "functions deep"),
        ):
            if count > most:
                yield f"{location(file, f)}: {f.name}: {count} {what}"


def test_one_idea_a_file():
    assert_none(fault for file in SOURCES for fault in size_faults(file))


def test_a_folder_of_more_than_fifteen_modules_has_rooms():
    for folder in {file.parent for file in PACKAGE}:
        modules = [f for f in folder.glob("*.py") if f.stem != "__init__"]
        rooms = [f for f in folder.iterdir() if (f / "__init__.py").exists()]
        assert len(modules) <= (20 if rooms else 15), f"{name(folder)}: {len(modules)} modules"


def package_inits():
    """Return the `__init__` of every folder with more than one module, except in studies."""
    many = [f for f in PACKAGE if f.stem == "__init__" and len(list(f.parent.glob("*.py"))) > 2]
    return [f for f in many if part(f) != "studies"]


def exports_node(file):
    """Return the syntax tree of `__all__` in a file, or None if there is none."""
    for node in tree(file).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return node.value
    return None


def test_each_room_says_what_it_exports_and_in_which_order_to_read_it():
    """A sentence of the docstring must name the modules in the order of reading."""

    def faults(file):
        if exports_node(file) is None:
            yield f"{name(file)}: no __all__"
        text = ast.get_docstring(tree(file)) or ""
        if "read" not in text.lower():
            yield f"{name(file)}: its docstring says no order of reading"

    assert_none(fault for file in package_inits() for fault in faults(file))


def test_no_module_is_hidden_by_a_function_of_its_own_name():
    def hidden_modules(package):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            inner = importlib.import_module(module.name)
            here = getattr(package, module.name.rpartition(".")[2])
            if not isinstance(here, types.ModuleType):
                yield f"{module.name} is a {type(here).__name__}"
            if module.ispkg:
                yield from hidden_modules(inner)

    assert_none(hidden_modules(jaxgpu))


# --- names and literals ------------------------------------------------------------------------


def bound(file):
    """Yield every name that a file gives to a value, a function, a parameter or a field."""
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node, node.id
        elif isinstance(node, ast.arg):
            yield node, node.arg
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node, node.name


def test_no_pronoun_is_a_name():
    """Builtins are left to ruff, which forbids shadowing any (A001, A002, A004, A006)."""
    assert_none(
        f"{location(f, n)}: {word}" for f in SOURCES for n, word in bound(f) if word in PRONOUNS
    )


def test_no_function_is_called_underscore():
    assert_none(
        location(file, f) for file in SOURCES for f in functions(tree(file)) if f.name == "_"
    )


def test_no_literal_is_unpacked_in_its_place():
    """`f(*(1, 2))` saves a line but hides which number is which."""

    def unpackings(file):
        for node in ast.walk(tree(file)):
            if isinstance(node, ast.Starred) and isinstance(node.value, (ast.Tuple, ast.List)):
                yield f"{location(file, node)}: {ast.unparse(node)[:60]}"

    assert_none(fault for file in [*SOURCES, *TESTS] for fault in unpackings(file))


def called_class(module, call):
    """Return the dataclass that a call constructs, or None if the module has no such name."""
    thing = module
    for word in ast.unparse(call.func).split("."):
        thing = getattr(thing, word, None)
    return thing if isinstance(thing, type) and dataclasses.is_dataclass(thing) else None


def test_a_state_of_more_than_four_fields_is_built_by_keyword():
    def call_faults(file):
        module = importlib.import_module(module_name(file))
        for node in ast.walk(tree(file)):
            if isinstance(node, ast.Call) and (cls := called_class(module, node)):
                starred = any(isinstance(a, ast.Starred) for a in node.args)
                many = len(node.args) > 4 or starred
                if many and len(dataclasses.fields(cls)) > 4:
                    yield f"{location(file, node)}: {cls.__name__}"

    assert_none(fault for file in PACKAGE for fault in call_faults(file))


def test_the_glossary_has_at_most_sixty_terms_once_each():
    rows = re.findall(r"^\| ([^|]+) \|", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)
    words = [row for row in rows if row not in ("term", "---")]
    assert len(words) <= 60 and len(set(words)) == len(words)


def test_says_what_it_is():
    def unsaid(file):
        if not ast.get_docstring(tree(file)):
            yield f"{name(file)}: a module without a docstring"
        for node in tree(file).body:
            public = isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name[0] != "_"
            if public and file in PACKAGE and not ast.get_docstring(node):
                yield f"{location(file, node)}: {node.name}: public, without a docstring"

    assert_none(fault for file in SOURCES for fault in unsaid(file))


def test_every_array_field_of_a_state_says_its_shape():
    """A field typed `Array` in a pytree needs `# [..] meaning`, behind it or right above."""

    def unsaid(file):
        lines = file.read_text().splitlines()
        for cls in [n for n in ast.walk(tree(file)) if isinstance(n, ast.ClassDef)]:
            if not any(ast.unparse(d).startswith("pytree") for d in cls.decorator_list):
                continue
            for f in [n for n in cls.body if isinstance(n, ast.AnnAssign)]:
                if ast.unparse(f.annotation).split(" | ")[0] == "Array":
                    above = f.lineno - 2 if lines[f.lineno - 2].lstrip().startswith("#") else None
                    said = "\n".join(lines[f.lineno - 1 if above is None else above : f.end_lineno])
                    if not re.search(r"#\s*\[", said):
                        yield f"{location(file, f)}: {ast.unparse(f.target)}"

    assert_none(fault for file in SOURCES for fault in unsaid(file))


@pytree
class Rods:
    x: object  # [N, 3] position, m
    m: object  # [N] mass, kg
    t: object  # [] time, s
    name: object = "free"


def test_shape_comments_are_held_against_arrays():
    good = Rods(jnp.zeros((4, 3)), jnp.zeros(4), jnp.zeros(()))
    assert check_shapes(good) == {"N": 4}
    for wrong in ({"m": jnp.zeros(5)}, {"x": jnp.zeros((4, 2))}, {"t": jnp.zeros(1)}):
        with pytest.raises(AssertionError, match="the comment says"):
            check_shapes(dataclasses.replace(good, **wrong))


# --- imports -----------------------------------------------------------------------------------


def import_names(node):
    for n in ast.walk(node):
        if isinstance(n, ast.Import):
            yield from (alias.name for alias in n.names)
        elif isinstance(n, ast.ImportFrom) and n.module == "jaxgpu":
            yield from (f"jaxgpu.{alias.name}" for alias in n.names)
        elif isinstance(n, ast.ImportFrom) and n.level == 0:
            yield n.module or ""


def test_imports_point_one_way():
    def upward(file):
        here = part(file)
        for module in import_names(tree(file)):
            top, _, rest = module.partition(".")
            target = rest.partition(".")[0]
            if top == "flax" and here != "rl":
                yield f"{name(file)}: {module}: only rl builds networks"
            if top == "jaxgpu" and target in PILLARS and target not in MAY_IMPORT[here]:
                yield f"{name(file)}: {here} must not import {module}"
            if module.startswith("jax.interpreters") and file.stem != "primitive":
                yield f"{name(file)}: {module}: only jaxgpu/devices/primitive.py touches it"

    assert_none(fault for file in PACKAGE for fault in upward(file))


def dependencies(file):
    """Yield the files of the package that a file imports, also for typing or inside functions."""
    package = module_name(file).split(".")[: None if file.stem == "__init__" else -1]
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) + 1 - node.level] if node.level else []
            base = ".".join([*start, *filter(None, [node.module])])
            names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        else:
            continue
        deepest = [name for name in names if name in MODULES]
        # A package is imported for its exports, unless only modules of it are named.
        if len(deepest) > 1 and deepest[0] == base and len(deepest) == len(names):
            deepest = deepest[1:]
        yield from (MODULES[name] for name in deepest if MODULES[name] != file)


MODULES = {module_name(file): file for file in PACKAGE}


def test_no_module_imports_itself_through_others():
    """Imports for typing count: two files that name each other's types belong together."""
    open_, done = [], set()

    def visit(file):
        if file in open_:
            circle = [name(f) for f in [*open_[open_.index(file) :], file]]
            raise AssertionError(f"import cycle: {' -> '.join(circle)}; move what both need below")
        if file not in done:
            open_.append(file)
            for other in sorted(set(dependencies(file))):
                visit(other)
            done.add(open_.pop())

    for file in PACKAGE:
        visit(file)


def test_tests_import_no_benchmark_and_benchmarks_no_test():
    """The code that makes the documents may use the tests' helpers; neither imports it."""
    helpers = {file.stem for file in python_files("tests/helpers")}
    tops = lambda file: {module.partition(".")[0] for module in import_names(tree(file))}
    assert_none(name(file) for file in TESTS if tops(file) & {"benchmarks", "docs"})
    assert_none(
        name(f)
        for f in python_files("benchmarks")
        if tops(f) & {"tests", "docs", "conftest", *helpers}
    )


def test_imports_inside_a_pillar_are_relative_and_those_across_absolute():
    """A reader or a tool can then follow them without an installation."""

    def import_faults(file):
        parts = file.relative_to(ROOT).with_suffix("").parts
        module = parts if parts[0] in ("jaxgpu", "benchmarks") else ("jaxgpu", *parts)
        home = pillar(module)
        for n in ast.walk(tree(file)):
            if isinstance(n, ast.ImportFrom) and n.level:
                if pillar(module[: -n.level] + tuple((n.module or "").split("."))) != home:
                    yield f"{location(file, n)}: {n.module}: absolute"
            elif home and isinstance(n, ast.ImportFrom):
                if pillar(tuple((n.module or "").split("."))) == home:
                    yield f"{location(file, n)}: {n.module}: relative"
        if {m.partition(".")[0] for m in import_names(tree(file))} & {"physics", "numerics", "rl"}:
            yield f"{name(file)}: imports a pillar under a bare name"

    assert_none(
        fault for file in [*PACKAGE, *python_files("benchmarks")] for fault in import_faults(file)
    )


def pillar(module):
    """Return the domain package or study that imports its own modules relatively, or None."""
    if module[:2] in (("jaxgpu", "physics"), ("jaxgpu", "studies")):
        return module[:3] if len(module) > 3 or module[1] == "physics" else None
    return module[:2] if module[1:2] and module[1] in (*PILLARS, "geometry", "render") else None


def test_plots_and_files_are_imported_where_they_are_used():
    """A heavy library at the top of a module slows down every import of that module."""
    heavy = {"matplotlib", "jinja2", "scipy", "h5py", "safetensors", "PIL", "imageio", "trimesh"}

    def top_imports(file):
        at_top = [n for n in tree(file).body if isinstance(n, (ast.Import, ast.ImportFrom))]
        return {
            m.partition(".")[0] for n in at_top for m in import_names(ast.Module([n], []))
        } & heavy

    assert_none(f"{name(file)}: {top_imports(file)}" for file in PACKAGE if top_imports(file))


def test_import_starts_no_backend_and_changes_no_setting():
    code = """
import jax
before = dict(jax.config.values)
import jaxgpu, jaxgpu.inputs, jaxgpu.runs, jaxgpu.devices.mesh, jaxgpu.devices.memory
from jax._src import xla_bridge
assert not xla_bridge._backends, "a backend was started"
assert dict(jax.config.values) == before, "a setting was changed"
import sys
assert not {"flax", "matplotlib", "scipy"} & set(sys.modules)
assert not [name for name in sys.modules if name.startswith(("jaxgpu.rl", "jaxgpu.evolution"))]
assert jaxgpu.rl.PPO and jaxgpu.evolution.Real and jaxgpu.numerics.log_iv and jaxgpu.physics
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_no_module_starts_a_backend():
    names = [m.name for m in pkgutil.walk_packages(jaxgpu.__path__, "jaxgpu.")]
    code = f"""
import importlib
from jax._src import xla_bridge
for name in {names}:
    importlib.import_module(name)
    assert not xla_bridge._backends, name
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_import_costs_next_to_nothing():
    """Compare the median CPU time of seven imports, which hardly depends on a busy machine."""
    code = """
import jax, statistics, sys, time
spent = []
for _ in range(7):
    for name in [name for name in sys.modules if name.partition(".")[0] == "jaxgpu"]:
        del sys.modules[name]
    start = time.process_time()
    import jaxgpu
    spent.append(time.process_time() - start)
print(statistics.median(spent))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 0.05


# --- disabled checks and misplaced files -------------------------------------------------------


def test_no_check_is_switched_off_and_nothing_is_unpickled():
    banned = [
        "no" + "qa",
        "type: " + "ignore",
        "pyright: " + "ignore",
        "mark.sk" + "ip",
        "x" + "fail",
    ]
    banned += ["pick" + "le.load", "allow_pickle=Tr" + "ue", "jnp.emp" + "ty(", "ev" + "al("]
    found = re.compile("|".join(rf"(?<![\w.]){re.escape(word)}" for word in banned))
    assert_none(
        f"{name(file)}: {match}"
        for file in [*SOURCES, *TESTS]
        for match in found.findall(file.read_text())
    )


def test_every_folder_with_code_is_installed():
    installed = (ROOT / "pyproject.toml").read_text()
    packages = {module_name(file.parent / "__init__.py") for file in PACKAGE}
    assert_none(
        f'packages lacks "{package}"' for package in packages if f'"{package}"' not in installed
    )


def test_nothing_lies_at_the_top_that_was_not_put_there():
    """Downloads, archives and images of a session are easily committed by accident."""
    usual = {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "CITATION.cff", "LICENSE", "Makefile"}
    usual |= {"pyproject.toml", "requirements.in", "requirements.lock", "MANIFEST.in"}
    usual |= {"CODE_OF_CONDUCT.md", "NOTICE", "SECURITY.md"}
    files = {p.name for p in ROOT.iterdir() if p.is_file() and not p.name.startswith(".")}
    assert files <= usual, files - usual
