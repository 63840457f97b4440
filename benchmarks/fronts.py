"""How near NSGA-III comes to the fronts of DTLZ, beside its paper (doi:10.1109/TEVC.2013.2281535).

    python -m benchmarks.fronts                    every row, 20 seeds each
    python -m benchmarks.fronts --rows dtlz1-3     some of them
    python -m benchmarks.fronts --seeds 240

Distance of the reference lines' ideal points to the population (their IGD), float32, at the paper's
population and generations; the paper's column is the median of its table's 20 runs.
"""

import time
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import tyro

from jaxgpu.evolution import indicators, multi, protocol
from jaxgpu.evolution.lattice import das_dennis
from jaxgpu.evolution.problems import dtlz

PAPER = {  # generations, median of the paper
    "dtlz1-3": (400, 1.308e-3),
    "dtlz2-3": (250, 1.357e-3),
    "dtlz3-3": (1000, 4.007e-3),
    "dtlz4-3": (600, 5.970e-4),
    "dtlz1-5": (600, 9.799e-4),
    "dtlz2-5": (350, 4.982e-3),
    "dtlz3-5": (1000, 5.960e-3),
    "dtlz4-5": (1000, 1.255e-3),
    "dtlz1-8": (750, 3.979e-3),
    "dtlz2-8": (500, 1.571e-2),
    "dtlz3-8": (1000, 2.375e-2),
    "dtlz4-8": (1250, 7.054e-3),
    "dtlz1-10": (1000, 3.462e-3),
    "dtlz2-10": (750, 1.528e-2),
    "dtlz3-10": (1500, 1.188e-2),
    "dtlz4-10": (2000, 6.337e-3),
}
LATTICES = {3: (12,), 5: (6,), 8: (3, 2), 10: (3, 2)}
POPULATIONS = {3: 92, 5: 212, 8: 156, 10: 276}


@dataclass(frozen=True)
class Options:
    """Options of the command line."""

    rows: tuple[str, ...] = tuple(PAPER)
    """Problem and number of objectives."""
    seeds: int = 20
    """How many, all in one program."""
    key: int = 7
    """Of the seeds."""


def distances(row: str, seeds: int, key: int) -> np.ndarray:
    """IGD of each seed, sorted."""
    name, m = row.split("-")[0], int(row.split("-")[1])
    lattice = das_dennis(m, *LATTICES[m])
    norm = 2.0 if name == "dtlz1" else jnp.linalg.norm(lattice.w, axis=1, keepdims=True)
    spec, problem = multi.NSGA3(lattice, population=POPULATIONS[m]), getattr(dtlz, name)(m)

    def one(key: jax.Array) -> jax.Array:
        state = protocol.evolve(spec, problem, key, PAPER[row][0])
        return indicators.igd(state.population.f, lattice.w / norm)

    keys = jax.random.split(jax.random.key(key), seeds)
    return np.sort(jax.jit(lambda keys: jax.lax.map(one, keys, batch_size=10))(keys))


def main(options: Options) -> None:
    """Print a line a row."""
    print("row       best      median    worst     paper     CPU s")
    for row in options.rows:
        begin = time.process_time()
        found = distances(row, options.seeds, options.key)
        figures = (found[0], np.median(found), found[-1], PAPER[row][1])
        spent = time.process_time() - begin
        print(f"{row:8s}", *(f"{x:9.3e}" for x in figures), f"{spent:5.0f}", flush=True)


if __name__ == "__main__":
    main(tyro.cli(Options))
