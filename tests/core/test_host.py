"""Runs on an unusual host: missing standard streams, disabled jit."""

import io
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxgpu
from jaxgpu.runs.loop import run

ROOT = Path(__file__).parents[2]


def closed_stream():
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize(
    "stream", [lambda: None, closed_stream, object], ids=["none", "closed", "odd"]
)
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
    """A service starts it like this, with neither output nor errors."""
    command = f"exec {sys.executable} -m jaxgpu.cli run no_such_study >&- 2>&-"
    done = subprocess.run(["sh", "-c", command], cwd=ROOT, env=os.environ, timeout=120)
    assert done.returncode == 2


KEY = jax.random.key(1)
START = {"x": 0.0, "n": jnp.int32(0)}
FORMS = {
    "key": KEY,
    "measure": lambda s: {"x": s["x"], "one": 1.0},
    "until": lambda s: s["n"] >= 5,
}


def step(s, key):
    return {"x": 1.5 * s["x"] + jax.random.normal(key), "n": s["n"] + 1}


def test_with_jit_disabled_a_run_calls_its_functions_with_values():
    def look(s, key):
        seen.append(float(s["x"]))
        return step(s, key)

    seen, want = [], run(step, START, 9, **FORMS)
    with jax.disable_jit():
        found = run(look, START, 9, guard=True, **FORMS)
    assert found.timing.steps == len(seen) == 5
    assert_close = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5)
    jax.tree.map(assert_close, (found.state, found.history), (want.state, want.history))
    kinds = lambda tree: jax.tree.map(lambda x: (x.dtype, x.shape), tree)
    assert kinds(found.history) == kinds(want.history) and kinds(found.state) == kinds(want.state)


def test_a_run_goes_on_with_jit_and_without_it(tmp_path):
    with jax.disable_jit():
        run(step, START, 2, out=tmp_path, **FORMS)
    run(step, START, 3, out=tmp_path, resume=True, **FORMS)
    with jax.disable_jit():
        found = run(step, START, 9, out=tmp_path, resume=True, **FORMS)
    want = run(step, START, 9, **FORMS).history["x"]
    np.testing.assert_allclose(found.history["x"], want, rtol=1e-5)
    assert jaxgpu.load(tmp_path).step == 5


def test_with_jit_disabled_nothing_to_measure_and_no_step_are_right():
    with jax.disable_jit():
        assert run(lambda x: 2 * x, 1.0, 3).history == ()
        assert run(lambda x: 2 * x, 1.0, 0, measure=lambda x: x).history.tolist() == [1.0]
        assert run(lambda x: 2 * x, 1.0, 3, until=lambda x: x > 0).state == 1
        with pytest.raises(TypeError, match=r"run: step changes.*float32\[\] to.*int32\[\]"):
            run(lambda x: jnp.int32(2), 1.0, 3)
