"""What the reference covers: `python docs/make/coverage.py` prints it, and fails where it has gaps.

Three things are asked of it, and the build of the documents fails where one is missing: an entry
for every public name, a text for every field, and for every public function or class an example
that the tests execute.
"""

import functools
import inspect
import sys
from typing import Any

import examples
import fields

WAYS = {
    "own": "with one of their own",
    "used": "used in another's or on a page",
    "returned": "returned by a function that has one",
    "derived": "base classes of one that has one",
}
SPARED = {name for names in examples.SPARED.values() for name in names}


@functools.cache
def public() -> dict[str, Any]:
    """The public functions and classes, by the names of their definitions."""
    return examples.public()


@functools.cache
def found() -> dict[str, tuple[str, str]]:
    """Where each public name has its example, and of which kind it is."""
    return examples.covered(public())


def link(name: str) -> str:
    """The line of an entry that says where its example is; empty where it stands in it."""
    where, way = found().get(name, ("", "own"))
    if way == "own":
        return ""
    file = examples.ROOT / where
    if where.endswith(".md"):
        inside = where.removeprefix("docs/").removesuffix(".md")
        place = "README.md" if where == "README.md" else f":doc:`{inside} </{inside}>`"
        return f"*Example:* {place}" if file.exists() else ""
    return f"*Example:* in :py:obj:`{where}`"


def textless() -> list[str]:
    """Fields that nothing is said of."""
    missing = []
    for module in examples.modules():
        for name in examples.own(module):
            thing = inspect.unwrap(getattr(module, name))
            if isinstance(thing, type):
                bare = [row.name for row in fields.fields(thing) if not row.text]
                missing += [f"{module.__name__}.{name}.{field}" for field in bare]
    return missing


def gaps(entries: set[str] | None = None) -> list[str]:
    """A line for each thing that is missing; entries are asked for where Sphinx has made them."""
    lines = [f"no text: {name}" for name in textless()]
    lines += [
        f"no example: {name}" for name in public() if name not in found() and name not in SPARED
    ]
    if entries is not None:
        lines += [f"no entry: {name}" for name in public() if name not in entries]
    return lines


def main() -> None:
    """Print the counts and the gaps."""
    ways = [way for _, way in found().values()]
    said = ", ".join(f"{ways.count(way)} {word}" for way, word in WAYS.items())
    print(f"{len(public())} public functions and classes, {len(found())} with an example: {said}")
    print("\n".join(f"{len(names)} {why}" for why, names in examples.SPARED.items()))
    lines = gaps()
    print("\n".join(lines))
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
