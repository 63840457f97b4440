"""The doors of `jaxgpu.physics.nbody` that make, weigh and follow clusters of stars."""

import jax
import jax.numpy as jnp
import numpy as np
from doors import Door

from jaxgpu.physics.nbody.clusters import blocks, cluster, entry, escape, hermite, hermite6, precise
from jaxgpu.physics.nbody.forces import potentials, tide
from jaxgpu.physics.nbody.models import king, masses, models, primordial

random = np.random.default_rng(1)
STARS = random.normal(size=(6, 5)).astype(np.float32)
SWARM = random.normal(size=(6, 3)).astype(np.float32)
M = random.uniform(0.1, 1.0, 5).astype(np.float32)
SHARES = np.array([0.0, 0.3, 0.9], np.float32)
KEY = jax.random.key(0)
LAW = masses.kroupa()
GALAXY = {
    "point": potentials.PointMass(1.0),
    "cusp": potentials.Cusp(1.0, 1.8, 2.0),
    "disc": potentials.MiyamotoNagai(1.0, 3.0, 0.3),
    "halo": potentials.NavarroFrenkWhite(1.0, 2.0),
}
ONE = np.float32(1.0)
ORIGIN = tide.Origin(np.array([8.0, 0, 0], np.float32), np.array([0, 1.0, 0], np.float32))
NOBODY = escape.nobody(5, jnp.zeros((), np.float32))
LENGTHS = ("wrong length", "empty")


def leave(argument, *kinds):
    return tuple(f"{argument}: {kind}" for kind in kinds)


DOORS = [
    # what both one-call forms, and the states that they begin with, ask of bodies
    Door(
        "physics.nbody.entry.bodies",
        lambda stars, m, tracers: entry.bodies("evolve", stars, m, tracers),
        {"stars": STARS, "m": M, "tracers": SWARM},
        right=("stars: negative", "tracers: negative", "tracers: zero", "tracers: narrow")
        + ("tracers: None",),
    ),
    Door(
        "physics.nbody.entry.start",
        lambda spec, stars, tracers: entry.start("init", spec, stars, tracers, None),
        {"spec": blocks.Hermite(M, ONE / 50), "stars": STARS, "tracers": SWARM},
        right=("stars: negative", "tracers: negative", "tracers: zero", "tracers: narrow"),
    ),
    Door(
        "physics.nbody.cluster.evolve",
        lambda t: cluster.evolve(STARS, M, t).stars,
        {"t": 0.0},
        right=("t: zero",),
    ),
    Door(
        "physics.nbody.precise.evolve",
        lambda spec, t: precise.evolve(spec, STARS, t).state,
        {"spec": hermite6.Hermite6(M.astype(float)), "t": 0.0},
        right=("t: zero",),
        refusals=True,
    ),
    Door(
        "physics.nbody.hermite.init",
        lambda spec: hermite.init(spec, STARS, SWARM),
        {"spec": blocks.Hermite(M, ONE / 50)},
        refusals=True,
    ),
    Door(
        "physics.nbody.blocks.Pairing",
        lambda pairing: hermite.init(blocks.Hermite(M, pairing=pairing), STARS, SWARM),
        {"pairing": blocks.Pairing()},
        refusals=True,
    ),
    Door(
        "physics.nbody.hermite6.init",
        lambda spec: hermite6.init(spec, STARS, SWARM),
        {"spec": hermite6.Hermite6(M)},
        refusals=True,
    ),
    *(
        Door(
            f"physics.nbody.potentials.{type(field).__name__}",
            lambda field: hermite.init(
                blocks.Hermite(M, tide=tide.Tide(field)), STARS, SWARM, ORIGIN
            ),
            {"field": field},
            refusals=True,
        )
        for field in GALAXY.values()
    ),
    Door(
        "physics.nbody.tide.Origin",
        lambda origin: hermite.init(
            blocks.Hermite(M, tide=tide.Tide(GALAXY["point"])), STARS, SWARM, origin
        ),
        {"origin": ORIGIN},
        refusals=True,
    ),
    Door(
        "physics.nbody.escape.noted",
        lambda points, potential, centre, radius: escape.noted(
            NOBODY, ONE, points, potential, centre, radius
        ),
        {"points": STARS, "potential": -M, "centre": STARS[:, 0], "radius": 2.0},
        right=("points: negative", "points: zero", "centre: negative", "centre: zero")
        + ("potential: negative", "potential: zero", "radius: zero", "radius: inf"),
    ),
    Door(
        "physics.nbody.models.plummer",
        lambda count: models.plummer(KEY, count),
        {"count": 7},
    ),
    Door(
        "physics.nbody.models.virial",
        models.virial,
        {"points": STARS, "m": M, "ratio": 0.5, "softening": 0.0},
        right=("points: negative", "ratio: zero", "softening: zero"),
        refusals=True,
    ),
    Door(
        "physics.nbody.king.king",
        lambda count, depth: king.king(KEY, count, depth),
        {"count": 7, "depth": 5.0},
    ),
    Door(
        "physics.nbody.masses.salpeter",
        masses.salpeter,
        {"low": 0.1, "high": 9.0},
        pairs=(("low", "high"),),
    ),
    Door(
        "physics.nbody.masses.kroupa",
        masses.kroupa,
        {"low": 0.1, "high": 9.0},
        pairs=(("low", "high"),),
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
        "physics.nbody.primordial.orbits",
        lambda count, a: primordial.orbits(KEY, count, a),
        {"count": 3, "a": np.array([1e-3, 1e-2], np.float32)},
        right=("count: zero", "a: integers"),
    ),
    Door(
        "physics.nbody.primordial.paired",
        lambda points, m, companions: primordial.paired(
            points, m, companions, primordial.orbits(KEY, 3, (1e-3, 1e-2))
        ),
        {"points": STARS, "m": M, "companions": M[:3]},
        right=leave("points", "zero", "negative"),
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
]
