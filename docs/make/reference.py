"""Write the pages of the API reference, one a room, from the package; docs/conf.py runs it.

Every public name has an entry in the page of the room that defines it. The page of a pillar, or of
a room, begins with its docstring, which says in which order to read it, and with a table of what
its `__all__` exports. The pages lie in docs/api and are not committed.
"""

import ast
import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from types import ModuleType

import jaxgpu

PAGES = Path(__file__).parents[1] / "api"
LEFT_OUT = ("jaxgpu.studies.",)  # what a study does is in its report


def packages(package: ModuleType) -> list[ModuleType]:
    """A package and all below it that are documented, in order of their names."""
    found = [package]
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if module.ispkg and not module.name.startswith(LEFT_OUT):
            found += packages(importlib.import_module(module.name))
    return found


def page(package: ModuleType) -> str:
    """The page of one package: what it says, what it exports, and its modules in full."""
    title = package.__name__
    own = ["   :members:", "   :ignore-module-all:"]  # what is defined here, not what is exported
    lines = [f"# {title}", "", "```{eval-rst}", f".. automodule:: {title}", *own, "```", ""]
    if exports := getattr(package, "__all__", ()):
        lines += ["| exported | defined in |", "|---|---|", *rows(package, exports), ""]
    for module in pkgutil.iter_modules(package.__path__, f"{title}."):
        if not module.ispkg:
            lines += [f"## {module.name}", "", "```{eval-rst}", f".. automodule:: {module.name}"]
            lines += ["   :members:", "", *others(importlib.import_module(module.name)), "```", ""]
    return "\n".join(lines)


def others(module: ModuleType) -> list[str]:
    """Entries of what Sphinx passes over: constants, names of types, functions with derivatives."""
    source = inspect.getsource(module)
    lines, found = source.splitlines(), []
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            hidden = node.name.startswith("_") or inspect.isroutine(getattr(module, node.name))
            found += [] if hidden else [f".. autofunction:: {module.__name__}.{node.name}", ""]
        for name in assigned(node):
            first = lines[node.lineno - 1]
            whole = first if node.lineno == node.end_lineno else f"{first.split('=')[0]}= ..."
            said = [whole.split("  #")[0].strip(), *comments(lines, node.lineno - 1)]
            found += [f".. py:data:: {name}", f"   :module: {module.__name__}", ""]
            found += [f"   ``{said[0]}``", "", *(f"   {plain(line)}" for line in said[1:]), ""]
    return found


def assigned(node: ast.stmt) -> list[str]:
    """The public names that a statement of a module gives to values and types."""
    targets = []
    if isinstance(node, ast.Assign):
        targets = [part for target in node.targets for part in ast.walk(target)]
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    elif isinstance(node, ast.TypeAlias):
        targets = [node.name]
    names = [part.id for part in targets if isinstance(part, ast.Name)]
    return [name for name in names if not name.startswith("_")]


def comments(lines: list[str], at: int) -> list[str]:
    """What comments say of the statement at a line: those above it, and the one behind it."""
    above, begin = [], at
    while begin and lines[begin - 1].startswith("# "):
        begin -= 1
        above.insert(0, lines[begin][2:])
    behind = lines[at].split("  # ")[1:]
    return [*above, *behind]


def plain(text: str) -> str:
    """Text in which nothing but backquotes means anything to Sphinx."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(p if p.startswith("`") else re.sub(r"([|*_])", r"\\\1", p) for p in parts)


def rows(package: ModuleType, exports: list[str]) -> list[str]:
    """A row for each exported name, linked to where it is defined."""
    found = []
    for name in sorted(exports, key=str.lower):
        thing = getattr(package, name)
        home = thing.__name__ if isinstance(thing, ModuleType) else thing_home(thing, package)
        link = home if isinstance(thing, ModuleType) else f"{home}.{name}"
        found.append(f"| {{py:obj}}`{name} <{link}>` | `{home}` |")
    return found


def thing_home(thing: object, package: ModuleType) -> str:
    """The module that defines an exported thing; constants belong to the package."""
    return getattr(thing, "__module__", None) or package.__name__


def write() -> None:
    """Write all pages, and the index of them; a page that is as it was is left alone."""
    PAGES.mkdir(exist_ok=True)
    wanted = {f"{package.__name__}.md": page(package) for package in packages(jaxgpu)}
    for old in PAGES.glob("*.md"):
        if old.name not in wanted:
            old.unlink()
    for name, text in wanted.items():
        file = PAGES / name
        if not file.exists() or file.read_text() != text:
            file.write_text(text)


if __name__ == "__main__":
    write()
