"""The two commands of the README: they find an interpreter or report that there is none."""

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def bench(tmp_path):
    """Make a working folder, and a PATH on which `python3` is too old."""
    tools = tmp_path / "tools"
    tools.mkdir()
    program(tools / "python3", "exit 1")  # as 3.11 answers, and as a pyenv shim does
    return tmp_path, tools


def program(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def environment(bench, *named):
    folder, tools = bench
    return subprocess.run(
        ["/bin/sh", ROOT / ".ci" / "environment", *named],
        cwd=folder,
        env={"PATH": str(tools), "PYENV_ROOT": str(folder / "pyenv")},
        capture_output=True,
        text=True,
    )


def test_says_so_where_no_python_is_new_enough(bench):
    done = environment(bench)
    assert done.returncode == 1
    assert "needs Python 3.12 or newer, and none is on the PATH" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("where", [pytest.param("path", marks=pytest.mark.slow), "named", "pyenv"])
def test_finds_a_newer_python_beside_an_older_one(bench, where):
    folder, tools = bench
    at = {
        "path": tools / "python3.12",
        "named": folder / "mine",
        "pyenv": folder / "pyenv/versions/3.12.1/bin/python",
    }[where]
    at.parent.mkdir(parents=True, exist_ok=True)
    # Only one environment is created in full; the others are only requested, as each takes seconds.
    made = "[ $1 = -c ] || { /bin/mkdir -p .venv/bin; : > .venv/bin/python; }"
    program(at, f'exec {sys.executable} "$@"' if where == "path" else made)
    done = environment(bench, *([str(at)] if where == "named" else []))
    assert done.returncode == 0, done.stderr
    assert (folder / ".venv" / "bin" / "python").exists()


def test_the_commands_are_the_ones_that_ci_runs():
    ci = (ROOT / ".ci" / "run").read_text()
    assert re.search(r"^make clean\ntimed make .venv/oracles\ntimed make test$", ci, re.MULTILINE)
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
