"""Number of targets reached on COCO's bbob: 24 functions, 3 instances, best value + 1e-8.

    python -m benchmarks.coco                               every row, seeds 1 to 5
    python -m benchmarks.coco --rows CMAES-float32          some rows
    python -m benchmarks.coco --seeds 1 2 3
    python -m benchmarks.coco --boxed                       in its box, with pycma: `coco_box`

The functions are COCO's C program (`pip install coco-experiment`). pycma (`pip install cma`) runs
as a peer if it is installed. As in Hansen (2009), doi:10.1145/1570256.1570333, the first step is 2,
the starts are uniform in [-4, 4], and the search of CMA-ES and its restarts is unbounded (here:
bounded by [-20, 20]). "tutorial" starts as Hansen 2016 advises, with step 3 and in [-5, 5]. The
other algorithms search [-5, 5]. COCO's offset is subtracted before a value is rounded to float32.
"""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tyro

from benchmarks import coco_box
from jaxgpu.evolution import single
from jaxgpu.evolution.problem import Problem, box
from jaxgpu.evolution.problems import bbob_data

TARGET, WIDE = 1e-8, 20.0
CMA = single.CMAES(8, sigma=2 / (2 * WIDE), start=4 / WIDE)
BIPOP = single.Restarts(8, 5, sigma=2 / (2 * WIDE), start=4 / WIDE)
ROWS = {  # spec, dtype, evaluations per variable, half-width of the box
    "CMAES-float64": (CMA, jnp.float64, 1000, WIDE),
    "CMAES-tutorial": (single.CMAES(8, 3 / (2 * WIDE), 5 / WIDE), jnp.float64, 1000, WIDE),
    "CMAES-float32": (CMA, jnp.float32, 1000, WIDE),
    "IPOP-float64": (replace(BIPOP, small_runs=False), jnp.float64, 1000, WIDE),
    "IPOP-float32": (replace(BIPOP, small_runs=False), jnp.float32, 1000, WIDE),
    "BIPOP-float64": (BIPOP, jnp.float64, 2000, WIDE),
    "IPOP": (replace(BIPOP, small_runs=False), jnp.float64, 2000, WIDE),
    "BIPOP-float32": (BIPOP, jnp.float32, 2000, WIDE),
    "SepCMAES": (single.SepCMAES(8), jnp.float64, 2000, 5.0),
    "LMMAES": (single.LMMAES(8), jnp.float64, 2000, 5.0),
    "XNES": (single.XNES(9), jnp.float64, 2000, 5.0),
    "SNES": (single.SNES(9), jnp.float64, 2000, 5.0),
    "OpenES": (single.OpenES(50), jnp.float64, 2000, 5.0),
    "PGPE": (single.pgpe(50), jnp.float64, 2000, 5.0),
    "LSHADE": (single.LSHADE(10_000, pop_size=90), jnp.float64, 2000, 5.0),
    "PSO": (single.PSO(30), jnp.float64, 2000, 5.0),
    "CSO": (single.CSO(50), jnp.float64, 2000, 5.0),
}
PEERS = {"pycma": 1000, "pycma-BIPOP": 2000}


@dataclass(frozen=True)
class Options:
    """Options of the command line."""

    rows: tuple[str, ...] = (*ROWS, *PEERS)
    """Algorithms; those of peers need them installed."""
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5)
    """One run of all 72 problems each."""
    dimension: int = 5
    """Variables."""
    boxed: bool = False
    """Search [-5, 5] and compare expected running times with pycma's in the same box."""
    dimensions: tuple[int, ...] = (5, 10)
    """Variables of `boxed`."""


def problems(dimension: int) -> list[tuple[Any, float]]:
    """Return COCO's problems, each with its best value."""
    suite = import_module("cocoex").Suite("bbob", "instances:1-3", f"dimensions:{dimension}")
    made = [suite.get_problem(i) for i in range(len(suite))]
    return [(p, bbob_data.optimal_value(p.id_function, p.id_instance)) for p in made]


def count_targets(row: str, seed: int, dimension: int) -> dict[int, int]:
    """Count the targets reached per function by one jaxgpu spec, with all problems in one batch."""
    spec, dtype, budget, half = ROWS[row]
    made = problems(dimension)
    # only the box of this problem is used: the values come from COCO
    here = Problem(box(-half, half, dimension, dtype), lambda x: x[:1])
    keys = jax.random.split(jax.random.key(seed), len(made))

    @jax.jit
    def ask(state: Any, count: Any) -> Any:
        fold_key = lambda key: jax.random.fold_in(key, count)
        return jax.vmap(lambda state, k: spec.ask(state, fold_key(k)))(state, keys)

    @jax.jit
    def tell(state: Any, x: Any, f: Any) -> Any:
        none = jnp.zeros(f.shape[1], f.dtype)
        return jax.vmap(lambda state, x, f: spec.tell(state, x, f, none))(state, x, f)

    state = jax.jit(jax.vmap(lambda key: spec.init(key, here)))(keys)
    best, used = np.full(len(made), np.inf), 0
    while used < budget * dimension:
        x = ask(state, jnp.int32(used))
        rows = np.asarray(x, float)
        f = np.array([[p(one) - least for one in xs] for (p, least), xs in zip(made, rows)])
        state = tell(state, x, jnp.asarray(f[..., None], dtype))
        best, used = np.fmin(best, f.min(1)), used + rows.shape[1]
    return _count_by_function(made, best <= TARGET)


def count_pycma_targets(row: str, seed: int, dimension: int) -> dict[int, int]:
    """Count the targets reached per function by pycma, one problem after the other."""
    cma, hit = import_module("cma"), []
    made, budget = problems(dimension), PEERS[row] * dimension
    for i, (problem, least) in enumerate(made):
        rng = np.random.default_rng([seed, i])
        options: dict[str, Any] = {"verbose": -9, "maxfevals": budget, "seed": 1000 * seed + i + 1}
        options["ftarget"] = least + TARGET
        start: Callable[[], np.ndarray] = lambda rng=rng: rng.uniform(-4, 4, dimension)
        restarts = {"bipop": True, "restarts": 9} if row == "pycma-BIPOP" else {}
        found = cma.fmin2(problem, start, 2, options, **restarts)[1]
        hit.append(found.result.fbest - least <= TARGET)
    return _count_by_function(made, np.array(hit))


def _count_by_function(made: list[tuple[Any, float]], hit: np.ndarray) -> dict[int, int]:
    found: dict[int, int] = {}
    for (problem, _), one in zip(made, hit):
        found[problem.id_function] = found.get(problem.id_function, 0) + int(one)
    return found


def main(options: Options) -> None:
    """Print one line per row: targets per seed, their median, and the targets per function."""
    if options.boxed:
        return coco_box.main(options.dimensions, options.seeds)
    warnings.simplefilter("ignore")  # pycma warns on flat functions
    for row in options.rows:
        begin = time.process_time()
        run = count_pycma_targets if row in PEERS else count_targets
        with jax.enable_x64(True):
            found = [run(row, seed, options.dimension) for seed in options.seeds]
        total = [sum(one.values()) for one in found]
        each = {f: sum(one[f] for one in found) for f in found[0]}
        spent = time.process_time() - begin
        print(f"{row:14s} {total} median {np.median(total):g} of 72, CPU {spent:.0f} s")
        print("  by function, of", 3 * len(found), {f: n for f, n in each.items() if n}, flush=True)


if __name__ == "__main__":
    main(tyro.cli(Options))
