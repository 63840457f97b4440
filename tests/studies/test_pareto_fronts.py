"""The study `pareto-fronts`: results as good as pymoo's stored runs, and its pages."""

import base64
import json
import re
from types import SimpleNamespace

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest

from jaxgpu import report
from jaxgpu.evolution.population import Population
from jaxgpu.runs.loop import Run, Timing
from jaxgpu.studies import pareto_fronts
from jaxgpu.studies.pareto_fronts import pictures, races


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seeds", "generations", "spreads"),
    [(3, 50, 1.5), pytest.param(33, 250, 0.5, marks=pytest.mark.release)],
)
def test_the_volumes_are_those_of_pymoo_at_equal_evaluations(seeds, generations, spreads, tmp_path):
    """The margin is some quartile distances, by which medians of few seeds may differ."""
    options = pareto_fronts.Options(seeds=seeds, generations=generations)
    found = pareto_fronts.study(options, tmp_path, False)
    lines = {(row[0], row[1].split()[0]): row for row in found.tables[0].rows}
    for name in races.RACES:
        ours, theirs = lines[name, "jaxgpu"], lines[name, "pymoo"]
        # By chance, the standard deviation is 0.93 (1 / 11 + 1 / seeds)^0.5 of that distance.
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
        np.testing.assert_allclose(got, last[races.median_seed(peer.volumes)], rtol=1e-6)
        assert got == np.float32(np.median(last)) or abs(got - np.median(last)) < 1e-6


def test_a_report_holds_volumes_beside_pymoos_at_as_many_evaluations(monkeypatch, tmp_path):
    """Fake volumes are fractions of pymoo's; seed n has 10 + n points of pymoo's front."""
    parts = dict(zip(races.RACES, (0.5, 0.8, 1.1)))

    def known_run(name, seeds, generations, seed, out, resume):
        """Return a history that begins with the volume at the start."""
        peer, steps = races.peer(name), generations // races.EVERY
        held = np.zeros((1 + steps, seeds))
        held[1:] = parts[name] * np.sort(peer.volumes[:, :steps], 0)[2 : 2 + seeds].T
        f = np.repeat(peer.front[None, :20], seeds, 0)
        violation = np.arange(20)[None] - np.arange(seeds)[:, None] >= 10
        members = Population(f[..., :0], f, 1.0 * violation)
        return Run(SimpleNamespace(population=members), held, Timing(0.0, 0.0, 1))

    monkeypatch.setattr(races, "race", known_run)
    monkeypatch.setattr(races, "is_non_dominated", lambda f, violation: np.full(len(f), True))
    monkeypatch.setattr(pareto_fronts, "figure", lambda drawing, caption: drawing)
    options = pareto_fronts.Options(seeds=7, generations=100)
    told = pareto_fronts.study(options, tmp_path, False)
    np.testing.assert_allclose([one.value for one in told.headlines], list(parts.values()))
    assert all(one.beside.endswith("11 seeds against 7") for one in told.headlines)
    assert "9200 evaluations per run" in told.lead and "0.500, 0.800 and 1.100 times" in told.lead
    rows = told.tables[0].rows
    for (name, part), mine, theirs, panel in zip(
        parts.items(), rows[::2], rows[1::2], told.figures[-1].axes
    ):
        ends = np.sort(races.peer(name).volumes[:, 19])  # after 100 generations
        low, middle, high = (ends[2] + ends[3]) / 2, ends[5], (ends[7] + ends[8]) / 2
        assert theirs == [name, "pymoo 0.6.2", middle, low, high, ends[0], 11]
        ours = [middle, (ends[3] + ends[4]) / 2, (ends[6] + ends[7]) / 2, ends[2]]
        np.testing.assert_allclose(mine[2:], [*(part * end for end in ours), 7])
        spent, volume = panel.lines[0].get_data()
        np.testing.assert_allclose((spent[-1], volume[-1]), (9.2, part * middle))
        np.testing.assert_allclose(panel.lines[1].get_ydata()[-1], middle)
        assert panel.get_title() == races.RACES[name].title
    # The fourth of seven seeds has the median volume and 13 points.
    assert all("median volume, 13 points" in one.caption for one in told.figures[:3])
    width, height = told.figures[-1].get_size_inches()
    assert height < width <= 9.4  # the page's
    plt.close(told.figures[-1])


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
