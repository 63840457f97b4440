"""Memory that functions on the host would allocate, determined without allocating it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.devices import allocation, memory
from jaxgpu.physics import nbody
from jaxgpu.runs.loop import run

KEY = jax.random.key(0)


def test_results_in_use_at_a_time_are_counted():
    def sum_squares(n):
        a = jnp.ones(n, jnp.float32)
        b = a + 1  # a and b, 8 bytes for each of n
        return jnp.sum(b * b)  # b and its square

    assert allocation.peak_bytes(sum_squares, 1000) == 8000


def test_programs_inside_a_program_count():
    def inner(x):
        return jnp.sum(jnp.outer(x, x))

    for f in (jax.jit(inner), lambda x: jax.lax.scan(lambda c, _: (c, inner(x)), 0.0, length=3)):
        assert 4_000_000 <= allocation.peak_bytes(f, jnp.ones(1000, jnp.float32)) < 9_000_000


def test_the_scratch_of_a_sort_counts():
    need = allocation.peak_bytes(jnp.sort, np.zeros(1000, np.float32))
    assert need >= (4 + memory.SORT_BYTES) * 1000


@pytest.mark.slow
def test_refused_before_anything_is_made_and_named(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda: 10**6)
    for count in (1000, np.int64(1000)):
        assert nbody.plummer(KEY, count)[0].shape == (1000, 3)
    for count in (100_000, np.int64(10**6)):
        with pytest.raises(MemoryError, match=r"plummer: needs \d+\.\d+ GB, and 0\.00 GB are free"):
            nbody.plummer(KEY, count)


def test_a_function_that_is_traced_is_as_it_was(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda: 10**3)
    shapes = jax.eval_shape(lambda key: nbody.plummer(key, 10**9), KEY)
    assert shapes[0].shape == (10**9, 3)


def test_a_history_that_would_not_fit_is_refused_before_the_first_step(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda: 10**8)
    with pytest.raises(MemoryError, match="a history of 100000000 steps: needs .* measure less"):
        run(lambda x: x + 1, jnp.zeros(()), 10**8, measure=lambda x: x)
    with pytest.raises(MemoryError, match="a copy of the state"):
        run(lambda x: x + 1, np.zeros(30_000_000, np.float32), 1)


def test_a_checkpoint_that_would_not_fit_on_the_disk_is_refused(monkeypatch, tmp_path):
    disk = type("Disk", (), {"free": 1000})()
    monkeypatch.setattr("jaxgpu.runs.files.shutil.disk_usage", lambda folder: disk)
    with pytest.raises(OSError, match="GB of its disk are free; free disk space"):
        run(lambda x: x + 1, jnp.zeros(1000), 3, out=tmp_path)
    assert not list(tmp_path.glob("step-*"))
