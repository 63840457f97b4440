"""Lattices have the right points, and rounding finds the same direction as a full comparison."""

from math import comb

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import assert_exports, check_program

from jaxgpu.evolution.multi import (
    ReferenceDirections,
    associate,
    das_dennis,
    layers_for,
    partitions_for,
)


@pytest.mark.parametrize("m,p", [(2, 7), (3, 12), (4, 5), (8, 3)])
def test_a_lattice_has_all_compositions_once(m, p):
    k = np.asarray(das_dennis(m, p).w) * p
    assert len(k) == comb(p + m - 1, m - 1)
    np.testing.assert_allclose(k, np.rint(k), atol=1e-5)
    assert len(np.unique(np.rint(k), axis=0)) == len(k)
    np.testing.assert_allclose(k.sum(1), p, rtol=1e-6)


def test_two_layers_as_in_the_paper():
    w = np.asarray(das_dennis(8, 3, 2).w)
    assert len(w) == 156
    inner = w[120:]
    np.testing.assert_allclose(inner.sum(1), 1, rtol=1e-6)
    np.testing.assert_allclose(np.unique(np.round(inner, 4)), [0.0625, 0.3125, 0.5625])


@pytest.mark.parametrize("p", [1, 43, pytest.param(139, marks=pytest.mark.slow)])
def test_rounding_finds_the_nearest_line(x64, p):
    ref_dirs = das_dennis(3, p)
    rng = np.random.default_rng(p)
    f = np.abs(rng.normal(size=(4000, 3))) ** rng.choice([0.5, 1, 3], size=(4000, 1))
    f[:20, 0], f[20:40, :2], f[40] = 0, 0, 0  # on the faces, on an axis, at the origin
    got, near = jax.jit(associate)(ref_dirs, f)
    unit = np.asarray(ref_dirs.w) / np.linalg.norm(ref_dirs.w, axis=1, keepdims=True)
    along = f @ unit.T
    # The result is the nearest direction, or one that is equally near up to the last bits.
    np.testing.assert_allclose(along[np.arange(4000), got], along.max(1), rtol=1e-14)
    clear = np.sort(along, axis=1)[:, -1] - np.sort(along, axis=1)[:, -2] > 1e-12
    assert (np.asarray(got) == along.argmax(1))[clear].all()
    off = np.sqrt(np.maximum((f**2).sum(1) - along.max(1) ** 2, 0))
    np.testing.assert_allclose(near, off, atol=1e-6)


def test_other_sets_are_compared_one_by_one(x64):
    ref_dirs = das_dennis(5, 4)
    f = np.random.default_rng(0).random((300, 5))
    got, _ = jax.jit(associate)(ref_dirs, f)
    unit = np.asarray(ref_dirs.w) / np.linalg.norm(ref_dirs.w, axis=1, keepdims=True)
    np.testing.assert_array_equal(got, (f @ unit.T).argmax(1))


def test_memory_does_not_hold_a_table_of_points_and_lines():
    n, ref_dirs = 1 << 16, das_dennis(3, 360)
    for directions in (ref_dirs, ReferenceDirections(ref_dirs.w)):
        shape = jax.ShapeDtypeStruct((n, 3), jnp.float32)
        used = jax.jit(associate).lower(directions, shape).compile().memory_analysis()
        assert used.temp_size_in_bytes < 600 * (n + ref_dirs.w.shape[0])  # a table has 1.7e10


def test_conforms():
    f = np.float32(np.random.default_rng(0).random((20, 3)))
    check_program(associate, das_dennis(3, 4), f)
    assert_exports(associate, das_dennis(3, 4), f)


def test_sizes():
    assert partitions_for(3, 91) == 12 and partitions_for(3, 90) == 11
    with pytest.raises(ValueError, match="das_dennis"):
        das_dennis(1, 3)


@pytest.mark.parametrize("m", range(5, 16))
def test_default_sets_have_directions_inside(m):
    w = np.asarray(das_dennis(m, *layers_for(m)).w)
    assert 80 <= len(w) <= 160
    inside = (w > 1e-3).all(1)
    assert inside.sum() >= m and (~inside).sum() >= m
    assert len(np.unique(np.round(w, 6), axis=0)) == len(w)
    np.testing.assert_allclose(w.sum(1), 1, rtol=1e-6)


def test_more_directions_than_memory_holds_are_refused_by_name():
    with pytest.raises(MemoryError, match="das_dennis: needs .* use fewer partitions"):
        das_dennis(1000, 1000)
