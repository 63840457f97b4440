"""The subpackages of nbody: none imports from a higher one, and each documents its exports."""

import ast
import importlib
from pathlib import Path

import pytest

from jaxgpu.physics import nbody

ROOT = Path(nbody.__file__).parent
FLOORS = {
    **dict.fromkeys(("units", "validation", "sharding"), 0),
    **dict.fromkeys(("orbits", "steps", "measure"), 1),
    **dict.fromkeys(("forces", "models"), 2),
    **dict.fromkeys(("clusters", "planets"), 3),
}


def rooms_imported(file):
    """Return the subpackages that a file imports from; all imports inside nbody are relative."""
    depth = len(file.relative_to(ROOT).parts)  # number of dots up to the domain package
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == depth:
            names = [node.module] if node.module else [name.name for name in node.names]
            yield from (name.split(".")[0] for name in names)


@pytest.mark.parametrize("room", [room for room in FLOORS if (ROOT / room).is_dir()])
def test_imports_go_down(room):
    for file in (ROOT / room).rglob("*.py"):
        for other in rooms_imported(file):
            assert other == room or FLOORS[other] < FLOORS[room], f"{file}: {other}"


@pytest.mark.parametrize("room", ["", *(room for room in FLOORS if (ROOT / room).is_dir())])
def test_a_room_has_a_table_of_contents_and_no_hidden_module(room):
    module = importlib.import_module(f"jaxgpu.physics.nbody.{room}".rstrip("."))
    assert "Read " in module.__doc__
    assert module.__all__ and all(hasattr(module, name) for name in module.__all__)
    for file in (ROOT / room).glob("[a-z]*.py"):
        there = getattr(module, file.stem, None)
        assert there is None or type(there).__name__ == "module", f"{file.stem} is hidden"
