"""What surrounds a run on its host: streams that are missing, jit that is off."""

import io
import os
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import pytest

from jaxgpu.runs.loop import run

ROOT = Path(__file__).parents[2]


def closed():
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("stream", [lambda: None, closed, object], ids=["none", "closed", "odd"])
def test_a_run_needs_no_standard_error(monkeypatch, stream):
    monkeypatch.setattr(sys, "stderr", stream())
    assert run(lambda x: 2 * x, jnp.float32(1), 3).state == 8


def test_a_bar_is_drawn_in_a_terminal(monkeypatch):
    stream = io.StringIO()
    stream.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", stream)
    run(lambda x: 2 * x, jnp.float32(1), 3)
    assert "0/3" in stream.getvalue()


def test_the_command_line_works_without_standard_streams():
    """As a service starts it, with neither output nor errors."""
    command = f"exec {sys.executable} -m jaxgpu.cli run no_such_study >&- 2>&-"
    done = subprocess.run(["sh", "-c", command], cwd=ROOT, env=os.environ, timeout=120)
    assert done.returncode == 2
