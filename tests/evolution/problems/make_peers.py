"""Write `peers.npz`: values of other packages at random points, the reference of the tests.

    python tests/evolution/problems/make_peers.py reproblem.py

Run it in an environment with pymoo, given the program of the RE suite
(github.com/ryojitanabe/reproblems). For each name the file has the objectives at three points,
uniform in the box from `default_rng(0)`, followed by the total violation if there are constraints.
"""

import importlib.util
import sys
from pathlib import Path

import numpy as np

WFG = ((2, 4, 4), (3, 4, 6), (5, 8, 10))  # objectives, positions, distances
DISTANCES = {1: 5, 7: 20}  # of DTLZ; 10 of the others


def uniform_points(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the test points."""
    return low + np.random.default_rng(0).random((3, len(low))) * (high - low)


def pymoo_values() -> dict[str, np.ndarray]:
    """Evaluate ZDT, DTLZ and its variants, and WFG."""
    from pymoo.problems import get_problem
    from pymoo.problems.many import cdtlz, dtlz

    made = {f"ZDT{i}": get_problem(f"zdt{i}") for i in (1, 2, 3, 4, 6)}
    for i in range(1, 8):
        made[f"DTLZ{i} 5"] = get_problem(f"dtlz{i}", n_var=4 + DISTANCES.get(i, 10), n_obj=5)
    for name in ("C1DTLZ1", "C1DTLZ3", "C2DTLZ2", "C3DTLZ1", "C3DTLZ4"):
        for m in (2, 3, 6):
            n = m - 1 + DISTANCES.get(int(name[-1]), 10)
            made[f"{name} {m}"] = getattr(cdtlz, name)(n_var=n, n_obj=m)
    made["ConvexDTLZ2 3"] = dtlz.ConvexProblem(get_problem("dtlz2", n_var=12, n_obj=3))
    made["InvertedDTLZ1 3"] = dtlz.InvertedDTLZ1(n_var=7, n_obj=3)
    made["ScaledDTLZ2 3"] = dtlz.ScaledProblem(get_problem("dtlz2", n_var=12, n_obj=3), 10)
    for i in range(1, 10):
        for m, k, distances in WFG:
            made[f"WFG{i} {m} {k} {distances}"] = get_problem(f"wfg{i}", k + distances, m, k=k)
    bits = get_problem("zdt5", normalize=False)
    found = {"ZDT5": bits.evaluate(uniform_points(np.zeros(80), np.ones(80)) >= 0.5)}
    for name, problem in made.items():
        low, high = (np.broadcast_to(b, problem.n_var) for b in (problem.xl, problem.xu))
        x = uniform_points(np.asarray(low, float), np.asarray(high, float))
        f, g = problem.evaluate(x, return_values_of=["F", "G"])
        constrained = g is not None and g.shape[1] > 0
        found[name] = np.column_stack([f, np.maximum(g, 0).sum(1)]) if constrained else f
    return found


class SeededNumpy:
    """NumPy with random numbers that are all the first one of seed 0: RE91 samples four."""

    def __getattr__(self, name: str) -> object:
        return np.random.default_rng(0) if name == "random" else getattr(np, name)


def suite_values(path: str) -> dict[str, np.ndarray]:
    """Evaluate RE and CRE."""
    spec = importlib.util.spec_from_file_location("reproblem", path)
    assert spec is not None and spec.loader is not None
    suite = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(suite)
    suite.__dict__["np"] = SeededNumpy()
    found = {}
    for name in (n for n in dir(suite) if n.startswith(("RE", "CRE"))):
        problem = getattr(suite, name)()
        rows = []
        for x in uniform_points(
            np.asarray(problem.lbound, float), np.asarray(problem.ubound, float)
        ):
            out = problem.evaluate(x)
            rows.append(np.append(out[0], out[1].sum()) if isinstance(out, tuple) else out)
        found[name] = np.array(rows)
    return found


if __name__ == "__main__":
    values = pymoo_values() | suite_values(sys.argv[1])
    np.savez_compressed(Path(__file__).with_name("peers.npz"), **values)
