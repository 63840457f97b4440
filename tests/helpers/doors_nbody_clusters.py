"""API cases of `jaxgpu.physics.nbody` for models, diagnostics and evolution of star clusters."""

import jax
import jax.numpy as jnp
import numpy as np
from doors import Door

from jaxgpu.physics.nbody import measure
from jaxgpu.physics.nbody.clusters import (
    Cluster,
    Hermite,
    Hermite6,
    Pairing,
    checks,
    escape,
    evolve,
)
from jaxgpu.physics.nbody.forces import potentials, tide
from jaxgpu.physics.nbody.models import (
    binary_orbits,
    king,
    kroupa,
    masses,
    paired,
    plummer,
    salpeter,
    virial,
)

random = np.random.default_rng(1)
X, V = random.normal(size=(2, 5, 3)).astype(np.float32)
TRACERS = tuple(random.normal(size=(2, 4, 3)).astype(np.float32))
M = random.uniform(0.1, 1.0, 5).astype(np.float32)
SHARES = np.array([0.0, 0.3, 0.9], np.float32)
KEY = jax.random.key(0)
LAW = kroupa()
GALAXY = {
    "point": potentials.PointMass(1.0),
    "cusp": potentials.Cusp(1.0, 1.8, 2.0),
    "disc": potentials.MiyamotoNagai(1.0, 3.0, 0.3),
    "halo": potentials.NavarroFrenkWhite(1.0, 2.0),
}
ONE = np.float32(1.0)
ORIGIN = tide.Origin(np.array([8.0, 0, 0], np.float32), np.array([0, 1.0, 0], np.float32))
NONE = escape.none_yet(5, jnp.zeros((), np.float32))
RUN, NUMPY = "a run, whose loop is on the host", "makes a start in NumPy, once"
LENGTHS = ("wrong length", "empty")


def leave(argument, *kinds):
    return tuple(f"{argument}: {kind}" for kind in kinds)


def pulled(field):
    """Return a field's acceleration and derivatives along a path, after the checks of a cluster."""
    checks.start("init", Hermite(tide=tide.Tide(field, ORIGIN)), X, V, M, None)
    return potentials.derivatives(field, X, V, -X)


