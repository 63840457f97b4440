"""Checkpoints are written beside the computation, one at a time, and their failures are heard."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu import checkpoint
from jaxgpu.checkpoint import CheckpointError
from jaxgpu.store import Store


def test_the_computation_goes_on_while_a_checkpoint_is_written(tmp_path, monkeypatch):
    go, begun = threading.Event(), threading.Event()
    write = checkpoint.save_step

    def slow(*args):
        begun.set()
        assert go.wait(10)
        write(*args)

    monkeypatch.setattr(checkpoint, "save_step", slow)
    with Store(tmp_path, None) as store:
        store.save(1, jnp.ones(3), np.zeros(1))
        assert begun.wait(10) and not list(tmp_path.iterdir())
        go.set()
    assert [file.name for file in tmp_path.iterdir()] == ["step-000000000001.npz"]


def test_what_is_written_is_what_was_there_when_asked(tmp_path):
    change = jax.jit(lambda x: x + 1, donate_argnums=0)
    state = jnp.zeros(100_000)
    with Store(tmp_path, None) as store:
        for step in range(1, 4):
            state = change(state)
            store.save(step, state, ())
            state = change(change(state))  # takes the buffers over while they are being written
    (saved, _), meta = checkpoint.load_last(tmp_path, lambda meta: (state, ()))
    assert meta["step"] == 3 and np.all(saved == 7)


def test_a_failed_write_is_raised_by_the_next_and_by_the_end(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "save_step", full)
    with pytest.raises(OSError, match="No space"), Store(tmp_path, None) as store:
        store.save(1, jnp.ones(3), ())
        store.save(2, jnp.ones(3), ())
    with pytest.raises(OSError, match="No space"), Store(tmp_path, None) as store:
        store.save(1, jnp.ones(3), ())


def test_without_a_folder_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Store(None, None) as store:
        store.save(1, jnp.ones(3), ())
    assert not list(tmp_path.iterdir()) and "nothing was saved" in store.hint


def test_a_key_is_part_of_the_run(tmp_path):
    with Store(tmp_path, jax.random.key(0)) as store:
        store.save(1, jnp.ones(3), ())
    with pytest.raises(CheckpointError, match="same seed"), Store(tmp_path, None) as store:
        store.last(jnp.ones(3), lambda steps: ())
