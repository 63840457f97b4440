"""A century of the Solar System with massless tracers, compared with JPL's ephemeris.

Sun, planets and Pluto start from their DE440 positions on 1 January 2000 and are integrated with
and without general relativity, together with tracers between Mars and Jupiter. The study compares
the final planets with DE440, and shows the response of the tracers to the resonances with Jupiter.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.devices.precision import with_float64
from jaxgpu.inputs.fields import number, pytree, size
from jaxgpu.physics.nbody.forces import relativity
from jaxgpu.physics.nbody.orbits import elements
from jaxgpu.physics.nbody.planets import ephemeris, planetary
from jaxgpu.physics.nbody.planets.planetary import Planetary
from jaxgpu.report import Figure, Headline, Report, Table, figure
from jaxgpu.runs.loop import Run, run
from jaxgpu.studies import SeededOptions, shared_parts

from . import pictures

STEP = 36.525  # days: 0.1 Julian years, about a tenth of the tracers' shortest period
JUPITER = 5.2026  # AU, mean semi-major axis of Jupiter


@dataclass(frozen=True)
class Options(SeededOptions):
    """Options of the study."""

    years: int = size(default=100, least=1, most=100)
    """Duration in Julian years: 10, 50 or 100, for which DE440 positions are stored."""
    tracers: int = size(default=10_000, least=1, most=1_000_000_000)
    """Massless bodies between Mars and Jupiter."""
    eccentricity: float = number(default=0.1, least=0, most=0.4)
    """Maximum initial eccentricity of the tracers; eccentricities are uniformly distributed."""
    inclination: float = number(default=10.0, least=0, most=90, unit="degrees")
    """Maximum initial inclination to the ecliptic, degrees."""

    def __post_init__(self):
        super().__post_init__()
        if self.years not in (10, 50, 100):
            raise ValueError(f"years: {self.years}; must be 10, 50 or 100, where DE440 is held")


@pytree
class Journey:
    """State of the system, with the extremes of the tracers' orbits so far."""

    system: planetary.State
    began: elements.Elements
    low: Array  # [M] minimum semi-major axis so far, AU
    high: Array  # [M] maximum semi-major axis so far, AU
    e: Array  # [M] maximum eccentricity so far


@with_float64
def study(options: Options, out: Path, resume: bool) -> Report:
    """Integrate with and without relativity and compare with DE440."""
    start = ephemeris.de440(ephemeris.J2000)
    end = ephemeris.de440(ephemeris.J2000 + 365.25 * options.years)
    x, v = belt(options, start)
    runs = {}
    for name, light, drawn in (
        ("Newton", np.inf, slice(0, 0)),
        ("general relativity", relativity.SPEED_OF_LIGHT, slice(None)),
    ):
        spec = Planetary(gm=jnp.asarray(start.gm), dt=jnp.asarray(STEP), light=jnp.asarray(light))
        runs[name] = integrate(spec, start, x[drawn], v[drawn], options, out / name, resume)
    return make_report(options, start, end, runs)


def integrate(
    spec: Planetary,
    start: ephemeris.Ephemeris,
    x: np.ndarray,
    v: np.ndarray,
    options: Options,
    out: Path,
    resume: bool,
) -> Run:
    """Integrate the planets from `start` and tracers from `x`, `v` [M, 3] for all years."""
    system = spec.init(jnp.asarray(start.x), jnp.asarray(start.v), (jnp.asarray(x), jnp.asarray(v)))
    orbit = planetary.tracer_orbits(spec.gm[0], system)
    journey = Journey(system=system, began=orbit, low=orbit.a, high=orbit.a, e=orbit.e)
    step, measure = partial(advance, spec), partial(measure_journey, spec)
    return run(step, journey, 10 * options.years, measure=measure, out=out, resume=resume)


