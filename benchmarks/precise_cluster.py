"""A Plummer cluster at energy errors near 1e-10: Hermite steps of order six, IAS15 and ph4."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import rebound

from benchmarks import in_ph4
from benchmarks.harness import Contender, Entry
from jaxgpu.devices.precision import in_float64, reassociation
from jaxgpu.physics.nbody import Hermite6, plummer

COUNT, SPAN, SOFTENING = 1024, 0.125, 1e-4
_init = jax.jit(Hermite6.init)


@in_float64
def entries() -> list[Entry]:
    """An eighth of a time unit; the energy is computed outside of all contenders."""
    x, v = plummer(jax.random.key(1), COUNT)
    stars = np.concatenate([x, v], 1).T
    before = _energy(stars)
    advance = jax.jit(Hermite6.step, compiler_options=reassociation())

    def error(end: np.ndarray) -> dict[str, float]:
        return {"dE/E": abs(_energy(end) / before - 1)}

    ours = [
        Contender(
            f"jaxgpu Hermite-6, eta = {eta}", lambda eta=eta: error(_ours(advance, stars, eta))
        )
        for eta in (0.2, 0.3)
    ]
    theirs = [
        Contender(
            f"REBOUND {rebound.__version__} IAS15, epsilon = {epsilon:g}",
            lambda epsilon=epsilon: error(_ias15(stars, epsilon)),
        )
        for epsilon in (1e-3,)
    ]
    return [
        Entry(
            name="precise-cluster",
            work=f"{COUNT} stars, softening {SOFTENING}, {SPAN} N-body time units, one core",
            contenders=ours
            + theirs
            + in_ph4.contenders(stars, SPAN, SOFTENING, error, (0.05, 0.03)),
            amount=SPAN,
            unit="time units",
            rounds=3,
        )
    ]


@in_float64
def _ours(advance: Callable, stars: np.ndarray, eta: float) -> np.ndarray:
    spec = Hermite6(jnp.asarray(eta), softening=jnp.asarray(SOFTENING))
    state = _init(spec, stars[:3].T, stars[3:].T, np.full(COUNT, 1 / COUNT))
    return np.asarray(advance(spec, state).stars.x)


def _ias15(stars: np.ndarray, epsilon: float) -> np.ndarray:
    sim = rebound.Simulation()
    for b in stars.T:
        sim.add(m=1 / COUNT, x=b[0], y=b[1], z=b[2], vx=b[3], vy=b[4], vz=b[5])
    sim.integrator, sim.softening = "ias15", SOFTENING
    for name, value in (("epsilon", epsilon),):  # an attribute that is made at run time
        setattr(sim.integrator, name, value)
    sim.integrate(SPAN)
    return np.array([[p.x, p.y, p.z, p.vx, p.vy, p.vz] for p in sim.particles]).T


def _energy(points: np.ndarray) -> float:
    potential = 0.0
    for i in range(1, COUNT):
        r2 = ((points[:3, :i] - points[:3, i : i + 1]) ** 2).sum(0) + SOFTENING**2
        potential -= (1 / np.sqrt(r2)).sum()
    return float((points[3:] ** 2).sum() / 2 / COUNT + potential / COUNT**2)
