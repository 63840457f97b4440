"""Directions of escapers: tracers leave a cluster in a galaxy, and a mixture model finds two tails.

A cluster of stars and massless tracers orbits a galaxy. The direction of a tracer is where it
crosses twice the tidal radius, as seen from the cluster in axes that rotate with its orbit. A
mixture of von Mises-Fisher distributions, two tails and a background, is fitted in the same program
as the stars' motion. Theory is the orbit of a tracer released at a Lagrange point.
"""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.devices.precision import allow_reassociation, with_float64
from jaxgpu.inputs.fields import number, pytree, size
from jaxgpu.numerics import Mixture
from jaxgpu.report import Report
from jaxgpu.runs.loop import Run, rollout, run
from jaxgpu.studies import BadInput, CheckedOptions, seed_count
from jaxgpu.studies.cluster_tracers import ClusterCase, stack_clusters

from .findings import make_report
from .lagrange import rotate_z, tail

MIN_ESCAPERS = 30  # minimum number of escapers for a mixture
ROUNDS = 60  # of expectation maximization
INTERVALS = 8  # cluster steps per time unit
# two tails along the line to the galaxy's centre, and a nearly uniform background
TAILS = ((-1.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
KAPPA = (10.0, 10.0, 0.1)


@dataclass(frozen=True)
class Options(CheckedOptions):
    """Options of the study."""

    stars: int = size(default=256, least=32, most=1_000_000)
    """Stars per cluster, with a Kroupa mass function."""
    tracers: int = size(default=4096, least=64, most=100_000_000)
    """Massless tracers per cluster."""
    seeds: int = seed_count(default=8, least=1)
    """Clusters per density; errors are standard errors of the mean over them."""
    time: int = size(default=20, least=4, most=1_000_000)
    """Duration in N-body units; a crossing time is 2.8 units."""
    radii: tuple[float, ...] = number(default=(1.5, 2.0, 3.0), above=0, most=1e6, unit="pc")
    """Half-mass radii, pc."""
    heaviest: float = number(default=5.0, least=1, most=150, unit="solar masses")
    """Maximum stellar mass, solar masses."""
    eta: float = number(default=0.02, above=0, most=1)
    """Accuracy parameter of the Hermite time steps."""

    def __post_init__(self):
        super().__post_init__()
        if not self.radii:
            raise ValueError("radii: (); there must be at least one, in pc")


@pytree
class FitResult:
    """Results of one cluster."""

    directions: Array  # [M, 3] escape directions in rotating axes, arbitrary for remaining tracers
    fixed: Array  # [M, 3] the same in fixed axes
    gone: Array  # [M] bool
    mixture: Mixture  # of the directions
    still: Mixture  # of the directions in fixed axes
    gain: Array  # [2] mean log density of both above that of uniform directions


@with_float64
def study(options: Options, out: Path, resume: bool) -> Report:
    """Run all clusters in one program, fit their escapers, and compare the tails with theory."""
    keys = jax.random.split(jax.random.key(0), options.seeds)
    drawn = [(key, radius) for radius in options.radii for key in keys]
    every = stack_clusters("escapers", options, drawn)
    check = lambda kinds, history: kinds.spec.check(kinds.now)
    done = run(
        advance_unit,
        every,
        options.time,
        measure=count_escapers,
        check=check,
        out=out,
        resume=resume,
    )
    if stay := sorted({options.radii[i // options.seeds] for i in np.flatnonzero(is_sparse(done))}):
        sizes = ", ".join(f"{radius:g} pc" for radius in stay)
        raise BadInput(
            f"escapers: of {options.tracers} tracers fewer than {MIN_ESCAPERS} left some cluster "
            f"of {sizes} in {options.time} units of time; give more time, tracers or larger radii"
        )
    fits = jax.jit(lambda every: lax.map(fit_directions, every))(done.state)
    theory = np.asarray(jax.jit(jax.vmap(theory_directions))(done.state))
    to_grid = lambda a: np.asarray(a).reshape(len(options.radii), options.seeds, *a.shape[1:])
    return make_report(options, done, jax.tree.map(to_grid, fits), to_grid(theory))


@allow_reassociation
def advance_unit(every: ClusterCase) -> ClusterCase:
    """Advance all clusters by one time unit, sequentially."""

    def advance_one(each: ClusterCase) -> ClusterCase:
        step = lambda _, now: each.spec.step(now)
        return replace(each, now=lax.fori_loop(0, INTERVALS, step, each.now))

    return lax.map(advance_one, every)


def is_sparse(done: Run) -> np.ndarray:
    """Return a mask [K] of clusters with too few escapers for three components."""
    return done.history[-1] < MIN_ESCAPERS


def count_escapers(every: ClusterCase) -> Array:
    """Return the number of escaped tracers of each cluster."""
    return jnp.sum(every.now.gone.gone, axis=1, dtype=jnp.int32)


def fit_directions(each: ClusterCase) -> FitResult:
    """Fit mixtures to the directions in which the tracers of a cluster escaped."""
    now, tide = each.now, _tide(each)
    origin = tide.origin
    rate = jnp.linalg.norm(origin.v) / jnp.linalg.norm(origin.x)
    gone = now.gone.gone
    away = now.tracer_x / jnp.linalg.norm(now.tracer_x, axis=1, keepdims=True)
    turned = rotate_z(away, -rate * now.gone.time)
    weights = gone.astype(away.dtype)
    start = Mixture(jnp.array(TAILS), jnp.array(KAPPA), jnp.log(jnp.full(3, 1 / 3)))
    seen = (turned, away)
    fits = [rollout(partial(_refine, x, weights), start, ROUNDS)[0] for x in seen]
    mean = lambda density: jnp.sum(weights * density) / jnp.sum(weights)
    gain = [mean(m.log_prob(x)) + jnp.log(4 * jnp.pi) for m, x in zip(fits, seen)]
    return FitResult(
        directions=turned,
        fixed=away,
        gone=gone,
        mixture=fits[0],
        still=fits[1],
        gain=jnp.stack(gain),
    )


def _refine(x: Array, weights: Array, mixture: Mixture) -> Mixture:
    return mixture.em_step(x, weights)


def _tide(each: ClusterCase) -> Any:
    """Return the tidal field of the galaxy."""
    return each.spec.steps.tide


def theory_directions(each: ClusterCase) -> Array:
    """Return directions [2, 2, 3] of the inner and outer tails, for all and remaining stars."""
    tide, now = _tide(each), each.now
    place = jnp.linalg.norm(tide.origin.x)
    still = jnp.sum(jnp.where(now.stars_gone.gone, 0, now.m))
    escape_direction = lambda mass, side: tail(tide.field.gm, place, each.spec.edge, mass, side)
    return jnp.stack(
        [jnp.stack([escape_direction(mass, side) for side in (-1.0, 1.0)]) for mass in (1.0, still)]
    )
