"""Blocks of which all bodies are evaluated at once, and vectors whose rows are arrays apart."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from nbody_inputs import halves, masses, points

from jaxgpu.physics.nbody.clusters import Hermite, Hermite6, at_once, rows
from jaxgpu.physics.nbody.models import plummer

COUNT = 20
init, step = jax.jit(lambda spec, *given: spec.init(*given)), jax.jit(Hermite.step)


def bodies(spec, tracers=0):
    """Stars of unlike masses, and some tracers, at the beginning of an interval."""
    stars = points(plummer(jax.random.key(4), COUNT))
    m = jnp.asarray(masses(COUNT, 4))
    return init(spec, *halves(stars), m, halves(1.1 * stars[:, :tracers])).rewound()


@jax.jit
def moved(spec, stars, tracers):
    """Both, one array a vector and by rows: predicted, corrected by any force, and floored."""
    motion, now = spec.motion(), jnp.float64(0.125)

    def by(move, group):
        predict, correct = move
        x = predict(group, now)
        f = rows.stacked(x) + 0.5
        new, low = correct(group, tuple(f) if isinstance(x, tuple) else f, now)
        return rows.stacked(x), rows.together(new, group.t.size), low

    pairs = (motion.stars, stars), (motion.tracers, tracers)
    return [(by(move, g), by(move, rows.apart(g, g.t.size))) for move, g in pairs]


@pytest.mark.parametrize("spec", [Hermite(softening=0.1), Hermite6(softening=0.1)])
def test_what_is_moved_row_by_row_is_moved_as_in_one_array(spec, x64):
    begin = bodies(spec, 5)
    tracers = begin.tracers
    if hasattr(tracers, "gap"):  # a step was made before this one
        tracers = replace(tracers, gap=jnp.full_like(tracers.t, 0.01))
    for whole, apart in moved(spec, begin.stars, tracers):
        for one, other in zip(jax.tree.leaves(whole), jax.tree.leaves(apart), strict=True):
            # roundings of the largest, of which the others are differences
            scale = np.abs(np.asarray(one, float)).max()
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12 * scale)


def test_an_interval_at_once_is_that_of_blocks_of_those_that_are_due(x64):
    """Copies of the last star fill a kernel up, and nobody feels them."""
    spec = Hermite(softening=0.1, interval=0.0625)
    begin = bodies(spec)

    motion = spec.motion()
    assert motion is not None  # no pairs are regularised
    whole = jax.jit(lambda s: at_once.interval(motion, s.stars, s.tracers, s.m, ()))
    (stars, _), blocks, steps, floored = whole(begin)
    end = step(spec, begin)
    np.testing.assert_allclose(stars.x, end.stars.x, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(stars.dt, end.stars.dt)
    assert blocks == end.blocks > 4 and floored == end.floored == 0
    np.testing.assert_array_equal(steps, end.steps)
