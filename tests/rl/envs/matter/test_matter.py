"""Tasks with fluids and elastic bodies: losses, tools at rest, geometry and images."""

import dataclasses
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matter_checks import slope_is_that_of_differences

from jaxgpu import rl
from jaxgpu.geometry import sdf
from jaxgpu.rl.envs.matter import with_soft_contact
from jaxgpu.rl.envs.matter.inflow import nozzle_layer
from jaxgpu.rl.envs.matter.rendering import COLORS, draw_matter
from jaxgpu.rl.envs.matter.shapes import Prism, glass
from jaxgpu.rl.plan import trajectory

ENV = rl.make("matter/pouring")
KEY = jax.random.key(0)
reset = jax.jit(ENV.reset)
whole = jax.jit(lambda state, actions: trajectory(ENV, state, actions))


def places(particles):
    """Return the positions [D, N] of the filled slots, in float64."""
    return np.asarray(particles.x, float)[np.asarray(particles.active)].T


def test_a_layer_fills_the_opening_of_a_nozzle_and_lies_ahead_of_it():
    """Eight points 1.5 mm apart fit into an opening of 12 mm; in 3D, those inside the disc."""
    across = (np.arange(8) - 3.5) * 0.0015
    plane, disc = (nozzle_layer(d, 0.006, 0.0015, 1, -0.02) for d in (2, 3))
    np.testing.assert_allclose(plane, np.stack([across, np.full(8, -0.02)], 1), atol=1e-8)
    far = np.hypot(*np.meshgrid(across, across))
    assert len(disc) == np.sum(far < 0.006) and np.allclose(disc[:, 1], -0.02)
    assert np.hypot(disc[:, 0], disc[:, 2]).max() < 0.006


@pytest.mark.slow
def test_a_glass_held_still_keeps_its_layers():
    state, _ = reset(KEY)
    states, seen = whole(state, jnp.zeros((ENV.max_steps, 3)))
    # The liquids yield by rho g h / K = 1 %, so that their mean positions move by less than 1 mm of
    # the 91 mm that the water could fall.
    assert abs(float(jnp.sum(seen["reward"]))) < 0.02
    assert not seen["success"].any()
    milk, water = (places(b) for b in jax.tree.map(lambda a: a[-1], states).matter.bodies)
    assert milk[1].mean() < water[1].mean() - 0.025
    # A wall acts within a cell of 6 mm; liquid penetrates it by half of that at most.
    assert np.abs(milk[0] - 0.105).max() < 0.039 + 0.003 and milk[1].min() > 0.093 - 0.003


def slots(particles, start):
    """Return positions [D, N] and a mask of presence [N] for the slots filled at the start."""
    filled = np.asarray(start.active)
    return np.asarray(particles.x, float)[filled].T, np.asarray(particles.active)[filled]


def test_loss_reward_and_success_are_those_of_the_positions():
    state, first = reset(KEY)
    actions = jnp.zeros((ENV.max_steps, 3)).at[:, 2].set(-0.9).at[:, 0].set(0.3)
    states, seen = whole(state, actions)
    milk0, bottom = places(state.matter.bodies[0]), state.baseline
    for frame in (0, 20, 49):
        at = jax.tree.map(lambda a, f=frame: a[f], states)
        pairs = zip(at.matter.bodies, state.matter.bodies)
        (milk, milk_left), (water, water_left) = (slots(b, c) for b, c in pairs)
        fall = np.where(milk_left, np.abs(milk - milk0).sum(0), milk0[1] - 0.04)
        loss = np.where(water_left, np.abs(water[1] - 0.04), 0).mean() + fall.mean()
        np.testing.assert_allclose(seen["loss"][frame], loss, rtol=1e-4)
        np.testing.assert_allclose(
            seen["reward"][frame], (1 - loss / bottom) / ENV.max_steps, atol=1e-5
        )
        turn, x = float(at.matter.tools[0].turn[0]), np.asarray(at.matter.tools[0].x, float)
        np.testing.assert_allclose(turn, -0.9 * 4.0 * 0.02 * (frame + 1), rtol=1e-4)
        np.testing.assert_allclose(x, [0.105 + 0.03 * 0.02 * (frame + 1), 0.135], rtol=1e-4)
        r = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
        box = np.array([[0.039], [0.042]])
        share_in = lambda p, there, r=r, x=x, box=box: (
            (np.abs(r @ (p - x[:, None])) < box).all(0) & there
        ).mean()
        share = share_in(milk, milk_left), share_in(water, water_left)
        assert seen["success"][frame] == (share[0] > 0.9 and share[1] < 0.1)
    assert share[1] < 0.3 and water_left.mean() < 0.5  # turned over, it pours
    assert first.shape == ENV.observation_space.shape
    np.testing.assert_allclose(first[0], milk0[0, 0] / 0.288, rtol=1e-5)


