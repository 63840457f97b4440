"""Optional libraries: a missing one is requested in one sentence."""

import importlib
import re
import tomllib
from pathlib import Path

import pytest

from jaxgpu.inputs.extras import extra

ROOT = Path(__file__).parents[2]


def test_a_library_that_is_there_is_given():
    assert extra("json.decoder", "files", "write") is importlib.import_module("json.decoder")


def test_one_that_is_not_is_missed_in_one_sentence_with_the_command():
    with pytest.raises(ModuleNotFoundError) as missed:
        extra("no_such_library.hl", "files", "write: drop.vtu")
    said = str(missed.value)
    assert said == 'write: drop.vtu needs no_such_library; pip install "jaxgpu[files]"'
    assert missed.value.name == "no_such_library" and missed.value.__cause__ is None


def test_what_a_library_itself_misses_is_not_said_to_be_the_library(tmp_path, monkeypatch):
    (tmp_path / "half_there.py").write_text("import not_there_at_all\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="No module named 'not_there_at_all'"):
        extra("half_there", "files", "write")


def test_every_extra_that_is_named_is_one_of_the_project():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = set(extras["optional-dependencies"])
    named = set()
    for top in ("jaxgpu", "physics", "numerics", "rl"):
        for file in (ROOT / top).rglob("*.py"):
            if not any(parent.is_symlink() for parent in file.parents):
                named |= set(re.findall(r'\bextra\(\s*"[\w.]+",\s*"(\w+)"', file.read_text()))
    assert named and named <= listed, named - listed
