"""The runs that a folder resumes: the same one, or one with a named change; others are refused."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxgpu
from jaxgpu.devices import machine
from jaxgpu.runs.checkpoint import CheckpointError
from jaxgpu.runs.loop import run

KEY, START = jax.random.key(0), np.zeros(3, np.float32)


def drift(by):
    return lambda x, key: x + by + jax.random.normal(key, x.shape, x.dtype)


def test_another_experiment_is_refused_and_the_difference_named(tmp_path):
    """A run needs the same function, constants, start, key, type of key, measure and jax."""
    plain = {"step": drift(1.0), "state": np.zeros(3, np.float32), "key": KEY, "measure": jnp.sum}
    run(**plain, steps=4, out=tmp_path)
    others = {
        "another step: by was 1.0, is 2.0": {"step": drift(2.0)},
        "another step: by was 1.0, is float32[3] 1.0 1.0 1.0": {"step": drift(jnp.ones(3))},
        "another step: function was drift": {"step": lambda x, key: x * 1.0},
        "another start: start was float32[3] 0.0 0.0 0.0, is": {
            "state": np.full(3, 1e-9, np.float32)
        },
        "another key: key was": {"key": jax.random.key(1)},
        "a key of another type": {"key": jax.random.key(0, impl="unsafe_rbg")},
        "another measure": {"measure": jnp.mean},
    }
    rbg = jax.random.key(0, impl="rbg")
    run(**plain | {"key": rbg}, steps=4, out=tmp_path / "rbg")
    for difference, change in others.items():
        out = tmp_path / "rbg" if "kind" in difference else tmp_path
        with pytest.raises(CheckpointError, match=f"{re.escape(difference)}.*; .*another folder"):
            run(**plain | change, steps=9, out=out, resume=True)
    assert run(**plain, steps=9, chunk=2, out=tmp_path, resume=True).timing.steps == 5


def test_another_version_processor_or_flag_is_warned_of(tmp_path, monkeypatch):
    run(drift(1.0), START, 5, key=KEY, out=tmp_path)
    was = jaxgpu.load(tmp_path).machine
    assert was["jax"] == jax.__version__ and was == machine.describe()
    assert was.keys() >= {"jaxlib", "device", "processor", "instructions", "cores"}
    monkeypatch.setattr(jax, "__version__", "0.4.1")
    monkeypatch.setattr(machine, "processor", lambda: "another")
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_max_isa=AVX2")
    said = (
        "written under jax .*, this is 0.4.1; processor .*, this is another; compiler flags none, "
        "this is --xla_cpu_max_isa=AVX2; last digits may"
    )
    with pytest.warns(UserWarning, match=said):
        assert run(drift(1.0), START, 9, key=KEY, out=tmp_path, resume=True).timing.steps == 4
    assert jaxgpu.load(tmp_path).machine["processor"] == "another"


def test_fast_arithmetic_is_refused_by_name(tmp_path, monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    run(drift(1.0), START, 5, key=KEY, out=tmp_path)
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math --xla_dump_to=elsewhere")
    with pytest.raises(CheckpointError, match="xla_cpu_enable_fast_math was missing, is true"):
        run(drift(1.0), START, 9, key=KEY, out=tmp_path, resume=True)


def test_a_named_change_is_allowed_and_kept(tmp_path):
    given = {"state": np.zeros(3, np.float32), "key": KEY, "out": tmp_path}
    run(drift(1.0), steps=4, **given)
    with pytest.raises(CheckpointError, match=r"by was 1.0, is 2.0; .*resume=\('by',\)$"):
        run(drift(2.0), steps=9, **given, resume=True)
    with pytest.raises(CheckpointError, match="start was"):
        run(drift(2.0), steps=9, **given | {"state": np.ones(3, np.float32), "resume": ("by",)})
    with pytest.raises(
        ValueError, match="resume='buy'; no value has this name; there are key, start"
    ):
        run(drift(2.0), steps=9, **given, resume=("buy",))
    with pytest.raises(TypeError, match="resume='by'; it must be True or False, or names"):
        run(drift(2.0), steps=9, **given, resume="by")
    run(drift(2.0), steps=9, **given, resume=("by",))
    assert jaxgpu.load(tmp_path).changes == ["at step 4: by was 1.0, is 2.0"]
    with pytest.raises(CheckpointError, match="by was 2.0, is 1.0"):
        run(drift(1.0), steps=12, **given, resume=True)
    run(drift(2.0), steps=12, **given, resume=True)
    assert jaxgpu.load(tmp_path).changes == ["at step 4: by was 1.0, is 2.0"]


def test_a_call_back_is_part_of_the_experiment(tmp_path):
    def asking(scale):
        host = lambda x: np.asarray(scale * x, np.float32)
        return lambda x: jax.pure_callback(host, jax.ShapeDtypeStruct((), np.float32), x)

    run(asking(0.5), np.float32(1), 3, out=tmp_path)
    assert run(asking(0.5), np.float32(1), 5, out=tmp_path, resume=True).timing.steps == 2
    with pytest.raises(CheckpointError, match="host.scale was 0.5, is 0.25"):
        run(asking(0.25), np.float32(1), 9, out=tmp_path, resume=True)
