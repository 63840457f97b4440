"""Particles that enter and leave: exact counts, positions and times."""

import dataclasses
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from continuum_run import jit_unoptimized, positions

from jaxgpu.geometry import sdf
from jaxgpu.physics.continuum import Body, Grid, Scene, fill_box, rollout, simulate
from jaxgpu.physics.continuum.materials import Liquid, NeoHookean
from jaxgpu.physics.continuum.tools import Collector, Collider, Injector

DX, DT = 1 / 16, 2e-3
LAYER = np.array([[0.2, 0.8], [0.2, 0.83]], np.float32)
EMPTY = np.zeros((0, 2), np.float32)
SCENE = Scene(
    (Body(fill_box((0.1, 0.0), (0.9, 0.25), DX / 2), Liquid(2e4), (DX / 2) ** 2, capacity=300),),
    Grid(DX, (16, 16)),
    gravity=(0.0, -9.81),
    dt=DT,
    sources=(
        Injector(LAYER, (0.9, -0.3), 0.0313),
        Collector(sdf.Moved(sdf.Ball(0.1), (0.85, 0.1))),
    ),
)


@jax.jit
def history(scene, state):
    def step_counts(state, _):
        state = scene.step(state)
        kept = state.bodies[0].m > 0
        counts = jnp.stack([jnp.sum(kept, dtype=jnp.int32), *(f.moved for f in state.flows)])
        return state, (counts, jnp.sum(state.bodies[0].m), state.t)

    return jax.lax.scan(step_counts, state, None, length=500)


@pytest.mark.slow
def test_every_particle_is_accounted_for():
    end, (counts, mass, t) = history(SCENE, SCENE.init())
    filled, entered, taken = np.asarray(counts).T
    start = SCENE.bodies[0].x.shape[0]
    np.testing.assert_array_equal(filled, start + entered - taken)
    np.testing.assert_allclose(mass, filled * 1000 * (DX / 2) ** 2, rtol=1e-6)
    # Layers enter at 0, interval, 2 interval ... before t; t has the rounding of 500 sums.
    lower, upper = (np.ceil((np.asarray(t) + s) / 0.0313) for s in (-1e-5, 1e-5))
    assert np.all((2 * lower <= entered) & (entered <= 2 * upper))
    assert entered[-1] == 64 and taken[-1] > 20
    assert [int(f.refused) for f in end.flows] == [0, 0]
    # No particles remain at the collector, and emptied slots contain nothing.
    away = np.linalg.norm(np.asarray(positions(end.bodies[0])) - (0.85, 0.1), axis=1)
    assert len(away) == filled[-1] and away.min() > 0.1
    empty = np.asarray(end.bodies[0].m) == 0
    assert not np.any(np.asarray(end.bodies[0].volume)[empty])


@pytest.mark.slow
def test_emptied_slots_are_filled_again():
    body = Body(EMPTY, Liquid(1e3), (DX / 2) ** 2, capacity=8)
    line = Collector(sdf.HalfSpace((-1.0, 0.0)), tool=0)
    gate = Collider(sdf.Ball(0.01), x=(0.5, 0.1))  # the collector's frame, beyond x = 0.5
    jet = Injector(LAYER[:1], (1.0, 0.0), 0.1)
    scene = Scene((body,), SCENE.grid, (), (gate,), DT, (jet, line))
    end, (counts, _, _) = history(scene, scene.init())
    assert counts[-1, 1] == 10 and counts[-1, 2] == 7  # 0.3 s in flight each
    assert counts[:, 0].max() <= 4 and int(end.flows[0].refused) == 0


