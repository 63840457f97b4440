"""Soft contact: the stated rate for any step; smooth, and active before the surfaces touch."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from continuum_run import jit_unoptimized
from scipy.integrate import solve_ivp

from jaxgpu.geometry import sdf
from jaxgpu.physics.continuum import (
    Body,
    Collider,
    Grid,
    NeoHookean,
    Scene,
    SoftContact,
    fill_box,
    rollout,
)
from jaxgpu.physics.continuum.tools.contact import apply_contact

NORMAL, PLACE, REACH, LENGTH, RATE = np.array([0.6, 0.8]), np.array([0.1, 0.2]), 0.03, 0.05, 40.0


def plane(soft, stick):
    """Make a moving half space, and forty nodes with velocities on both of its sides."""
    tool = Collider(sdf.HalfSpace(tuple(NORMAL)), tuple(PLACE), v=(0.3, -0.2), stick=stick)
    rng = np.random.default_rng(3)
    nodes, v = rng.uniform(-0.2, 0.6, (2, 40)), rng.normal(size=(2, 40))
    return dataclasses.replace(tool, soft=soft), nodes, v


touch_jitted = jit_unoptimized(lambda *a: apply_contact(*a[:-1], REACH, a[-1]))


def touch_plane(tool, nodes, v, dt, x=PLACE):
    start = dataclasses.replace(tool, x=x).start(jnp.float64)
    m = np.linspace(1.0, 2.0, nodes.shape[1])
    return touch_jitted(tool, start, tuple(nodes), tuple(v), m, dt)


def test_on_the_surface_contact_is_hard_in_however_short_a_step():
    share = SoftContact(LENGTH, RATE).share(jnp.array([-LENGTH, 0.0, LENGTH]), 1e-10)
    np.testing.assert_array_equal(share[:2], 1)
    assert 0 < share[2] < 1e-8


@pytest.mark.parametrize("stick", [True, False])
def test_velocities_follow_the_stated_equation(x64, stick):
    tool, nodes, v = plane(SoftContact(LENGTH, RATE), stick)
    new, impulse, _ = touch_plane(tool, nodes, v, 0.02)
    carried = np.array([0.3, -0.2])
    for i in range(40):
        d = NORMAL @ (nodes[:, i] - PLACE) - REACH
        u = v[:, i] - carried
        lost = u if stick else min(u @ NORMAL, 0) * NORMAL  # what hard contact takes away
        k = RATE * (np.e - 1) / (np.exp(d / LENGTH) - 1) if d > 0 else np.inf
        if d <= 0:
            left = 0.0
        else:  # dw/dt = -k w from 1, by a method that knows no exponential
            left = solve_ivp(
                lambda _, w, k=k: -k * w, (0, 0.02), [1.0], method="LSODA", rtol=1e-11, atol=1e-14
            ).y[0, -1]
        want = v[:, i] - (1 - left) * lost
        np.testing.assert_allclose([new[0][i], new[1][i]], want, rtol=1e-8, atol=1e-9)
    # The tool gains the momentum that the material loses.
    m = np.linspace(1.0, 2.0, 40)
    np.testing.assert_allclose(impulse, (m * (v - np.array(new))).sum(1), rtol=1e-12)
    # Two half steps equal one step.
    half, _, _ = touch_plane(tool, nodes, v, 0.01)
    both, _, _ = touch_plane(tool, nodes, half, 0.01)
    np.testing.assert_allclose(both, new, rtol=1e-12, atol=1e-14)


def test_a_short_length_is_hard_contact_and_a_long_one_is_smooth(x64):
    hard, nodes, v = plane(None, True)
    crisp = dataclasses.replace(hard, soft=SoftContact(1e-6, RATE))
    soft = dataclasses.replace(hard, soft=SoftContact(LENGTH, RATE))
    m = np.linspace(1.0, 2.0, 40)

    def touch_nodes(tool, x):
        start = dataclasses.replace(tool, x=x).start(jnp.float64)
        at, moving = (tuple(jnp.asarray(a)) for a in (nodes, v))
        return apply_contact(tool, start, at, moving, m, REACH, 0.02)[0]

    np.testing.assert_array_equal(touch_nodes(crisp, PLACE), touch_nodes(hard, PLACE))
    push_sum = lambda tool, h: sum(
        jnp.sum(np.cos(np.arange(40.0)) * a)
        for a in touch_nodes(tool, PLACE + h * np.array([0.8, 0.3]))
    )
    sweep = lambda tool: jit_unoptimized(jax.vmap(jax.value_and_grad(lambda h: push_sum(tool, h))))
    led, places = sweep(soft), np.linspace(-0.2, 0.3, 11)
    # The plane is moved through nodes: the slope equals differences everywhere.
    slope = led(places)[1]
    central = (led(places + 1e-6)[0] - led(places - 1e-6)[0]) / 2e-6
    np.testing.assert_allclose(slope, central, rtol=1e-6, atol=1e-7)
    assert jnp.all(jnp.abs(slope) > 1e-3) and jnp.all(sweep(hard)(places)[1] == 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_shares_and_their_slopes_are_numbers_at_every_distance(x64, dtype):
    d = np.array([-1e9, -1.0, 0.0, 1e-30, 1e-12, 1e-5, 1e-3, 0.05, 1.0, 10.0, 1e9], dtype)
    one = jax.value_and_grad(lambda d: SoftContact(0.05, 40.0).share(d, 1e-4))
    share, slope = map(np.asarray, jit_unoptimized(jax.vmap(one))(d))
    assert share.dtype == dtype and np.all(np.diff(share) <= 0) and np.all(slope <= 0)
    assert np.all(np.isfinite(slope)) and share[0] == 1 and share[-1] == 0


@pytest.mark.slow
def test_a_tool_that_does_not_arrive_has_a_gradient_all_the_same(x64):
    dx = 0.05
    x = np.asarray(fill_box((0.4, 0.3), (0.6, 0.5), dx / 2), float)
    body = Body(x, NeoHookean(2e4), (dx / 2) ** 2)

    def final_moment(v):
        soft = SoftContact(0.05, 100.0)
        ball = Collider(sdf.Ball(0.05), (0.2, 0.4), v=(v, 0.0), friction=0.3, soft=soft)
        scene = Scene((body,), Grid(dx, (16, 16)), colliders=(ball,), dt=1e-3)
        keep = lambda scene, state, _: (scene, state)
        end, _ = rollout(scene, scene.init(), jnp.zeros(5), keep, substeps=8)
        return jnp.sum(end.bodies[0].m * end.bodies[0].x[:, 0])

    both = jit_unoptimized(jax.value_and_grad(final_moment))
    # It ends at x = 0.27 with its edge more than a cell from the first node with material.
    slope = both(0.5)[1]
    central = [(both(0.5 + h)[0] - both(0.5 - h)[0]) / (2 * h) for h in (1e-3, 1e-4, 1e-5)]
    assert slope > 1e-6 and min(abs(c - slope) for c in central) <= 1e-6 * slope


def test_a_contact_that_cannot_be_is_refused_where_its_share_is_asked_for():
    with pytest.raises(
        ValueError, match="SoftContact.length=-0.1; it must be a finite number above 0"
    ):
        SoftContact(-0.1).share(0.01, 1e-4)
    with pytest.raises(ValueError, match="SoftContact.rate=nan; it must be a finite number"):
        SoftContact(0.1, np.nan).share(0.01, 1e-4)
