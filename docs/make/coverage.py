"""Coverage of the API reference: `python docs/make/coverage.py` prints it, and fails on gaps.

The build of the documents fails if one of these is missing: an entry for every public name, a text
for every field, and an example that the tests execute for every public function or class.
"""

import functools
import inspect
import sys
from typing import Any

import examples
import fields

LABELS = {
    "own": "with one of their own",
    "used": "used in another's or on a page",
    "returned": "returned by a function that has one",
    "derived": "base classes of one that has one",
}
EXEMPT = {name for names in examples.EXEMPT.values() for name in names}


@functools.cache
def public() -> dict[str, Any]:
    """Return the public functions and classes, by the names of their definitions."""
    return examples.public()


@functools.cache
def find_examples() -> dict[str, tuple[str, str]]:
    """Return the source of each public name's example, and the kind of the example."""
    return examples.find_coverage(public())


def link(name: str) -> str:
    """Return the line of an entry that links its example; empty if the entry contains it."""
    where, way = find_examples().get(name, ("", "own"))
    if way == "own":
        return ""
    file = examples.ROOT / where
    if where.endswith(".md"):
        inside = where.removeprefix("docs/").removesuffix(".md")
        place = "README.md" if where == "README.md" else f":doc:`{inside} </{inside}>`"
        return f"*Example:* {place}" if file.exists() else ""
    return f"*Example:* in :py:obj:`{where}`"


def missing_texts() -> list[str]:
    """Return the fields without a text."""
    missing = []
    for module in examples.modules():
        for name in examples.definitions(module):
            thing = inspect.unwrap(getattr(module, name))
            if isinstance(thing, type):
                bare = [row.name for row in fields.fields(thing) if not row.text]
                missing += [f"{module.__name__}.{name}.{field}" for field in bare]
    return missing


def gaps(entries: set[str] | None = None) -> list[str]:
    """Return a line per missing item; entries are checked only if Sphinx has made them."""
    lines = [f"no text: {name}" for name in missing_texts()]
    lines += [
        f"no example: {name}"
        for name in public()
        if name not in find_examples() and name not in EXEMPT
    ]
    if entries is not None:
        lines += [f"no entry: {name}" for name in public() if name not in entries]
    return lines


def main() -> None:
    """Print the counts and the gaps."""
    ways = [way for _, way in find_examples().values()]
    said = ", ".join(f"{ways.count(way)} {word}" for way, word in LABELS.items())
    print(
        f"{len(public())} public functions and classes, {len(find_examples())} with an example: "
        f"{said}"
    )
    print("\n".join(f"{len(names)} {why}" for why, names in examples.EXEMPT.items()))
    lines = gaps()
    print("\n".join(lines))
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
