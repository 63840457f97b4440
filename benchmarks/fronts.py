"""Convergence of NSGA-III and MOEA/D to the DTLZ fronts, compared with Deb & Jain's tables of both.

    python -m benchmarks.fronts                    every row, 20 seeds each
    python -m benchmarks.fronts --rows dtlz1-3     some rows
    python -m benchmarks.fronts --algorithms MOEAD --seeds 240

The measure is the distance from the reference lines' ideal points to the population (IGD), in
float32, with the population sizes and generations of doi:10.1109/TEVC.2013.2281535. The paper's
column is the median of its 20 runs. Such a median scatters: "of 20" are the 5th and 95th percentile
of the median of 20 values resampled from our seeds (use 100 seeds or more). For up to five
objectives the hypervolume is shown as a fraction of the ideal points', below 1.1 (DTLZ1: 0.55).
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tyro

from jaxgpu.evolution import Algorithm, indicators, multi, protocol
from jaxgpu.evolution.multi import das_dennis
from jaxgpu.evolution.problems import dtlz

PAPER = {  # generations, the paper's medians: NSGA-III, MOEA/D-PBI
    "dtlz1-3": (400, 1.308e-3, 1.495e-3),
    "dtlz2-3": (250, 1.357e-3, 6.406e-4),
    "dtlz3-3": (1000, 4.007e-3, 3.426e-3),
    "dtlz4-3": (600, 5.970e-4, 4.280e-1),
    "dtlz1-5": (600, 9.799e-4, 6.372e-4),
    "dtlz2-5": (350, 4.982e-3, 1.437e-3),
    "dtlz3-5": (1000, 5.960e-3, 2.213e-3),
    "dtlz4-5": (1000, 1.255e-3, 5.787e-1),
    "dtlz1-8": (750, 3.979e-3, 6.106e-3),
    "dtlz2-8": (500, 1.571e-2, 3.763e-3),
    "dtlz3-8": (1000, 2.375e-2, 1.948e-2),
    "dtlz4-8": (1250, 7.054e-3, 8.816e-1),
    "dtlz1-10": (1000, 3.462e-3, 5.073e-3),
    "dtlz2-10": (750, 1.528e-2, 2.778e-3),
    "dtlz3-10": (1500, 1.188e-2, 4.319e-3),
    "dtlz4-10": (2000, 6.337e-3, 9.203e-1),
}
PARTITIONS = {3: (12,), 5: (6,), 8: (3, 2), 10: (3, 2)}
POPULATIONS = {3: 92, 5: 212, 8: 156, 10: 276}


@dataclass(frozen=True)
class Options:
    """Options of the command line."""

    rows: tuple[str, ...] = tuple(PAPER)
    """Problem and number of objectives."""
    algorithms: tuple[str, ...] = ("NSGA3", "MOEAD")
    """Which of the two."""
    seeds: int = 20
    """How many, all in one program."""
    key: int = 7
    """Of the seeds."""


def distances(row: str, algorithm: str, options: Options) -> tuple[np.ndarray, float]:
    """Return the sorted IGD of the seeds, and the median hypervolume over the ideal one."""
    name, m = row.split("-")[0], int(row.split("-")[1])
    ref_dirs = das_dennis(m, *PARTITIONS[m])
    norm = 2.0 if name == "dtlz1" else jnp.linalg.norm(ref_dirs.w, axis=1, keepdims=True)
    reference = jnp.full(m, 0.55 if name == "dtlz1" else 1.1)
    ideal, problem = ref_dirs.w / norm, getattr(dtlz, name)(m)
    specs: dict[str, Algorithm[Any]] = {
        "NSGA3": multi.NSGA3(ref_dirs, pop_size=POPULATIONS[m]),
        "MOEAD": multi.MOEAD(ref_dirs),
    }
    spec = specs[algorithm]

    def evolve_seed(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        f = protocol.evolve(spec, problem, key, PAPER[row][0]).population.f
        return indicators.igd(f, ideal), f

    keys = jax.random.split(jax.random.key(options.key), options.seeds)
    igd, f = jax.jit(lambda keys: jax.lax.map(evolve_seed, keys, batch_size=10))(keys)
    if m > 5:
        return np.sort(igd), np.nan
    volume = jax.jit(indicators.hypervolume)
    found = [float(volume(one, reference)) for one in f]
    return np.sort(igd), float(np.median(found) / volume(ideal, reference))


def scatter(found: np.ndarray) -> np.ndarray:
    """Return the 5th and 95th percentile of the median of 20 runs resampled from these."""
    draws = np.random.default_rng(0).choice(found, (10_000, 20))
    return np.percentile(np.median(draws, axis=1), [5, 95])


def measure(distances: Callable, options: Options) -> Iterator[tuple]:
    """Yield algorithm, row, the distances of the row and its CPU time, s."""
    for algorithm in options.algorithms:
        for row in options.rows:
            begin = time.process_time()
            found = distances(row, algorithm, options)
            yield algorithm, row, found, time.process_time() - begin


def main(options: Options) -> None:
    """Print one line per row."""
    words = "best", "median", "worst", "5 % of 20", "95 %", "paper"
    print(" " * 14, *(f"{word:9s}" for word in words), "volume  CPU s")
    for algorithm, row, (found, volume), spent in measure(distances, options):
        paper = PAPER[row][2 if algorithm == "MOEAD" else 1]
        shown = found[0], np.median(found), found[-1], *scatter(found), paper
        figures = "".join(f" {x:9.3e}" for x in shown)
        print(f"{algorithm} {row:8s}{figures} {volume:8.4f} {spent:6.0f}", flush=True)


if __name__ == "__main__":
    main(tyro.cli(Options))
