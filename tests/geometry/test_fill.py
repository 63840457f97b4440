"""Filling a box or a shape with points."""

import numpy as np
import pytest

from jaxgpu.geometry import fill_box, sdf


@pytest.mark.parametrize("d", [2, 3])
def test_points_are_the_middles_of_cubes_that_tile_the_box(d):
    x = np.asarray(fill_box((0.1,) * d, (0.5, 0.7, 0.3)[:d], 0.1))
    counts = (4, 6, 2)[:d]
    assert x.shape == (np.prod(counts), d)
    np.testing.assert_allclose(x.min(0), 0.15, atol=1e-6)
    np.testing.assert_allclose(x.mean(0), [(0.3, 0.4, 0.2)[i] for i in range(d)], atol=1e-6)


def test_a_shape_keeps_what_is_inside():
    ball = sdf.Ball(0.5)
    x = np.asarray(fill_box((-0.5,) * 3, (0.5,) * 3, 0.05, ball))
    assert np.linalg.norm(x, axis=1).max() < 0.5
    np.testing.assert_allclose(len(x) * 0.05**3, 4 / 3 * np.pi * 0.5**3, rtol=0.02)


def test_what_is_no_box_is_refused():
    with pytest.raises(ValueError, match="fill_box: lower=.*; they must be the lower and"):
        fill_box((0.0, 1.0), (1.0, 0.0), 0.1)
    with pytest.raises(ValueError, match="fill_box: no point of spacing 0.1 m lies in the box"):
        fill_box((0.0, 0.0), (1.0, 1.0), 0.1, sdf.Moved(sdf.Ball(0.1), (5.0, 0.0)))
