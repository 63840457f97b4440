"""Blocks of which all bodies are evaluated at once, and vectors whose rows are arrays apart."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from nbody_inputs import halves, masses, points

from jaxgpu.physics.nbody.clusters import Hermite, Hermite6, at_once, rows
from jaxgpu.physics.nbody.models import plummer

COUNT = 20


def bodies(spec):
    """Stars of unlike masses and five tracers, at the beginning of an interval."""
    stars = points(plummer(jax.random.key(4), COUNT))
    state = spec.init(*halves(stars), jnp.asarray(masses(COUNT, 4)), halves(1.1 * stars[:, :5]))
    return state.rewound()


@pytest.mark.parametrize("spec", [Hermite(softening=0.1), Hermite6(softening=0.1)])
def test_what_is_moved_row_by_row_is_moved_as_in_one_array(spec, x64):
    begin, motion = bodies(spec), spec.motion()
    for group, (predict, correct) in ((begin.stars, motion.stars), (begin.tracers, motion.tracers)):
        # a step was made before this one, as tracers remember
        known = {"gap": jnp.full_like(group.t, 0.01)} if hasattr(group, "gap") else {}
        group = type(group)(**vars(group) | known)
        now = jnp.float64(0.125)
        apart = rows.apart(group, group.t.size)
        ends = []
        for some in (group, apart):
            x = predict(some, now)
            # any force does
            f = jnp.concatenate([rows.stacked(x) + 0.5, rows.stacked(x)[:3]])
            f = f[:9] if isinstance(spec, Hermite6) else f[:6]
            f = tuple(f) if isinstance(x, tuple) else f
            new, low = correct(some, f, now)
            ends.append((rows.stacked(x), rows.together(new, group.t.size), low))
        for one, other in zip(*map(jax.tree.leaves, ends), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_an_interval_at_once_is_that_of_blocks_of_those_that_are_due(x64):
    """Copies of the last star fill a kernel up, and nobody feels them."""
    spec = Hermite(softening=0.1, interval=0.0625)
    begin = bodies(spec)
    (stars, tracers), blocks, steps, floored = jax.jit(
        lambda begin: at_once.interval(spec.motion(), begin.stars, begin.tracers, begin.m, ())
    )(begin)
    end = jax.jit(Hermite.step)(spec, begin)
    for got, want in ((stars, end.stars), (tracers, end.tracers)):
        np.testing.assert_allclose(got.x, want.x, rtol=0, atol=1e-13)
        np.testing.assert_array_equal(got.dt, want.dt)
    assert blocks == end.blocks > 4 and floored == end.floored == 0
    np.testing.assert_array_equal(steps, end.steps)
