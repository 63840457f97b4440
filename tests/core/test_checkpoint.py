"""Checkpoint files: each is exactly right or rejected by an error that names it."""

import hashlib
import json
import os
import random
import tracemalloc
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import flip_bit
from forgery import DAMAGES, seal, take_apart

import jaxgpu
from jaxgpu.inputs.arguments import is_key
from jaxgpu.inputs.fields import pytree
from jaxgpu.runs import checkpoint
from jaxgpu.runs.checkpoint import (
    CheckpointError,
    load,
    load_last,
    save,
    save_step,
    sealed_files,
    steps,
)
from jaxgpu.runs.checkpoint.tree import load_as
from jaxgpu.runs.loop import run


@pytree
class State:
    x: object
    key: object
    count: object


def example():
    return State(
        x={"wide": np.linspace(0, 1, 7), "half": jnp.arange(3, dtype=jnp.bfloat16)},
        key=jax.random.key(5),
        count=np.int64(3),
    )


def equal(a, b):
    numbers = lambda tree: [
        np.asarray(jax.random.key_data(x) if is_key(x) else x).tobytes()
        for x in jax.tree.leaves(tree)
    ]
    return jax.tree.structure(a) == jax.tree.structure(b) and numbers(a) == numbers(b)


@pytest.fixture
def file(tmp_path):
    save(tmp_path / "a.npz", example(), {"step": 4})
    return tmp_path / "a.npz"


def test_comes_back_bit_for_bit(file):
    state, meta = load(file, example())
    assert equal(state, example()) and meta == {"step": 4}
    assert state.x["half"].dtype == jnp.bfloat16 and state.x["wide"].dtype == np.float64


def test_ends_with_the_sha_256_of_all_that_comes_before(file):
    data = file.read_bytes()
    assert (
        data[-64:].decode() == hashlib.sha256(data[:-64]).hexdigest() == sealed_files.seal_of(file)
    )


def test_is_a_plain_npz_that_numpy_reads_without_pickle(file):
    with np.load(file, allow_pickle=False) as archive:
        assert {"header", "0", "1", "2", "3"} == set(archive.files)
    arrays, meta = checkpoint.read(file)
    np.testing.assert_array_equal(arrays[".x['wide']"], example().x["wide"])


def test_leaves_no_scratch_file(file):
    assert os.listdir(file.parent) == ["a.npz"]


def test_refuses_1000_bit_flips_and_falls_back(tmp_path):
    save_step(tmp_path, 1, example(), {})
    save_step(tmp_path, 2, example(), {})
    newest = tmp_path / "step-000000000002.npz"
    good, pick = newest.read_bytes(), random.Random(0)
    for _ in range(1000):
        newest.write_bytes(flip_bit(good, pick))
        with pytest.raises(CheckpointError, match=newest.name):
            load(newest, example())
    with pytest.warns(UserWarning, match=f"{newest.name}.*loading step-000000000001"):
        state, meta = load_last(tmp_path, lambda meta: example())
    assert meta["step"] == 1 and equal(state, example())


@pytest.mark.parametrize("share", [0, *np.arange(0.05, 1, 0.05).round(2), 0.9999])
def test_refuses_a_torn_file(file, share):
    data = file.read_bytes()
    file.write_bytes(data[: int(share * len(data))])
    with pytest.raises(CheckpointError, match="damaged"):
        load(file, example())


def test_refuses_what_is_foreign(file):
    np.savez(file, x=np.zeros(3))
    with pytest.raises(CheckpointError, match="not a jaxgpu checkpoint"):
        load(file, example())
    file.write_text("hello " * 100)
    with pytest.raises(CheckpointError, match="not a jaxgpu checkpoint"):
        load(file, example())
    with pytest.raises(CheckpointError, match="no such checkpoint"):
        load(file.with_name("missing.npz"), example())


def test_refuses_a_newer_version_by_its_number(file, monkeypatch):
    monkeypatch.setattr(sealed_files, "VERSION", 99)
    save(file, example())
    monkeypatch.undo()
    with pytest.raises(
        CheckpointError, match="jaxgpu-checkpoint 99, this version reads jaxgpu-checkpoint 2"
    ):
        load(file, example())


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (
            State({"wide": np.zeros(8), "half": jnp.zeros(3, jnp.bfloat16)}, jax.random.key(0), 1),
            "half",
        ),
        (State({"wide": np.zeros(7, np.float32), "half": 0}, jax.random.key(0), 1), "half"),
        ({"only": np.zeros(3)}, "only"),
    ],
)
def test_refuses_a_state_of_another_shape_and_names_the_array(file, other, named):
    with pytest.raises(CheckpointError, match="resume with the options that wrote it"):
        load(file, other)


def test_keeps_the_newest_two(tmp_path):
    for step in (10, 20, 100):
        save_step(tmp_path, step, example(), {})
    assert sorted(os.listdir(tmp_path)) == ["step-000000000020.npz", "step-000000000100.npz"]


