"""Accelerator programs, run on the CPU, give the results of the CPU's programs without loops.

`jax.export` builds a step for another platform. It contains no kernel specific to that platform, so
it runs on any.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from continuum_run import jit_unoptimized

from jaxgpu.physics.continuum import Body, Grid, Scene, fill_box
from jaxgpu.physics.continuum.materials import Corotated, HerschelBulkley, Liquid, NeoHookean
from jaxgpu.physics.continuum.materials.plastic import DruckerPrager, Snow, VonMises

DX = 1 / 8
ANYWHERE = [jax.export.DisabledSafetyCheck.platform()]
MATERIALS = [Liquid(1e4, 1.0), HerschelBulkley(1e4), NeoHookean(1e4), Corotated(1e4)]
MATERIALS += [VonMises(1e4, 0.3, 60.0), DruckerPrager(1e4, grain=1e-3), Snow(1e4)]


def scene(material, dtype, sharp=False):
    """Make a moving block of unlike particles in a corner."""
    x = fill_box((0.0, 0.0), (0.5, 0.5), DX / 2).astype(dtype)
    volume = (DX / 2) ** 2 * np.random.default_rng(3).uniform(0.6, 1.4, len(x))
    v = 0.8 * np.sin(4 * np.asarray(x)[:, ::-1]) + 0.1
    body = Body(x, material, jnp.asarray(volume, dtype), v=jnp.asarray(v, dtype))
    return Scene((body,), Grid(DX, (8, 8)), (0.5, -9.81), dt=x.dtype.type(1e-3), sharp=sharp)


def split_chunks(state, count):
    """Return the state with its particles in `count` chunks."""
    cut = lambda a: a.reshape(count, -1)
    return dataclasses.replace(state, bodies=jax.tree.map(cut, state.bodies))


def outcome(run):
    """Return the derivatives of a function of the next state, in the state and in gravity."""

    def loss(state, gravity):
        leaves = jax.tree.leaves(dataclasses.replace(run, gravity=gravity).step(state).bodies)
        weight = jnp.cos(1.3 * jnp.arange(float(leaves[0].size))).reshape(leaves[0].shape)
        return sum(jnp.sum(weight * a * a) for a in leaves)

    return jit_unoptimized(jax.grad(loss, (0, 1)))


def export_for(f, platform, *args):
    return jax.export.export(f, platforms=[platform], disabled_checks=ANYWHERE)(*args)


def assert_agree(f, bound, *args, least=0.0):
    """Compare each result, within `bound` times its maximum or times `least` if that is larger."""
    want = f(*args)
    for platform in ("cuda", "tpu"):
        there = jit_unoptimized(export_for(f, platform, *args).call)(*args)
        for a, b in zip(jax.tree.leaves(want), jax.tree.leaves(there)):
            a, b = np.asarray(a), np.asarray(b)
            np.testing.assert_allclose(b, a, rtol=0, atol=bound * max(np.abs(a).max(), least))


@pytest.mark.slow
def test_a_step_of_sand_is_that_of_the_cpu(x64):
    run = scene(DruckerPrager(1e4, grain=1e-3), jnp.float64)
    assert_agree(jit_unoptimized(run.step), 1e-12, split_chunks(run.init(), 2))


@pytest.mark.slow
def test_single_precision_agrees_to_rounding():
    run = scene(NeoHookean(1e4), jnp.float32)
    # Velocity gradients are 4 / dx times sums of velocities of order one over nine nodes.
    assert_agree(jit_unoptimized(run.step), 32 * 9 * 6e-8, split_chunks(run.init(), 2), least=1.0)


@pytest.mark.slow
def test_derivatives_of_a_step_are_those_of_the_cpu(x64):
    run = scene(Liquid(1e4, 1.0, volume_correction=None), jnp.float64)
    assert_agree(outcome(run), 1e-12, split_chunks(run.init(), 2), run.gravity)


@pytest.mark.slow
@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_a_step_has_no_loop_and_a_larger_batch_no_more_operations(platform):
    text = lambda f, state: export_for(jax.jit(f), platform, state).mlir_module()
    for material in MATERIALS[1:]:
        run = scene(material, jnp.float32)
        assert "stablehlo.while" not in text(run.step, split_chunks(run.init(), 2)), material
    run = scene(MATERIALS[0], jnp.float32)
    state = split_chunks(run.init(), 2)
    copies = lambda n: jax.tree.map(lambda a: np.stack([a] * n), state)
    two, five = (text(jax.vmap(run.step), copies(n)) for n in (2, 5))
    assert "stablehlo.while" not in two
    assert two.count("stablehlo.") == five.count("stablehlo.")


def test_a_step_on_a_cpu_goes_chunk_by_chunk():
    run = scene(NeoHookean(1e4), jnp.float32)
    step = export_for(jax.jit(run.step), "cpu", split_chunks(run.init(), 2))
    assert "stablehlo.while" in step.mlir_module()
