"""Estimates of memory against what a program really takes."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import psutil
import pytest

from jaxgpu.devices import memory

MEASURE = """
import psutil, re, sys, jax, jax.numpy as jnp
from jaxgpu.devices import memory
n = int(sys.argv[1])
double = lambda x: jnp.concatenate([x, 2 * x])
rolled = lambda x: jnp.roll(double(x), 5)[::-1] + double(jnp.cos(x))
lengths = lambda x: jnp.sum(x.reshape(-1, 4) * jnp.cos(x.reshape(-1, 4)), 1)
f = jax.jit({"rolled": rolled, "lengths": lengths}[sys.argv[2]])
x = jax.block_until_ready(jnp.ones(n, jnp.float32))
program = f.lower(x).compile()
before = psutil.Process().memory_info().rss - 4 * n
jax.block_until_ready(program(x))
# the peak of this process alone: ru_maxrss begins with that of the process that started it
peak = 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
print(memory.estimate_peak(program), peak - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rolled", "lengths"])
def test_forecast_is_within_a_tenth_of_the_measured_peak(name):
    """One program sums products in a library of XLA, which stores them."""
    out = subprocess.check_output([sys.executable, "-c", MEASURE, "40000000", name], text=True)
    forecast, measured = map(int, out.split())
    assert forecast == pytest.approx(measured, rel=0.1)


def test_a_program_for_more_than_the_machine_has_is_refused_unrun():
    huge = jax.ShapeDtypeStruct((1 << 37,), jnp.float32)  # half a terabyte
    program = jax.jit(lambda x: x + 1).lower(huge).compile()
    with pytest.raises(MemoryError, match=r"sky: needs 1099\.51 GB, and .* are free; make the"):
        memory.check(program, "sky")


def test_available_is_what_the_system_says():
    assert memory.free_bytes() == pytest.approx(psutil.virtual_memory().available, rel=0.2)
    assert os.name != "posix" or memory.free_bytes() > 0


def test_an_accelerator_is_asked_for_its_own_account():
    class Device:
        def memory_stats(self):
            return {"bytes_limit": 100, "bytes_in_use": 30}

    assert memory.free_bytes(Device()) == 70


def files(root, texts):
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_a_container_has_what_its_group_and_those_above_it_leave(tmp_path):
    root = files(
        tmp_path,
        {
            "proc/self/cgroup": "9:name=systemd:/\n0::/job/step\n",
            "sys/fs/cgroup/job/step/memory.max": "max\n",
            "sys/fs/cgroup/job/step/memory.current": "500\n",
            "sys/fs/cgroup/job/memory.max": "1000\n",
            "sys/fs/cgroup/job/memory.current": "800\n",
            "sys/fs/cgroup/job/memory.stat": "anon 500\ninactive_file 150\nslab 7\n",
        },
    )
    assert list(memory._remaining_bytes(root)) == [
        1000 - 800 + 150
    ]  # pages of files can be taken back


def test_control_groups_of_version_1_count_those_below(tmp_path):
    group = "sys/fs/cgroup/memory"
    root = files(
        tmp_path,
        {
            # Inside a container, the path is that of the host and the group is at the top.
            "proc/self/cgroup": "4:cpu,cpuacct:/\n3:memory:/docker/abc\n",
            f"{group}/memory.limit_in_bytes": "3000",
            f"{group}/memory.usage_in_bytes": "2900",
            f"{group}/memory.stat": "inactive_file 1\ntotal_inactive_file 400\n",
        },
    )
    assert list(memory._remaining_bytes(root)) == [500]


def test_the_tightest_limit_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "_remaining_bytes", lambda root: iter([700, 300, 500]))
    assert memory.free_bytes() == 300


def test_a_machine_without_control_groups_has_no_limits_of_them(tmp_path):
    assert list(memory._remaining_bytes(tmp_path)) == []


def test_the_limit_of_addresses_counts(tmp_path, monkeypatch):
    most = psutil.Process().memory_info().vms + 10**9
    limits = {memory.resource.RLIMIT_AS: (most, most)}
    infinite = (memory.resource.RLIM_INFINITY,) * 2
    monkeypatch.setattr(memory.resource, "getrlimit", lambda kind: limits.get(kind, infinite))
    (left,) = memory._remaining_bytes(tmp_path)
    assert left == pytest.approx(10**9, rel=0.3)


@pytest.mark.parametrize(
    ("f", "arrays"), [(jnp.sort, 1), (jnp.argsort, 2), (lambda x: jnp.lexsort((x, -x)), 3)]
)
def test_the_scratch_of_a_sort_is_forecast(f, arrays):
    x = jax.ShapeDtypeStruct((5, 1000), jnp.float32)
    program = jax.jit(lambda x: f(x) + 0).lower(x).compile()
    need = program.memory_analysis()
    counted = need.argument_size_in_bytes + need.output_size_in_bytes + need.temp_size_in_bytes
    assert memory.estimate_peak(program) - counted == 16 * arrays * 1000


def test_a_tenth_of_the_free_memory_is_left_alone(monkeypatch):
    program = jax.jit(lambda x: 2 * x).lower(jax.ShapeDtypeStruct((100_000,), "float32")).compile()
    need = memory.estimate_peak(program)
    assert need >= 800_000  # what goes in and what comes out
    monkeypatch.setattr(memory, "free_bytes", lambda: need / 0.89)
    memory.check(program, "double")
    monkeypatch.setattr(memory, "free_bytes", lambda: need / 0.91)
    with pytest.raises(MemoryError, match="double: needs"):
        memory.check(program, "double")
