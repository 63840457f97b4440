"""Derivatives of yielding sand: the law has kinks at its cone and where the sand separates."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from continuum_run import jit_unoptimized
from jax import lax

from jaxgpu.physics.continuum import Body, DruckerPrager, Grid, Scene, fill_box, rollout
from jaxgpu.physics.continuum.materials.elastic import deform

DX, STEPS = 1 / 8, 50


def full_box(p):
    """Return a box full of sand, pressed by 3 % in every direction, and its state."""
    law = DruckerPrager(p["young"], p["poisson"], p["angle"], plane=True)
    body = Body(p["x"], law, (DX / 2) ** 2, v=p["v"])
    scene = Scene((body,), Grid(DX, (8, 8)), tuple(p["gravity"]), dt=1e-3)
    state = scene.init()
    sand = state.bodies[0]
    pressed = dataclasses.replace(sand.internal, F=0.97 * sand.internal.F)
    return scene, dataclasses.replace(state, bodies=(sand.replace(internal=pressed),))


def inputs():
    x = np.asarray(fill_box((0.0, 0.0), (1.0, 1.0), DX / 2), float)
    return {
        "x": x,
        "v": 0.8 * np.sin(4 * x[:, ::-1]) + 0.1,
        "gravity": np.array([0.5, -9.81]),
        "young": np.asarray(1e5),
        "poisson": np.asarray(0.3),
        "angle": np.asarray(0.5236),
    }


def loss(p):
    end, _ = rollout(*full_box(p), jnp.zeros(5), lambda *a: a[:2], substeps=STEPS // 5)
    x, y = end.bodies[0].x[: len(p["x"])].T
    weight = np.cos(1.3 * np.arange(float(len(x))))
    return jnp.sum(weight * x) + jnp.sum(weight[::-1] * y**2)


def case_masks(p):
    """Return masks of flowing and of separated particles: [steps, 2, particles]."""
    scene, state = full_box(p)

    def step_cases(state, _):
        b = state.bodies[0].chunks
        after, _ = scene.bodies[0].material.stress(b.internal, b.C, scene.dt)
        trial = deform(b.internal.F, b.C, scene.dt)
        change = sum(abs(u - v) for r, s in zip(trial, after.F) for u, v in zip(r, s))
        seen = jnp.stack([change > 1e-11, after.history > 0])
        return scene.step(state), seen.reshape(2, -1)[:, : len(p["x"])]

    return lax.scan(step_cases, state, None, length=STEPS)[1]


@pytest.mark.slow
def test_every_input_against_differences_between_kinks(x64):
    """Test as for other materials, with steps in which no particle changes its case."""
    both, seen = jit_unoptimized(jax.value_and_grad(loss)), jit_unoptimized(case_masks)
    value = lambda p: both(p)[0]
    p = inputs()
    flows, apart = np.asarray(seen(p)).any(0)
    assert flows.mean() > 0.5 and apart.any()  # all three cases occur
    exact, rng = both(p)[1], np.random.default_rng(0)
    for name in p:
        way = max(np.abs(p[name]).max(), 0.1) * rng.normal(size=p[name].shape)
        along = np.sum(exact[name] * way)
        errors = []
        for h in (1e-3, 1e-4, 1e-5, 1e-6, 1e-7):
            ahead, behind = (p | {name: p[name] + s * way} for s in (h, -h))
            if np.all(seen(ahead) == seen(behind)):
                errors.append(abs((value(ahead) - value(behind)) / (2 * h) - along))
        assert min(errors) <= 1e-6 * abs(along), name
