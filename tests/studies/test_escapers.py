"""The study `escapers`: its theory, and the detection of tails."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu import report
from jaxgpu.studies import BadInput, escapers
from jaxgpu.studies.escapers.lagrange import rotate_z, tail


def test_slow_escape_is_symmetric_and_knows_only_the_tidal_radius():
    """Far from the galactic center the field is Hill's, whose only scale is that radius."""
    with jax.enable_x64(True):
        gm, place = 1e9, 1e4
        edge = 2 * (1 / (3 * gm)) ** (1 / 3) * place
        out = jax.jit(tail)
        inner, outer = out(gm, place, edge, 1.0, -1.0), out(gm, place, edge, 1.0, 1.0)
        np.testing.assert_allclose(inner, -outer, atol=5e-3)
        lighter = out(gm, place, edge / 2, 1 / 8, 1.0)
        np.testing.assert_allclose(lighter, outer, atol=5e-3)
        assert outer[0] > 0 > outer[1]  # trails the motion, which is towards +y


def test_axes_turn_about_z():
    x = rotate_z(jnp.array([[1.0, 0, 2.0]]), jnp.array([np.pi / 2]))
    np.testing.assert_allclose(x, [[0, 1, 2]], atol=1e-6)


@pytest.mark.slow
def test_the_study_finds_two_tails_and_reports_and_refuses_clusters_that_nobody_leaves(tmp_path):
    options = escapers.Options(stars=64, tracers=512, seeds=1, time=8, radii=(3.0,))
    found = escapers.study(options, tmp_path, False)
    inner, outer = (float(row[2]) for row in found.tables[0].rows)
    assert 120 < inner < 180 and -60 < outer < 0
    report.save(tmp_path, "escapers", options, found)
    assert "image/png" in report.write(tmp_path).read_text()
    few = replace(options, time=4, radii=(0.1,))
    with pytest.raises(BadInput, match="fewer than 30 left some cluster of 0.1 pc in 4 units"):
        escapers.study(few, tmp_path / "few", False)
