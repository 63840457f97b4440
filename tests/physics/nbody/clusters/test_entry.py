"""What the one-call forms of clusters let in, and what they watch on the way."""

import numpy as np
import pytest

from jaxgpu.physics.nbody import layout
from jaxgpu.physics.nbody.clusters import entry


def drawn(seed, count=5):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(6, count)), rng.uniform(0.01, 2.0, count)


@pytest.mark.parametrize("seed", range(3))
def test_bodies_come_back_as_they_were_in_float64(seed):
    stars, m = drawn(seed)
    got = entry.bodies("evolve", layout.Rows(stars.T.astype(np.float32)), m.tolist(), None)
    assert [a.dtype for a in got] == [np.float64] * 3 and got[2].shape == (6, 0)
    np.testing.assert_allclose(got[0], stars, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(got[1], m)


def test_wrong_bodies_are_refused_by_name():
    stars, m = drawn(0)
    twice = stars.copy()
    twice[:, 3] = twice[:, 1]
    cases = [
        ((stars[:, :1], m[:1], None), "stars: 1 of them"),
        ((stars, -m, None), "m: star . has -"),
        ((stars, m[:4], None), r"m has shape \[4\]; it must be \[5\]"),
        ((twice, m, None), "stars: star 1 is where another is"),
        ((stars, m, stars[:, 2:3]), "tracers: body 0 is where a star is"),
        ((drawn(0, 6)[0], drawn(0, 6)[1], None), "can be read both ways"),
    ]
    for arguments, sentence in cases:
        with pytest.raises(ValueError, match=f"^evolve: .*{sentence}"):
            entry.bodies("evolve", *arguments)


def test_a_time_is_a_multiple_of_the_interval():
    assert entry.intervals("evolve", 0.125, 1.5) == 12
    for t in (0.1, np.nan, -1.0):
        with pytest.raises(ValueError, match="evolve: t="):
            entry.intervals("evolve", 0.125, t)


def test_an_energy_that_leaves_its_start_is_an_error():
    history = {"kinetic": np.array([1.0, 1.1, 1.3]), "potential": np.array([-2.0, -2.1, -2.2])}
    entry.check_energy(history, 0.2, 0.5, 0.125)  # off by 0.1, a fifth of the unit
    with pytest.raises(RuntimeError, match=r"off by 0.2 of M\^2 / 4 R_v at t = 0.25"):
        entry.check_energy(history, 0.1, 0.5, 0.125)
