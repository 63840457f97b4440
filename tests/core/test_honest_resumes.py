"""Resuming with the same script from any folder, in any process and with any arguments."""

import itertools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.user_scripts import HERE, SCRIPTS, resume_script

ROOT = Path(__file__).parents[2]
FEW = ["loop", "closure", "function of the host", "function of the host with asserts"]
# Each way to start another process consists of arguments of Python and an environment.
ELSEWHERE = {
    "as it was": ([], {}),
    "other hashes": ([], {"PYTHONHASHSEED": "1"}),
    "random hashes": ([], {"PYTHONHASHSEED": "random"}),
    "optimised": (["-O"], {}),
    "optimised twice": (["-OO"], {}),
    "developing": (["-X", "dev"], {}),
    "unbuffered": (["-u"], {}),
    "without positions": (["-X", "no_debug_ranges"], {}),
    "no bytecode": (["-B"], {}),
    "two devices": ([], {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}),
    "one thread": ([], {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}),
    "one processor": ([], {"NPROC": "1", "OMP_NUM_THREADS": "1"}),
    "messages of JAX": ([], {"JAX_LOGGING_LEVEL": "INFO"}),
    "tracebacks of JAX": ([], {"JAX_TRACEBACK_FILTERING": "off"}),
    "without a cache": ([], {"JAX_ENABLE_COMPILATION_CACHE": "0"}),
    "another language": ([], {"LC_ALL": "C"}),
}


def run_script(how, way, out, steps):
    arguments, environment = ELSEWHERE[how]
    command = [
        sys.executable,
        *arguments,
        ROOT / "tests/helpers/user_scripts.py",
        way,
        out,
        str(steps),
    ]
    surroundings = {n: x for n, x in os.environ.items() if not n.startswith(("XLA_", "JAX_"))}
    environment = surroundings | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"} | environment
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", FEW)
def test_a_script_that_is_written_otherwise_resumes(name, tmp_path):
    whole = resume_script("as it was", name, tmp_path / "whole", 4)
    resume_script("as it was", name, tmp_path / "half", 2)
    for way in HERE:
        shutil.copytree(tmp_path / "half", out := tmp_path / way)
        assert resume_script(way, name, out, 4) == whole, way


@pytest.mark.slow
@pytest.mark.parametrize(
    "starts",
    [
        ["other hashes", "optimised", "two devices", "another language"],
        pytest.param(list(ELSEWHERE), marks=pytest.mark.release),
    ],
    ids=["some", "all"],
)
def test_every_script_resumes_in_other_processes(starts, tmp_path):
    """The scripts are also written in each of the ways of `HERE`."""
    whole = run_script("as it was", "as it was", tmp_path / "whole", 4)
    assert all(isinstance(rows, list) for rows in whole.values()) and len(whole) == len(SCRIPTS)
    run_script("as it was", "as it was", tmp_path / "half", 2)
    for how, way in zip(starts, itertools.cycle(HERE)):
        shutil.copytree(tmp_path / "half", out := tmp_path / f"{how}, {way}")
        assert run_script(how, way, out, 4) == whole, (how, way)
