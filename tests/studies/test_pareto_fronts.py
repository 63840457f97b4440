"""The study `pareto-fronts`: as good as pymoo's stored runs, its pages."""

import base64
import json
import re

import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu import report
from jaxgpu.evolution.population import Population
from jaxgpu.studies import pareto_fronts
from jaxgpu.studies.pareto_fronts import pictures, races


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seeds", "spreads"), [(3, 1.5), pytest.param(33, 0.5, marks=pytest.mark.release)]
)
def test_the_volumes_are_those_of_pymoo_at_equal_evaluations(seeds, spreads, tmp_path):
    """Within some of the spreads of the quartiles, by which medians of few seeds may differ."""
    options = pareto_fronts.Options(seeds=seeds)
    found = pareto_fronts.study(options, tmp_path, False)
    lines = {(row[0], row[1].split()[0]): row for row in found.tables[0].rows}
    for name in races.RACES:
        ours, theirs = lines[name, "jaxgpu"], lines[name, "pymoo"]
        # by 0.93 (1 / 11 + 1 / seeds)^0.5 of that spread is the standard deviation by chance
        assert ours[2] > theirs[2] - spreads * max(theirs[4] - theirs[3], ours[4] - ours[3]), name
    report.save(tmp_path, "pareto-fronts", options, found)
    page = report.write(tmp_path).read_text()
    assert page.count("<iframe") == 3 and page.count("<img") == 1
    again = pareto_fronts.study(options, tmp_path, True)
    assert again.tables[0].rows == found.tables[0].rows


def test_the_stored_runs_are_fronts_whose_volumes_they_tell():
    for name in races.RACES:
        peer = races.peer(name)
        assert peer.volumes.shape == (11, 50) and np.isfinite(peer.volumes).all()
        f = np.full((races.MEMBERS, 3), 9.0, np.float32)
        f[: len(peer.front)] = peer.front
        members = Population(jnp.zeros((len(f), 0)), jnp.asarray(f), jnp.zeros(len(f)))
        got = races.volume(members, *(jnp.asarray(b) for b in (peer.low, peer.high)))
        last = peer.volumes[:, -1]
        np.testing.assert_allclose(got, last[races.middle(peer.volumes)], rtol=1e-6)
        assert got == np.float32(np.median(last)) or abs(got - np.median(last)) < 1e-6


def test_infeasible_members_have_no_volume():
    f = jnp.array([[0.1, 0.1, 0.1], [0.6, 0.6, 0.6]])
    members = Population(jnp.zeros((2, 0)), f, jnp.array([1.0, 0.0]))
    got = races.volume(members, jnp.zeros(3), jnp.ones(3))
    np.testing.assert_allclose(got, 0.5**3, rtol=1e-5)


def test_both_fronts_are_in_the_view():
    one = pictures.fronts(("a", "b", "c"), np.eye(3), np.zeros((1, 3)), "caption")
    page = base64.b64decode(one.data).decode()
    data = json.loads(re.search(r'json">(.*?)</script>', page)[1])
    assert one.mime == "text/html" and data["axes"] == ["a", "b", "c"]
    assert [(s["name"], s["x"]["count"], s["hollow"]) for s in data["points"]] == [
        ("jaxgpu", 3, False),
        ("pymoo", 1, True),
    ]
