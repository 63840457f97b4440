"""Core-collapse times of star clusters: equal stars, and the effect of the largest stellar mass.

    python docs/make/collapse_times.py                           256 equal stars, minutes
    python docs/make/collapse_times.py --stars 512 --heaviest 8  stars of Kroupa's function

Two times per cluster are measured. The first is that of its smallest core (Casertano & Hut, running
median of five eighths). The second is that of the first pair of 100 kT, which is clear even if the
core is a few heavy stars (Fujii & Portegies Zwart 2014, doi:10.1093/mnras/stu015). No softening;
see docs/nbody.md.
"""

import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from jax import Array, lax

from jaxgpu.devices.precision import reassociation
from jaxgpu.physics.nbody import Cluster, Hermite, Pairing, kroupa, plummer, virialize
from jaxgpu.physics.nbody.clusters import cluster
from jaxgpu.physics.nbody.measure import diagnostics
from jaxgpu.physics.nbody.models import quantile
from jaxgpu.studies.cluster_tracers.measures import running_median

type Advance = Callable[[Cluster, cluster.State], tuple[cluster.State, dict[str, Array]]]

_HARD = 100.0  # energy of a hard pair, kT; 3 N kT / 2 is the kinetic energy, 1/4
_FAR = 20.0  # radius at which stars count as escaped


def main(
    stars: int = 256,
    seeds: int = 8,
    heaviest: float | None = None,
    eta: float = 0.01,
    latest: int = 250,
) -> None:
    """Evolve Plummer models to 1.1 times the first hard pair's time, or twice it with masses.

    Stars are equal, or have the quantiles of Kroupa's function from 0.08 to `heaviest` solar
    masses, in random order. None is followed after the time `latest`.
    """
    print(" seed  m_max/<m>  smallest core at  hard pair at  |dE/E|  CPU s")
    times, advance = [], jax.jit(_advance_unit, compiler_options=reassociation())
    with jax.enable_x64(True):
        for seed in range(seeds):
            start = time.process_time()
            spec, now = _initial_cluster(stars, seed, heaviest, eta)
            found, error = _collapse_times(advance, spec, now, latest, 2.0 if heaviest else 1.1)
            ratio, spent = float(now.m.max() * stars), time.process_time() - start
            line = f"{seed:5} {ratio:11.1f} {found[0]:17.2f} {found[1]:13.2f}"
            print(f"{line} {error:7.0e} {spent:6.0f}", flush=True)
            times.append(found)
    sem = np.std(times, 0, ddof=1) / np.sqrt(seeds)
    for name, mean, err in zip(("smallest core", "hard pair"), np.mean(times, 0), sem, strict=True):
        print(f"{name}: {mean:.1f} +- {err:.1f}")


def _initial_cluster(
    stars: int, seed: int, heaviest: float | None, eta: float
) -> tuple[Cluster, cluster.State]:
    """Return the integrator's spec and the initial cluster; see `main` for the masses."""
    by_place, by_mass = jax.random.split(jax.random.key(seed))
    (x, v), m = plummer(by_place, stars), jnp.full(stars, 1 / stars)
    if heaviest:
        share = (jax.random.permutation(by_mass, stars) + 0.5) / stars
        solar = quantile(kroupa(0.08, heaviest), share)
        m = solar / solar.sum()
        x, v = virialize(x, v, m)
    pairing = Pairing(close=1 / stars, slots=min(stars // 2, 64))
    spec = Cluster(Hermite(eta, pairing=pairing), edge=_FAR)
    return spec, jax.jit(Cluster.init)(spec, x, v, m)


def _advance_unit(spec: Cluster, now: cluster.State) -> tuple[cluster.State, dict[str, Array]]:
    """Return the cluster one time unit later, and its core and pairs [8] after each eighth."""

    def advance_eighth(now: cluster.State, _: None) -> tuple[cluster.State, dict[str, Array]]:
        now = spec.step(now)
        energy = jnp.sum(jnp.stack(diagnostics.energy(now.x, now.v, now.m)))
        pair = -jnp.min(diagnostics.bound_pairs(now.x, now.v, now.m).energy)
        core = diagnostics.core(now.x, now.m)[1]
        return now, {"core": core, "pair": 6 * now.m.shape[0] * pair, "energy": energy}

    return lax.scan(advance_eighth, now, None, length=8)


def _collapse_times(
    advance: Advance, spec: Cluster, now: cluster.State, latest: int, share: float
) -> tuple[tuple[float, float], float]:
    """Return the two times of a cluster, and the largest relative error of its energy.

    It is evolved to `share` times the second time, which is infinite if it exceeds `latest`.
    """
    rows: list[dict[str, np.ndarray]] = []
    hard, end = np.inf, latest
    while len(rows) < end:
        now, row = advance(spec, now)
        rows.append(jax.tree.map(np.asarray, row))
        if hard == np.inf and (row["pair"] > _HARD).any():
            hard = len(rows) - 1 + (np.argmax(row["pair"] > _HARD) + 1) / 8
            end = min(latest, int(np.ceil(share * hard)))
    spec.check(now)
    core, energy = (np.concatenate([row[name] for row in rows]) for name in ("core", "energy"))
    smallest = (np.argmin(running_median(core[:, None])[:, 0]) + 1) / 8
    return (smallest, hard), abs(energy / energy[0] - 1).max()


if __name__ == "__main__":
    tyro.cli(main)