@pytest.mark.slow
def test_a_plan_made_by_hand_pours():
    """Tilt by 86 degrees in 0.4 s, wait for 0.45 s and tilt back: a baseline for planners."""
    t = (jnp.arange(float(ENV.max_steps)) + 0.5) * 0.02
    turn = jnp.where(t < 0.4, -3.75, jnp.where(t < 0.85, 0, jnp.where(t < 1.25, 3.75, 0)))
    actions = jnp.stack([0 * t, 0 * t, turn / 4], 1)
    for seed in range(2):
        _, seen = whole(reset(jax.random.key(seed))[0], actions)
        assert seen["success"][-1] and np.sum(seen["reward"]) > 0.25, seed


@pytest.mark.parametrize("size", ["small", "coarse"])
def test_a_box_of_any_fineness_holds_a_glass_of_thick_milk_and_thin_water(size):
    """288 mm by 252 mm, up to a cell, leave room for the glass at every rotation in place."""
    scene = rl.make("matter/pouring", size=size).simulation
    dx = float(scene.grid.dx)
    length, height = (float(a) for a in scene.grid.upper)
    np.testing.assert_allclose(length, 0.288, rtol=1e-6)
    assert 0.252 - dx < height < 0.252 + 1e-6
    place, reach = np.asarray(scene.colliders[0].x), np.hypot(0.057, 0.06)  # of its far corners
    assert (place > reach).all() and (place < np.array([length, height]) - reach).all()
    milk, water = scene.bodies
    assert (milk.density, milk.material.viscosity) == (1290.0, 20.0)
    assert (water.density, water.material.viscosity) == (1000.0, 0.0)


def test_it_is_poured_when_the_water_is_out_and_the_milk_in_the_glass():
    """A share of the particles of either liquid is moved by 1 m."""
    state = initial_state(ENV)
    reference, (milk, water) = ENV.goal.reference(state, None), state.bodies

    def move_share(body, share):
        away = np.linspace(0, 1, len(body.x), endpoint=False, dtype=np.float32) < share
        x = jnp.where(away[:, None], body.x + jnp.array([[1.0, 0.0]]), body.x)
        return SimpleNamespace(x=x, m=body.m)

    @jax.jit
    def success(of_milk, of_water):
        bodies = move_share(milk, of_milk), move_share(water, of_water)
        return ENV.goal.success(SimpleNamespace(bodies=bodies, tools=state.tools), reference)

    for of_milk, of_water in ((0.0, 0.0), (0.0, 0.8), (0.2, 1.0), (0.05, 0.95)):
        assert success(of_milk, of_water) == (of_milk < 0.1 and of_water > 0.9)


def test_success_is_seen_where_it_is():
    """Water is moved to the sink or removed; milk stays in the glass or is spilt."""
    state, _ = reset(KEY)
    milk, water = state.matter.bodies
    fallen = water.replace(x=water.x.at[:, 1].set(0.04))
    gone = water.replace(m=0.0)
    spilt = milk.replace(x=milk.x.at[:, 1].set(0.04))
    cases = ((milk, fallen, True), (milk, gone, True), (spilt, gone, False), (milk, water, False))
    for *bodies, won in cases:
        at = dataclasses.replace(state.matter, bodies=tuple(bodies))
        assert ENV.goal.success(at, state.reference) == won
    for last in (fallen, gone):
        at = dataclasses.replace(state.matter, bodies=(milk, last))
        assert ENV.goal.loss(at, state.reference) < 1e-6


@pytest.mark.slow
def test_the_gradient_through_contact_is_that_of_differences(x64):
    slope_is_that_of_differences(ENV, 0.3 * jnp.sin(1 + jnp.arange(9.0)).reshape(3, 3))


@pytest.mark.parametrize("d", [2, 3])
def test_a_glass_is_solid_where_its_walls_are(d):
    rng = np.random.default_rng(0)
    x = rng.uniform(-0.08, 0.08, (d, 4000))
    got = np.asarray(glass(d, 0.042, 0.039, 0.018).distance(tuple(jnp.asarray(x, jnp.float32))))
    across = np.abs(x[0]) if d == 2 else np.hypot(x[0], x[2])
    outer = (across < 0.057) & (x[1] > -0.06) & (x[1] < 0.042)
    inner = (across < 0.039) & (x[1] > -0.042)
    np.testing.assert_array_equal(got < 0, outer & ~inner)
    solid = x[:, outer & ~inner]
    gap = np.sqrt(((x[:, :200, None] - solid[:, None]) ** 2).sum(0)).min(1)
    assert (got[:200] <= gap + 1e-6).all()  # never further than matter is


def test_a_prism_is_a_plane_shape_with_a_thickness():
    x = tuple(jnp.asarray(a, jnp.float32) for a in np.random.default_rng(1).normal(size=(3, 50)))
    box = sdf.Box((0.5, 0.7))
    prism, solid = Prism(box, 0.4).distance(x), sdf.Box((0.5, 0.7, 0.4)).distance(x)
    np.testing.assert_array_equal(prism < 0, solid < 0)
    assert jnp.all(prism <= solid + 1e-6)