def test_with_no_good_one_left_says_why(tmp_path):
    assert load_last(tmp_path, lambda meta: example()) is None
    save_step(tmp_path, 1, example(), {})
    (tmp_path / "step-000000000001.npz").write_bytes(b"")
    with pytest.raises(CheckpointError, match="damaged"):
        load_last(tmp_path, lambda meta: example())


def test_a_failed_write_leaves_the_old_file(file, monkeypatch):
    before = file.read_bytes()

    def no_space(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space"):
        save(file, example(), {"step": 5})
    assert file.read_bytes() == before and os.listdir(file.parent) == ["a.npz"]


def headers(good):
    """Return headers that a sealed file may have although no version of jaxgpu writes them."""
    wrong = [b"not json", b"[]", b"7", json.dumps({**good, "version": "1"}).encode()]
    for name in ("version", "leaves", "meta"):
        wrong.append(json.dumps({k: v for k, v in good.items() if k != name}).encode())
    for leaves in ([["x"]], 7, [["x", "float99", [3]]], [["x", "float32", [4]]], [None]):
        wrong.append(json.dumps({**good, "leaves": leaves}).encode())
    return [*wrong, json.dumps({**good, "meta": []}).encode()]


def test_a_sealed_file_with_a_wrong_header_is_refused_and_passed_over(tmp_path):
    """A file that is changed and sealed again raises CheckpointError; the previous file is used."""
    x = np.arange(3.0, dtype=np.float32)
    checkpoint.save_step(tmp_path, 1, {"x": x}, {})
    checkpoint.save_step(tmp_path, 2, {"x": x}, {})
    newest = max(tmp_path.iterdir())
    good, members = take_apart(newest)
    for header in headers(good):
        seal(newest, header, members)
        with pytest.raises(CheckpointError, match="step-000000000002"):
            load_as(newest, lambda meta: {"x": x} if meta["step"] else None)
        with pytest.warns(UserWarning, match="loading step-000000000001"):
            found = checkpoint.load_last(tmp_path, lambda meta: {"x": x} if meta["step"] else None)
        np.testing.assert_array_equal(found[0]["x"], x)


@pytest.mark.parametrize("damage", DAMAGES)
def test_whatever_is_done_to_the_newest_the_one_before_is_used(tmp_path, damage):
    """Resuming and loading both use it. The file is sealed again, so its seal is valid."""
    given = {"measure": jnp.sum, "chunk": 2, "out": tmp_path}
    run(jnp.cos, jnp.ones(3), 4, **given)
    newest = max(tmp_path.glob("step-*"))
    DAMAGES[damage](newest)
    with pytest.raises(CheckpointError, match=newest.name):
        load(newest, jnp.ones(3))
    assert jaxgpu.load(tmp_path).step == 2
    with pytest.warns(UserWarning, match="step-000000000004.*loading step-000000000002"):
        done = run(jnp.cos, jnp.ones(3), 6, **given, resume=True)
    assert done.timing.steps == 4


def test_what_a_file_cannot_hold_is_refused_as_it_is_saved(tmp_path):
    nested = {}
    for _ in range(70):
        nested = {"inner": nested}
    with pytest.raises(TypeError, match="nested 65 deep"):
        save(tmp_path / "a.npz", example(), nested)
    with pytest.raises(TypeError, match=r"checkpoint.save: tree\['x'\] of type float128"):
        save(tmp_path / "a.npz", {"x": np.zeros(3, np.longdouble)})
    assert not list(tmp_path.iterdir())


def test_a_small_file_takes_no_more_memory_than_it_is(tmp_path):
    """Test a compressed file, and a file that only claims to contain a large array."""
    small, claimed = tmp_path / "a.npz", tmp_path / "b.npz"
    save(small, {"x": np.zeros(1_000_000, np.uint8)})
    DAMAGES["compressed members"](small)
    save(claimed, {"x": np.zeros(3, np.uint8)})
    DAMAGES["an immense shape"](claimed)
    for path in (small, claimed):
        assert path.stat().st_size < 10_000
        tracemalloc.start()
        with pytest.raises(CheckpointError, match=path.name):
            checkpoint.read(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 500_000


def test_what_one_process_cannot_save_fails_in_all_and_names_it():
    """Processes exchange their results; each raises an error of its own unchanged."""
    told = []

    def make_group(*others):
        exchange = lambda topic, said: told.append(said) or [said, *others]
        return SimpleNamespace(members=(0, 2), exchange=exchange)

    def full():
        raise OSError(28, "No space left on device")

    assert steps._write_in_all(make_group("seal 2"), lambda: "seal 0") == ["seal 0", "seal 2"]
    with pytest.raises(OSError, match="process 2 could not save: the disk is full"):
        steps._write_in_all(make_group("!the disk is full"), lambda: "seal 0")
    with pytest.raises(OSError, match="No space left on device"):
        steps._write_in_all(make_group("seal 2"), full)
    assert told == ["seal 0", "seal 0", "![Errno 28] No space left on device"]
