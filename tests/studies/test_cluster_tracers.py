"""The study `cluster-tracers`: its measurements and its findings."""

import base64
import io

import av
import jax
import numpy as np
import pytest

from jaxgpu import report
from jaxgpu.studies import cluster_tracers, studies
from jaxgpu.studies.cluster_tracers import measures

T = np.linspace(0.5, 20, 40)


def test_slopes_are_those_of_an_exponential():
    """The first half of the radii has no effect."""
    radii = np.exp(np.outer(T, [0.05, -0.02]))
    radii[:10] = 7
    np.testing.assert_allclose(measures.slope(radii, T), [0.05, -0.02], rtol=1e-12)


def test_the_collapse_is_the_smallest_core_but_for_a_single_moment():
    core = np.abs(T - 12)[:, None] + 1 + np.zeros(2)
    core[3, 0] = 0.1
    # The median of five about the minimum equals that one sample earlier.
    turn, fell = measures.find_collapse(core)
    np.testing.assert_allclose(T[turn], 12, atol=0.5)
    assert fell.all()


def test_what_only_wanders_or_only_shrinks_is_no_collapse():
    """Test the minimum of a noisy radius, and the last time of a run that ends too early."""
    noise = 1 + 0.2 * np.random.default_rng(0).normal(size=len(T))
    core = np.stack([noise, 1 - 0.04 * T], 1)
    assert not measures.find_collapse(core)[1].any()


def test_rates_are_escapes_over_time_and_bodies():
    """Two escape per unit until 10, five per unit after, of 500 bodies."""
    gone = np.where(T < 10, 2 * T, 20 + 5 * (T - 10))[:, None]
    turn = np.array([np.flatnonzero(T == 10)[0]])
    np.testing.assert_allclose(measures.escape_rates(gone, T, turn, 500)[:, 0], [4, 10])


def test_a_mean_has_its_error_and_one_value_has_none():
    mean, error = measures.mean_and_error(np.array([1.0, 2, 3, np.nan]))
    assert mean == 2 and error == pytest.approx(1 / np.sqrt(3))
    assert np.isnan(measures.mean_and_error(np.array([4.0]))[1])


@pytest.mark.slow
@pytest.mark.release
def test_the_study_reports_and_resumes(tmp_path):
    """Four clusters have one seed; all stars start alike, and alone and dense evolve alike."""
    options = cluster_tracers.Options(stars=40, tracers=100, seeds=1, time=2)
    found = cluster_tracers.study(options, tmp_path / "run", False)
    assert "cluster-tracers" in [study.name for study in studies()]
    assert [len(table.rows) for table in found.tables] == [4, 4, 3]
    assert len(found.findings) == 7 and "Cores shrink" in found.findings[4]
    assert not any("bands" in figure.caption for figure in found.figures)  # of one seed
    with av.open(io.BytesIO(base64.b64decode(found.figures[0].data))) as film:
        assert len(list(film.decode(video=0))) == 5  # the start, and every half
    again = cluster_tracers.study(options, tmp_path / "run", True)
    assert again.findings == found.findings
    report.save(tmp_path / "run", "cluster-tracers", options, found)
    assert "Tracers do not segregate" in report.write(tmp_path).read_text()


@pytest.mark.slow
def test_a_density_is_nothing_but_its_tide():
    """Stars start the same; a wide cluster is closer to its edge, at twice the tidal radius."""
    with jax.enable_x64(True):
        options = cluster_tracers.Options(stars=40, tracers=40)
        alone, dense, loose = (
            cluster_tracers.make_cluster(options, jax.random.key(3), r) for r in (None, 0.5, 2.0)
        )
        np.testing.assert_array_equal(alone.now.m, loose.now.m)
        x = [one.now.bodies.stars.x for one in (alone, dense, loose)]
        np.testing.assert_array_equal(x[0], x[1])
        np.testing.assert_array_equal(x[0], x[2])
        # The same mass is on the same orbit: edges in pc are equal, half-mass radii 0.5 and 2 pc.
        assert float(dense.spec.edge / loose.spec.edge) == pytest.approx(4, rel=1e-9)
        assert alone.spec.steps.tide.field.gm == 0
        # Without a tidal field, a bound star far outside has not escaped.
        assert [bool(one.spec.unbound) for one in (alone, dense, loose)] == [True, False, False]
