"""A scene on several devices goes as on one, and its derivative too."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from continuum_run import positions

from jaxgpu import mesh
from jaxgpu.geometry import sdf
from jaxgpu.physics.continuum import (
    Body,
    Collector,
    Collider,
    DruckerPrager,
    Grid,
    Liquid,
    NeoHookean,
    Scene,
    devices,
    fill_box,
    simulate,
)

DX = 1 / 16


def scene(materials, dtype=jnp.float64):
    """Two blocks of unlike particles, one on the other, that fall on a ball which moves."""
    rng, bodies = np.random.default_rng(12), ()
    for law, low, density in zip(materials, (0.3, 0.52), (1300.0, 700.0)):
        x = fill_box((0.2, low), (0.7, low + 0.2), DX / 2).astype(dtype)
        volume = jnp.asarray((DX / 2) ** 2 * rng.uniform(0.6, 1.4, len(x)), dtype)
        bodies += (Body(x, law, volume, density),)
    ball = Collider(sdf.Ball(0.1), (0.4, 0.15), v=(0.0, 0.5), mass=20.0, inertia=0.1)
    return Scene(bodies, Grid(DX, (16, 16)), (0.0, -9.81), (ball,)).prepare()


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize(
    "materials",
    [(Liquid(2e4, 0.3, volume_correction=0.1), NeoHookean(2e4)), (DruckerPrager(2e4),)],
    ids=["liquid and solid", "sand"],
)
def test_devices_change_nothing(x64, materials, count):
    run = scene(materials)
    height = lambda s: jnp.stack([jnp.sum(b.m * b.x[:, 1]) for b in s.bodies])
    one = simulate(run, 0.1, frames=4, measure=height)
    many = simulate(run, 0.1, frames=4, measure=height, mesh=mesh.devices(count))
    assert len(many.state.bodies[0].chunks.m.sharding.device_set) == count
    np.testing.assert_allclose(many.history, one.history, rtol=1e-10)
    for a, b in zip(one.state.bodies, many.state.bodies):
        np.testing.assert_allclose(positions(b), positions(a), atol=1e-9)
    np.testing.assert_allclose(many.state.tools[0].v, one.state.tools[0].v, atol=1e-9)


@pytest.mark.slow
def test_a_run_on_devices_resumes_to_the_same_bits(tmp_path):
    run, two = scene((Liquid(2e4),), jnp.float32), mesh.devices(2)
    whole = simulate(run, 0.05, frames=5, mesh=two).state
    simulate(run, 0.03, frames=3, mesh=two, out=tmp_path)
    again = simulate(run, 0.05, frames=5, mesh=two, out=tmp_path, resume=True).state
    for a, b in zip(jax.tree.leaves(whole), jax.tree.leaves(again)):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_the_derivative_is_that_of_one_device(x64):
    run, two = scene((NeoHookean(2e4),)), mesh.devices(2)

    def fallen(young, mesh):
        now = dataclasses.replace(
            run, bodies=(dataclasses.replace(run.bodies[0], material=NeoHookean(young)),)
        )
        advance, state = lambda s, axis=None: now.step(s, axis=axis), run.init(2)
        if mesh:
            advance, state = devices.shard_step(advance, mesh), devices.shard_state(state, mesh)
        for _ in range(5):
            state = advance(state)
        return jnp.sum(state.bodies[0].m * state.bodies[0].x[:, 1] ** 2)

    slope = lambda mesh: jax.jit(jax.grad(lambda young: fallen(young, mesh)))(2e4)
    np.testing.assert_allclose(slope(two), slope(None), rtol=1e-10)


def test_sources_are_refused():
    drain = Collector(sdf.Ball(0.1))
    run = dataclasses.replace(scene((Liquid(2e4),), jnp.float32), sources=(drain,))
    with pytest.raises(ValueError, match="runs on one device"):
        simulate(run, 0.1, mesh=mesh.devices(2))


def test_chunks_that_devices_do_not_share_evenly_are_refused():
    with pytest.raises(ValueError, match="must be a multiple"):
        devices.shard_state(scene((Liquid(2e4),), jnp.float32).init(), mesh.devices(2))
