"""log I_v(x) and log K_v(x) at a million points on one core: jaxgpu, SciPy, TFP and logbesselk.

`pip install tfp-nightly logbesselk` installs the two peers that are not in the extra `bench`.
"""

import os
from collections.abc import Callable
from functools import partial
from importlib import import_module, metadata, util

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jax import Array

from benchmarks import limits
from benchmarks.harness import Contender, Entry
from jaxgpu.numerics import log_iv, log_kv

POINTS = 1_000_000
SLOW = 10_000  # points for a peer that needs 30 microseconds per point
BLOCK = 50_000  # points per call: the temporaries of all contenders stay in the cache


def entries() -> list[Entry]:
    """Return entries of both functions in both precisions, and of a large static order."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # before XLA starts threads
    rng = np.random.default_rng(0)
    v, x = rng.uniform(0, 25, (2, POINTS))
    work = "v and x uniform in (0, 25), 1e6 points, one core"
    peak = limits.flops_per_second()  # of float64; float32 has twice as many
    found = []
    for name, ours in (("log_iv", log_iv), ("log_kv", log_kv)):
        for dtype in (np.float64, np.float32):
            points = v.astype(dtype), x.astype(dtype)
            contenders = [
                _jax_contender("jaxgpu", ours, points),
                _scipy_contender(name, points),
                *_tfp_contenders(name, points),
            ]
            flops, moved = cost(ours, dtype)
            label = (
                f"{name}, {np.dtype(dtype).name}: {flops:.0f} operations, {moved:.0f} bytes a point"
            )
            most = peak * 8 / np.dtype(dtype).itemsize / flops
            found.append(Entry(label, work, contenders, POINTS, "points", limit=most, rounds=5))
    known = [_jax_contender("jaxgpu, order 511.0", lambda _, x: log_iv(511.0, x), (v, x))]
    known += [_jax_contender("jaxgpu, any order", log_iv, (np.full(POINTS, 511.0), x))]
    found.append(
        Entry("log_iv, float64, order 511", "x uniform in (0, 25)", known, POINTS, "points")
    )
    few = v[:SLOW], x[:SLOW]
    slow = [_jax_contender("jaxgpu", log_kv, few), *_logbesselk_contenders(few)]
    found.append(Entry("log_kv, float64, 1e4 points", work, slow, SLOW, "points", rounds=3))
    return found


def cost(f: Callable[[Array, Array], Array], dtype: type) -> tuple[float, float]:
    """Return operations and bytes per point, as XLA counts them, for non-negative orders."""
    with jax.enable_x64(dtype == np.float64):
        points = jax.ShapeDtypeStruct((BLOCK,), dtype)
        counts = jax.jit(lambda v, x: f(abs(v), x)).lower(points, points).compile().cost_analysis()
    return (counts or {}).get("flops", np.nan) / BLOCK, 3 * np.dtype(dtype).itemsize


def _summarize(values: np.ndarray) -> dict[str, float]:
    """Return the mean of the finite values and the fraction of values that are not finite."""
    finite = np.isfinite(values)
    return {
        "mean": float(np.mean(values[finite], dtype=np.float64)),
        "not finite": float(np.mean(~finite)),
    }


def _jax_contender(
    name: str, f: Callable[[Array, Array], Array], points: tuple[np.ndarray, ...]
) -> Contender:
    """Return a contender that keeps its points and results on the device (SciPy: in NumPy)."""
    call, wide = jax.jit(f), points[0].dtype == np.float64
    with jax.enable_x64(wide):
        parts = [np.array_split(p, max(1, len(p) // BLOCK)) for p in points]
        blocks = [tuple(map(jnp.asarray, pair)) for pair in zip(*parts)]

    def run() -> dict[str, float]:
        with jax.enable_x64(wide):
            values = jax.block_until_ready([call(*pair) for pair in blocks])
        return _summarize(np.concatenate([np.asarray(a)[::100] for a in values]))

    return Contender(name, run)


def _scipy_contender(name: str, points: tuple[np.ndarray, ...]) -> Contender:
    f, sign = (scipy.special.ive, 1) if name == "log_iv" else (scipy.special.kve, -1)

    def run() -> dict[str, float]:
        v, x = points
        with np.errstate(all="ignore"):
            return _summarize((np.log(f(v, x)) + sign * x)[::100])

    return Contender(f"scipy {metadata.version('scipy')}", run)


def _tfp_contenders(name: str, points: tuple[np.ndarray, ...]) -> list[Contender]:
    if util.find_spec("tensorflow_probability") is None:
        return []
    math = import_module("tensorflow_probability.substrates.jax").math
    f, sign = (math.log_bessel_ive, 1) if name == "log_iv" else (math.log_bessel_kve, -1)
    full = partial(_log_from_scaled, f, sign)
    return [_jax_contender(f"tfp-nightly {metadata.version('tfp-nightly')}", full, points)]


def _log_from_scaled(f: Callable[[Array, Array], Array], sign: int, v: Array, x: Array) -> Array:
    return f(v, x) + sign * x


def _logbesselk_contenders(points: tuple[np.ndarray, ...]) -> list[Contender]:
    if util.find_spec("logbesselk") is None:
        return []
    log_bessel_k = import_module("logbesselk.jax").log_bessel_k
    return [
        _jax_contender(
            f"logbesselk {metadata.version('logbesselk')}", jax.vmap(log_bessel_k), points
        )
    ]
