"""The slots of pairs and the stars that they contain."""

from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu.physics.nbody.clusters import Pairing
from jaxgpu.physics.nbody.clusters.binary import ks_pairs
from jaxgpu.physics.nbody.orbits import ks

M = np.array([0.3, 0.2, 0.5, 0.7])
RULE = Pairing(close=0.02, slots=3)


def empty():
    return ks_pairs.init_pairs(RULE, jnp.asarray(M))


def one_pair():
    pair = replace(ks_pairs.empty_pair(jnp.asarray(M)), first=jnp.int32(2), second=jnp.int32(0))
    pair = replace(pair, m=jnp.array([0.5, 0.3]), tide=jnp.float64(1e-3))
    return replace(empty(), columns=empty().set_pair(jnp.int32(1), pair))


def with_fields(held, **fields):
    """Return the state with other fields of all pairs."""
    return replace(held, columns=ks_pairs.pack_pairs(replace(held.batch, **fields)))


def test_what_is_put_into_a_slot_comes_out_of_it(x64):
    random, q = np.random.default_rng(0), jnp.int32(2)
    orbit = ks.Orbit(*(jnp.asarray(random.normal(size=n)) for n in (4, 4, (), ())))
    m, times = jnp.array([0.7, 0.2]), jnp.arange(1.0, 7.0)
    who = jnp.int32(3), jnp.int32(1)
    pair = ks_pairs.Pair(*who, m, m / 0.9, orbit, *times, jnp.bool_(True))
    some = replace(empty(), columns=empty().set_pair(q, pair))
    jax.tree.map(np.testing.assert_array_equal, some.get_pair(q), pair)
    types = lambda pair: [jax.typeof(leaf) for leaf in jax.tree.leaves(pair)]
    assert types(some.get_pair(q)) == types(pair)
    jax.tree.map(
        np.testing.assert_array_equal,
        some.get_pair(jnp.int32(0)),
        ks_pairs.empty_pair(jnp.asarray(M)),
    )


def test_only_disturbed_pairs_at_full_speed_are_near(x64):
    some = one_pair()
    np.testing.assert_array_equal(ks_pairs.is_resolved(RULE, some), [False, True, False])
    assert not ks_pairs.is_resolved(RULE, with_fields(some, slowdown=jnp.full(3, 1.5))).any()
    assert not ks_pairs.is_resolved(RULE, with_fields(some, tide=jnp.full(3, 1e-9))).any()


def test_extent_is_the_apocentre_of_a_tight_pair(x64):
    for a, want in ((0.01, 0.016), (1.0, 0.4)):  # e = 0.6 at its pericentre
        speed = np.sqrt(0.5 / a * 4)
        orbit = ks.from_cartesian(
            jnp.array([0.4 * a, 0, 0]), jnp.array([0, speed, 0]), jnp.float64(0.5)
        )
        np.testing.assert_allclose(ks_pairs.extent(empty(), orbit), want, rtol=1e-13)


def test_an_orbit_is_too_wide_beyond_twice_that_of_the_widest_pair_that_is_formed():
    limit = empty().limit
    orbit = SimpleNamespace(h=-limit * jnp.array([1.0, 0.51, 0.49, -1.0]))
    np.testing.assert_array_equal(ks_pairs.is_too_wide(empty(), orbit), [False, False, True, True])
