"""A yield-stress liquid driven through a channel: the central plug and the flow around it."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.physics.continuum import Body, Grid, HerschelBulkley, Scene, fill_box, simulate

YIELD, PLASTIC, PUSH = 4.0, 10.0, 20.0  # Pa, Pa s, Pa / m; the channel is 1 m wide
PLUG = YIELD / PUSH  # half-width over which the stress stays below the yield stress, m


def channel(cells, share):
    """Return distances from the middle [m] and velocities [m/s] of particles after a decay time.

    They start with the law's own flow. Steps are a multiple of those that `prepare` selects.
    """
    dx = 1 / cells
    law = HerschelBulkley(2e3, YIELD, PLASTIC, growth=60.0, tension=1e6)
    x = fill_box((0.0, 0.0), (4 * dx, 1.0), dx / 2)
    u = creeping(np.abs(np.asarray(x[:, 1]) - 0.5), 60.0).astype(np.float32)
    body = Body(x, law, (dx / 2) ** 2, v=jnp.asarray(np.stack([u, 0 * u], 1)))
    grid = Grid(dx, (4, cells), faces=("periodic", "stick"))
    scene = Scene((body,), grid, gravity=(PUSH / 1000, 0.0)).prepare()
    assert scene.sharp
    scene = dataclasses.replace(scene, dt=scene.dt * share)
    end = simulate(scene, 10.0).state.bodies[0]
    kept = np.asarray(end.m) > 0
    return np.abs(np.asarray(end.x[:, 1])[kept] - 0.5), np.asarray(end.v[:, 0])[kept]


def bingham(s):
    """Return the velocity [m/s] at distance s [m] from the middle, for a plug without creep."""
    steep = PUSH / (2 * PLASTIC)
    return steep * ((0.5 - PLUG) ** 2 - np.maximum(s - PLUG, 0) ** 2)


def creeping(s, growth):
    """Return the velocity for the law with its exponential, by inversion and the trapezoid rule."""
    rate = np.linspace(0, PUSH / PLASTIC / 2, 20001)
    place = (PLASTIC * rate - YIELD * np.expm1(-growth * rate)) / PUSH  # where it shears so, m
    fall = np.append(0, np.cumsum((rate[1:] + rate[:-1]) / 2 * np.diff(place)))
    return np.interp(0.5, place, fall) - np.interp(s, place, fall)


def width(s, v):
    """Return the plug's half-width [m]: the top of the parabola fitted more than 0.1 m from it."""
    beside = s > PLUG + 0.1
    square, slope, _ = np.polyfit(s[beside], v[beside], 2)
    return -slope / (2 * square)


@pytest.mark.slow
def test_a_plug_flows_between_sheared_layers():
    """Row 11 of the list of cases: 5 %, at steps of 0.4 to 0.9 of the stable limit.

    With transfers that damp by a fraction in each step, the plug was 17 % too narrow at 36 cells,
    and narrower in short steps.
    """
    for cells, share in ((36, 2.25), (36, 1.0)):
        s, v = channel(cells, share)
        assert np.abs(v - creeping(s, 60.0)).max() < 0.005 * bingham(0)
        assert np.abs(v - bingham(s)).max() < 0.05 * bingham(0)
        assert abs(width(s, v) / PLUG - 1) < 0.02


def test_the_exponential_leaves_the_width_as_it_is():
    s = np.linspace(0, 0.5, 401)
    assert abs(width(s, creeping(s, 60.0)) / PLUG - 1) < 1e-3
    assert np.abs(creeping(s, 60.0) - bingham(s)).max() < 0.04 * bingham(0)
