"""What the slots say about the stars they hold."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np

from jaxgpu.physics.nbody import regular, slots
from jaxgpu.physics.nbody.blocks import Hermite, Pairing

M = np.array([0.3, 0.2, 0.5, 0.7])
SPEC = lambda: Hermite(jnp.asarray(M), pairing=Pairing(close=0.02, slots=3))


def held(spec):
    empty = slots.empty(spec)
    first, second = empty.first.at[1].set(2), empty.second.at[1].set(0)
    return replace(empty, first=first, second=second, tide=empty.tide + 1e-3)


def test_a_pair_weighs_what_its_stars_do(x64):
    spec = SPEC()
    np.testing.assert_array_equal(slots.weights(spec, slots.empty(spec)), M)
    np.testing.assert_array_equal(slots.weights(spec, held(spec)), [0, 0.2, 0.8, 0.7])
    np.testing.assert_array_equal(slots.masses(spec, held(spec)), [[0, 0.5, 0], [0, 0.3, 0]])


def test_only_disturbed_pairs_at_full_speed_are_near(x64):
    spec = SPEC()
    some = held(spec)
    np.testing.assert_array_equal(slots.near(spec, some), [False, True, False])
    assert not slots.near(spec, replace(some, slow=some.slow * 1.5)).any()
    assert not slots.near(spec, replace(some, tide=some.tide * 1e-6)).any()


def test_extent_is_the_apocentre_of_a_tight_pair(x64):
    spec = SPEC()
    for a, want in ((0.01, 0.016), (1.0, 0.4)):  # e = 0.6 at its pericentre
        speed = np.sqrt(0.5 / a * 4)
        orbit = regular.regularised(
            jnp.array([0.4 * a, 0, 0]), jnp.array([0, speed, 0]), jnp.float64(0.5)
        )
        np.testing.assert_allclose(slots.extent(spec, orbit), want, rtol=1e-13)
