"""Valid and invalid input of the cluster functions, and their checks during a run."""

import numpy as np
import pytest

from jaxgpu.physics.nbody.clusters import Hermite, checks
from jaxgpu.physics.nbody.validation import check_distinct


def draw_bodies(seed, count=5):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, 3)), rng.normal(size=(count, 3)), rng.uniform(0.01, 2.0, count)


@pytest.mark.parametrize("seed", range(3))
def test_bodies_come_back_as_they_were_in_float64(seed):
    x, v, m = draw_bodies(seed)
    stars, weights, tracers = checks.check_bodies(
        "evolve", x.astype(np.float32), v.tolist(), m, None
    )
    assert stars.dtype == weights.dtype == tracers.dtype == np.float64 and tracers.shape == (6, 0)
    np.testing.assert_allclose(stars[:3].T, x, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(stars[3:].T, v, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(weights, m)


def test_wrong_bodies_are_refused_by_name():
    x, v, m = draw_bodies(0)
    twice = x.copy()
    twice[3] = twice[1]
    cases = [
        ((x[:1], v[:1], m[:1], None), "x: 1 stars"),
        ((x, v, -m, None), "m: star . has -"),
        ((x, v, m[:4], None), r"m has shape \[4\]; it must be \[5\]"),
        ((x, v[:4], m, None), r"v has shape \[4, 3\]; it must be \[5, 3\]"),
        ((twice, v, m, None), "x: star 1 coincides with another"),
        ((x, v, m, (x[2:3], v[2:3])), "tracers: body 0 coincides with a star"),
        ((x.T, v.T, m, None), r"x has shape \[3, 5\]; it must be \[N, 3\]"),
    ]
    for arguments, sentence in cases:
        with pytest.raises(ValueError, match=f"^evolve: .*{sentence}"):
            checks.check_bodies("evolve", *arguments)


def test_bodies_at_one_place_are_named():
    x = draw_bodies(0)[0]
    check_distinct("evolve", x)
    with pytest.raises(
        ValueError, match="evolve: bodies 1 and 3 are at the same position; move or"
    ):
        check_distinct("evolve", x[[0, 1, 2, 1]])


def test_a_time_is_a_multiple_of_the_interval():
    assert checks.num_intervals("evolve", 0.125, 1.5) == 12
    for t in (0.1, np.nan, -1.0):
        with pytest.raises(ValueError, match="evolve: t="):
            checks.num_intervals("evolve", 0.125, t)


def test_an_energy_that_leaves_its_start_is_an_error():
    history = {"kinetic": np.array([1.0, 1.1, 1.3]), "potential": np.array([-2.0, -2.1, -2.2])}
    checks.check_energy(history, 0.2, 0.5, 0.125)  # off by 0.1, a fifth of the unit
    with pytest.raises(RuntimeError, match=r"off by 0.2 of M\^2 / 4 R_v at t = 0.25"):
        checks.check_energy(history, 0.1, 0.5, 0.125)


def test_masses_that_are_none_begin_no_state(x64):
    x, v, m = draw_bodies(1)
    for bad, said in (
        (m[:4], r"m has shape \[4\]; it must be \[5\]"),
        (-m, "m=-.* above 0"),
        (np.full(5, np.nan), "m=nan at"),
    ):
        with pytest.raises(ValueError, match=f"^Hermite.init: {said}"):
            checks.check_init("Hermite.init", Hermite(), x, v, bad, None)
    stars, weights, tracers = checks.check_init("Hermite.init", Hermite(), x, v, m.tolist(), None)
    assert stars.shape == (6, 5) and tracers.shape == (6, 0)
    np.testing.assert_allclose(weights, m, rtol=1e-6)