@pytest.mark.slow
def test_a_layer_enters_when_and_where_it_is_due(x64):
    """Separate layers fly freely: x + v (t - j interval), to rounding."""
    body = Body(EMPTY.astype(float), NeoHookean(1e3), (DX / 2) ** 2, capacity=8)
    x, v, interval, start = np.array([[0.1, -0.1]]), np.array([0.7, -0.3]), 0.3003, 0.0501
    # The nozzle is attached to a tool that moves and is rotated by a right angle.
    tool = Collider(sdf.Ball(1e-3), x=(0.2, 0.2), turn=(np.pi / 2,), v=(0.1, 0.0))

    def fly(x, v, interval):
        jet = Injector(x, v, interval, start=start, stop=0.6, tool=0)
        scene = Scene((body,), SCENE.grid, (), (tool,), DT, (jet,))
        keep = lambda scene, state, _: (scene, state)
        return rollout(scene, scene.init(), jnp.zeros(1), keep, substeps=400)[0].bodies[0]

    def expected_x(j):
        entry = start + interval * j
        step_end = DT * np.ceil(entry / DT)  # where the tool stands when the layer enters
        nozzle = np.array([0.2 + 0.1 * step_end, 0.2]) + [-x[0, 1], x[0, 0]]
        flight = np.array([-v[1], v[0]]) * (400 * DT - entry)
        return nozzle + flight + [0.1 * (400 * DT - step_end), 0]

    # The sum of heights has derivative 1 in x, the age in v and -v j in the interval.
    def heights(x, v, interval):
        end = fly(x, v, interval)
        return jnp.sum(jnp.where(end.m > 0, end.x[:, 1], 0)), end

    slope = jit_unoptimized(jax.grad(heights, (0, 1, 2), has_aux=True))
    (dx, dv, dinterval), end = slope(x, v, interval)
    seen = end.x[end.active]
    np.testing.assert_allclose(seen, [expected_x(0), expected_x(1)], atol=1e-12)
    np.testing.assert_allclose(dx, [[2, 0]], atol=1e-12)
    np.testing.assert_allclose(dv, [800 * DT - 2 * start - interval, 0], atol=1e-12)
    np.testing.assert_allclose(dinterval, -v[0], atol=1e-12)


@pytest.mark.slow
def test_too_few_slots_are_one_clear_sentence_with_the_number_needed(tmp_path):
    short = dataclasses.replace(SCENE.bodies[0], capacity=240)
    scene = dataclasses.replace(SCENE, bodies=(short,), sources=SCENE.sources[:1])
    with pytest.raises(OverflowError) as caught:
        simulate(scene, 0.8, frames=2)
    assert "\n" not in str(caught.value)
    needed = int(re.search(r"capacity=(\d+)", str(caught.value)).group(1))
    enough = dataclasses.replace(scene, bodies=(dataclasses.replace(short, capacity=needed),))
    whole = simulate(enough, 0.8, frames=2)
    assert int(whole.state.flows[0].moved) == 52  # two each at 0, 0.0313, ... 0.7825
    simulate(enough, 0.4, frames=1, out=tmp_path)
    resumed = simulate(enough, 0.8, frames=2, out=tmp_path, resume=True)
    for a, b in zip(jax.tree.leaves(whole.state), jax.tree.leaves(resumed.state)):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "source, words",
    [
        (Injector(LAYER, (1.0, 0.0), 1e-4), "interval=0.0001 s; it must be at least dt=0.002 s"),
        (Injector(LAYER, (1.0, 0.0), 0.1, body=1), "sources[0].body=1; the scene has 1 of them"),
        (Injector(LAYER, (1.0, 0.0), 0.1, tool=0), "sources[0].tool=0; the scene has 0 of them"),
        (Injector(LAYER + 1, (1.0, 0.0), 0.1), "points are outside the box"),
        (
            Injector(LAYER, (np.nan, 0.0), 0.1),
            "Injector.v=nan at [0]; it must be a finite number, in m/s",
        ),
        (Injector(LAYER[0], (1.0, 0.0), 0.1), "x has shape [2] and v [2]"),
    ],
)
def test_sources_that_cannot_work_are_refused(source, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        dataclasses.replace(SCENE, sources=(source,)).prepare()
