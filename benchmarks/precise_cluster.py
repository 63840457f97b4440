"""A Plummer cluster at energy errors near 1e-10: sixth-order Hermite, IAS15 and ph4."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import rebound

from benchmarks import ph4
from benchmarks.harness import Contender, Entry
from benchmarks.star_cluster import COUNT, SOFTENING, SPAN, energy, run_rebound
from jaxgpu.devices.precision import reassociation, with_float64
from jaxgpu.physics.nbody import Hermite6, plummer

_init = jax.jit(Hermite6.init)


@with_float64
def entries() -> list[Entry]:
    """Return an entry of an eighth of a time unit; energies are computed outside the contenders."""
    x, v = plummer(jax.random.key(1), COUNT)
    stars = np.concatenate([x, v], 1).T
    before = energy(stars)
    advance = jax.jit(Hermite6.step, compiler_options=reassociation())

    def error(end: np.ndarray) -> dict[str, float]:
        return {"dE/E": abs(energy(end) / before - 1)}

    ours = [
        Contender(
            f"jaxgpu Hermite-6, eta = {eta}",
            lambda eta=eta: error(_run_jaxgpu(advance, stars, eta)),
        )
        for eta in (0.2, 0.3)
    ]
    theirs = [
        Contender(
            f"REBOUND {rebound.__version__} IAS15, epsilon = {epsilon:g}",
            lambda epsilon=epsilon: error(run_rebound(stars, ("ias15", {"epsilon": epsilon}))),
        )
        for epsilon in (1e-3,)
    ]
    return [
        Entry(
            name="precise-cluster",
            work=f"{COUNT} stars, softening {SOFTENING}, {SPAN} N-body time units, one core",
            contenders=ours + theirs + ph4.contenders(stars, SPAN, SOFTENING, error, (0.05, 0.03)),
            amount=SPAN,
            unit="time units",
            rounds=3,
        )
    ]


@with_float64
def _run_jaxgpu(advance: Callable, stars: np.ndarray, eta: float) -> np.ndarray:
    spec = Hermite6(jnp.asarray(eta), softening=jnp.asarray(SOFTENING))
    state = _init(spec, stars[:3].T, stars[3:].T, np.full(COUNT, 1 / COUNT))
    return np.asarray(advance(spec, state).stars.x)
