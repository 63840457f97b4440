"""Figures of studies: they show the given data in the units that they name."""

import numpy as np
import pytest

from jaxgpu.physics.nbody.orbits.elements import Elements
from jaxgpu.studies.solar_system import pictures


@pytest.fixture(autouse=True)
def close_plots():
    import matplotlib

    matplotlib.use("Agg")
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def orbits(count=50):
    random = np.random.default_rng(0)
    return Elements(random.uniform(2, 3.5, count), *random.uniform(0, 0.2, (5, count)))


def test_response_marks_the_resonances_where_kepler_puts_them():
    before = orbits()
    drawing = pictures.response(before, np.full(50, 0.01), np.asarray(before.e) + 0.1, 5.2026)
    top, bottom = drawing.axes
    marks = sorted(line.get_xdata()[0] for line in top.lines[1:])
    # These are the Kirkwood gaps of the textbooks, AU.
    np.testing.assert_allclose(marks, [2.065, 2.501, 2.825, 2.958, 3.278], atol=2e-3)
    np.testing.assert_allclose(bottom.lines[0].get_ydata(), 0.1)


def test_plane_and_misses_hold_their_data():
    tracers = np.random.default_rng(1).normal(size=(50, 3))
    drawing = pictures.plane({"Mars": np.array([1.5, 0, 0])}, tracers, orbits(), orbits())
    np.testing.assert_array_equal(drawing.axes[0].lines[0].get_xdata(), tracers[:, 0])
    km = {"Newton": np.array([10.0, 1e4]), "Einstein": np.array([9.0, 40.0])}
    axes = pictures.ephemeris_errors(("Sun", "Mercury"), km).axes[0]
    assert axes.get_yscale() == "log" and len(axes.lines) == 2


def test_sky_puts_opposition_in_the_middle():
    sun = np.array([0.0, -1.0, 0.0])
    tracers = np.outer(np.ones(9), [0.0, 2.0, 0.0])  # all nine opposite to the Sun
    drawing = pictures.sky(tracers, {"Sun": sun, "Mars": np.array([0.0, 1.0, 0.1])})
    counts = drawing.axes[0].collections[0].get_array()
    assert counts.sum() == 9
    row, column = np.unravel_index(np.argmax(counts), counts.shape)
    assert column in (59, 60) and row == 13
