"""API cases of `jaxgpu.physics.nbody` for planets, pairs and small systems."""

import jax
import jax.numpy as jnp
import numpy as np
from api_cases import ApiCase

from jaxgpu.physics.nbody.forces import relativity
from jaxgpu.physics.nbody.orbits import elements, kepler, ks
from jaxgpu.physics.nbody.planets import encounters, ephemeris, integrate
from jaxgpu.physics.nbody.planets.ensemble import Ensemble
from jaxgpu.physics.nbody.planets.planetary import Planetary
from jaxgpu.physics.nbody.planets.tracers import Control
from jaxgpu.physics.nbody.planets.wisdom_holman import WisdomHolman
from jaxgpu.physics.nbody.steps.leapfrog import Leapfrog

random = np.random.default_rng(0)
X = random.normal(size=(4, 3)).astype(np.float32)
V = random.normal(size=(4, 3)).astype(np.float32)
GM = np.array([1.0, 1e-3, 2e-3, 3e-4], np.float32)
ONE = np.float32(1.0)
SYSTEMS = [random.normal(size=(4, 2, 3)).astype(np.float32) for _ in range(2)]
PAIR = {"x": X, "v": V, "gm": np.float32(2.0)}
SIGNS = ("x: negative", "v: negative", "v: zero")  # mirrored bodies, and bodies at rest


def attack_names(argument, *kinds):
    return tuple(f"{argument}: {kind}" for kind in kinds)


CASES = [
    ApiCase(
        "physics.nbody.Planetary.init",
        lambda spec, x, v, tracer_x, tracer_v: spec.init(x, v, (tracer_x, tracer_v)),
        {"spec": Planetary(GM, ONE), "x": X, "v": V, "tracer_x": X + 2, "tracer_v": V},
        right=(*SIGNS, "tracer_x: negative", "tracer_x: zero"),
        free=("tracer_v",),  # behaves like tracer_x, and each answer takes a second
        refusals=True,
        alike="nbody.Planetary",
    ),
    ApiCase(
        "physics.nbody.tracers.Control",
        lambda control: Planetary(GM, ONE, control=control).init(X, V, (X + 2, V)).tracers.level,
        {"control": Control()},
        refusals=True,
    ),
    ApiCase(
        "physics.nbody.WisdomHolman.init",
        lambda gm, dt, x, v: WisdomHolman(gm, dt).init(x, v),
        {"gm": GM, "dt": ONE, "x": X, "v": V},
        right=(*SIGNS, *attack_names("dt", "zero", "negative")),
    ),
    ApiCase(
        "physics.nbody.integrate",
        lambda x, v, t: integrate(WisdomHolman(GM, np.float32(0.5)), x, v, t),
        {"x": X, "v": V, "t": ONE},
        right=(*SIGNS, "t: zero"),
        host="a run, whose loop is on the host",
    ),
    ApiCase(
        "physics.nbody.kepler.drift",
        kepler.drift,
        PAIR | {"dt": np.float32(0.3)},
        right=(
            *SIGNS,
            "gm: zero",
            *attack_names("dt", "zero", "negative"),
            "x: narrow",
            "v: narrow",
        ),
    ),
    ApiCase("physics.nbody.kepler.pericenter", kepler.pericenter, PAIR, right=SIGNS),
    ApiCase("physics.nbody.elements.from_state", elements.from_state, PAIR, limits=SIGNS),
    ApiCase(
        "physics.nbody.elements.eccentricity_vector",
        elements.eccentricity_vector,
        PAIR,
        right=SIGNS,
    ),
    ApiCase(
        "physics.nbody.elements.to_state",
        elements.to_state,
        {"orbit": elements.Elements(*np.float32([1, 0.3, 0.2, 1, 2, 3])), "gm": ONE},
        refusals=True,
    ),
    ApiCase(
        "physics.nbody.elements.sample_uniform",
        lambda count, e, i: elements.sample_uniform(jax.random.key(0), count, (1.0, 2.0), e, i),
        {"count": 3, "e": 0.3, "i": 0.2},
        right=("count: zero", "e: zero", "i: zero"),
    ),
    ApiCase(
        "physics.nbody.Ensemble.init",
        lambda spec, x, v, m: spec.init(x, v, m),
        {
            "spec": Ensemble(dt=ONE),
            "x": SYSTEMS[0],
            "v": SYSTEMS[1],
            "m": np.ones((4, 2), np.float32),
        },
        right=(*SIGNS, "m: zero"),
        refusals=True,
    ),
    ApiCase(
        "physics.nbody.Leapfrog.init",
        lambda x, v, t, dt, order: (lambda spec: spec.step(spec.init(x, v, t)))(
            Leapfrog(lambda t, x: -x, dt, order)
        ),
        {"x": X, "v": V, "t": ONE, "dt": ONE, "order": 4},
        right=(
            *SIGNS,
            "x: zero",
            *attack_names("t", "zero", "negative"),
            *attack_names("dt", "zero", "negative"),
        ),
    ),
    ApiCase(
        "physics.nbody.encounters.log_stars",
        lambda x, v, m, radius: (
            encounters.log_stars(
                encounters.empty_log(9, jnp.zeros(())),
                encounters.Moment(0.0, x, v),
                encounters.Moment(1.0, x, v),
                m,
                radius,
            ).count
        ),
        {"x": X, "v": V, "m": GM, "radius": ONE},
        right=(*SIGNS, *attack_names("x", "zero", "empty"), "m: zero", "radius: inf"),
    ),
    ApiCase(
        "physics.nbody.ks.from_cartesian",
        lambda x, v, m: ks.from_cartesian(x, v, m),
        {"x": X.T.copy(), "v": V.T.copy(), "m": ONE},
        right=SIGNS,
    ),
    ApiCase(
        "physics.nbody.relativity.newton",
        relativity.newton,
        {"x": X, "gm": GM},
        right=(*SIGNS, "gm: zero"),
    ),
    ApiCase(
        "physics.nbody.relativity.einstein_infeld_hoffmann",
        relativity.einstein_infeld_hoffmann,
        {"x": X, "v": V, "gm": GM, "light": np.float32(100)},
        right=(*SIGNS, "gm: zero", "light: inf"),
    ),
    ApiCase(
        "physics.nbody.ephemeris.to_ecliptic",
        ephemeris.to_ecliptic,
        {"vector": X},
        right=("vector: *",),
        host="makes a start in NumPy, once",
    ),
    ApiCase(
        "physics.nbody.ephemeris.de440",
        ephemeris.de440,
        {"jd": ephemeris.J2000},
        host="makes a start in NumPy, once",
    ),
]