def test_a_task_with_soft_contact_differs_in_the_contact_of_its_led_tool_alone():
    env = rl.make("matter/mixing")
    soft = with_soft_contact(env, 0.006, 50.0)
    led, *others = soft.simulation.colliders
    assert (led.soft.length, led.soft.rate) == (0.006, 50.0)
    assert others and all(tool.soft is None for tool in others)
    tools = (dataclasses.replace(led, soft=None), *others)
    same = dataclasses.replace(
        soft, simulation=dataclasses.replace(soft.simulation, colliders=tools)
    )
    assert jax.tree.structure(same) == jax.tree.structure(env)
    for a, b in zip(jax.tree.leaves(same), jax.tree.leaves(env)):
        np.testing.assert_array_equal(a, b)


def test_colours_are_those_of_what_is_in_the_cup():
    """Red, green and blue in 0 ... 1: milk is the palest, coffee the darkest, water the bluest."""
    for ink in COLORS.values():
        assert 0 < min(ink) and max(ink) < 1
    luminance = lambda ink: np.dot([0.2126, 0.7152, 0.0722], ink)  # Rec. 709
    order = sorted(COLORS, key=lambda name: -luminance(COLORS[name]))
    assert order == ["milk", "cream", "duck", "water", "coffee"]
    for name in ("milk", "cream", "duck", "coffee"):  # warm
        red, green, blue = COLORS[name]
        assert red > green > blue
    red, green, blue = COLORS["water"]
    assert red < green < blue and min(COLORS["milk"]) > 0.8


@pytest.mark.parametrize("name", ["pouring", "mixing"])
def test_the_camera_has_the_whole_box_in_its_image_and_little_else(name):
    """Project the corners of the slab by a pinhole camera, in NumPy."""
    env = rl.make(f"matter/{name}")
    grid, camera = env.simulation.grid, env.camera(400, 300)
    lower = np.asarray(grid.lower, float)
    upper = lower + np.asarray(grid.cells) * float(grid.dx)
    x = np.stack(np.meshgrid(*zip(lower, upper), (-1.5 * grid.dx, 1.5 * grid.dx)), -1).reshape(
        -1, 3
    )
    eye, target = np.asarray(camera.eye, float), np.asarray(camera.target, float)
    np.testing.assert_allclose(target[:2], (lower + upper) / 2, rtol=1e-6)
    ahead = (target - eye) / np.linalg.norm(target - eye)
    right = np.cross(ahead, [0.0, 1.0, 0.0])
    right /= np.linalg.norm(right)
    depth = (x - eye) @ ahead
    focal = 150 / np.tan(camera.angle / 2)
    u = focal * (x - eye) @ right / depth
    v = focal * (x - eye) @ np.cross(right, ahead) / depth
    share = max(np.abs(u).max() / 200, np.abs(v).max() / 150)
    assert 0.75 < share < 1
    drawn = draw_matter(env.simulation, initial_state(env), env.body_names, camera)
    assert drawn.far > depth.max() and drawn.floor == lower[1]
    # Every particle is drawn six times, half a cell apart, symmetric about the plane.
    counts = [len(body.x) for body in env.simulation.bodies]
    assert drawn.x.shape == (6 * sum(counts), 3)
    heights = np.unique(np.asarray(drawn.x[:, 2], float) / (grid.dx / 2))
    np.testing.assert_allclose(heights, np.arange(6) - 2.5, rtol=1e-5)
    x = np.concatenate([body.x for body in env.simulation.bodies])
    np.testing.assert_allclose(drawn.x[:, :2], np.tile(x, (6, 1)), rtol=1e-6)
    inks = np.repeat([COLORS[name] for name in env.body_names], counts, axis=0)
    np.testing.assert_allclose(drawn.colour, np.tile(inks, (6, 1)), rtol=1e-6)


def initial_state(env):
    """Return the particles of a task as filled in, and its tools at their initial positions."""
    cloud = lambda x: SimpleNamespace(x=jnp.float32(x), m=jnp.ones(len(x)))
    tool = lambda x: SimpleNamespace(x=jnp.asarray(x, jnp.float32), turn=jnp.zeros(1))
    return SimpleNamespace(
        bodies=[cloud(np.asarray(body.x)) for body in env.simulation.bodies],
        tools=[tool(collider.x) for collider in env.simulation.colliders],
    )


@pytest.mark.slow
def test_a_view_shows_both_liquids_and_the_glass():
    state, _ = reset(KEY)
    image = np.asarray(jax.jit(lambda m: ENV.render(m, 120, 90))(state.matter))
    assert image.shape == (90, 120, 3) and 0 <= image.min() and image.max() <= 1
    red, blue = image[..., 0], image[..., 2]
    assert (blue > red + 0.2).sum() > 150  # water
    pale = (red > blue + 0.015) & (red > 0.25)
    assert pale.sum() > 150  # milk
