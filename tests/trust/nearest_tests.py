"""The nearest tests of a module, by a rule that depends on names only.

A module `jaxgpu/evolution/multi/nsga2.py` has the examples of its docstring, and the tests

1. of `tests/evolution/multi/test_nsga2.py`, and of files there whose names start with it; without
   such a folder, of `tests/evolution/test_nsga2.py` and `tests/evolution/test_multi.py`;
2. if there are none, of the four files of its domain that name it most often: the module, or its
   public definitions;
3. if there are none, of `test_multi.py` (the name of its folder) or the tests of the modules
   that import it;
4. if there are none, of the whole folder, or of the parent folder.

If the tests of `make test` pass, the registry's tests of the module's public names run too
(`tests/core/test_conformance.py`), with hostile input, and then the tests of `make slow`. Tests of
a release are left out. A folder of `jaxgpu` without a folder of its name in `tests` has its tests
in `tests/core`.
"""

import ast
import functools
import re
from pathlib import Path

MOST = 4  # maximum test files that are found by the names in them


def tests_of(file: str, root: Path) -> list[str]:
    """Return the files of the nearest tests, relative to the root."""
    home, source = home_of(file), Path(file)
    stem = source.parent.name if source.stem == "__init__" else source.stem
    stems = [stem]
    if not (root / home).is_dir():  # the folder is tested as a whole
        home, stem = home.parent, home.name
        stems.append(stem)
    named = [
        path
        for each in dict.fromkeys(stems)
        for path in (
            root / home / f"test_{each}.py",
            *sorted((root / home).glob(f"test_{each}_*.py")),
        )
    ]
    found = [path for path in named if path.exists()]
    found = found or _tests_by_name(root / file, stem, root / pillar_of(home))
    found = found or _importer_tests(source, stem, root)
    while not found:
        found, home = sorted((root / home).glob("test_*.py")), home.parent
    return [str(path.relative_to(root)) for path in found]


def entry_patterns(file: str, root: Path) -> list[str]:
    """Return patterns of the registry's entries for the public names that a module defines."""
    own = ast.parse((root / file).read_text()).body
    names = [n.name for n in own if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
    parts = module_of(file).split(".")[1:-1]
    room = ".".join(parts[: 2 if parts[:1] == ["physics"] else 1])
    return [rf"^{room}\b.*\b{name}\b[^:]*: " for name in names if not name.startswith("_")]


def home_of(file: str) -> Path:
    """Return the test folder that mirrors the folder of a module."""
    parts = Path(file).parts[:-1]
    if parts[0] == "jaxgpu":
        own = parts[1:2] and Path(__file__).parents[1].joinpath(parts[1]).is_dir()
        return Path("tests", *(parts[1:] if own else ("core",)))
    return Path("tests", *parts)


def pillar_of(home: Path) -> Path:
    """Return the test folder of a domain."""
    return Path(*home.parts[: 3 if home.parts[1] == "physics" else 2])


def module_of(file: str) -> str:
    """Return the import name of a file of the package."""
    parts = Path(file).with_suffix("").parts
    parts = parts if parts[0] == "jaxgpu" else ("jaxgpu", *parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _tests_by_name(source: Path, stem: str, pillar: Path) -> list[Path]:
    """Return test files that import a module or its public definitions, most mentions first."""
    own = ast.parse(source.read_text()).body
    names = {n.name for n in own if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    names = {name for name in names if not name.startswith("_")} | {stem}
    counts = {path: _count_mentions(path, names) for path in sorted(pillar.rglob("test_*.py"))}
    ranked = sorted((path for path in counts if counts[path]), key=lambda path: -counts[path])
    return ranked[:MOST]


def _importer_tests(source: Path, stem: str, root: Path) -> list[Path]:
    """Return the test of a module's folder as a whole, or of the neighbours that import it."""
    whole = root / home_of(str(source)) / f"test_{source.parent.name}.py"
    if whole.exists():
        return [whole]
    neighbours = sorted((root / source.parent).glob("*.py"))
    users = [
        n for n in neighbours if re.search(rf"import.*\b{stem}\b|\.{stem} import", n.read_text())
    ]
    tests = [root / home_of(str(source)) / f"test_{user.stem}.py" for user in users]
    return [path for path in tests if path.exists()]


def _count_mentions(path: Path, names: set[str]) -> int:
    """Count the mentions in a test file of names that it imports from the package."""
    known = names & _imported_names(path)
    return sum(len(re.findall(rf"\b{name}\b", path.read_text())) for name in known)


@functools.cache
def _imported_names(path: Path) -> frozenset[str]:
    """Return the names that a file imports from the package, or reads from imported subpackages."""
    text = path.read_text()
    words = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("jaxgpu"):
            words |= {alias.name for alias in node.names} | {node.module.rpartition(".")[2]}
        elif isinstance(node, ast.Import):
            words |= {alias.name.rpartition(".")[2] for alias in node.names}
    for room in [word for word in words if word.islower()]:
        words |= set(re.findall(rf"\b{room}\.(\w+)", text))
    return frozenset(words)