VECTORS = leave("x", "negative") + leave("v", "negative", "zero")
TRACED = leave("tracer_x", "negative", "zero") + leave("tracer_v", "negative", "zero")
DOORS = [
    # requirements of the one-call form and of its initial states
    Door(
        "physics.nbody.checks.bodies",
        lambda x, v, m, tracer_x, tracer_v: checks.bodies("evolve", x, v, m, (tracer_x, tracer_v)),
        {"x": X, "v": V, "m": M, "tracer_x": TRACERS[0], "tracer_v": TRACERS[1]},
        right=VECTORS + TRACED,
        host="checks values, and is nothing else",
    ),
    Door(
        "physics.nbody.checks.start",
        lambda spec, x, v, m, tracer_x, tracer_v: checks.start(
            "init", spec, x, v, m, (tracer_x, tracer_v)
        ),
        {
            "spec": Hermite(ONE / 50),
            "x": X,
            "v": V,
            "m": M,
            "tracer_x": TRACERS[0],
            "tracer_v": TRACERS[1],
        },
        right=VECTORS + TRACED,
    ),
    Door(
        "physics.nbody.evolve",
        lambda t: evolve(X, V, M, t).x,
        {"t": 0.0},
        right=("t: zero",),
        host=RUN,
    ),
    *(
        Door(
            f"physics.nbody.evolve, {type(spec).__name__}",
            lambda spec: evolve(X, V, M, 0.0, spec=spec).x,
            {"spec": spec},
            refusals=True,
            host="" if isinstance(spec, Cluster) else RUN,  # Cluster's numbers are static
        )
        for spec in (Hermite(), Hermite6(), Cluster())
    ),
    Door(
        "physics.nbody.Hermite.init",
        lambda spec: spec.init(X, V, M, TRACERS),
        {"spec": Hermite(ONE / 50)},
        refusals=True,
        alike="nbody.Hermite",
    ),
    Door(
        "physics.nbody.Pairing",
        lambda pairing: Hermite(pairing=pairing).init(X, V, M, TRACERS),
        {"pairing": Pairing()},
        refusals=True,
        alike="nbody.Hermite",
    ),
    Door(
        "physics.nbody.Hermite6.init",
        lambda spec: spec.init(X, V, M, TRACERS),
        {"spec": Hermite6()},
        refusals=True,
        alike="nbody.Hermite6",
    ),
    *(
        Door(
            f"physics.nbody.potentials.{type(field).__name__}",
            pulled,
            {"field": field},
            refusals=True,
        )
        for field in GALAXY.values()
    ),
    Door(
        "physics.nbody.tide.Origin",
        lambda origin: Hermite(tide=tide.Tide(GALAXY["point"], origin)).init(X, V, M, TRACERS),
        {"origin": ORIGIN},
        refusals=True,
    ),
    Door(
        "physics.nbody.escape.noted",
        lambda x, v, potential, radius: escape.noted(NONE, ONE, x, v, potential, radius),
        {"x": X, "v": V, "potential": -M, "radius": 2.0},
        right=leave("x", "negative", "zero")
        + leave("v", "negative", "zero")
        + ("potential: negative", "potential: zero", "radius: zero", "radius: inf"),
    ),
    Door(
        "physics.nbody.plummer",
        lambda count: plummer(KEY, count),
        {"count": 7},
    ),
    Door(
        "physics.nbody.virial",
        virial,
        {"x": X, "v": V, "m": M, "ratio": 0.5, "softening": 0.0},
        right=(*VECTORS, "ratio: zero", "softening: zero"),
        refusals=True,
        host=NUMPY,
    ),
    Door(
        "physics.nbody.king",
        lambda count, depth: king(KEY, count, depth),
        {"count": 7, "depth": 5.0},
    ),
    *(
        Door(name, law, {"low": 0.1, "high": 9.0}, pairs=(("low", "high"),), host=NUMPY)
        for name, law in (
            ("physics.nbody.models.salpeter", salpeter),
            ("physics.nbody.kroupa", kroupa),
        )
    ),
    Door(
        "physics.nbody.masses.quantile",
        masses.quantile,
        {"law": LAW, "share": SHARES},
        right=leave("share", "zero", *LENGTHS),
    ),
    Door(
        "physics.nbody.masses.draw",
        lambda law, count: masses.draw(KEY, law, count),
        {"law": LAW, "count": 4},
        right=("count: zero",),
    ),
    Door(
        "physics.nbody.binary_orbits",
        lambda count, a: binary_orbits(KEY, count, a),
        {"count": 3, "a": np.array([1e-3, 1e-2], np.float32)},
        right=("count: zero",),
        host=NUMPY,
    ),
    Door(
        "physics.nbody.paired",
        lambda x, v, m, companions: paired(
            x, v, m, companions, binary_orbits(KEY, 3, (1e-3, 1e-2))
        ),
        {"x": X, "v": V, "m": M, "companions": M[:3]},
        right=leave("x", "zero", "negative") + leave("v", "zero", "negative"),
    ),
    Door(
        "physics.nbody.potentials.milky_way",
        potentials.milky_way,
        {"radius": 8.0, "speed": 220.0},
    ),
    Door(
        "physics.nbody.potentials.tidal_radius",
        potentials.tidal_radius,
        {"mass": 3.0, "enclosed": 1e9, "radius": 1000.0},
        right=("mass: zero", "radius: zero", *leave("mass", "empty"))
        + leave("enclosed", "empty")
        + leave("radius", "empty"),
    ),
    Door(
        "physics.nbody.energy",
        measure.energy,
        {"x": X, "v": V, "m": M, "softening": np.float32(0.1)},
        right=leave("x", "negative", "zero")
        + leave("v", "negative", "zero")
        + ("m: zero", "softening: zero"),
    ),
    Door(
        "physics.nbody.lagrangian_radii",
        measure.lagrangian_radii,
        {"x": X, "m": M, "centre": jnp.zeros(3), "fractions": np.array([0.1, 0.5], np.float32)},
        right=(
            *leave("x", "negative", "zero"),
            *leave("centre", "zero", "negative"),
            *leave("fractions", "zero", *LENGTHS),
        ),
    ),
    Door(
        "physics.nbody.measure.half_mass_relaxation_time",
        measure.half_mass_relaxation_time,
        {"count": 100, "radius": 1.0, "mass": 1.0},
        right=("radius: empty", "mass: empty"),
    ),
    Door(
        "physics.nbody.measure.potential",
        measure.potential,
        {"points": X[:4], "x": X, "m": M, "softening": 0.1},
        right=leave("x", "negative", "zero")
        + leave("points", "negative", "zero", *LENGTHS)
        + ("m: zero", "softening: zero"),
    ),
    Door(
        "physics.nbody.bound_pairs",
        measure.bound_pairs,
        {"x": X, "v": V, "m": M},
        right=leave("x", "negative", "zero") + leave("v", "negative", "zero") + ("m: zero",),
        refusals=True,
    ),
    Door(
        "physics.nbody.measure.budget",
        lambda outside: measure.budget(X, V, M, 0.1, outside),
        {"outside": M},
        right=leave("outside", "negative", "zero", "None"),
    ),
    Door(
        "physics.nbody.core",
        lambda neighbours: measure.core(X, M, neighbours),
        {"neighbours": 3},
    ),
    Door(
        "physics.nbody.measure.class_radii",
        lambda edges: measure.class_radii(X, M, jnp.zeros(3), SHARES, edges),
        {"edges": np.array([0.0, 9.0], np.float32)},
        right=leave("edges", *LENGTHS),
        limits=leave("edges", "inf", "-inf", *LENGTHS),
    ),
    Door("physics.nbody.models.mean", masses.mean, {"law": LAW}),
]
