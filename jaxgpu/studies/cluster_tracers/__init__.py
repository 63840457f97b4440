"""Star clusters with massless tracers: three densities, isolated and in a galactic tidal field.

Stars with a Kroupa mass function and many massless tracers start from the same Plummer sphere. The
study compares the tracers with the results of Flammini Dotti et al. (2025, A&A 693, A166) by
NBODY6++GPU-MASSLESS: they do not segregate, follow the potential, and escape at a rate set by core
collapse. Without stellar evolution and with regularized pairs, an isolated cluster is the same at
every density in its own time units, and only the tidal field makes a difference.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.devices import allocation, memory
from jaxgpu.devices.precision import allow_reassociation, with_float64
from jaxgpu.inputs.fields import number, pytree, size
from jaxgpu.physics.nbody import units
from jaxgpu.physics.nbody.clusters import Cluster, Hermite, Pairing, cluster
from jaxgpu.physics.nbody.forces import potentials, tide
from jaxgpu.physics.nbody.models import kroupa, masses, plummer, virialize
from jaxgpu.report import Report
from jaxgpu.runs.loop import Run, run
from jaxgpu.studies import CheckedOptions, seed_count

from .findings import make_report
from .measures import measure_cluster

PLACE, SPEED = 8000.0, 220.0  # of the orbit in the galaxy, pc and km/s
HALF_MASS = 0.7686  # half-mass radius of a Plummer sphere, virial radii
SLOTS = 16  # maximum simultaneous regularized pairs


@dataclass(frozen=True)
class Options(CheckedOptions):
    """Options of the study."""

    stars: int = size(default=1000, least=32, most=10_000_000)
    """Stars, with a Kroupa mass function from 0.08 solar masses; fewer give no useful radii."""
    tracers: int = size(default=10_000, least=32, most=1_000_000_000)
    """Massless tracers per cluster."""
    seeds: int = seed_count(default=8, least=1)
    """Clusters per type; errors are standard errors of the mean over them."""
    time: int = size(default=40, least=2, most=1_000_000)
    """Duration in N-body units; a crossing time is 2.8 units."""
    radii: tuple[float, float, float] = number(
        default=(0.5, 1.0, 2.0), above=0, most=1e6, unit="pc"
    )
    """Half-mass radii of the three clusters in the tidal field, pc."""
    heaviest: float = number(default=20.0, least=1, most=150, unit="solar masses")
    """Maximum stellar mass, solar masses."""
    eta: float = number(default=0.005, above=0, most=1)
    """Accuracy parameter of the Hermite time steps."""

    def __post_init__(self):
        super().__post_init__()
        if np.shape(self.radii) != (3,) or len(set(self.radii)) < 3:
            raise ValueError(f"radii: {self.radii}; must be three different ones, positive, in pc")


@pytree
class ClusterCase:
    """A cluster with its spec and its state, which includes escapers."""

    spec: Cluster
    now: cluster.State


@with_float64
def study(options: Options, out: Path, resume: bool) -> Report:
    """Run all clusters sequentially in one program, and compare their tracers."""
    keys = jax.random.split(jax.random.key(0), options.seeds)
    drawn = [(key, radius) for key in keys for radius in (None, *options.radii)]
    every = stack_clusters("cluster-tracers", options, drawn)
    done = run_clusters(options, every, out, resume)
    return make_report(options, done, time_units(options))


def stack_clusters(
    name: str, options: Any, drawn: Sequence[tuple[Array, float | None]]
) -> ClusterCase:
    """Return the clusters of these keys and half-mass radii, stacked.

    Raises:
        MemoryError: if they would not fit; only the first one is built before the check.
    """
    first = make_cluster(options, *drawn[0])
    memory.check_size(f"{name}: {len(drawn)} clusters", 2 * len(drawn) * memory.size(first))
    kinds = [first, *(make_cluster(options, *one) for one in drawn[1:])]
    return jax.tree.map(lambda *parts: jnp.stack(parts), *kinds)


def make_cluster(options: Any, key: Array, radius: float | None) -> ClusterCase:
    """Return the cluster of a key with a half-mass radius in pc in the tide, or isolated (None)."""
    by_mass, by_place, by_tracer = jax.random.split(key, 3)
    law = kroupa(0.08, options.heaviest)
    solar = masses.sample_masses(by_mass, law, options.stars)
    m = solar / jnp.sum(solar)
    x, v = virialize(*plummer(by_place, options.stars), m)
    tracers = plummer(by_tracer, options.tracers)
    gm, speed, edge = 0.0, 0.0, 20.0
    place, total = PLACE, float(jnp.sum(solar))
    if radius is not None:
        scale = units.Scale(mass=total, length=radius / HALF_MASS)
        gm = SPEED**2 * PLACE / units.G / total
        place, speed = PLACE / scale.length, SPEED / scale.velocity
        edge = 2 * float(potentials.tidal_radius(1.0, gm, place))
    origin = tide.Origin(jnp.array([place, 0, 0.0]), jnp.array([0, speed, 0.0]))
    steps = Hermite(
        jnp.asarray(options.eta),
        pairing=Pairing(close=jnp.asarray(1 / options.stars), slots=SLOTS),
        tide=tide.Tide(potentials.PointMass(jnp.asarray(gm)), origin),
    )
    spec = Cluster(steps, edge=jnp.asarray(edge), unbound=jnp.asarray(radius is None))
    return ClusterCase(spec, _init(spec, x, v, m, tracers))


_init = allocation.limit_memory(jax.jit(Cluster.init))


def run_clusters(options: Options, every: ClusterCase, out: Path, resume: bool) -> Run[ClusterCase]:
    """Run all clusters, half a time unit per step, with one compilation and one checkpoint for all.

    Row 0 of the history is the initial state.
    """
    check = lambda kinds, history: kinds.spec.check(kinds.now)
    steps = 2 * options.time
    return run(advance_half, every, steps, measure=measure_all, check=check, out=out, resume=resume)


@allow_reassociation
def advance_half(every: ClusterCase) -> ClusterCase:
    """Advance all clusters by half a time unit, sequentially."""

    def advance_one(kind: ClusterCase) -> ClusterCase:
        step = lambda _, now: kind.spec.step(now)
        return replace(kind, now=lax.fori_loop(0, 4, step, kind.now))

    return lax.map(advance_one, every)


def measure_all(every: ClusterCase) -> dict[str, Array]:
    """Return measurements of all clusters, and as "film" positions of the densest tidal one."""
    measures = lax.map(lambda kind: measure_cluster(kind.spec, kind.now), every)
    bodies = every.now.bodies
    seen = jnp.concatenate([bodies.stars.x[1, :3], bodies.tracers.x[1, :3]], 1)
    return measures | {"film": seen.astype(jnp.float32)}


def time_units(options: Options) -> dict[str, float]:
    """Return the time unit of a mean cluster in Myr, by the name of the density."""
    total = float(masses.mean_mass(kroupa(0.08, options.heaviest))) * options.stars
    return {
        f"{radius:g} pc": units.Scale(mass=total, length=radius / HALF_MASS).time
        for radius in options.radii
    }
