"""Checkpoints in the background: written one at a time, and failures are reported."""

import contextlib
import os
import platform
import stat
import subprocess
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from folder_lock import lock_folder

from jaxgpu.runs import checkpoint, files
from jaxgpu.runs.checkpoint import CheckpointError
from jaxgpu.runs.loop import run
from jaxgpu.runs.saving.store import Store


@contextlib.contextmanager
def begun_store(out):
    """Open the store of a run that records nothing and has taken no step."""
    with Store(out, None) as store:
        store.begin((), 9)
        store.start(())
        yield store


def test_the_computation_goes_on_while_a_checkpoint_is_written(tmp_path, monkeypatch):
    go, begun = threading.Event(), threading.Event()
    write = checkpoint.save_step

    def slow_write(*args):
        begun.set()
        assert go.wait(10)
        write(*args)

    monkeypatch.setattr(checkpoint, "save_step", slow_write)
    with begun_store(tmp_path) as store:
        store.save(1, jnp.ones(3))
        assert begun.wait(10) and not list(tmp_path.glob("step-*"))
        go.set()
    assert [file.name for file in tmp_path.glob("step-*")] == ["step-000000000001.npz"]


def test_what_is_written_is_what_was_there_when_asked(tmp_path):
    change = jax.jit(lambda x: x + 1, donate_argnums=0)
    state = jnp.zeros(100_000)
    with begun_store(tmp_path) as store:
        for step in range(1, 4):
            state = change(state)
            store.save(step, state)
            state = change(change(state))  # takes the buffers over while they are being written
    saved, meta = checkpoint.load_last(tmp_path, lambda meta: state)
    assert meta["step"] == 3 and np.all(saved == 7)


def test_a_failed_write_is_raised_by_the_next_and_by_the_end(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "save_step", full)
    with pytest.raises(OSError, match="No space"), begun_store(tmp_path) as store:
        store.save(1, jnp.ones(3))
        store.save(2, jnp.ones(3))
    with pytest.raises(OSError, match="No space"), begun_store(tmp_path) as store:
        store.save(1, jnp.ones(3))


def test_without_a_folder_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with begun_store(None) as store:
        store.save(1, jnp.ones(3))
    assert not list(tmp_path.iterdir()) and "nothing was saved" in store.hint


def test_a_folder_in_which_another_process_runs_is_refused_and_free_when_it_ends(tmp_path):
    message = f"^{tmp_path}: another process uses it; wait, or give another folder$"
    with lock_folder(tmp_path), pytest.raises(CheckpointError, match=message):
        run(jnp.sin, jnp.ones(3), 5, out=tmp_path)
    assert not list(tmp_path.iterdir())
    run(jnp.sin, jnp.ones(3), 5, out=tmp_path)  # the system let go when it ended


def test_two_runs_of_one_process_do_not_share_a_folder(tmp_path):
    held, go = threading.Event(), threading.Event()

    def wait(state, history):
        held.set()
        assert go.wait(10)

    given = {"out": tmp_path, "chunk": 5}
    other = threading.Thread(
        target=run, args=(jnp.sin, jnp.ones(3), 5), kwargs=given | {"check": wait}
    )
    other.start()
    assert held.wait(10)
    with pytest.raises(CheckpointError, match="another process uses it"):
        run(jnp.sin, jnp.ones(3), 5, **given)
    go.set()
    other.join()
    assert run(jnp.sin, jnp.ones(3), 5, **given, resume=True).timing.steps == 0
    with files.lock_folder(tmp_path):  # as the command line has it, around the runs of a study
        run(jnp.sin, jnp.ones(3), 6, **given, resume=True)


def test_what_killed_writers_left_is_swept_and_what_others_write_is_not(tmp_path):
    ended = subprocess.Popen([sys.executable, "-S", "-c", ""])
    ended.wait()
    name = lambda node, pid: tmp_path / f".step-000000000010.npz.{node}.{pid}.{32 * 'a'}.tmp"
    killed, mine = name(platform.node(), ended.pid), name(platform.node(), os.getpid())
    alive, far = name(platform.node(), os.getppid()), name("another.machine", ended.pid)
    notes = tmp_path / ".notes.tmp"
    for file in (killed, mine, alive, far, notes):
        file.write_text("half a checkpoint")
    run(jnp.sin, jnp.ones(3), 5, out=tmp_path)
    assert not killed.exists() and not mine.exists()
    assert alive.exists() and far.exists() and notes.exists()


def test_a_folder_that_cannot_be_made_is_said_before_work_begins(tmp_path):
    (tmp_path / "taken").write_text("a file")
    fail_trace = lambda state: pytest.fail("traced")
    with pytest.raises(OSError, match="File exists"):
        run(fail_trace, jnp.ones(3), 5, out=tmp_path / "taken")


def test_a_name_is_on_the_disk_after_the_content_that_it_names(tmp_path, monkeypatch):
    """A power cut leaves the old file or the new: bytes are synced first, then the name."""
    put, sync = [], os.fsync

    def note_sync(handle):
        folder = stat.S_ISDIR(os.fstat(handle).st_mode)
        put.append(("name" if folder else "bytes", (tmp_path / "a.txt").exists()))
        sync(handle)

    monkeypatch.setattr(os, "fsync", note_sync)
    with files.replace_file(tmp_path / "a.txt") as file:
        file.write("kept")
    assert put == [("bytes", False), ("name", True)]
