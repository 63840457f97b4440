"""Programs for accelerators: run here on the CPU they give what the CPU's own give, without loops.

`jax.export` builds a step for another platform. As it holds no kernel of that platform's own, it
runs on any.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.physics.continuum import (
    Body,
    Corotated,
    DruckerPrager,
    Grid,
    HerschelBulkley,
    Liquid,
    NeoHookean,
    Scene,
    Snow,
    VonMises,
    fill_box,
)

DX = 1 / 8
ANYWHERE = [jax.export.DisabledSafetyCheck.platform()]
MATERIALS = [Liquid(1e4, 1.0), HerschelBulkley(1e4), NeoHookean(1e4), Corotated(1e4)]
MATERIALS += [VonMises(1e4, 0.3, 60.0), DruckerPrager(1e4, grain=1e-3), Snow(1e4)]
name = lambda material: type(material).__name__


def scene(material, dtype, sharp=False):
    """A stirred block of unlike particles that stands in a corner."""
    x = fill_box((0.0, 0.0), (0.5, 0.5), DX / 2).astype(dtype)
    volume = (DX / 2) ** 2 * np.random.default_rng(3).uniform(0.6, 1.4, len(x))
    body = Body(x, material, jnp.asarray(volume, dtype), v=0.8 * jnp.sin(4 * x[:, ::-1]) + 0.1)
    return Scene((body,), Grid(DX, (8, 8)), (0.5, -9.81), dt=x.dtype.type(1e-3), sharp=sharp)


def in_chunks(state, count):
    """The state with its particles in so many chunks."""
    cut = lambda a: a.reshape(count, -1)
    return dataclasses.replace(state, bodies=jax.tree.map(cut, state.bodies))


def outcome(run):
    """Derivative of what a step makes of a state, in the state and in gravity."""

    def loss(state, gravity):
        leaves = jax.tree.leaves(dataclasses.replace(run, gravity=gravity).step(state).bodies)
        weight = jnp.cos(1.3 * jnp.arange(float(leaves[0].size))).reshape(leaves[0].shape)
        return sum(jnp.sum(weight * a * a) for a in leaves)

    return jax.jit(jax.grad(loss, (0, 1)))


def built(f, platform, *args):
    return jax.export.export(f, platforms=[platform], disabled_checks=ANYWHERE)(*args)


def agree(f, platform, bound, *args, least=0.0):
    """Each result within `bound` of the largest number of its kind, or of `least`."""
    there = built(f, platform, *args).call(*args)
    for a, b in zip(jax.tree.leaves(f(*args)), jax.tree.leaves(there)):
        np.testing.assert_allclose(b, a, rtol=0, atol=bound * max(np.abs(a).max(), least))


@pytest.mark.slow
@pytest.mark.parametrize("platform", ["cuda", "tpu"])
@pytest.mark.parametrize("material", [MATERIALS[0], MATERIALS[5]], ids=name)
def test_a_step_is_that_of_the_cpu(x64, material, platform):
    run = scene(material, jnp.float64)
    agree(jax.jit(run.step), platform, 1e-12, in_chunks(run.init(), 2))


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_single_precision_agrees_to_rounding(platform):
    run = scene(MATERIALS[2], jnp.float32)
    # velocity gradients are 4 / dx times sums of velocities of order one over nine nodes
    agree(jax.jit(run.step), platform, 32 * 9 * 6e-8, in_chunks(run.init(), 2), least=1.0)


@pytest.mark.slow
@pytest.mark.parametrize("platform", ["cuda", "tpu"])
@pytest.mark.parametrize(
    "material", [Liquid(1e4, 1.0, volume_correction=None), MATERIALS[5]], ids=name
)
def test_derivatives_of_a_step_are_those_of_the_cpu(x64, material, platform):
    run = scene(material, jnp.float64)
    agree(outcome(run), platform, 1e-12, in_chunks(run.init(), 2), run.gravity)


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
@pytest.mark.parametrize(
    "material",
    [pytest.param(m, marks=[pytest.mark.slow] * (i % 5 > 0)) for i, m in enumerate(MATERIALS)],
    ids=name,
)
def test_a_step_has_no_loop_and_a_larger_batch_no_more_operations(material, platform):
    run = scene(material, jnp.float32)
    state = in_chunks(run.init(), 2)
    text = lambda f, state: built(jax.jit(f), platform, state).mlir_module()
    assert "stablehlo.while" not in text(run.step, state)
    copies = lambda n: jax.tree.map(lambda a: jnp.stack([a] * n), state)
    two, five = (text(jax.vmap(run.step), copies(n)) for n in (2, 5))
    assert "stablehlo.while" not in two
    assert two.count("stablehlo.") == five.count("stablehlo.")


def test_a_step_on_a_cpu_goes_chunk_by_chunk():
    run = scene(MATERIALS[2], jnp.float32)
    step = built(jax.jit(run.step), "cpu", in_chunks(run.init(), 2))
    assert "stablehlo.while" in step.mlir_module()
