"""The planets with 10 000 tracers, compared with REBOUND."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import rebound

from benchmarks import limits
from benchmarks.harness import Contender, Entry
from jaxgpu.devices.precision import with_float64
from jaxgpu.physics.nbody.planets import ephemeris
from jaxgpu.physics.nbody.planets.planetary import Planetary, State
from jaxgpu.physics.nbody.planets.tracers import Control
from jaxgpu.studies.solar_system import STEP, Options, belt

STEPS, TRACERS = 10, 10_000
# per tracer and year, with one substep per step: 8 + 2 x 7 forces (Control.iterations is 3) of 10
# bodies of 18 operations; 3 x 7 positions and velocities from polynomials of 8 terms, in 3 axes
FLOPS = 365.25 / STEP * (22 * 10 * 18 + 21 * 2 * 3 * 16)
START = ephemeris.de440(ephemeris.J2000)


@with_float64
def entries() -> list[Entry]:
    """Return a year of Newtonian gravity; the error, km, is relative to a more precise run."""
    x, v = belt(Options(tracers=TRACERS, eccentricity=0.3), START)
    best = _run_jaxgpu(x, v, Control(tolerance=1e-9, convergence=1e-12), substeps=16)
    error = lambda end: {"error km": float(np.abs(end - best).max() * ephemeris.AU)}
    ias15, fast = (partial(_run_rebound, x, v, name) for name in ("ias15", "whfast"))
    version = rebound.__version__
    return [
        Entry(
            name="solar-system",
            work=f"10 massive bodies and {TRACERS} tracers, {STEPS * STEP:.0f} days",
            contenders=[
                Contender("jaxgpu", lambda: error(_run_jaxgpu(x, v, Control()))),
                Contender(f"REBOUND {version} IAS15", lambda: error(ias15(0.0))),
                Contender(f"REBOUND {version} WHFast, 0.5 d", lambda: error(fast(0.5))),
            ],
            amount=STEPS * STEP * TRACERS / 365.25,
            unit="body years",
            limit=limits.flops_per_second() / FLOPS,
            rounds=3,
        )
    ]


@with_float64
def _run_jaxgpu(x: np.ndarray, v: np.ndarray, control: Control, substeps: int = 8) -> np.ndarray:
    spec = Planetary(
        gm=jnp.asarray(START.gm),
        dt=jnp.asarray(STEP),
        light=jnp.asarray(np.inf),
        control=control,
        substeps=substeps,
    )
    start = spec.init(jnp.asarray(START.x), jnp.asarray(START.v), (jnp.asarray(x), jnp.asarray(v)))
    return np.asarray(_advance(spec, start).tracers.x)


@jax.jit
def _advance(spec: Planetary, state: State) -> State:
    return jax.lax.fori_loop(0, STEPS, lambda _, state: spec.step(state), state)


def _run_rebound(x: np.ndarray, v: np.ndarray, integrator: str, dt: float) -> np.ndarray:
    sim = rebound.Simulation()
    for m, p, q in zip(START.gm, START.x, START.v):
        sim.add(m=m, x=p[0], y=p[1], z=p[2], vx=q[0], vy=q[1], vz=q[2])
    for p, q in zip(x, v):
        sim.add(m=0.0, x=p[0], y=p[1], z=p[2], vx=q[0], vy=q[1], vz=q[2])
    sim.N_active, sim.integrator = len(START.gm), integrator
    if dt:
        sim.dt = dt
    sim.integrate(STEPS * STEP)
    return np.array([[p.x, p.y, p.z] for p in sim.particles[len(START.gm) :]])
