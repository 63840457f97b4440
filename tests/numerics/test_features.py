"""The real vectors are what they are said to be; what is missing is named."""

import numpy as np
import pytest

from jaxgpu.numerics import features


def test_digits():
    x, labels = features.digits()
    assert x.shape == (5000, 784) and x.dtype == np.float64
    np.testing.assert_array_equal(np.bincount(labels), 500)
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1, rtol=1e-15)


def test_tokens():
    x = features.tokens()
    assert x.shape == (30522, 384)
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1, rtol=1e-15)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(features._FILES, "no-such-package", "none")
    with pytest.raises(FileNotFoundError, match="run `pip install --no-deps no-such-package`"):
        features.locate("no-such-package")
    monkeypatch.setitem(features._FILES, "numpy", "numpy/none")
    with pytest.raises(FileNotFoundError, match="package numpy are not installed"):
        features.locate("numpy")
