"""Write the pages of the API reference, one per module, from the package; docs/conf.py runs it.

The page of a package starts with its docstring, which states a reading order, and with a table of
the names in its `__all__`. The page of a module starts with a table of its definitions. Every
public definition has a section with its docstring, its fields and a link to an example of it. The
pages are in docs/api and are not committed.
"""

import ast
import inspect
import re
from pathlib import Path
from types import ModuleType

import examples
import fields

PAGES = Path(__file__).parents[1] / "api"


def page(module: ModuleType, names: list[str]) -> str:
    """Return the page of a module; `names` are the modules that have pages."""
    title = module.__name__
    lines = [f"# {title}", "", "```{eval-rst}", f".. automodule:: {title}", "```", ""]
    if exports := getattr(module, "__all__", ()):
        rows = [export_row(module, name) for name in sorted(exports, key=str.lower)]
        lines += ["## What it exports", "", "| name | what it is |", "|---|---|", *rows, ""]
    below = [name for name in names if name.rpartition(".")[0] == title]
    if below:
        rows = [f"| [{name.rpartition('.')[2]}]({name}.md) | {summary(name)} |" for name in below]
        lines += ["## Its modules", "", "| module | what is in it |", "|---|---|", *rows, ""]
        lines += ["```{toctree}", ":hidden:", "", *below, "```", ""]
    made = entries(module)
    if len(made) > 1 and not exports:
        rows = [
            f"| {{py:obj}}`{n} <{title}.{n}>` | {escape_markdown(text)} |" for n, text, _ in made
        ]
        lines += ["| name | what it is |", "|---|---|", *rows, ""]
    for name, _, directive in made:
        lines += [f"## {name}", "", "```{eval-rst}", *directive, "```", ""]
    return "\n".join(lines)


def entries(module: ModuleType) -> list[tuple[str, str, list[str]]]:
    """Return name, first sentence and Sphinx directive of each public definition of a module."""
    lines = inspect.getsource(module).splitlines()
    found = []
    for node in ast.parse("\n".join(lines)).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            kind = "function" if isinstance(node, ast.FunctionDef) else "class"
            directive = [f".. auto{kind}:: {module.__name__}.{node.name}"]
            directive += ["   :members:"] if kind == "class" else []
            text = fields.first_sentence(getattr(module, node.name))
            found.append((node.name, text, [*directive, ""]))
        for name in assigned_names(node):
            text = fields.comments(lines, node.lineno - 1, (node.end_lineno or node.lineno) - 1)
            first = lines[node.lineno - 1]
            whole = first if node.lineno == node.end_lineno else f"{first.split('=')[0]}= ..."
            directive = [f".. py:data:: {name}", f"   :module: {module.__name__}", ""]
            directive += [f"   ``{whole.split('  #')[0].strip()}``", ""]
            found.append((name, text, [*directive, f"   {escape_rst(text)}", ""]))
    return found


def assigned_names(node: ast.stmt) -> list[str]:
    """Return the public names that a statement of a module assigns to values and types."""
    targets = []
    if isinstance(node, ast.Assign):
        targets = [part for target in node.targets for part in ast.walk(target)]
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    elif isinstance(node, ast.TypeAlias):
        targets = [node.name]
    names = [part.id for part in targets if isinstance(part, ast.Name)]
    return [name for name in names if not name.startswith("_")]


def export_row(package: ModuleType, name: str) -> str:
    """Return the table row of an exported name, linked to its definition."""
    thing = getattr(package, name)
    if isinstance(thing, ModuleType):
        return f"| [{name}]({thing.__name__}.md) | {summary(thing.__name__)} |"
    home = definition(package, name)
    text = dict((n, text) for n, text, _ in entries(home)).get(name, "")
    return f"| {{py:obj}}`{name} <{home.__name__}.{name}>` | {escape_markdown(text)} |"


def definition(package: ModuleType, name: str) -> ModuleType:
    """Find the module that defines an export of a package by following its imports."""
    for node in ast.parse(inspect.getsource(package)).body:
        if isinstance(node, ast.ImportFrom) and any(a.name == name for a in node.names):
            start = package.__package__ if hasattr(package, "__path__") else package.__name__
            above = (start or "").split(".")
            above = above[: len(above) - node.level + 1] if node.level else []
            home = ".".join([*above, *([node.module] if node.module else [])])
            return definition(examples.module(home), name)
    return package


def summary(module: str) -> str:
    """Return the first sentence of a module."""
    return escape_markdown(fields.first_sentence(examples.module(module)))


def escape_rst(text: str) -> str:
    """Escape text so that only backquotes are markup to Sphinx."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(p if p.startswith("`") else re.sub(r"([|*_])", r"\\\1", p) for p in parts)


def escape_markdown(text: str) -> str:
    """Escape text so that only backquotes are markup to Markdown."""
    parts = re.split(r"(`[^`]*`)", text)
    mark = lambda part: re.sub(r"([|*_$<\[\]{}])", r"\\\1", part)
    return "".join(p.replace("|", "\\|") if p.startswith("`") else mark(p) for p in parts)


def write() -> None:
    """Write all pages; a page that has not changed is left untouched."""
    PAGES.mkdir(exist_ok=True)
    modules = examples.modules()
    names = [module.__name__ for module in modules]
    wanted = {f"{module.__name__}.md": page(module, names) for module in modules}
    for old in PAGES.glob("*.md"):
        if old.name not in wanted:
            old.unlink()
    for name, text in wanted.items():
        file = PAGES / name
        if not file.exists() or file.read_text() != text:
            file.write_text(text)


if __name__ == "__main__":
    write()
