"""The doors of `jaxgpu.physics.nbody` that move planets, pairs and small systems."""

import jax
import jax.numpy as jnp
import numpy as np
from doors import Door

from jaxgpu.physics.nbody.forces import relativity
from jaxgpu.physics.nbody.measure import diagnostics
from jaxgpu.physics.nbody.orbits import elements, kepler, regular
from jaxgpu.physics.nbody.planets import ensemble, ephemeris, planetary, swarm, wisdom_holman
from jaxgpu.physics.nbody.steps import leapfrog

random = np.random.default_rng(0)
X = random.normal(size=(3, 4)).astype(np.float32)
V = random.normal(size=(3, 4)).astype(np.float32)
GM = np.array([1.0, 1e-3, 2e-3, 3e-4], np.float32)
SIX = random.normal(size=(6, 9)).astype(np.float32)
MASSES = random.uniform(0.1, 1.0, 9).astype(np.float32)
ONE = np.float32(1.0)
SYSTEMS = [random.normal(size=(2, 3, 4)).astype(np.float32) for _ in range(2)]
PAIR = {"x": X, "v": V, "gm": np.float32(2.0)}
SIGNS = ("x: negative", "v: negative", "v: zero")  # a mirror, and bodies at rest


def leave(argument, *kinds):
    return tuple(f"{argument}: {kind}" for kind in kinds)


DOORS = [
    Door(
        "physics.nbody.planetary.init",
        lambda spec, x, v, swarm_x, swarm_v: planetary.init(spec, x, v, swarm_x, swarm_v),
        {
            "spec": planetary.Planetary(GM, ONE),
            "x": X.T.copy(),
            "v": V.T.copy(),
            "swarm_x": X + 2,
            "swarm_v": V,
        },
        right=(*SIGNS, "swarm_x: negative", "swarm_x: zero"),
        free=("swarm_v",),  # as swarm_x, and each answer costs a second
        refusals=True,
    ),
    Door(
        "physics.nbody.swarm.Control",
        lambda control: planetary.init(
            planetary.Planetary(GM, ONE, control=control), X.T.copy(), V.T.copy(), X + 2, V
        ),
        {"control": swarm.Control()},
        refusals=True,
    ),
    Door(
        "physics.nbody.wisdom_holman.init",
        lambda gm, dt, x, v: wisdom_holman.init(wisdom_holman.WisdomHolman(gm, dt), x, v),
        {"gm": GM, "dt": ONE, "x": X, "v": V},
        right=(*SIGNS, *leave("dt", "zero", "negative")),
    ),
    Door(
        "physics.nbody.kepler.drift",
        kepler.drift,
        PAIR | {"dt": np.float32(0.3)},
        right=(*SIGNS, "gm: zero", *leave("dt", "zero", "negative"), "x: narrow", "v: narrow"),
    ),
    Door("physics.nbody.kepler.pericentre", kepler.pericentre, PAIR, right=SIGNS),
    Door("physics.nbody.elements.from_state", elements.from_state, PAIR, limits=SIGNS),
    Door(
        "physics.nbody.elements.towards_pericentre",
        elements.towards_pericentre,
        PAIR,
        right=SIGNS,
    ),
    Door(
        "physics.nbody.elements.to_state",
        elements.to_state,
        {"orbit": elements.Elements(*np.float32([1, 0.3, 0.2, 1, 2, 3])), "gm": ONE},
        refusals=True,
    ),
    Door(
        "physics.nbody.elements.uniform",
        lambda count, e, i: elements.uniform(jax.random.key(0), count, (1.0, 2.0), e, i),
        {"count": 3, "e": 0.3, "i": 0.2},
        right=("count: zero", "e: zero", "i: zero"),
    ),
    Door(
        "physics.nbody.ensemble.advance",
        ensemble.advance,
        {"spec": ensemble.Ensemble(), "systems": ensemble.Systems(*SYSTEMS, GM), "span": ONE},
        refusals=True,
    ),
    Door(
        "physics.nbody.ensemble.gathered",
        ensemble.gathered,
        {
            "x": np.moveaxis(SYSTEMS[0], 2, 0),
            "v": np.moveaxis(SYSTEMS[1], 2, 0),
            "m": np.ones((4, 2), np.float32),
        },
        right=(*SIGNS, "x: zero", "m: zero"),
    ),
    Door(
        "physics.nbody.leapfrog.walk",
        lambda x, v, end, steps, order: leapfrog.walk(
            lambda t, x: -x, x, v, (0.0, end), steps, order
        ),
        {"x": X, "v": V, "end": ONE, "steps": 3, "order": 4},
        right=(*SIGNS, "x: zero", *leave("end", "zero", "negative")),
    ),
    Door(
        "physics.nbody.regular.regularised",
        regular.regularised,
        {"x": X, "v": V, "m": ONE},
        right=SIGNS,
    ),
    Door(
        "physics.nbody.relativity.newton",
        relativity.newton,
        {"x": X.T.copy(), "gm": GM},
        right=(*SIGNS, "gm: zero"),
    ),
    Door(
        "physics.nbody.relativity.einstein_infeld_hoffmann",
        relativity.einstein_infeld_hoffmann,
        {"x": X.T.copy(), "v": V.T.copy(), "gm": GM, "light": np.float32(100)},
        right=(*SIGNS, "gm: zero", "light: inf"),
    ),
    Door(
        "physics.nbody.ephemeris.ecliptic",
        ephemeris.ecliptic,
        {"vector": X},
        right=("vector: *",),
    ),
    Door("physics.nbody.ephemeris.de440", ephemeris.de440, {"jd": ephemeris.J2000}),
    Door(
        "physics.nbody.diagnostics.energy",
        diagnostics.energy,
        {"points": SIX, "m": MASSES, "softening": np.float32(0.1)},
        right=("points: negative", "points: zero", "m: zero", "softening: zero"),
    ),
    Door(
        "physics.nbody.diagnostics.lagrangian_radii",
        diagnostics.lagrangian_radii,
        {
            "points": SIX,
            "m": MASSES,
            "centre": jnp.zeros(3),
            "fractions": np.array([0.1, 0.5], np.float32),
        },
        right=(
            *leave("points", "negative", "zero"),
            *leave("centre", "negative", "zero"),
            *leave("fractions", "zero", "empty", "wrong length"),
        ),
    ),
    Door(
        "physics.nbody.diagnostics.half_mass_relaxation_time",
        diagnostics.half_mass_relaxation_time,
        {"count": 100, "radius": 1.0, "mass": 1.0},
        right=("radius: empty", "mass: empty"),
    ),
]
