"""The excerpt of DE440 against published facts."""

import jax
import numpy as np
import pytest

from jaxgpu.physics.nbody.orbits import elements
from jaxgpu.physics.nbody.planets import ephemeris

from_state = jax.jit(elements.from_state)


def test_the_excerpt_is_what_was_published():
    start = ephemeris.de440(ephemeris.J2000)
    assert start.names[0] == "Sun" and start.names[-1] == "Pluto" and len(start.names) == 10
    # Heliocentric gravitational constant, km^3 / s^2: IAU 2009 system, TDB-compatible.
    np.testing.assert_allclose(
        start.gm[0] * ephemeris.AU**3 / 86400**2, 1.32712440041e11, rtol=1e-9
    )
    # Mass of the Sun over that of each planetary system: IAU 2009 system of constants.
    ratio = {"Mercury": 6.0236e6, "Venus": 4.08523719e5, "Mars": 3.09870359e6}
    ratio |= {"Jupiter": 1.047348644e3, "Saturn": 3.4979018e3, "Uranus": 2.290298e4}
    for name, value in ratio.items():
        body = start.gm[start.names.index(name)]
        np.testing.assert_allclose(start.gm[0] / body, value, rtol=2e-5)


def test_the_barycentre_of_all_is_the_origin():
    for years in (0, 10, 50, 100):
        now = ephemeris.de440(ephemeris.J2000 + 365.25 * years)
        centre = now.gm @ now.x / now.gm.sum()
        assert np.abs(centre).max() < 3e-6  # DE440's Kuiper belt: 6e-8 of the Sun at 40 AU


@pytest.mark.parametrize("years", [0, 10, 50, 100])
def test_the_planets_are_where_kepler_would_look(x64, years):
    now = ephemeris.de440(ephemeris.J2000 + 365.25 * years)
    x, v = (ephemeris.to_ecliptic(part[1:] - part[0]) for part in (now.x, now.v))
    orbit = from_state(x, v, now.gm[0] + now.gm[1:])
    # Semi-major axes and eccentricities of Standish (1992), table 5.8.1, without Pluto.
    a = [0.38710, 0.72333, 1.00000, 1.52366, 5.20336, 9.53707, 19.19126, 30.06896]
    e = [0.20563, 0.00677, 0.01671, 0.09341, 0.04839, 0.05415, 0.04717, 0.00859]
    np.testing.assert_allclose(np.asarray(orbit.a)[:8], a, rtol=0.01)
    np.testing.assert_allclose(np.asarray(orbit.e)[:8], e, atol=0.01)
    assert np.degrees(orbit.i).max() < 18


def test_axes_turn_and_turn_back():
    vector = np.random.default_rng(0).normal(size=(7, 3))
    np.testing.assert_allclose(
        ephemeris.to_equatorial(ephemeris.to_ecliptic(vector)), vector, atol=1e-15
    )


def test_another_date_is_refused():
    with pytest.raises(ValueError, match="de440: no entry for Julian date 2460000.0; the package"):
        ephemeris.de440(2460000.0)
