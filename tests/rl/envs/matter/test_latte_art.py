"""Latte art: the loss of positions, the return of the demonstration, and the stirrer's range."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matter_checks import places, play

from jaxgpu import rl
from jaxgpu.rl.envs.matter import cup

ENV = rl.make("matter/latte-art-stir")


@pytest.mark.slow
def test_strokes_return_what_the_places_of_the_particles_say():
    """Compare the demonstration, no action, the first stroke only, and random strokes."""
    demo = jnp.asarray(ENV.goal.demo)
    played, (shown, still, one, random) = play(ENV, demo, 0 * demo, demo.at[10:].set(0))
    assert abs(shown - 1) < 1e-4 and abs(still) < 1e-4 and random + 0.1 < one < 0.9
    assert played[0][1]["success"].all() and not played[1][1]["success"][-1]
    first = jax.eval_shape(ENV.reset, jax.random.key(0))[1]
    assert first.shape == ENV.observation_space.shape

    def squared_gap(a, b, frame):
        """Return the mean squared distance of all particles between two rollouts."""
        total = 0.0, 0
        for p, q in zip(a[0].matter.bodies, b[0].matter.bodies):
            (x, full), (y, _) = (places(jax.tree.map(lambda l: l[frame], s)) for s in (p, q))
            total = total[0] + ((x - y) ** 2).sum(0)[full].sum(), total[1] + full.sum()
        return total[0] / total[1]

    frames = range(len(demo))
    idle = np.mean([squared_gap(played[1], played[0], i) for i in frames])
    for i in (2, 12, 24):
        loss = squared_gap(played[2], played[0], i)
        np.testing.assert_allclose(played[2][1]["loss"][i], loss, rtol=1e-3, atol=1e-9)
        np.testing.assert_allclose(
            played[2][1]["reward"][i], (1 - loss / idle) / len(demo), rtol=1e-3
        )


@pytest.mark.parametrize("size", ["small", "full"])
def test_the_cups_wall_is_upright_and_the_stirrers_end_is_4_mm_above_the_bottom(size):
    """Compare signed distances all over the grid with distances from the two axes by NumPy."""
    scene, _ = cup.make_scene(size, (0.02, -0.01), lambda x, y: x > 0.01)
    d = len(scene.grid.cells)
    x = np.random.default_rng(0).uniform(0.0, scene.grid.upper, (200, d))
    off = x[:, [0, d - 1]] - 0.048
    height = x[:, 1] if d == 3 else np.full(200, 0.02)
    along = height - np.clip(height, 0.009, 0.033)
    aside = np.hypot(*(off - (0.02, -0.01)).T)
    wanted = np.hypot(aside, along) - 0.005, 0.04 - np.hypot(*off.T)
    for tool, distance in zip(scene.colliders, wanted):
        found = tool.shape.distance(tuple((x - np.array(tool.x)).T))
        np.testing.assert_allclose(found, distance, atol=1e-7)
        assert tool.stick


@pytest.mark.parametrize("size", ["small", "full"])
def test_a_cup_holds_its_liquids_and_milk_lies_where_it_is_told_to(size):
    scene, _ = cup.make_scene(size, (0.02, -0.01), lambda x, y: x > 0.01)
    d = len(scene.grid.cells)
    milk, coffee = (np.asarray(b.x, float) - cup.MIDDLE for b in scene.bodies)
    i = [0, d - 1]
    for x in (milk, coffee):
        assert np.hypot(*x[:, i].T).max() < cup.RADIUS
        beside = x if d == 2 else x[x[:, 1] + cup.MIDDLE > 0.009]  # the stirrer's tip is round
        assert np.hypot(beside[:, 0] - 0.02, beside[:, d - 1] + 0.01).min() > cup.ROD * 0.99
    assert milk[:, 0].min() > 0.01
    volume = sum(len(b.x) * b.volume for b in scene.bodies)
    surface = np.pi * (cup.RADIUS**2 - cup.ROD**2)
    # The edge cuts cells of the particle spacing, so that their number varies by a few percent.
    np.testing.assert_allclose(volume, surface * (1 if d == 2 else cup.DEPTH), rtol=0.03)
    if d == 3:
        assert milk[:, 1].min() + cup.MIDDLE > cup.DEPTH - cup.LAYER
        below = coffee[coffee[:, 1] + cup.MIDDLE < cup.DEPTH - cup.LAYER]
        assert below[:, 0].max() > 0.03  # coffee is everywhere under the milk
