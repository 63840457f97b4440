"""The float32 value of a point is the value of exactly this point, for every suite.

The same point is evaluated in float64 by a problem that was made in float64. The points are where
runs go and rounding matters: near and at the best values, on the bounds, and anywhere.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.evolution.problems import bbob, dtlz, engineering, lsmop, real_world, wfg, zdt
from jaxgpu.evolution.problems import bbob_data as data

DTLZ = [f"dtlz{i}" for i in range(1, 8)]
DTLZ += ["convex_dtlz2", "inverted_dtlz1", "inverted_dtlz2"]
DTLZ += ["c1_dtlz1", "c1_dtlz3", "c2_dtlz2", "c3_dtlz1", "c3_dtlz4"]


def dtlz_suite():
    names = {name: getattr(dtlz, name)() for name in DTLZ}
    return {n: (p, 0.0 if n in ("dtlz6", "dtlz7") else 0.5, 2) for n, p in names.items()}


def zdt_suite():
    return {f"zdt{i}": (getattr(zdt, f"zdt{i}")(), 0.0, 1) for i in range(1, 7)}


def wfg_suite():
    problems = {i: wfg(i, 3, 4, 6) for i in range(1, 10)}
    return {f"wfg{i}": (p, 0.35 * upper(p), 4) for i, p in problems.items()}


def lsmop_suite():
    """Return the suite; the variables are linked to the first one as in the module."""
    found = {}
    for i in range(1, 10):
        p, share = lsmop(i, 3, 60), np.arange(3, 61) / 60
        link = 1 + (share if i <= 4 else np.cos(np.pi / 2 * share))
        found[f"lsmop{i}"] = p, lambda x, link=link: 10 * x[:, :1] / link, 2
    return found


def engineering_suite():
    return {name: (engineering(name), None, 0) for name in real_world.NAMES}


def bbob_suite():
    return {f"bbob{i}": (bbob(i, 5, 3), bbob_best(i, 5, 3), 0) for i in range(1, 25)}


def bbob_best(i, d, instance):
    """Return the optimum from the suite's report."""
    seed = data.instance_seed(i, instance)
    best = data.optimum(d, seed + 1000000 if i == 12 else seed)
    if i == 4:
        best[::2] = np.abs(best[::2])
    sign = np.where(data.normal(d, seed) < 0, -1.0, 1.0)
    return {
        5: lambda: np.where(best < 0, -5.0, 5.0),
        8: lambda: 0.75 * best,
        9: lambda: data.rotation(d, seed).T @ np.full(d, 0.5),
        19: lambda: data.rotation(d, seed).T @ np.full(d, 0.5),
        20: lambda: 4.2096874637 / 2 * np.where(data.uniform(d, seed) < 0.5, -1.0, 1.0),
        21: lambda: data.peaks(d, 101, seed)[1][0],
        22: lambda: data.peaks(d, 21, seed)[1][0],
        24: lambda: 1.25 * sign,
    }.get(i, lambda: best)()


def upper(problem):
    return np.asarray(problem.box.upper, float)


def points(problem, best, positions, rng, count=16):
    """Sample points anywhere, on bounds, increasingly close to the best values, and at them."""
    low, high = np.asarray(problem.box.lower, float), upper(problem)
    u = low + rng.random((count, len(low))) * (high - low)
    side = np.where(rng.random(u.shape) < 0.5, low, high)
    found = [u, np.where(rng.random(u.shape) < 0.3, side, u)]
    if best is not None:
        best = best(u) if callable(best) else np.broadcast_to(best, u.shape)[:, positions:]
        near, on, k = u.copy(), u.copy(), positions
        step = rng.normal(size=best.shape) * 10.0 ** rng.uniform(-9, -1, (count, 1))
        near[:, k:] = best + step * (high - low)[k:]
        on[:, k:] = np.where(rng.random(best.shape) < 0.9, best, u[:, k:])
        found += [near, on]
    return np.clip(np.concatenate(found), low, high).astype(np.float32)


def values(make, x, dtype):
    problems = {name: p for name, (p, *_) in make().items()}

    def all_of_them(x):
        return {name: p.evaluate(x[name]) for name, p in problems.items()}

    return jax.jit(all_of_them)({name: jnp.asarray(rows, dtype) for name, rows in x.items()})


# Waves of 3^11, 2^32 and 1e4 periods multiply the last digits of a rotated x.
ROUGH = {"bbob16": 2e-3, "bbob19": 1e-2, "bbob23": 1e-3, "wfg9": 3e-4}
FLOOR = {"bbob20": 1e-6, "inverted_dtlz2": 1e-6, "zdt6": 1e-12, "dtlz4": 1e-10, "c3_dtlz4": 1e-10}


def worst_suite():
    return {
        "wfg1": wfg_suite()["wfg1"],
        "bbob2": bbob_suite()["bbob2"],
        "bbob12": bbob_suite()["bbob12"],
    }


SUITES = dtlz_suite, zdt_suite, wfg_suite, lsmop_suite, engineering_suite, bbob_suite


@pytest.mark.parametrize(
    "make", [worst_suite, *(pytest.param(m, marks=pytest.mark.slow) for m in SUITES)]
)
def test_a_value_is_that_of_the_point(make):
    rng = np.random.default_rng(7)
    x = {name: points(*parts, rng) for name, parts in make().items()}
    short = values(make, x, jnp.float32)
    with jax.enable_x64(True):
        long = values(make, x, jnp.float64)
    for name in x:
        tolerance = ROUGH.get(name, 1e-4)
        for got, want in zip(short[name], long[name]):
            want = np.asarray(want)
            # On the bounds, RE22 has no width and no value.
            sound = np.isfinite(want) if name == "RE22" else np.isfinite(want) | True
            # A margin is a difference of large numbers.
            least = 1e-5 if name[:2] in ("RE", "CR", "c1", "c2", "c3") else FLOOR.get(name, 1e-30)
            np.testing.assert_allclose(
                np.asarray(got)[sound], want[sound], rtol=tolerance, atol=least, err_msg=name
            )
