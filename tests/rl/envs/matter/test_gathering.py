"""Gathering: ducks float, the plate follows the clock, and strokes bring the ducks closer."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matter_checks import places, play

from jaxgpu import rl
from jaxgpu.rl.envs.matter import gathering

ENV = rl.make("matter/gathering-easy")


def hand_plan():
    """Return strokes: push at full speed for 0.64 s, return a little in the air, push again."""
    stages = ((16, 1.0), (4, 0), (12, -0.3), (4, 0), (16, 0.6), (20, 0))
    return jnp.concatenate([jnp.full((n, 1), x) for n, x in stages])


def test_ducks_float_side_by_side_and_are_gathered_when_all_of_them_are_near():
    """Ducks are at one and two thirds of the tank, with a third of each under water."""
    for i in (0, 1):
        want = [0.1, 0.056 + 0.016 / 3, 0.04 * (1 + i)]
        np.testing.assert_allclose(gathering._duck_center(3, 0.1, i, 0.12), want, rtol=1e-12)
    goal, full = gathering.GatherGoal(0.3, 0.06), jnp.array([True, True, False])
    for x, success in ((0.25, True), (0.35, True), (0.23, False), (0.37, False)):
        ducks = SimpleNamespace(x=jnp.array([[0.3, 0.1], [x, 0.1], [0.0, 0.0]]))
        assert goal.success(SimpleNamespace(bodies=[None, ducks]), full) == success


@pytest.mark.slow
def test_two_strokes_bring_the_ducks_nearer():
    played, (strokes, still, random) = play(ENV, hand_plan(), 0 * hand_plan())
    assert abs(still) < 0.05 and max(random, still) + 0.2 < strokes
    states, seen = played[0]
    for i in (0, 30, 71):
        at = jax.tree.map(lambda a, i=i: a[i], states).matter
        (x, full), (_, wet) = places(at.bodies[1]), places(at.bodies[0])
        loss = np.abs(x[0, full] - 0.3).mean()
        np.testing.assert_allclose(seen["loss"][i], loss, rtol=1e-4)
        # The ducks float: their mean is near the surface of the water on the left of the plate.
        assert 0.03 < x[1, full].mean() < 0.09 and wet.sum() == len(ENV.simulation.bodies[0].x)
    height = np.asarray(states.matter.tools[0].x[:, 1])
    # The plate is down for 0.64 s, rises by 6 cm in 0.16 s, stays for 0.48 s and descends; twice.
    want = np.interp(np.arange(1, 37), (16, 20, 32, 36), (0, 0.06, 0.06, 0.0)) + 0.06
    np.testing.assert_allclose(height, np.tile(want, 2), atol=1e-5)


def test_ducks_of_foam_and_the_plate_displace_the_water_that_the_tank_holds():
    """Areas follow from discs, immersed caps and the plate, up to particles at the edge."""
    water, foam = ENV.simulation.bodies
    area = lambda body: len(body.x) * float(body.volume)
    r, h = 0.016, 0.016 / 3  # of a duck; its middle is so far above the water
    dipped = r * r * np.arccos(h / r) - h * np.sqrt(r * r - h * h)
    np.testing.assert_allclose(area(foam), 2 * np.pi * r**2, rtol=0.05)
    tank = 0.4 * 0.056 - 2 * dipped - 0.012 * (0.056 - 0.03)
    np.testing.assert_allclose(area(water), tank, rtol=0.02)
    assert (water.density, foam.density) == (1000.0, 350.0)


def test_the_plate_goes_up_and_down_by_the_clock():
    lift = gathering._lift_schedule(3, 2)
    height = np.cumsum(lift[:, 1]) * gathering.FRAME
    assert (lift[:, [0, 2]] == 0).all() and len(lift) == 2 * 36
    np.testing.assert_allclose(
        height[[15, 19, 31, 35, 51, 71]], [0, 0.06, 0.06, 0, 0, 0], atol=1e-7
    )
