"""Accelerations and jerks of pairs per second, compared with a C loop compiled for this machine.

Every pair needs a division and a square root, and the divider is the scarcest unit of a core. The
last line of the table is therefore the time of these two operations only: a limit.
"""

import ctypes
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.harness import Contender, Entry
from jaxgpu.devices.precision import reassociation, with_float64
from jaxgpu.physics.nbody.forces import hilo, pairs

SOURCES, PAIRS = 4096, 1 << 25
FLAGS = ["-O3", "-march=native", "-ffast-math", "-funroll-loops", "-shared", "-fPIC"]


@with_float64
def entries() -> list[Entry]:
    """Return entries of 8 to 4096 targets with the same number of pairs, in float64."""
    random = np.random.default_rng(0)
    sources, m = random.normal(size=(6, SOURCES)), random.uniform(0.5, 1.5, SOURCES)
    c = _compile_library()
    return [_entry(count, random.normal(size=(6, count)), sources, m, c) for count in _COUNTS]


_COUNTS = (8, 64, 512, 4096)


def _entry(count: int, x: np.ndarray, sources: np.ndarray, m: np.ndarray, c: ctypes.CDLL) -> Entry:
    times = PAIRS // (count * SOURCES)
    want = _run_c(c, x, sources, m, 1)
    ours = partial(_run_jaxgpu, _compile(reassociation()), x, sources, m, times)
    portable = partial(_run_jaxgpu, _compile({}), x, sources, m, times)
    halves = partial(_run_hilo, x, sources, m, times)
    theirs = partial(_run_c, c, x, sources, m, times)
    return Entry(
        name=f"pair-kernel-{count}",
        work=f"acceleration and jerk at {count} targets by {SOURCES} sources, {times} times",
        contenders=[
            Contender(name, partial(_error_against, want, run))
            for name, run in (
                ("jaxgpu pairs.pull, reassociated", ours),
                ("jaxgpu pairs.pull, no options", portable),
                ("jaxgpu hilo.pull, float32 pairs", halves),
                ("C, vectors by hand, gcc " + " ".join(FLAGS[:4]), theirs),
            )
        ]
        + [Contender("C, a division and a root a pair", partial(_run_limit, c))],
        amount=PAIRS,
        unit="pairs",
    )


def _error_against(want: np.ndarray, run: Callable[[], np.ndarray]) -> dict[str, float]:
    return {"error": float(np.abs(run() - want).max() / np.abs(want).max())}


def _compile(options: dict) -> Callable:
    def repeat_pull(x, sources, m, times):
        # Each round depends on the last, so no compiler can remove it; rounding cancels the term.
        again = lambda _, f: pairs.pull(x + 1e-300 * f, sources, m)
        return lax.fori_loop(0, times, again, jnp.zeros_like(x))

    return jax.jit(repeat_pull, compiler_options=options)


@with_float64
def _run_jaxgpu(program: Callable, x, sources, m, times: int) -> np.ndarray:
    return np.asarray(program(jnp.asarray(x), jnp.asarray(sources), jnp.asarray(m), times))


@with_float64
def _run_hilo(x, sources, m, times: int) -> np.ndarray:
    given = *(hilo.split(jnp.asarray(q)) for q in (x, sources)), jnp.asarray(m, jnp.float32)
    return np.asarray(hilo.join(_repeat_hilo(*given, times)))


@jax.jit
def _repeat_hilo(x, sources, m, times):
    again = lambda _, f: hilo.pull(x + 1e-30 * f, sources, m)
    return lax.fori_loop(0, times, again, jnp.zeros_like(x))


def _compile_library() -> ctypes.CDLL:
    """Return the library compiled from `pair_kernel.c`, loaded for the whole process."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "pairs.so"
        source = str(Path(__file__).with_suffix(".c"))
        subprocess.run(["gcc", *FLAGS, source, "-o", str(library), "-lm"], check=True)
        return ctypes.CDLL(str(library))


def _pointers(*arrays: np.ndarray) -> list[ctypes.c_void_p]:
    return [ctypes.c_void_p(a.ctypes.data) for a in arrays]


def _run_c(library: ctypes.CDLL, x, sources, m, times: int) -> np.ndarray:
    f = np.zeros_like(x)
    for _ in range(times):
        sizes = (ctypes.c_size_t(n) for n in (x.shape[1], sources.shape[1]))
        library.pull(*_pointers(x, sources, m, f), *sizes)
    return f


def _run_limit(library: ctypes.CDLL) -> dict[str, float]:
    q, sums = np.linspace(1, 2, PAIRS >> 8), np.zeros(8)
    for _ in range(1 << 8):
        library.divide_and_root(*_pointers(q, sums), ctypes.c_size_t(q.size))
    return {}
