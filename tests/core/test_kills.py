"""A study that is killed at random and resumed each time: its bits are those of an unbroken run."""

import random
import shutil
import time

import pytest
from fork_server import fork_process
from kill_checks import assert_same_bits, join_process, kill_at_random, newest

from jaxgpu.cli import main

KILLS = 6
STUDY = ["solar-system", "--years", "50", "--tracers", "500"]


def start(out, cache):
    """Start the command in a process forked after the imports, so that kills hit the run itself."""
    return fork_process(cache, main, ["run", *STUDY, "--out", str(out), "--resume"])


@pytest.mark.slow
def test_kills_change_no_bit(tmp_path):
    """Half of the kills come at any moment from the start, half soon after a checkpoint."""
    whole, killed, cache = tmp_path / "whole", tmp_path / "killed", tmp_path / "cache"
    join_process(start(whole, cache))
    began = time.perf_counter()
    join_process(start(whole, cache))  # all but the steps themselves, compiled before
    overhead, pick, kills, reached = time.perf_counter() - began, random.Random(1), 0, set()
    while kills < KILLS:
        saved = kills % 2 == 1
        longest = pick.uniform(0, 0.2 if saved else overhead)
        if kill_at_random(start(killed, cache), killed, longest, saved):
            kills += 1
            reached.add(newest(killed))
        else:  # it ended between two kills: start again
            assert_same_bits(killed, whole)
            shutil.rmtree(killed)
    assert len(reached) > 2, "the kills did not hit the run itself"
    join_process(start(killed, cache))
    assert assert_same_bits(killed, whole) == 2
