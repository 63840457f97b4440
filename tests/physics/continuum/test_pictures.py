"""An image of a scene: each body in its colour, tools of glass, and no empty slots."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.geometry import fill_box, sdf
from jaxgpu.physics.continuum import Body, Collider, Grid, Liquid, Scene
from jaxgpu.physics.continuum.pictures import picture, points
from jaxgpu.render import Camera

DX = 0.02
CAMERA = Camera((0.16, 0.12, 0.9), (0.16, 0.12, 0.16), (0.0, 1.0, 0.0), 0.6, 32, 24)
RED, BLUE = (0.9, 0.1, 0.1), (0.1, 0.1, 0.9)


def scene(tools=()):
    left, right = (
        Body(fill_box((x, 0.06, 0.1), (x + 0.06, 0.18, 0.2), DX / 2), Liquid(1e4), (DX / 2) ** 3)
        for x in (0.06, 0.2)
    )
    return Scene((left, right), Grid(DX, (16, 12, 16)), (0.0, -9.81, 0.0), tools).prepare()


def draw_image(spec, state):
    return np.asarray(picture(spec, state, CAMERA, (RED, BLUE)))


@pytest.mark.slow
def test_bodies_have_their_colours_where_they_are():
    spec = scene()
    image = draw_image(spec, spec.init())
    assert image.shape == (24, 32, 3) and np.isfinite(image).all()
    redness = image[..., 0] - image[..., 2]
    assert redness[8:16, 10:14].min() > 0.3 and redness[8:16, 18:22].max() < -0.3


def test_slots_without_mass_are_not_seen():
    spec = scene()
    state = spec.init()
    left, right = state.bodies
    gone = right.replace(m=jnp.zeros_like(right.m))
    image = draw_image(spec, dataclasses.replace(state, bodies=(left, gone)))
    assert (image[..., 2] <= image[..., 0] + 0.05)[8:16, 18:22].all()


@pytest.mark.slow
def test_a_tool_shows_and_what_is_behind_it_shines_through():
    plain, spec = scene(), scene((Collider(sdf.Ball(0.04), (0.09, 0.12, 0.26)),))
    before, after = draw_image(plain, plain.init()), draw_image(spec, spec.init())
    changed = np.abs(after - before).max(-1) > 1e-3
    assert changed[8:16, 10:14].any() and not changed[:, 17:].any()
    assert (after[..., 0] > after[..., 2])[8:16, 10:14].all()


def test_points_of_a_plane_lie_at_no_height():
    body = Body(fill_box((0.1, 0.1), (0.2, 0.2), 0.01), Liquid(1e4), 1e-4)
    state = Scene((body,), Grid(DX, (16, 16))).prepare().init()
    x = points(state)
    assert x.shape == (state.bodies[0].m.size, 3) and not x[:, 2].any()
    np.testing.assert_array_equal(x[:, :2], state.bodies[0].x)
