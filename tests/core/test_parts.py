"""Checkpoints of several processes: each part is exactly right or rejected by name."""

import random
import shutil

import jax
import numpy as np
import pytest
from conformance import flip_bit

from jaxgpu.runs import checkpoint
from jaxgpu.runs.checkpoint import CheckpointError, binary, folder, parts
from jaxgpu.runs.checkpoint.parts import Pieces

RANKS = 3
TREE = {
    "key": jax.random.key(5),
    "x": np.arange(48, dtype=np.float32).reshape(4, 12),
    "y": np.linspace(0, 1, 6).astype(jax.numpy.bfloat16),
}


def save(directory, step, tree=TREE, ranks=RANKS, meta=None):
    """Write a checkpoint of `ranks` processes: x and y are split, the key is the first one's."""
    path = folder.step_path(directory, step)
    leaves = [
        [name, binary.kind_of(x), list(np.shape(binary.numbers_of(x)))]
        for name, x in binary.named_leaves(tree)
    ]
    key, x, y = (np.asarray(binary.numbers_of(leaf)) for _, leaf in binary.named_leaves(tree))
    seals = []
    for rank in range(ranks):
        columns, some = [[n * rank // ranks, n * (rank + 1) // ranks] for n in (12, 6)]
        pieces = [(1, [[0, 4], columns], x[:, slice(*columns)]), (2, [some], y[slice(*some)])]
        pieces += [(0, [[0, 2]], key)] if rank == 0 else []
        mine = Pieces(leaves, [(n, box) for n, box, _ in pieces], [a for _, _, a in pieces])
        seals.append(parts.write(path, rank, mine))
    parts.commit(path, leaves, {**(meta or {}), "step": step}, seals)
    folder.drop_older(directory, path, 2)
    return path


def test_parts_come_back_as_one_bit_for_bit(tmp_path):
    arrays, meta = checkpoint.read(save(tmp_path, 7, meta={"a": 1}))
    assert meta == {"a": 1, "step": 7}
    np.testing.assert_array_equal(arrays["['x']"], TREE["x"], strict=True)
    np.testing.assert_array_equal(arrays["['y']"], TREE["y"], strict=True)
    tree, _ = checkpoint.load(tmp_path / "step-000000000007", TREE)
    assert jax.random.key_data(tree["key"]).tolist() == jax.random.key_data(TREE["key"]).tolist()
    assert checkpoint.holds_any(tmp_path)


def test_flipped_bits_in_any_file_are_refused_and_the_one_before_is_used(tmp_path):
    save(tmp_path, 1)
    newest, pick = save(tmp_path, 2), random.Random(0)
    for file in sorted(newest.iterdir()):
        good = file.read_bytes()
        for _ in range(100):
            file.write_bytes(flip_bit(good, pick))
            with pytest.raises(CheckpointError, match=file.name):
                checkpoint.load(newest, TREE)
        with pytest.warns(UserWarning, match=f"{file.name}.*loading step-000000000001"):
            assert checkpoint.load_last(tmp_path, lambda meta: TREE)[1]["step"] == 1
        file.write_bytes(good)
    assert checkpoint.load_last(tmp_path, lambda meta: TREE)[1]["step"] == 2


def test_a_part_that_is_missing_or_of_another_checkpoint_is_named(tmp_path):
    other, path = save(tmp_path, 1, TREE | {"x": -TREE["x"]}), save(tmp_path, 2)
    part = path / "part-00001.npz"
    shutil.copy(other / part.name, part)
    with pytest.raises(CheckpointError, match=r"part-00001.npz: belongs to another checkpoint"):
        checkpoint.read(path)
    part.unlink()
    with pytest.raises(CheckpointError, match=r"part-00001.npz: no such checkpoint"):
        checkpoint.read(path)


def test_without_a_manifest_there_is_no_checkpoint(tmp_path):
    (save(tmp_path, 3) / folder.MANIFEST).unlink()
    assert not checkpoint.holds_any(tmp_path)
    assert checkpoint.load_last(tmp_path, lambda meta: TREE) is None


def test_values_that_nobody_wrote_are_missed(tmp_path):
    path, leaves = folder.step_path(tmp_path, 1), [["x", "float32", [4]]]
    seal = parts.write(path, 0, Pieces(leaves, [(0, [[0, 3]])], [np.zeros(3, np.float32)]))
    parts.commit(path, leaves, {"step": 1}, [seal])
    with pytest.raises(CheckpointError, match="has 3 of 4 values of x"):
        checkpoint.read(path)


def test_the_newest_two_are_kept_and_what_was_left_behind_goes(tmp_path):
    save(tmp_path, 10, ranks=1)
    (tmp_path / "step-000000000015").mkdir()  # begun by processes that were killed
    checkpoint.save_step(tmp_path, 20, TREE, {})
    save(tmp_path, 30)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "step-000000000020.npz",
        "step-000000000030",
    ]
    save(tmp_path, 30, ranks=2)  # rewritten by fewer processes
    assert len(list((tmp_path / "step-000000000030").glob("part-*"))) == 2
    checkpoint.save_step(tmp_path, 40, TREE, {})
    checkpoint.save_step(tmp_path, 50, TREE, {})
    kept = sorted(path.name for path in tmp_path.iterdir())
    assert kept == ["step-000000000040.npz", "step-000000000050.npz"]
