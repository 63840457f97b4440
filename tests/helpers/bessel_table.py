"""Tables of log I_v(x), log K_v(x), their derivatives and ratios to 25 digits, and their metric.

They were computed by Arb and ball-arithmetic Debye sums; docs/make/bessel_points.py makes others.
"""

import csv
import gzip
import io
from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import cache, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu import numerics
from jaxgpu.numerics.bessel.branches import log_bessel
from jaxgpu.numerics.bessel.debye import BesselKind

SHIPPED = [
    Path(__file__).parents[1] / "numerics" / name
    for name in ("log_bessel.csv.gz", "log_bessel_edges.csv.gz")
]
WIDTH = 1024  # points per call of a program of `evaluate`


class Table:
    """Columns rounded to float64, with the rounding remainders in `low`."""

    def __init__(self, *texts: str):
        rows = [row for text in texts for row in csv.DictReader(io.StringIO(text))]
        self.stratum = np.array([row["stratum"] for row in rows])
        self.float32 = np.array([row["f32_exact"] == "1" for row in rows])
        self.columns, self.low = {}, {}
        with localcontext(prec=60, Emin=-(10**9), Emax=10**9):
            for name in list(rows[0])[:-2]:
                exact = [Decimal(row[name]) for row in rows]
                high = np.array([float(d) for d in exact])
                self.columns[name] = high
                self.low[name] = np.array(
                    [float(d - Decimal(h)) if np.isfinite(h) else 0.0 for d, h in zip(exact, high)]
                )

        with np.errstate(all="ignore"):
            for name, ratio, sign in (("slope_i", "ratio_i", 1), ("slope_k", "ratio_k", -1)):
                self.columns[name] = self["v"] / self["x"] + sign * self[ratio]
                self.low[name] = np.zeros(len(rows))

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    def points(self, dtype: type) -> np.ndarray:
        """Return a mask of rows with v and x exact in `dtype` and x a normal number."""
        normal = self["x"] >= np.finfo(dtype).tiny
        return normal if dtype == np.float64 else normal & self.float32

    def condition(self, name: str) -> np.ndarray:
        """Return |f| + |x df/dx| + |v df/dv|: the effects of half an ulp in f, x and v, over u."""
        v, x = self["v"], self["x"]
        with np.errstate(over="ignore", invalid="ignore"):
            if name == "log_iv":
                by_x, by_v = v + x * self["ratio_i"], v * self["dlogiv_dv"]
            else:
                by_x, by_v = v - x * self["ratio_k"], v * self["dlogkv_dv"]
            total = np.abs(self[name]) + np.abs(by_x) + np.abs(by_v)
        return np.minimum(total, np.finfo(np.float64).max)

    def error(self, name: str, got: np.ndarray, scale: np.ndarray, dtype: type) -> np.ndarray:
        """Return |got - exact| in units of u `scale`; errors below the least normal are 0."""
        info = np.finfo(dtype)
        with np.errstate(all="ignore"):
            off = np.abs((np.asarray(got, np.float64) - self[name]) - self.low[name])
            off = np.maximum(off - info.tiny, 0) / (0.5 * info.eps * scale + 1e-320)
        return np.where(np.isnan(off), np.inf, off)


@cache
def load_tables() -> Table:
    """Return the tables of the tests as one."""
    return Table(*(gzip.decompress(path.read_bytes()).decode() for path in SHIPPED))


def evaluate(f: Callable, v: np.ndarray, x: np.ndarray, dtype: type = np.float64) -> Any:
    """Evaluate f(v, x) in `dtype`, as an array or a pytree; one program serves all shapes."""
    with np.errstate(over="ignore", under="ignore"):
        v, x = (np.asarray(a, dtype) for a in np.broadcast_arrays(v, x))
    blocks = [
        np.pad(a.ravel(), (0, -a.size % WIDTH), constant_values=1).reshape(-1, WIDTH)
        for a in (v, x)
    ]
    with jax.enable_x64(dtype == np.float64):
        program = _program(f)
        values = [program(*pair) for pair in zip(*blocks)]

    def join_blocks(*parts: Any) -> np.ndarray:
        assert all(a.dtype == dtype for a in parts)
        return np.concatenate(parts)[: v.size].reshape(v.shape)

    return jax.tree.map(join_blocks, *values)


@cache
def order_slope(f: Callable) -> Callable:
    """Return the derivative in v."""
    return lambda v, x: jax.jvp(lambda v: f(v, x), (v,), (jnp.ones_like(v),))[1]


@cache
def argument_slope(f: Callable) -> Callable:
    """Return the derivative in x."""
    return lambda v, x: jax.jvp(lambda x: f(v, x), (x,), (jnp.ones_like(x),))[1]


@cache
def family(kind: str) -> Callable:
    """Return a function of all I or K functions and first derivatives, by columns of the table.

    They share most of their operations: one program of all compiles as fast as two separate ones.
    The derivatives are valid for non-negative orders only, without the branch for negative ones.
    """
    names = f"log_{kind}v", f"log_{kind}ve", f"{kind}v_ratio"
    value, scaled, ratio = (getattr(numerics, name) for name in names)
    sign = BesselKind(1 if kind == "i" else -1)
    plain, large = (partial(log_bessel, sign._replace(scaled=flag)) for flag in (False, True))

    def values(v: Array, x: Array) -> dict[str, Array]:
        return {
            f"log_{kind}v": value(v, x),
            f"log_{kind}ve": scaled(v, x),
            f"ratio_{kind}": ratio(v, x),
            f"dlog{kind}v_dv": order_slope(plain)(v, x),
            f"slope_{kind}": argument_slope(plain)(v, x),
            f"slope_{kind}e": argument_slope(large)(v, x),
        }

    return values


@cache
def _program(f: Callable) -> Callable:
    return jax.jit(f)


def worst(table: Table, error: np.ndarray, rows: np.ndarray) -> str:
    """Describe the location of the largest error."""
    i = np.flatnonzero(rows)[error[rows].argmax()]
    v, x = float(table["v"][i]), float(table["x"][i])
    return f"{error[i]:.2f} at v = {v!r}, x = {x!r} ({table.stratum[i]})"