def advance(spec: Planetary, journey: Journey) -> Journey:
    """Return the state one step later."""
    system = spec.step(journey.system)
    orbit = planetary.tracer_orbits(spec.gm[0], system)
    return Journey(
        system=system,
        began=journey.began,
        low=jnp.minimum(journey.low, orbit.a),
        high=jnp.maximum(journey.high, orbit.a),
        e=jnp.maximum(journey.e, orbit.e),
    )


def measure_journey(spec: Planetary, journey: Journey) -> dict[str, Array]:
    """Return conserved quantities of the massive bodies, and the tracers' maximum step level."""
    system = journey.system
    energy, _, spin = relativity.invariants(system.x, system.v, spec.gm, spec.light)
    return {"energy": energy, "spin": spin, "deepest": jnp.max(system.tracers.taken, initial=0)}


def belt(options: Options, start: ephemeris.Ephemeris) -> tuple[np.ndarray, np.ndarray]:
    """Return barycentric positions and velocities [M, 3] of the tracers, in ICRF axes."""
    widest = np.deg2rad(options.inclination)
    orbits = elements.sample_uniform(
        jax.random.key(options.seed), options.tracers, (2.0, 3.5), options.eccentricity, widest
    )
    state = elements.to_state(orbits, jnp.asarray(start.gm[0]))
    x, v = (ephemeris.to_equatorial(np.asarray(part)) for part in state)
    return x + start.x[:1], v + start.v[:1]


def make_report(
    options: Options,
    start: ephemeris.Ephemeris,
    end: ephemeris.Ephemeris,
    runs: dict[str, Run],
) -> Report:
    """Return the report with tables, figures and findings."""
    position_error = lambda one: np.linalg.norm(np.asarray(one.state.system.x) - end.x, axis=1)
    miss = {name: position_error(one) * ephemeris.AU for name, one in runs.items()}
    newton, relative = miss["Newton"], miss["general relativity"]
    far = np.maximum(np.linalg.norm(end.x - end.x[0], axis=1), 1e-9) * ephemeris.AU
    seconds = np.degrees(relative / far) * 3600
    rows = [
        [name, float(newton[i]), float(relative[i]), float(seconds[i]) if i else "-"]
        for i, name in enumerate(start.names)
    ]
    columns = ["body", "Newton, km", "relativity, km", "relativity, heliocentric arcsec"]
    where = f"Distance from the DE440 position after {options.years} years"
    mercury = start.names.index("Mercury")
    turn = perihelion_turn(runs, start)
    findings = [
        f"Relativity turns Mercury's perihelion by {turn:.2f} arcsec in {options.years} years; "
        f"first-order theory predicts {42.98 * options.years / 100:.2f}.",
        "The remaining differences are mainly due to effects that the model omits, not to "
        "integration errors: the Moon (Earth-Moon barycentre), the asteroids (Mars), and the "
        "solar oblateness (Mercury).",
        step_sentences(runs["general relativity"]),
    ]
    return Report(
        title="The Solar System and its tracers",
        lead=(
            f"{options.years} years from 1 January 2000 with {options.tracers} tracers: Mercury "
            f"ends {relative[mercury]:.0f} km from its position in JPL's DE440, and "
            f"{newton[mercury]:.0f} km without relativity."
        ),
        figures=figures(options, start, runs, miss),
        tables=[Table(where, columns, rows, digits=3), conservation_table(runs)],
        headlines=[
            Headline(
                f"Mercury's distance from DE440 after {options.years} years, km",
                float(relative[mercury]),
                f"{newton[mercury]:.0f} km without relativity",
            ),
            Headline(
                "relativistic precession of Mercury's perihelion, arcsec",
                float(turn),
                f"{42.98 * options.years / 100:.2f} by first-order theory",
                digits=4,
            ),
        ],
        **shared_parts(options, runs, findings, CITATIONS),
    )


