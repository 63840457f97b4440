"""Ten thousand three-body scatterings in one ensemble, compared with sequential runs of IAS15.

REBOUND runs the first five hundred, and its seconds are scaled up to all.
"""

import jax
import jax.numpy as jnp
import numpy as np
import rebound

from benchmarks.harness import Contender, Entry
from jaxgpu.devices.precision import with_float64
from jaxgpu.physics.nbody.planets import ensemble
from jaxgpu.physics.nbody.planets.ensemble import Ensemble

COUNT, SOME, SPAN = 10_000, 500, 40.0


@with_float64
def entries() -> list[Entry]:
    """Return scatterings of a binary (a = 1) by an equal unbound star from distance 20, b < 4."""
    x, v = _sample_scatterings(0)
    systems = Ensemble(dt=SPAN).init(jnp.asarray(x), jnp.asarray(v), jnp.ones((COUNT, 3)))
    energy = jax.jit(ensemble.energy)
    before = np.asarray(energy(systems))

    @with_float64
    def run_ensemble(spec: Ensemble) -> dict[str, float]:
        end = spec.step(systems)
        after = np.asarray(energy(end))
        steps = {"steps": float(end.steps.mean()), "unfinished": float(end.unfinished.sum())}
        return _energy_errors(after / before - 1) | steps

    ias15 = f"REBOUND {rebound.__version__} IAS15, epsilon = "
    return [
        Entry(
            name="scatterings",
            work=f"{COUNT} three-body scatterings for {SPAN} time units",
            contenders=[
                Contender(
                    f"jaxgpu ensemble, {k} sweeps",
                    lambda k=k: run_ensemble(Ensemble(dt=SPAN, sweeps=k)),
                )
                for k in (4, 3)
            ]
            + [
                Contender(f"{ias15}{e:g}", lambda e=e: _run_rebound(x, v, e), part=SOME / COUNT)
                for e in (1e-9, 1e-6)
            ],
            amount=COUNT,
            unit="systems",
            rounds=3,
        )
    ]


def _sample_scatterings(seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    e, f = np.sqrt(0.9 * random.random(COUNT)), random.uniform(0, 2 * np.pi, COUNT)
    p, zero = 1 - e * e, np.zeros(COUNT)
    r = p / (1 + e * np.cos(f))
    x = np.array([r * np.cos(f), r * np.sin(f), zero])
    v = np.sqrt(2 / p) * np.array([-np.sin(f), e + np.cos(f), zero])
    n, u = random.normal(size=(2, 3, COUNT))
    n = n / np.linalg.norm(n, axis=0)
    u = np.cross(n.T, u.T).T
    b = 4 * np.sqrt(random.random(COUNT)) / np.linalg.norm(u, axis=0)
    x = np.array([x / 2, -x / 2, b * u - 20 * n])
    v = np.array([v / 2, -v / 2, n * np.sqrt(1 + 6 / 20)])
    return np.moveaxis(x - x.mean(0), -1, 0), np.moveaxis(v - v.mean(0), -1, 0)


def _run_rebound(x: np.ndarray, v: np.ndarray, epsilon: float) -> dict[str, float]:
    errors, steps = [], []
    for k in range(SOME):
        sim = rebound.Simulation()
        for p, q in zip(x[k], v[k]):
            sim.add(m=1.0, x=p[0], y=p[1], z=p[2], vx=q[0], vy=q[1], vz=q[2])
        sim.integrator = "ias15"
        for name, value in (("epsilon", epsilon),):  # the attribute is created at run time
            setattr(sim.integrator, name, value)
        before = sim.energy()
        sim.integrate(SPAN)
        errors.append(sim.energy() / before - 1)
        steps.append(sim.steps_done)
    return _energy_errors(np.array(errors)) | {"steps": float(np.mean(steps))}


def _energy_errors(error: np.ndarray) -> dict[str, float]:
    error = np.abs(error)
    return {"dE/E median": float(np.median(error)), "99 %": float(np.quantile(error, 0.99))}
