"""Write the pages of the API reference, one a room, from the package; docs/conf.py runs it.

Every public name has an entry in the page of the room that defines it. The page of a pillar, or of
a room, begins with its docstring, which says in which order to read it, and with a table of what
its `__all__` exports. The pages lie in docs/api and are not committed.
"""

import importlib
import pkgutil
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


def page(package: ModuleType, written: set[str]) -> str:
    """The page of one package: what it says, what it exports, and its modules in full."""
    title = package.__name__
    lines = [f"# {title}", "", "```{eval-rst}", f".. automodule:: {title}", "```", ""]
    if exports := getattr(package, "__all__", ()):
        lines += ["| exported | defined in |", "|---|---|", *rows(package, exports), ""]
    for module in pkgutil.iter_modules(package.__path__, f"{title}."):
        if not module.ispkg and module.name not in written:
            lines += [f"## {module.name}", "", "```{eval-rst}", f".. automodule:: {module.name}"]
            lines += ["   :members:", "```", ""]
    return "\n".join(lines)


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


def by_hand() -> set[str]:
    """Modules that a page written by hand documents in full."""
    texts = [file.read_text() for file in PAGES.parent.glob("*.md")]
    lines = [line for text in texts for line in text.splitlines()]
    return {line.split()[-1] for line in lines if line.startswith(".. automodule::")}


def write() -> None:
    """Write all pages, and the index of them; a page that is as it was is left alone."""
    PAGES.mkdir(exist_ok=True)
    written, wanted = by_hand(), {}
    for package in packages(jaxgpu):
        wanted[f"{package.__name__}.md"] = page(package, written)
    for old in PAGES.glob("*.md"):
        if old.name not in wanted:
            old.unlink()
    for name, text in wanted.items():
        file = PAGES / name
        if not file.exists() or file.read_text() != text:
            file.write_text(text)


if __name__ == "__main__":
    write()
