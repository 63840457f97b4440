"""Effects of encounters on velocities: friction and the heat flow between masses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from nbody_inputs import halves, points

from jaxgpu.devices.precision import reassociation
from jaxgpu.physics.nbody.clusters import Hermite
from jaxgpu.physics.nbody.measure import diagnostics
from jaxgpu.physics.nbody.models import plummer, virialize

pytestmark = pytest.mark.slow
draw = jax.jit(plummer, static_argnums=1)

CORE2 = (3 * np.pi / 16) ** 2  # of a Plummer sphere in Henon's units


def compile_step(step, *args):
    return jax.jit(step, compiler_options=reassociation()).lower(*args).compile()


def smooth_orbit(start, t, steps=256):
    """Return bodies [6, K] after t in the smooth potential of Plummer's sphere."""
    x, v, h = start[:3].copy(), start[3:].copy(), t / steps
    for _ in range(steps):
        x += h / 2 * v
        v -= h * x / ((x * x).sum(0) + CORE2) ** 1.5
        x += h / 2 * v
    return np.vstack([x, v])


def braking(before, after, t):
    """Return the mean of v . dv over bodies within three radii; dv is the effect of graininess."""
    expected = smooth_orbit(np.asarray(before), t)
    inside = np.linalg.norm(expected[:3], axis=0) < 3
    return (expected[3:] * (np.asarray(after)[3:] - expected[3:])).sum(0)[inside].mean()


def test_a_massless_body_feels_half_the_friction_of_a_star(x64):
    """Friction is proportional to the sum of a body's and a field star's mass (Chandrasekhar 1943).

    Massless bodies and equal stars have one distribution, so that all else is equal: 1e5 of them in
    eighty clusters. The ratio has a standard error of 0.031, by omitting one cluster at a time.
    """
    count, t = 128, 0.5
    m = jnp.full(count, 1 / count)
    spec = Hermite(jnp.asarray(0.02), jnp.asarray(0.01), interval=t, longest=3)
    init = jax.jit(Hermite.init)

    def run_seed(seed, step):
        stars, tracers = map(draw, jax.random.split(jax.random.key(seed)), (count, 1250))
        begin = init(spec, *stars, m, tracers)
        step = step or compile_step(Hermite.step, spec, begin)
        end = step(spec, begin)
        both = (stars, end.stars.x), (tracers, end.tracers.x)
        return step, tuple(braking(points(start), x, t) for start, x in both)

    step, drags = None, []
    for seed in range(80):
        step, drag = run_seed(seed, step)
        drags.append(drag)
    star, massless = np.mean(drags, 0)
    assert star < 0 and massless < 0
    assert abs(massless / star - 0.5) < 0.5 * 0.15


def test_heat_flows_away_from_heavy_stars_and_comes_back(x64):
    """Stars five times as heavy never reach equipartition (Spitzer 1969, doi:10.1086/180451).

    They cool towards the light ones, sink, and as a cluster of their own heat up again (Khalisi,
    Amaro-Seoane & Spurzem 2007, doi:10.1111/j.1365-2966.2006.11184.x). Softened, two seeds.
    """
    count, heavy, mass = 256, np.arange(256) < 26, 5.0
    m = jnp.asarray(np.where(heavy, mass, 1) / (26 * mass + 230))
    spec = Hermite(jnp.asarray(0.02), jnp.asarray(0.02), interval=1.0, longest=5)
    init, centre = jax.jit(Hermite.init), jax.jit(diagnostics.core)
    step = None

    def ratio(x, v):
        """Return the ratio of mean kinetic energies within a radius, in the local mean frame."""
        place = np.asarray(centre(x, m)[0])
        near = np.linalg.norm(x - place, axis=1) < 1
        v = v - v[near].mean(0)
        energy = np.asarray(m) * (v * v).sum(1)
        return energy[near & heavy].mean() / energy[near & ~heavy].mean()

    for seed in range(2):
        x, v = virialize(*draw(jax.random.key(seed), count), m)
        state = init(spec, x, v, m)
        step = step or compile_step(Hermite.step, spec, state)
        ratios = []
        for _ in range(56):
            state = step(spec, state)
            ratios.append(ratio(*halves(np.asarray(state.stars.x))))
        early, middle, late = (np.mean(ratios[a:b]) for a, b in ((0, 6), (16, 31), (40, 56)))
        assert early > middle + 0.2 and late > middle + 0.2
        assert min(ratios[16:31]) > 2
