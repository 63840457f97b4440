"""Convergence of NSGA-III and RVEA to DTLZ fronts with a thousand members, compared with two peers.

    python -m benchmarks.large_fronts                             every row, 20 seeds each
    python -m benchmarks.large_fronts --rows dtlz2 --algorithms RVEA

The protocol and the peers' medians of 30 seeds are taken from CUDA-MOEA's report (repository
youben917/CUDA-MOEA, tests/benchmark, group A: CUDA-MOEA 0.1.0 and EvoX 1.3.0 on a GPU). Problems
have three objectives and 12 variables (7 for DTLZ1). 500 generations use SBX with index 30 and
probability 1, and mutation with index 20. NSGA-III has 1024 members on 990 directions, RVEA has
990; float32. The measure is the IGD of the nondominated members to 20,000 random points of the
front (50,000 for DTLZ4), which are the report's own points, sampled again. If the directions'
ideal points are known, the median hypervolume is shown as a fraction of their hypervolume, below
1.1 (DTLZ1: 0.55) in all objectives.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tyro

from benchmarks import fronts
from jaxgpu.evolution import Algorithm, indicators, multi, pareto, protocol
from jaxgpu.evolution.multi import das_dennis
from jaxgpu.evolution.problems import dtlz

PEERS = {  # medians of NSGA-III: CUDA-MOEA, EvoX; of RVEA: CUDA-MOEA, EvoX
    "dtlz1": (5.740e-3, 6.178e-3, 5.770e-3, 1.096e-2),
    "dtlz2": (1.6891e-2, 1.6905e-2, 1.6991e-2, 1.6984e-2),
    "dtlz3": (1.6923e-2, 1.6936e-2, 1.7004e-2, 2.561e-2),
    "dtlz4": (1.6858e-2, 1.6949e-2, 1.6950e-2, 1.6945e-2),
    "dtlz5": (1.340e-3, 1.263e-3, 1.971e-2, 2.082e-2),
    "dtlz6": (1.922e-3, 1.546e-3, 1.723e-2, 1.445e-2),
    "dtlz7": (1.9346e-2, 1.9404e-2, 3.010e-2, 3.041e-2),
    "convex_dtlz2": (1.6192e-2, 1.5864e-2, 2.853e-2, 2.813e-2),
}
GENERATIONS, DIVISIONS = 500, 43
SEED = 2887  # seed of the points of the front


@dataclass(frozen=True)
class Options(fronts.Options):
    """Options of the command line."""

    rows: tuple[str, ...] = tuple(PEERS)
    """Problems."""
    algorithms: tuple[str, ...] = ("NSGA3", "RVEA")
    """Which of the two."""
    guarded: bool = True
    """Whether NSGA-III's plane is that of the authors' later work, or the paper's own."""
    spaced: bool = False
    """Whether NSGA-III chooses by room where the paper's choice is random."""


def front(name: str) -> np.ndarray:
    """Return the points [P, 3] of the front to which the report measures distances."""
    count = 50_000 if name == "dtlz4" else 20_000
    # float32 values of torch.rand are the low 24 bits of the words of MT19937
    words = np.random.MT19937()
    words._legacy_seeding(SEED)
    uniform = lambda n: (words.random_raw(n) & 0xFFFFFF) * 2.0**-24
    if name == "dtlz1":
        e = -np.log(np.maximum(uniform(3 * count), 1e-38)).reshape(count, 3)
        return 0.5 * e / e.sum(1, keepdims=True)
    if name in ("dtlz5", "dtlz6"):
        angle = uniform(count) * np.pi / 2
        return np.stack([np.cos(angle) / 2**0.5, np.cos(angle) / 2**0.5, np.sin(angle)], 1)
    if name == "dtlz7":
        parts = np.array([[0.0, 0.251411836], [0.631626531, 0.859400856]])
        low, high = parts[words.random_raw(2 * count) % 2].T
        y = (low + uniform(2 * count) * (high - low)).reshape(count, 2)
        last = 6 - (y * (1 + np.sin(3 * np.pi * y))).sum(1, keepdims=True)
        return np.concatenate([y, last], 1)
    cube = uniform(3 * count).reshape(count, 3)
    sphere = cube / np.linalg.norm(cube, axis=1, keepdims=True)
    return sphere ** np.array([4, 4, 2]) if name == "convex_dtlz2" else sphere


def ideal(name: str, w: jax.Array) -> jax.Array:
    """Return the points where the reference lines meet the front, or none if they are unknown."""
    if name == "dtlz1":
        return w / 2
    known = name in ("dtlz2", "dtlz3", "dtlz4")
    return w / jnp.linalg.norm(w, axis=1, keepdims=True) if known else w[:0]


def distances(name: str, algorithm: str, options: Options) -> tuple[np.ndarray, float]:
    """Return the sorted IGD of the seeds, and the median hypervolume over the ideal one."""
    problem = getattr(dtlz, name)(3, 7 if name == "dtlz1" else 12)
    ref_dirs, points = das_dennis(3, DIVISIONS), jnp.float32(front(name))
    guarded, spaced = options.guarded, options.spaced
    specs: dict[str, Algorithm[Any]] = {
        "NSGA3": multi.NSGA3(ref_dirs, pop_size=1024, guarded=guarded, spaced=spaced),
        "RVEA": multi.RVEA(ref_dirs, generations=GENERATIONS),
    }
    spec = specs[algorithm]

    reference = jnp.full(3, 0.55 if name == "dtlz1" else 1.1)

    def evolve_seed(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        # jaxgpu's first generation only evaluates the first population
        f = protocol.evolve(spec, problem, key, GENERATIONS + 1).population.f
        f = jnp.where(pareto.is_non_dominated(f)[:, None], f, jnp.inf)
        return indicators.igd(f, points), indicators.hypervolume(f, reference)

    keys = jax.random.split(jax.random.key(options.key), options.seeds)
    igd, volume = jax.jit(lambda keys: jax.lax.map(evolve_seed, keys))(keys)
    best = jax.jit(indicators.hypervolume)(ideal(name, ref_dirs.w), reference)
    return np.sort(igd), float(np.median(volume) / best) if best > 0 else np.nan


def main(options: Options) -> None:
    """Print one line per row: jaxgpu, the better peer, and jaxgpu's excess in percent."""
    words = "best", "median", "worst", "peer", "excess", "volume"
    print(" " * 20, *(f"{word:11s}" for word in words), "CPU s")
    for algorithm, row, (found, volume), spent in fronts.measure(distances, options):
        peer = min(PEERS[row][2:] if algorithm == "RVEA" else PEERS[row][:2])
        figures = (found[0], np.median(found), found[-1], peer)
        excess = 100 * (figures[1] / peer - 1)
        shown = "".join(f"{x:12.4e}" for x in figures)
        line = f"{algorithm:6s}{row:13s}{shown}{excess:+8.2f} %{volume:10.4f}{spent:6.0f}"
        print(line, flush=True)


if __name__ == "__main__":
    main(tyro.cli(Options))
