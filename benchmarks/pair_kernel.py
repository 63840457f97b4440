"""Acceleration and jerk of pairs a second, beside a C loop compiled for this machine in the run."""

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
from jaxgpu.physics.nbody import pairs
from jaxgpu.precision import in_float64, reassociation

SOURCES, PAIRS = 4096, 1 << 25
FLAGS = ["-O3", "-march=native", "-ffast-math", "-shared", "-fPIC"]


@in_float64
def entries() -> list[Entry]:
    """From 8 to 4096 targets, always the same number of pairs; float64."""
    random = np.random.default_rng(0)
    sources, m = random.normal(size=(6, SOURCES)), random.uniform(0.5, 1.5, SOURCES)
    c = _c_loop()
    return [_entry(count, random.normal(size=(6, count)), sources, m, c) for count in _COUNTS]


_COUNTS = (8, 64, 512, 4096)


def _entry(
    count: int, x: np.ndarray, sources: np.ndarray, m: np.ndarray, c: Callable[..., np.ndarray]
) -> Entry:
    times = PAIRS // (count * SOURCES)
    want = c(x, sources, m, 1)
    ours = partial(_ours, _compiled(reassociation()), x, sources, m, times)
    portable = partial(_ours, _compiled({}), x, sources, m, times)
    theirs = partial(c, x, sources, m, times)
    return Entry(
        name=f"pair-kernel-{count}",
        work=f"acceleration and jerk at {count} targets by {SOURCES} sources, {times} times",
        contenders=[
            Contender(name, partial(_against, want, run))
            for name, run in (
                ("jaxgpu pairs.pull, reassociated", ours),
                ("jaxgpu pairs.pull, no options", portable),
                ("C, vectors by hand, gcc " + " ".join(FLAGS[:3]), theirs),
            )
        ],
        amount=PAIRS,
        unit="pairs",
    )


def _against(want: np.ndarray, run: Callable[[], np.ndarray]) -> dict[str, float]:
    return {"error": float(np.abs(run() - want).max() / np.abs(want).max())}


def _compiled(options: dict) -> Callable:
    def many(x, sources, m, times):
        # each round depends on the last, in a way that rounding removes but no compiler may
        again = lambda _, f: pairs.pull(x + 1e-300 * f, sources, m)
        return lax.fori_loop(0, times, again, jnp.zeros_like(x))

    return jax.jit(many, compiler_options=options)


@in_float64
def _ours(program: Callable, x, sources, m, times: int) -> np.ndarray:
    return np.asarray(program(jnp.asarray(x), jnp.asarray(sources), jnp.asarray(m), times))


def _c_loop() -> Callable[..., np.ndarray]:
    """`pair_kernel.c` as a function; the library lives as long as the process."""
    folder = tempfile.TemporaryDirectory()
    library = Path(folder.name) / "pairs.so"
    source = str(Path(__file__).with_suffix(".c"))
    subprocess.run(["gcc", *FLAGS, source, "-o", str(library), "-lm"], check=True)
    function = ctypes.CDLL(str(library)).pull

    def run(x: np.ndarray, sources: np.ndarray, m: np.ndarray, times: int) -> np.ndarray:
        f = np.zeros_like(x)
        at = [ctypes.c_void_p(a.ctypes.data) for a in (x, sources, m, f)]
        for _ in range(times):
            function(*at, ctypes.c_size_t(x.shape[1]), ctypes.c_size_t(sources.shape[1]))
        return f

    folder.cleanup()
    return run
