"""Runs of several processes: they match one process, and all processes end together."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import process_job
import pytest

import jaxgpu
from jaxgpu.devices import mesh
from jaxgpu.devices.processes import ALONE, Group, blocks, place, start, watchdog
from jaxgpu.devices.processes import group as groups
from jaxgpu.runs.saving import identity

ROOT = Path(__file__).parents[2]
DEVICES = 8  # in all, as in the tests' own process


def free_port(first=61440, count=4096):
    """Return a port without a listener, in the range that JAX uses for SLURM jobs."""
    for port in np.random.default_rng().permutation(count) + first:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", int(port))):
                return int(port)
    raise OSError("no port is free")


def slurm_env(number, count, port):
    """Return the environment that SLURM gives to a process."""
    return {
        "SLURM_JOB_ID": str(port - 61440),
        "SLURM_STEP_NODELIST": "127.0.0.1",
        "SLURM_NTASKS": str(count),
        "SLURM_PROCID": str(number),
        "SLURM_LOCALID": str(number),
    }


def kubernetes_env(number, count, port):
    """Return the environment that the launch file for Kubernetes gives to a process."""
    return {
        "JAX_COORDINATOR_ADDRESS": f"127.0.0.1:{port}",
        "JAX_NUM_PROCESSES": str(count),
        "JAX_PROCESS_ID": str(number),
    }


def run_jobs(folder, count, steps, event="", told=kubernetes_env):
    """Run the job in `count` processes; return their exit codes, stderr and results."""
    port, path = free_port(), os.pathsep.join([str(ROOT), str(ROOT / "tests" / "helpers")])
    command = [sys.executable, process_job.__file__, str(folder), str(steps), str(DEVICES // count)]
    environment = os.environ | {"PYTHONPATH": path}
    jobs = [
        subprocess.Popen(
            [*command, event],
            env=environment | told(number, count, port),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(count)
    ]
    try:
        errors = [job.communicate(timeout=120)[1] for job in jobs]
    finally:
        for job in jobs:
            job.kill()
    found = [folder / f"{number}.json" for number in range(count)]
    results = [json.loads(file.read_text()) for file in found if file.exists()]
    return [job.returncode for job in jobs], errors, results


def run_alone(steps, out):
    """Run the job in this process; return its result and the digest of its state."""
    result = process_job.run_job(out, steps)
    return result, identity.arrays_digest(result.state)


@pytest.mark.slow
def test_four_two_and_one_process_advance_a_run_with_the_same_bits(tmp_path):
    """All skip a damaged part and stop when one is signalled; then a single process resumes."""
    codes, errors, results = run_jobs(tmp_path, 4, 10)
    assert codes == [0] * 4, errors
    one, state = run_alone(10, tmp_path / "one")
    for result in results:
        assert result["state"] == state and result["turn"] == one.history["turn"].tolist()
        np.testing.assert_allclose(result["mean"], one.history["mean"], rtol=1e-5, atol=1e-6)
    assert [result["leads"] for result in results] == [True, False, False, False]
    names = sorted(path.name for path in (tmp_path / "out").glob("step-*/*"))
    assert names == sorted(2 * ["manifest.json", *(f"part-0000{i}.npz" for i in range(4))])
    part = tmp_path / "out" / "step-000000000010" / "part-00003.npz"
    data = bytearray(part.read_bytes())
    data[len(data) // 2] ^= 1
    part.write_bytes(data)
    codes, errors, _ = run_jobs(tmp_path, 2, 20, "SIGTERM", told=slurm_env)
    assert codes == 2 * [-signal.SIGINT], errors  # how Python ends of a KeyboardInterrupt
    assert "part-00003.npz: damaged or not" in errors[0] + errors[1]
    assert "loading step-000000000005" in errors[0]
    assert all("stopped at step 15 of 20; resume from" in error for error in errors)
    rest, state = run_alone(20, tmp_path / "out")
    assert rest.timing.steps == 5 and state == run_alone(20, tmp_path / "one")[1]
    kept = sorted(path.name for path in (tmp_path / "out").glob("step-*"))
    assert kept == ["step-000000000015", "step-000000000020.npz"]


@pytest.mark.slow
def test_processes_keep_states_and_branch(tmp_path):
    """The branch of two processes has the bits of the run, and one process resumes it."""
    codes, errors, results = run_jobs(tmp_path, 2, 12, "branch")
    assert codes == [0, 0], errors
    state = run_alone(12, tmp_path / "one")[1]
    assert [(r["state"], r["steps"], len(r["turn"])) for r in results] == 2 * [(state, 4, 13)]
    names = sorted(path.name for path in (tmp_path / "out").glob("step-*"))
    assert names == [f"step-0000000000{step}-kept" for step in ("04", "08", "12")]
    early = jaxgpu.load(tmp_path / "out", step=4)
    assert early.steps == (4, 8, 12) and len(early.history["turn"]) == 5
    assert jaxgpu.load(tmp_path / "branch").changes == ["at step 8: branched from out"]
    rest, state = run_alone(20, tmp_path / "branch")
    assert rest.timing.steps == 8 and state == run_alone(20, tmp_path / "one")[1]


@pytest.mark.slow
def test_a_process_that_is_killed_ends_the_other_and_the_run_resumes(tmp_path):
    """The two start from a checkpoint of one process, and one process finishes their run."""
    run_alone(5, tmp_path / "out")
    codes, errors, _ = run_jobs(tmp_path, 2, 40, "SIGKILL")
    assert codes == [75, -signal.SIGKILL]
    assert "silent" in errors[0] or "is lost" in errors[0]
    assert errors[0].count("start all processes again with resume=True") == 1
    rest, state = run_alone(20, tmp_path / "out")
    assert 5 <= rest.timing.steps <= 10 and state == run_alone(20, tmp_path / "one")[1]


@pytest.mark.slow
def test_processes_that_do_not_run_the_same_are_told(tmp_path):
    codes, errors, _ = run_jobs(tmp_path, 2, 5, "other steps")
    said = "run: steps is 6 in process 1 and 5 in process 0; start the same program"
    assert codes == [1, 1] and all(said in error for error in errors)


@pytest.mark.parametrize(
    "given, error, said",
    [
        ({"address": "10.0.0.1"}, ValueError, "must be host:port"),
        ({"address": 7}, TypeError, "must be a word"),
        ({"count": 0}, ValueError, "count=0; it must be"),
        ({"number": -1}, ValueError, "number=-1; it must be"),
        ({"count": 1.5}, TypeError, "count=1.5 of type float64; it must be a whole number"),
        ({"number": 0.5}, TypeError, "number=0.5 of type float64; it must be a whole number"),
        ({"count": 2, "number": 2}, ValueError, "number=2; it must be below count=2"),
        ({"count": "two"}, TypeError, "count='two'; it must be"),
        ({"wait": 0.0}, ValueError, "wait=0; it must be"),
        ({"address": "a:1", "count": 1, "number": 0}, RuntimeError, "call it first, before any"),
    ],
)
def test_processes_are_joined_once_and_first(given, error, said):
    mesh.make_mesh()
    with pytest.raises(error, match=said):
        jaxgpu.distributed(**given)


def test_a_port_that_is_taken_is_refused():
    with socket.socket() as other:
        other.bind(("", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(ValueError, match="its port is not free .*; use another"):
            start._check_port_free(address)
    start._check_port_free(address)


@pytest.fixture
def joining(monkeypatch):
    """Collect the arguments that JAX receives, without joining any process."""
    told = []
    monkeypatch.setattr(start, "_check_not_started", lambda: None)
    monkeypatch.setattr(jax.distributed, "initialize", lambda *a, **named: told.append((a, named)))
    return told


def test_only_the_process_that_opens_the_port_asks_whether_it_is_free(joining):
    """The other processes look for a listener at that port."""
    with socket.socket() as other:
        other.bind(("", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(ValueError, match="its port is not free"):
            jaxgpu.distributed(address, 2, 0)
        assert not joining
        jaxgpu.distributed(address, 2, 1, wait=100.0)
    ((place, named),) = joining
    assert place == (address, 2, 1) and named["cluster_detection_method"] is None
    assert named["initialization_timeout"] > 100  # the clock of this package comes first
    clocks = [t for t in threading.enumerate() if isinstance(t, threading.Timer)]
    assert all(clock.finished.is_set() for clock in clocks)  # and is stopped


def test_no_launcher_is_asked_where_the_environment_tells_all(joining, monkeypatch):
    for name, text in kubernetes_env(1, 2, 1234).items():
        monkeypatch.setenv(name, text)
    jaxgpu.distributed()
    ((place, named),) = joining
    assert place == ("127.0.0.1:1234", 2, 1)
    assert named["cluster_detection_method"] == "deactivate"


def test_a_watch_shows_once_in_its_period_that_it_lives_and_how_it_ended(monkeypatch):
    said = []
    service = SimpleNamespace(
        key_value_set=lambda key, text, allow_overwrite: said.append(text),
        key_value_dir_get=lambda room: [(f"{room}000000", "7")],
    )
    monkeypatch.setattr(groups, "client", lambda: service)
    with watchdog.Watchdog(Group((0, 2), 2), "resume it"):
        time.sleep(0.3)
    assert said == ["1", "left"]
    said.clear()
    with pytest.raises(ValueError), watchdog.Watchdog(Group((0, 2), 2), "resume it"):
        raise ValueError("the disk\nis on fire")
    assert said[-1] == "failed ValueError: the disk is on fire"


@pytest.mark.parametrize(
    "text, silence, why",
    [
        ("3", 24.9, None),
        ("3", 25.1, "process 0 has been silent for 25 s"),
        ("failed ValueError: fire", 9.9, None),
        ("failed ValueError: fire", 10.1, "process 0 failed ValueError: fire"),
    ],
)
def test_a_process_that_is_silent_or_has_failed_is_given_up(
    text, silence, why, monkeypatch, capsys
):
    """Exit with code 75 after 25 s, or after 10 s in which the others may end by themselves."""

    def leave(code):
        raise SystemExit(code)

    monkeypatch.setattr(watchdog, "os", SimpleNamespace(_exit=leave))
    judge = lambda: watchdog.Watchdog(Group((0, 2), 2), "resume it")._check_process(
        0, text, silence
    )
    if why is None:
        judge()
        return
    with pytest.raises(SystemExit, match="75"):
        judge()
    assert capsys.readouterr().err == f"jaxgpu: {why}; resume it\n"


def test_the_environment_is_held_to_the_same_rules(monkeypatch):
    monkeypatch.setenv("JAX_PROCESS_ID", "first")
    with pytest.raises(ValueError, match="JAX_PROCESS_ID='first'; it must be a whole number"):
        jaxgpu.distributed()


def test_an_array_is_read_in_blocks_in_the_order_of_its_memory():
    x = np.arange(2 * 3 * 16, dtype=np.float32).reshape(2, 3, 16)
    spread = mesh.shard(x, mesh.make_mesh(8), axis=2)
    for most in (4, 40, 64, 150, 1 << 20):
        found = list(blocks(spread, most))
        np.testing.assert_array_equal(np.concatenate([b.ravel() for b in found]), x.ravel())
        assert all(b.nbytes <= most for b in found)
    assert [b.size for b in blocks(spread, 1)] == [1] * x.size  # a number at least
    for shape in ((), (0, 3)):
        (block,) = blocks(place(np.zeros(shape), mesh.replicate(1.0, mesh.make_mesh(8)).sharding))
        assert block.shape == shape


@pytest.fixture
def service(monkeypatch):
    """Fake the service; tests put the text of process 5 into the returned answers, by topic."""
    answers, said = {}, {}

    def texts(room):
        topic = room.split("/")[2]
        return [(f"{room}000001", answers[topic]), (f"{room}000000", said[f"{room}000000"])]

    here = SimpleNamespace(
        key_value_set=lambda key, text, allow_overwrite: said.__setitem__(key, text),
        wait_at_barrier=lambda name, patience, members: None,
        key_value_dir_get=texts,
    )
    monkeypatch.setattr(groups, "client", lambda: here)
    return answers


def test_what_processes_say_comes_back_in_their_order(service):
    pair = Group((2, 5), 2)
    service |= {"word": "there", "flag": "1", "facts": '{"steps": 6, "chunk": 5}'}
    assert pair.exchange("word", "here") == ["here", "there"]
    assert pair.broadcast("word", [1]) == [1] and pair.any_process("flag", False)
    service["flag"] = "0"
    assert pair.any_process("flag", True) and not pair.any_process("flag", False)
    pair.agree({"steps": 6, "chunk": 5})
    with pytest.raises(ValueError, match="run: steps is 6 in process 5 and 7 in process 2; start"):
        pair.agree({"steps": 7, "chunk": 5})


def test_those_who_hold_a_part_of_a_state_are_a_group(monkeypatch):
    """The arrays are fakes, since only the processes of their devices matter."""
    array = lambda *numbers: SimpleNamespace(
        device_set=[SimpleNamespace(process_index=number) for number in numbers]
    )
    monkeypatch.setattr(groups, "spans", lambda leaf: isinstance(leaf, SimpleNamespace))
    monkeypatch.setattr(groups, "named_sharding", lambda leaf: leaf)
    monkeypatch.setattr(jax, "process_index", lambda: 5)
    found = groups.sharding_group({"x": array(5, 2, 5), "y": array(2, 7), "n": 1})
    assert found == Group((2, 5, 7), 5) and found.rank == 1
    assert groups.sharding_group({"n": 1}) is ALONE
    with pytest.raises(ValueError, match="process 5 holds no part .* of processes 2, 7; use"):
        groups.sharding_group([array(7, 2)])


def test_who_is_alone_asks_nobody():
    assert ALONE.alone and ALONE.first and ALONE.rank == 0
    assert ALONE.exchange("any", "it") == ["it"] and ALONE.broadcast("any", {"a": 1}) == {"a": 1}
    assert ALONE.any_process("any", True) and not ALONE.any_process("any", False)
    ALONE.agree({"steps": 3})
    second = Group((2, 5), 5)
    assert not second.alone and not second.first and second.rank == 1
    assert jax.process_count() == 1
