"""A study killed at random moments, and resumed each time, ends with the bits it would have had."""

import json
import random
import shutil
import signal
import time

import numpy as np
import pytest
from forked import forked

from jaxgpu import checkpoint
from jaxgpu.cli import main

KILLS = 20
STUDY = ["solar-system", "--years", "100", "--tracers", "5000"]


def start(out, cache):
    """The command in a process of its own, forked after the imports: kills hit the run itself."""
    return forked(cache, main, ["run", *STUDY, "--out", str(out), "--resume"])


def finished(process):
    process.join(300)
    assert process.exitcode == 0


def assert_same_bits(out, whole):
    files = sorted(file.relative_to(whole) for file in whole.rglob("step-*.npz"))
    last = {file.parent: file for file in files}  # the name before it depends on the chunks
    assert len(last) == 2
    for file in last.values():
        (want, want_meta), (got, got_meta) = (checkpoint.read(at / file) for at in (whole, out))
        assert want_meta == got_meta and want.keys() == got.keys()
        for name in want:
            np.testing.assert_array_equal(want[name], got[name], strict=True)
    one, other = (json.loads((at / "report.json").read_text())["report"] for at in (whole, out))
    assert one["tables"] == other["tables"] and one["findings"] == other["findings"]


def newest(out):
    return max(out.rglob("step-*.npz"), default=None)


def killed_at_random(process, out, longest, saved):
    """Whether it was killed within `longest` seconds, if `saved` of its next save, not done."""
    before = newest(out)
    while saved and process.is_alive() and newest(out) == before:
        time.sleep(0.01)
    process.join(longest)
    process.kill()
    process.join()
    return process.exitcode == -signal.SIGKILL


@pytest.mark.slow
def test_20_kills_change_no_bit(tmp_path):
    """Half of them at any moment from the start on, half of them soon after a checkpoint."""
    whole, killed, cache = tmp_path / "whole", tmp_path / "killed", tmp_path / "cache"
    finished(start(whole, cache))
    began = time.perf_counter()
    finished(start(whole, cache))  # all but the steps themselves, compiled before
    overhead, pick, kills, reached = time.perf_counter() - began, random.Random(1), 0, set()
    while kills < KILLS:
        saved = kills % 2 == 1
        longest = pick.uniform(0, 1 if saved else overhead + 3)
        if killed_at_random(start(killed, cache), killed, longest, saved):
            kills += 1
            reached.add(newest(killed))
        else:  # it got to the end between two kills: begin anew
            assert_same_bits(killed, whole)
            shutil.rmtree(killed)
    assert len(reached) > 5, "the kills did not hit the run itself"
    finished(start(killed, cache))
    assert_same_bits(killed, whole)
