"""A Plummer cluster of 1024 stars, compared with REBOUND and ph4, with errors and times.

REBOUND's leapfrog is left out: at any affordable step a close pair spoils its energy.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import rebound

from benchmarks import ph4
from benchmarks.harness import Contender, Entry
from jaxgpu.devices.precision import reassociation, with_float64
from jaxgpu.physics.nbody import Hermite, plummer

COUNT, SPAN, SOFTENING = 1024, 0.125, 1e-4


@with_float64
def entries() -> list[Entry]:
    """Return an entry of an eighth of a time unit; energies are computed outside the contenders."""
    x, v = plummer(jax.random.key(1), COUNT)
    stars = np.concatenate([x, v], 1).T
    before = energy(stars)
    error = lambda end: {"dE/E": abs(energy(end) / before - 1)}
    theirs = [
        ("BS, 1e-5", "bs", {"eps_rel": 1e-5, "eps_abs": 1e-5}),
        ("IAS15, epsilon = 1e-3", "ias15", {"epsilon": 1e-3}),
    ]
    ours = [("eta = 0.02", 0.02), ("eta = 0.005", 0.005)]
    return [
        Entry(
            name="star-cluster",
            work=f"{COUNT} stars, softening {SOFTENING}, {SPAN} N-body time units, one core",
            contenders=[
                Contender(
                    f"jaxgpu Hermite-4, {name}",
                    partial(_run_and_score, error, _run_jaxgpu, stars, eta),
                )
                for name, eta in ours
            ]
            + [
                Contender(
                    f"REBOUND {rebound.__version__} {name}",
                    partial(_run_and_score, error, run_rebound, stars, (integrator, options)),
                )
                for name, integrator, options in theirs
            ]
            + ph4.contenders(stars, SPAN, SOFTENING, error, (0.14, 0.05)),
            amount=SPAN,
            unit="time units",
            rounds=3,
        )
    ]


def _run_and_score(error, run, stars, how):
    return error(run(stars, how))


@with_float64
def _run_jaxgpu(stars: np.ndarray, eta: float) -> np.ndarray:
    spec = Hermite(jnp.asarray(eta), jnp.asarray(SOFTENING))
    begin = _init(spec, stars[:3].T, stars[3:].T, np.full(COUNT, 1 / COUNT))
    return np.asarray(_get_step()(spec, begin).stars.x)


_init = jax.jit(Hermite.init)
_compiled = []


def _get_step():
    if not _compiled:
        _compiled.append(jax.jit(Hermite.step, compiler_options=reassociation()))
    return _compiled[0]


def run_rebound(stars: np.ndarray, how: tuple[str, dict[str, float]]) -> np.ndarray:
    """Return the stars [6, N] at the end, from an integrator of REBOUND with options."""
    sim = rebound.Simulation()
    for b in stars.T:
        sim.add(m=1 / COUNT, x=b[0], y=b[1], z=b[2], vx=b[3], vy=b[4], vz=b[5])
    integrator, options = how
    sim.integrator, sim.softening = integrator, SOFTENING
    for name, value in options.items():
        setattr(sim.integrator, name, value)
    sim.integrate(SPAN)
    return np.array([[p.x, p.y, p.z, p.vx, p.vy, p.vz] for p in sim.particles]).T


def energy(points: np.ndarray) -> float:
    """Return the energy of stars [6, N], each of mass 1 / N."""
    potential = 0.0
    for i in range(1, COUNT):
        r2 = ((points[:3, :i] - points[:3, i : i + 1]) ** 2).sum(0) + SOFTENING**2
        potential -= (1 / np.sqrt(r2)).sum()
    return float((points[3:] ** 2).sum() / 2 / COUNT + potential / COUNT**2)
