"""TensorBoard: the written values by a fake; `check_adapters.py` reads real files back."""

import sys
import types

import numpy as np
import pytest

from jaxgpu.rl.logs import to_tensorboard

HISTORY = {"episode_return": np.array([0.0, 7.0, 9.0]), "episodes": np.array([0.0, 2.0, 1.0])}


@pytest.fixture
def scalars(monkeypatch):
    """Return the list of all written scalars: folder, name, value, step."""
    rows = []

    class Writer:
        def __init__(self, folder):
            self.folder = folder

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def add_scalar(self, *row):
            rows.append((self.folder, *row))

    stand_in = types.SimpleNamespace(SummaryWriter=Writer)
    monkeypatch.setitem(sys.modules, "tensorboardX", stand_in)
    return rows


def test_returns_are_written_where_episodes_ended(scalars, tmp_path):
    to_tensorboard(HISTORY, tmp_path, 100)
    returns = [row[2:] for row in scalars if row[1] == "episode_return"]
    assert returns == [(7.0, 100), (9.0, 200)]
    assert [row[2:] for row in scalars if row[1] == "episodes"] == [(0, 0), (2, 100), (1, 200)]


def test_seeds_get_folders_of_their_own(scalars, tmp_path):
    many = {name: np.stack([x, x + 1], 1) for name, x in HISTORY.items()}
    to_tensorboard(many, tmp_path, 100)
    last = {row[0]: row[2] for row in scalars if row[1] == "episode_return"}
    assert last == {str(tmp_path / "0"): 9.0, str(tmp_path / "1"): 10.0}


def test_what_is_missing_is_said(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "jaxgpu\[tensorboard\]"'):
        to_tensorboard(HISTORY, tmp_path, 100)
    with pytest.raises(ValueError, match=r"give arrays \[updates\]"):
        to_tensorboard({**HISTORY, "loss": np.zeros(4)}, tmp_path, 100)