def conservation_table(runs: dict[str, Run]) -> Table:
    """Return a table of the maximum relative change of each conserved quantity."""
    rows = []
    for name, one in runs.items():
        for label, key in (("energy", "energy"), ("angular momentum", "spin")):
            value = one.history[key].reshape(len(one.history[key]), -1)
            drift = np.abs(value - value[0]).max() / np.linalg.norm(value[0])
            rows.append([name, label, float(drift)])
    return Table("Maximum relative change of invariants", ["model", "quantity", "change"], rows, 2)


def step_sentences(one: Run) -> str:
    """Return sentences on the steps of the tracers and their errors."""
    shortest = STEP / 2 ** int(one.history["deepest"].max())
    coarse = int(one.state.system.tracers.coarse.sum())
    fine = (
        f"The tracers' individual time steps were {shortest:.3g} to {STEP:.3g} days; {coarse} "
        "missed the tolerance. Tracers exert no forces."
    )
    faults = planetary.error_messages(one.state.system)
    return " ".join([fine, *(f"Error: {said}." for said in faults)])


def perihelion_turn(runs: dict[str, Run], start: ephemeris.Ephemeris) -> float:
    """Return the angle between Mercury's perihelia with and without relativity, arc seconds."""
    body = start.names.index("Mercury")
    one, two = (
        elements.eccentricity_vector(
            state.x[body] - state.x[0], state.v[body] - state.v[0], jnp.asarray(start.gm[0])
        )
        for state in (run.state.system for run in runs.values())
    )
    turn = jnp.arctan2(jnp.linalg.norm(jnp.cross(one, two)), jnp.sum(one * two))
    return float(jnp.degrees(turn) * 3600)


def figures(
    options: Options,
    start: ephemeris.Ephemeris,
    runs: dict[str, Run],
    miss: dict[str, np.ndarray],
) -> list[Figure]:
    """Return figures of the tracers' response, their positions, and the planets' errors."""
    journey = runs["general relativity"].state
    system = journey.system
    after = planetary.tracer_orbits(jnp.asarray(start.gm[0]), system)
    planets = {
        name: ephemeris.to_ecliptic(np.asarray(system.x[i] - system.x[0]))
        for i, name in enumerate(start.names)
        if name in ("EMB", "Mars", "Jupiter")
    }
    tracers = ephemeris.to_ecliptic(np.asarray(system.tracers.x - system.x[:1]))
    others = {name: place - planets["EMB"] for name, place in planets.items() if name != "EMB"}
    others["Sun"] = -planets["EMB"]
    strayed = np.asarray(journey.high - journey.low), np.asarray(journey.e)
    return [
        figure(
            pictures.response(journey.began, *strayed, JUPITER),
            f"Change of each orbit in {options.years} years against its initial semi-major axis. "
            "Near resonances with Jupiter (lines: ratio of the periods of Jupiter and body) "
            "orbits change more; there the asteroid belt has its Kirkwood gaps.",
        ),
        figure(
            pictures.plane(planets, tracers, journey.began, after),
            f"Left: tracers after {options.years} years, projected on the ecliptic. Right: their "
            "orbital elements at the start (grey) and at the end (blue).",
        ),
        figure(
            pictures.sky(tracers - planets["EMB"], others),
            "The same tracers in the Earth's sky: near opposition the belt is closer and spans "
            "more latitude.",
        ),
        figure(
            pictures.ephemeris_errors(start.names, miss),
            f"Distance of each body from its DE440 position after {options.years} years.",
        ),
    ]


CITATIONS = [
    "Park, Folkner, Williams & Boggs (2021), AJ 161, 105, doi:10.3847/1538-3881/abd414: DE440",
    "Everhart (1985), doi:10.1007/978-94-009-5400-7_17: Gauss-Radau integration of order 15",
    "Rein & Spiegel (2015), doi:10.1093/mnras/stu2164: control of its steps",
    "Einstein, Infeld & Hoffmann (1938), doi:10.2307/1968714: equations of motion",
]
