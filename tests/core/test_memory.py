"""The forecast against what a program really takes."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import psutil
import pytest

from jaxgpu import memory

MEASURE = """
import psutil, re, sys, jax, jax.numpy as jnp
from jaxgpu import memory
n = int(sys.argv[1])
double = lambda x: jnp.concatenate([x, 2 * x])
f = jax.jit(lambda x: jnp.roll(double(x), 5)[::-1] + double(jnp.cos(x)))
x = jax.block_until_ready(jnp.ones(n, jnp.float32))
program = f.lower(x).compile()
before = psutil.Process().memory_info().rss - 4 * n
jax.block_until_ready(program(x))
# the peak of this process alone: ru_maxrss begins with that of the process that started it
peak = 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
print(memory.forecast(program), peak - before)
"""


@pytest.mark.slow
def test_forecast_is_within_a_tenth_of_the_measured_peak():
    out = subprocess.check_output([sys.executable, "-c", MEASURE, "40000000"], text=True)
    forecast, measured = map(int, out.split())
    assert forecast == pytest.approx(measured, rel=0.1)


def test_a_program_for_more_than_the_machine_has_is_refused_unrun():
    huge = jax.ShapeDtypeStruct((1 << 37,), jnp.float32)  # half a terabyte
    program = jax.jit(lambda x: x + 1).lower(huge).compile()
    with pytest.raises(MemoryError, match=r"sky: needs 1099\.51 GB, and .* are free; make the"):
        memory.check(program, "sky")


def test_available_is_what_the_system_says():
    assert memory.available() == pytest.approx(psutil.virtual_memory().available, rel=0.2)
    assert os.name != "posix" or memory.available() > 0


def test_an_accelerator_is_asked_for_its_own_account():
    class Device:
        def memory_stats(self):
            return {"bytes_limit": 100, "bytes_in_use": 30}

    assert memory.available(Device()) == 70
