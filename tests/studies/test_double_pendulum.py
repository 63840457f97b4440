"""The study `double-pendulum`: its parts against what is known, its options, its report."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu import report
from jaxgpu.physics.rigid import State
from jaxgpu.studies import double_pendulum as study


def test_the_energy_is_that_of_two_rods():
    """Against heights and speeds of the rods' middles, by differences of the positions."""
    with jax.enable_x64(True):
        q, v, h = np.array([0.7, -0.4]), np.array([1.3, 0.6]), 1e-6

        def middles(q):
            upper, lower = q[0], q[0] + q[1]
            one = np.array([-np.sin(upper), -np.cos(upper)])
            return np.stack([one / 2, one + np.array([-np.sin(lower), -np.cos(lower)]) / 2])

        speed = (middles(q + h * v) - middles(q - h * v)) / (2 * h)
        turning = (v[0] ** 2 + (v[0] + v[1]) ** 2) / 24
        want = 0.5 * np.sum(speed**2) + turning + study.G * middles(q)[:, 1].sum()
        got = study.energy(study.pendulum(1e-3), State(jnp.asarray(q), jnp.asarray(v)))
        np.testing.assert_allclose(got, want, rtol=1e-9)


def test_growth_finds_the_exponent_of_an_exponential_and_no_more():
    times = np.linspace(0, 20, 400)
    spread = np.minimum(1e-9 * np.exp(1.5 * times), 2.0)
    exponent, line = study.growth(times, spread)
    assert exponent == pytest.approx(1.5, rel=1e-9)
    np.testing.assert_allclose(line[:100], spread[:100], rtol=1e-9)


def test_options_out_of_range_are_named():
    with pytest.raises(ValueError, match="pendulums=3; it must be a whole number of at least 50"):
        study.Options(pendulums=3)


@pytest.mark.slow
def test_the_study_agrees_with_what_is_known(tmp_path):
    options = study.Options(pendulums=50, seconds=16)
    found = study.study(options, tmp_path, False)
    slow, fast, slope, order = found.tables[0].rows
    assert slow[1] == pytest.approx(slow[2], rel=2e-5)
    assert fast[1] == pytest.approx(fast[2], rel=2e-4)
    assert slope[1] == pytest.approx(slope[2], rel=1e-7)
    assert order[1] == pytest.approx(2, rel=0.2)
    report.save(tmp_path, "double-pendulum", options, found)
    assert report.write(tmp_path).read_text().count("<iframe") == 1
