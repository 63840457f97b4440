"""API cases of `jaxgpu.physics.nbody` for models, diagnostics and evolution of star clusters."""

import jax
import jax.numpy as jnp
import numpy as np
from api_cases import ApiCase

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
    add_companions,
    binary_orbits,
    king,
    kroupa,
    masses,
    plummer,
    salpeter,
    virialize,
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
NONE = escape.init_escapes(5, jnp.zeros((), np.float32))
RUN, NUMPY = "a run, whose loop is on the host", "makes a start in NumPy, once"
LENGTHS = ("wrong length", "empty")


def attack_names(argument, *kinds):
    return tuple(f"{argument}: {kind}" for kind in kinds)


def field_pull(field):
    """Return a field's acceleration and derivatives along a path, after the checks of a cluster."""
    checks.check_init("init", Hermite(tide=tide.Tide(field, ORIGIN)), X, V, M, None)
    return potentials.pull_derivatives(field, X, V, -X)


VECTORS = attack_names("x", "negative") + attack_names("v", "negative", "zero")
TRACED = attack_names("tracer_x", "negative", "zero") + attack_names("tracer_v", "negative", "zero")
CASES = [
    # requirements of the one-call form and of its initial states
    ApiCase(
        "physics.nbody.checks.check_bodies",
        lambda x, v, m, tracer_x, tracer_v: checks.check_bodies(
            "evolve", x, v, m, (tracer_x, tracer_v)
        ),
        {"x": X, "v": V, "m": M, "tracer_x": TRACERS[0], "tracer_v": TRACERS[1]},
        right=VECTORS + TRACED,
        host="checks values, and is nothing else",
    ),
    ApiCase(
        "physics.nbody.checks.check_init",
        lambda spec, x, v, m, tracer_x, tracer_v: checks.check_init(
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
    ApiCase(
        "physics.nbody.evolve",
        lambda t: evolve(X, V, M, t).x,
        {"t": 0.0},
        right=("t: zero",),
        host=RUN,
    ),
    *(
        ApiCase(
            f"physics.nbody.evolve, {type(spec).__name__}",
            lambda spec: evolve(X, V, M, 0.0, spec=spec).x,
            {"spec": spec},
            refusals=True,
            host="" if isinstance(spec, Cluster) else RUN,  # Cluster's numbers are static
        )
        for spec in (Hermite(), Hermite6(), Cluster())
    ),
    ApiCase(
        "physics.nbody.Hermite.init",
        lambda spec: spec.init(X, V, M, TRACERS),
        {"spec": Hermite(ONE / 50)},
        refusals=True,
        alike="nbody.Hermite",
    ),
    ApiCase(
        "physics.nbody.Pairing",
        lambda pairing: Hermite(pairing=pairing).init(X, V, M, TRACERS),
        {"pairing": Pairing()},
        refusals=True,
        alike="nbody.Hermite",
    ),
    ApiCase(
        "physics.nbody.Hermite6.init",
        lambda spec: spec.init(X, V, M, TRACERS),
        {"spec": Hermite6()},
        refusals=True,
        alike="nbody.Hermite6",
    ),
    *(
        ApiCase(
            f"physics.nbody.potentials.{type(field).__name__}",
            field_pull,
            {"field": field},
            refusals=True,
        )
        for field in GALAXY.values()
    ),
    ApiCase(
        "physics.nbody.tide.Origin",
        lambda origin: Hermite(tide=tide.Tide(GALAXY["point"], origin)).init(X, V, M, TRACERS),
        {"origin": ORIGIN},
        refusals=True,
    ),
    ApiCase(
        "physics.nbody.escape.add_escapes",
        lambda x, v, potential, radius: escape.add_escapes(NONE, ONE, x, v, potential, radius),
        {"x": X, "v": V, "potential": -M, "radius": 2.0},
        right=attack_names("x", "negative", "zero")
        + attack_names("v", "negative", "zero")
        + ("potential: negative", "potential: zero", "radius: zero", "radius: inf"),
    ),
    ApiCase(
        "physics.nbody.plummer",
        lambda count: plummer(KEY, count),
        {"count": 7},
    ),
    ApiCase(
        "physics.nbody.virialize",
        virialize,
        {"x": X, "v": V, "m": M, "ratio": 0.5, "softening": 0.0},
        right=(*VECTORS, "ratio: zero", "softening: zero"),
        refusals=True,
        host=NUMPY,
    ),
    ApiCase(
        "physics.nbody.king",
        lambda count, depth: king(KEY, count, depth),
        {"count": 7, "depth": 5.0},
    ),
    *(
        ApiCase(name, law, {"low": 0.1, "high": 9.0}, pairs=(("low", "high"),), host=NUMPY)
        for name, law in (
            ("physics.nbody.models.salpeter", salpeter),
            ("physics.nbody.kroupa", kroupa),
        )
    ),
    ApiCase(
        "physics.nbody.masses.quantile",
        masses.quantile,
        {"law": LAW, "share": SHARES},
        right=attack_names("share", "zero", *LENGTHS),
    ),
    ApiCase(
        "physics.nbody.masses.sample_masses",
        lambda law, count: masses.sample_masses(KEY, law, count),
        {"law": LAW, "count": 4},
        right=("count: zero",),
    ),
    ApiCase(
        "physics.nbody.binary_orbits",
        lambda count, a: binary_orbits(KEY, count, a),
        {"count": 3, "a": np.array([1e-3, 1e-2], np.float32)},
        right=("count: zero",),
        host=NUMPY,
    ),
    ApiCase(
        "physics.nbody.add_companions",
        lambda x, v, m, companions: add_companions(
            x, v, m, companions, binary_orbits(KEY, 3, (1e-3, 1e-2))
        ),
        {"x": X, "v": V, "m": M, "companions": M[:3]},
        right=attack_names("x", "zero", "negative") + attack_names("v", "zero", "negative"),
    ),
    ApiCase(
        "physics.nbody.potentials.milky_way",
        potentials.milky_way,
        {"radius": 8.0, "speed": 220.0},
    ),
    ApiCase(
        "physics.nbody.potentials.tidal_radius",
        potentials.tidal_radius,
        {"mass": 3.0, "enclosed": 1e9, "radius": 1000.0},
        right=("mass: zero", "radius: zero", *attack_names("mass", "empty"))
        + attack_names("enclosed", "empty")
        + attack_names("radius", "empty"),
    ),
    ApiCase(
        "physics.nbody.energy",
        measure.energy,
        {"x": X, "v": V, "m": M, "softening": np.float32(0.1)},
        right=attack_names("x", "negative", "zero")
        + attack_names("v", "negative", "zero")
        + ("m: zero", "softening: zero"),
    ),
    ApiCase(
        "physics.nbody.lagrangian_radii",
        measure.lagrangian_radii,
        {"x": X, "m": M, "centre": jnp.zeros(3), "fractions": np.array([0.1, 0.5], np.float32)},
        right=(
            *attack_names("x", "negative", "zero"),
            *attack_names("centre", "zero", "negative"),
            *attack_names("fractions", "zero", *LENGTHS),
        ),
    ),
    ApiCase(
        "physics.nbody.measure.half_mass_relaxation_time",
        measure.half_mass_relaxation_time,
        {"count": 100, "radius": 1.0, "mass": 1.0},
        right=("radius: empty", "mass: empty"),
    ),
    ApiCase(
        "physics.nbody.measure.potential",
        measure.potential,
        {"points": X[:4], "x": X, "m": M, "softening": 0.1},
        right=attack_names("x", "negative", "zero")
        + attack_names("points", "negative", "zero", *LENGTHS)
        + ("m: zero", "softening: zero"),
    ),
    ApiCase(
        "physics.nbody.bound_pairs",
        measure.bound_pairs,
        {"x": X, "v": V, "m": M},
        right=attack_names("x", "negative", "zero")
        + attack_names("v", "negative", "zero")
        + ("m: zero",),
        refusals=True,
    ),
    ApiCase(
        "physics.nbody.measure.budget",
        lambda outside: measure.budget(X, V, M, 0.1, outside),
        {"outside": M},
        right=attack_names("outside", "negative", "zero", "None"),
    ),
    ApiCase(
        "physics.nbody.core",
        lambda neighbours: measure.core(X, M, neighbours),
        {"neighbours": 3},
    ),
    ApiCase(
        "physics.nbody.measure.class_radii",
        lambda edges: measure.class_radii(X, M, jnp.zeros(3), SHARES, edges),
        {"edges": np.array([0.0, 9.0], np.float32)},
        right=attack_names("edges", *LENGTHS),
        limits=attack_names("edges", "inf", "-inf", *LENGTHS),
    ),
    ApiCase("physics.nbody.models.mean_mass", masses.mean_mass, {"law": LAW}),
]
