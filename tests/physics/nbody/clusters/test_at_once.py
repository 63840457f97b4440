"""Blocks that evaluate all bodies at once, and vectors whose rows are separate arrays."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from nbody_inputs import halves, masses, sphere

from jaxgpu.inputs.fields import pytree
from jaxgpu.physics.nbody.clusters import Hermite, Hermite6, Pairing, full_blocks, rows
from jaxgpu.physics.nbody.clusters.binary.formation import step_bounds
from jaxgpu.physics.nbody.clusters.binary.ks_pairs import init_pairs
from jaxgpu.physics.nbody.clusters.blocks import advance_singles

COUNT = 20
RUN_ONCE = {"xla_backend_optimization_level": 0}
init = jax.jit(lambda spec, *given: spec.init(*given), compiler_options=RUN_ONCE)
at_once_and_in_turn = jax.jit(
    lambda spec, state: (spec.advance_all((), state), spec.advance_due((), state)),
    compiler_options=RUN_ONCE,
)


@partial(jax.jit, compiler_options=RUN_ONCE)
def run_to_short_step(spec, state):
    return advance_singles(spec, (), state, step_bounds(spec, state.pairs))


def bodies(spec, tracers=0):
    """Make stars of unlike masses, and some tracers, at the start of an interval."""
    stars = sphere(4, COUNT)
    m = jnp.asarray(masses(COUNT, 4))
    return init(spec, *halves(stars), m, halves(1.1 * stars[:, :tracers])).rebase_times()


@partial(jax.jit, compiler_options=RUN_ONCE)
def correct_all(spec, stars, tracers):
    """Predict, correct by any force, and floor, with one array per vector and by rows."""
    motion, now = spec.motion(), jnp.float64(0.125)

    def correct_by(move, group):
        predict, correct = move
        x = predict(group, now)
        f = rows.as_array(x) + 0.5
        new, low = correct(group, tuple(f) if isinstance(x, tuple) else f, now)
        return rows.as_array(x), rows.stack_rows(new, group.t.size), low

    pairs = (motion.stars, stars), (motion.tracers, tracers)
    return [
        (correct_by(move, g), correct_by(move, rows.split_rows(g, g.t.size))) for move, g in pairs
    ]


@pytest.mark.slow
@pytest.mark.parametrize("spec", [Hermite(softening=0.1), Hermite6(softening=0.1)])
def test_what_is_moved_row_by_row_is_moved_as_in_one_array(spec, x64):
    begin = bodies(spec, 5)
    tracers = begin.tracers
    if hasattr(tracers, "gap"):  # a step was made before this one
        tracers = replace(tracers, gap=jnp.full_like(tracers.t, 0.01))
    for whole, apart in correct_all(spec, begin.stars, tracers):
        for one, other in zip(jax.tree.leaves(whole), jax.tree.leaves(apart), strict=True):
            # The differences have the rounding of the largest values.
            scale = np.abs(np.asarray(one, float)).max()
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12 * scale)


@pytest.mark.slow
def test_an_interval_at_once_is_that_of_blocks_of_those_that_are_due(x64):
    """Copies of the last star fill a kernel, and exert no force."""
    spec = Hermite(softening=0.1, interval=0.0625)
    assert_alike(*at_once_and_in_turn(spec, bodies(spec)))


def assert_alike(one, other):
    """Compare two states after the same interval: equal blocks and steps, positions to rounding."""
    np.testing.assert_allclose(one.stars.x, other.stars.x, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(one.stars.dt, other.stars.dt)
    assert one.blocks == other.blocks > 4 and one.floored == other.floored == 0
    np.testing.assert_array_equal(one.steps, other.steps)


@pytest.mark.slow
@pytest.mark.parametrize("bound", [False, True])
def test_stars_go_at_once_until_a_pair_is_held(bound, x64):
    """A passing neighbour has short steps, too, but blocks still evaluate all stars at once."""
    pairing = Pairing(close=jnp.float64(1e-3), slots=4)
    spec = Hermite(interval=0.0625, pairing=pairing)
    stars, m = sphere(4, COUNT), jnp.asarray(masses(COUNT, 4))
    gap = 5e-4
    speed = (0.5 if bound else 3.0) * np.sqrt((m[0] + m[1]) / gap)
    stars[:, 1] = stars[:, 0] + [gap, 0, 0, 0, speed, 0]
    single = replace(spec, pairing=replace(pairing, slots=0))
    alone = init(single, *halves(stars), m, halves(stars[:, :0])).rebase_times()
    begin = replace(alone, pairs=init_pairs(pairing, m))  # pairs have not been searched yet
    assert not begin.pairs.is_occupied.any()
    assert 0 < run_to_short_step(spec, begin).stars.t.max() < 1
    one, other = at_once_and_in_turn(spec, begin)
    assert_alike(one, other)
    assert one.pairs.is_occupied.any() == other.pairs.is_occupied.any() == bound
    np.testing.assert_array_equal(one.pairs.batch.first, other.pairs.batch.first)


@pytree
class Falling:
    """Bodies on a line, which a constant force moves exactly."""

    x: jax.Array  # [2, N] place and velocity
    t: jax.Array  # [N]
    dt: jax.Array  # [N]


def test_stars_and_tracers_fall_as_far_as_the_mass_of_all_stars_says():
    """Check x + v + M / 2 after one unit of time, in whole blocks; fill-up copies have no mass.

    Steps of 1/2, 1/4 and 1/4 make ten of three stars, and steps of 1/8 make sixteen of two tracers,
    in eight blocks. Every step of a tracer is reported as too long, and none of a star.
    """

    def predict(group, now):
        h = now - group.t
        return group.x[0] + h * group.x[1], group.x[1]

    def correct(low, group, f, now):
        h, (x, v) = now - group.t, predict(group, now)
        t = jnp.full_like(h, now)
        return Falling((x + h * h / 2 * f[0], v + h * f[0]), t, group.dt), jnp.full(h.shape, low)

    def begin_fall(x, v, dt):
        return Falling(jnp.stack([x, v]), jnp.zeros_like(x), jnp.array(dt))

    motion = full_blocks.Scheme(
        stars=(predict, partial(correct, False)),
        tracers=(predict, partial(correct, True)),
        force=lambda m, sources, path, now, points: (jnp.sum(m) + path * points[0],),
    )
    m = jnp.array([1.0, 2.0, 5.0])
    stars = begin_fall(jnp.arange(3.0), jnp.array([0.5, -1.0, 2.0]), [0.5, 0.25, 0.25])
    tracers = begin_fall(jnp.array([7.0, -3.0]), jnp.array([0.25, 4.0]), [0.125, 0.125])
    go = jax.jit(partial(full_blocks.advance_interval, motion))
    ends, blocks, steps, floored = go(stars, tracers, m, 0.0)
    for start, end in zip((stars, tracers), ends):
        np.testing.assert_array_equal(end.x, [start.x[0] + start.x[1] + 4, start.x[1] + 8])
        np.testing.assert_array_equal(end.t, 1)
    assert blocks == 8 and steps.tolist() == [10, 16] and floored == 16
