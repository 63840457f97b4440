"""Real vectors: their documented properties, and errors for missing data."""

import numpy as np
import pytest

from jaxgpu.studies.directions import features


def test_digits():
    x, labels = features.digits()
    assert x.shape == (5000, 784) and x.dtype == np.float64
    np.testing.assert_array_equal(np.bincount(labels), 500)
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1, rtol=1e-15)


def test_tokens():
    x = features.tokens()
    assert x.shape == (30522, 384)
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1, rtol=1e-15)


@pytest.mark.slow
def test_activations_are_those_of_the_network_half_way():
    """The full network continues its first half; an image sets its row at any brightness."""
    images = features.digits()[0][[0, 700, 1400]]
    x = features.activations(images, 16)
    assert x.shape == (3, 2048)
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1, rtol=1e-15)
    again = features.activations(3 * images[1:], 16)
    np.testing.assert_allclose(again, x[1:], atol=1e-6)
    assert np.all(x[0] @ x[1:].T < 0.99)
    assert features.activations(images[:1], 32).shape == (1, 8192)


def test_photograph():
    x = features.photograph()
    assert x.shape == (378, 784)
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1, rtol=1e-15)
    # Adjacent squares continue each other, up to the factor by which each was divided.
    tiles = x.reshape(21, 18, 28, 28)
    left, right = (
        features.unit(tiles[..., j].reshape(-1, 28)).reshape(21, 18, 28) for j in (0, 27)
    )
    meet = np.linalg.norm(right[:, :-1] - left[:, 1:], axis=2)
    assert np.median(meet) < 0.5 * np.median(np.linalg.norm(right[:, :-1] - right[:, 1:], axis=2))


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(features._FILES, "no-such-package", "none")
    with pytest.raises(FileNotFoundError, match="run `pip install --no-deps no-such-package`"):
        features.locate("no-such-package")
    monkeypatch.setitem(features._FILES, "numpy", "numpy/none")
    with pytest.raises(FileNotFoundError, match="package numpy are not installed"):
        features.locate("numpy")


def test_what_has_no_direction_is_named():
    with pytest.raises(ValueError, match="unit: x has length 0 in row 1; "):
        features.unit(np.array([[1.0, 0], [0, 0]]))
    with pytest.raises(ValueError, match="locate: package='scipy'; it must be one of"):
        features.locate("scipy")
    images = np.ones((2, 784))
    for bad, size in ((images, 17), (0 * images, 16), (images[:, 1:], 16), (images * np.nan, 16)):
        with pytest.raises(ValueError, match="activations: "):
            features.activations(bad, size)
