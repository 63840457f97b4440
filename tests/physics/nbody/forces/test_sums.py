"""Sums over pairs against loops over single pairs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.physics.nbody.forces import pair_sums, pairs, snaps


def terms(t, s):
    """Return two terms that are correct only for the right order of rows."""
    return [t[0] * s[2] + t[1] * s[1], jnp.cos(t[2] + s[0])]


total = jax.jit(lambda targets, sources: pair_sums.sum_sources(terms, targets, sources, 2))


@pytest.mark.parametrize("count", [3, 515])
def test_every_pair_counts_once(x64, count):
    """Use rows of several arrays, also single ones, and more targets than a tile has."""
    random = np.random.default_rng(count)
    targets = [random.normal(size=count), random.normal(size=(2, count))]
    sources = [random.normal(size=(2, 7)), random.normal(size=7)]
    t, s = np.vstack(targets), np.vstack(sources)
    one = [[a[0] * b[2] + a[1] * b[1], np.cos(a[2] + b[0])] for a in t.T for b in s.T]
    want = np.sum(np.reshape(one, (count, 7, 2)), 1).T
    np.testing.assert_allclose(total(targets, sources), want, rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    "pull, rows", [(pairs.pull, 6), pytest.param(snaps.pull, 9, marks=pytest.mark.slow)]
)
def test_a_slope_of_copies_in_a_program_is_that_of_each(pull, rows):
    """All copies share the mass, so neither it nor its slope has a batch axis."""
    x = jnp.asarray(np.random.default_rng(0).normal(size=(2, rows, 6)), jnp.float32)
    program = jax.jit(lambda m, x: x + pull(x, x, m))
    slope = lambda x: jax.jvp(lambda m: program(m, x), (jnp.ones(6),), (jnp.ones(6),))[1]
    copies = lambda m: jax.vmap(lambda x: program(m, x))(x)
    found = jax.jvp(copies, (jnp.ones(6),), (jnp.ones(6),))[1]
    np.testing.assert_allclose(found, [slope(one) for one in x], rtol=1e-5, atol=1e-4)
