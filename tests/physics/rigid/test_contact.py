"""Bodies in contact against elementary mechanics: what falls, slides, rolls, stacks and swings."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from jaxgpu.physics import rigid

FLOOR = '<geom type="plane" size="9 9 .1" friction="{0}"/>'
G = 9.81


def world(bodies, friction=1.0, option="", **sizes):
    text = f"<mujoco>{option}<worldbody>{FLOOR.format(friction)}{bodies}</worldbody></mujoco>"
    return rigid.load(text, **sizes)


def rolled(model, state, steps, seen):
    """The last state, and `seen` of the state after every step [steps, ...]."""

    def further(s, _):
        s = model.step(s)
        return s, seen(s)

    return jax.lax.scan(further, state, length=steps)


def tilted(model, angle):
    """The world on a slope: gravity turned by `angle`, rad."""
    g = jnp.stack([G * jnp.sin(angle), jnp.zeros_like(angle), -G * jnp.cos(angle)])
    return dataclasses.replace(model, option=dataclasses.replace(model.option, gravity=g))


def test_a_dropped_ball_never_rises_above_where_it_came_from():
    """Of 1 g to 100 kg, at the default settings, spun or not."""
    ball = world('<body pos="0 0 .03"><freejoint/><geom size=".01" mass="1"/></body>', contacts=1)

    def highest(mass, spin):
        bodies = ball.bodies
        heavy = dataclasses.replace(bodies, mass=mass * bodies.mass, inertia=mass * bodies.inertia)
        model = rigid.reweighed(dataclasses.replace(ball, bodies=heavy))
        start = model.init(qvel=jnp.stack([0 * spin, 0 * spin, 0 * spin, spin, spin, 0 * spin]))
        end, height = rolled(model, start, 300, lambda s: s.qpos[2])
        return jnp.max(height[40:]), end.qpos[2]

    masses, spins = np.geomspace(1e-3, 100, 12), np.tile([0.0, 30.0], 6)
    top, rest = jax.jit(jax.vmap(highest))(jnp.asarray(masses), jnp.asarray(spins))
    assert (top < 0.02).all()
    np.testing.assert_allclose(rest, 0.01, atol=5e-4)


def test_a_block_holds_below_the_angle_of_friction_and_slides_above_it():
    """a = g (sin t - mu cos t); held, it creeps at a speed that its softness allows."""
    block = (
        '<body pos="0 0 .02"><freejoint/><geom type="box" size=".2 .2 .02" friction=".5"/></body>'
    )
    model = world(block, friction=0.5, option='<option cone="elliptic" impratio="10"/>')

    def speed(angle):
        here = tilted(model, angle)
        return rolled(here, here.init(), 750, lambda s: s.qvel[0])[1]

    angles = np.array([0.2, 0.4, 0.6, 0.8])
    v = np.asarray(jax.jit(jax.vmap(speed))(jnp.asarray(angles, jnp.float32)))
    slides = G * (np.sin(angles) - 0.5 * np.cos(angles))
    assert (v[:2, -1] < 0.01).all()
    got = (v[2:, -1] - v[2:, 249]) / (500 * 0.002)
    np.testing.assert_allclose(got, slides[2:], rtol=0.03)  # the plate rocks on what is soft


SLIPPERY = np.array([0.0, 1e-4, 1e-3, 1e-2, 0.1, 1.0])


def slippery(cone):
    """A ball a little above a slope of 10 degrees, and how it is after 0.2 s, by friction."""
    drop = '<body pos="0 0 .051"><freejoint/><geom size=".05" friction="0"/></body>'
    option = f'<option timestep=".002" cone="{cone}" tolerance="0" gravity="1.7 0 -9.7"/>'
    model = world(drop, friction=0.0, option=option)

    def after(mu):
        rough = model.geoms.friction.at[:, 0].set(mu)
        slick = dataclasses.replace(model, geoms=dataclasses.replace(model.geoms, friction=rough))
        return rolled(slick, slick.init(), 100, lambda s: s.time)[0].qpos

    quick = {"xla_backend_optimization_level": 0}  # compiled once and run once
    return jax.jit(jax.vmap(after), compiler_options=quick)(jnp.asarray(SLIPPERY))


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_what_hardly_rubs_slides_as_in_mujoco(cone, x64):
    """At friction from none to 1: the edges of a pyramid are then almost one another."""
    for mu, got in zip(SLIPPERY, slippery(cone)):
        drop = f'<body pos="0 0 .051"><freejoint/><geom size=".05" friction="{mu}"/></body>'
        option = f'<option timestep=".002" cone="{cone}" tolerance="0" gravity="1.7 0 -9.7"/>'
        text = f"<mujoco>{option}<worldbody>{FLOOR.format(mu)}{drop}</worldbody></mujoco>"
        m = mujoco.MjModel.from_xml_string(text)
        data = mujoco.MjData(m)
        mujoco.mj_step(m, data, nstep=100)
        np.testing.assert_allclose(got, data.qpos, rtol=0, atol=1e-12)


def test_what_hardly_rubs_slides_in_float32():
    """x = g_x t^2 / 2 where nothing rubs; five sevenths of it where it rolls."""
    end = np.asarray(slippery("pyramidal"))
    np.testing.assert_allclose(end[0, 0], 1.7 * 0.2**2 / 2, rtol=0.01)
    np.testing.assert_allclose(end[0, 3:], [1, 0, 0, 0], atol=1e-4)
    np.testing.assert_allclose(end[-1, 0], 5 / 7 * 1.7 * 0.2**2 / 2, rtol=0.05)


def test_a_ball_rolls_down_a_slope_with_five_sevenths_of_its_pull():
    ball = world('<body pos="0 0 .1"><freejoint/><geom size=".1"/></body>', contacts=1)
    here = tilted(ball, jnp.float32(0.2))
    speed = np.asarray(jax.jit(lambda s: rolled(here, s, 250, lambda s: s.qvel[0])[1])(here.init()))
    got = (speed[-1] - speed[124]) / (125 * 0.002)
    assert got == pytest.approx(5 / 7 * G * np.sin(0.2), rel=0.02)


def test_contacts_that_are_not_kept_are_counted():
    """Two boxes touch the floor with four corners each; two contacts are kept."""
    boxes = "".join(
        f'<body pos="{x} 0 .099"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
        for x in (0, 1)
    )
    model = world(boxes, contacts=2)
    assert int(model.step(model.init()).overflow) == 6


@pytest.mark.slow
def test_ten_boxes_stand_on_one_another_for_ten_seconds():
    boxes = "".join(
        f'<body pos="0 0 {0.1 + 0.2 * i}"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
        for i in range(10)
    )
    model = world(boxes, contacts=48, iterations=10)
    end, _ = jax.jit(lambda s: rolled(model, s, 5000, lambda s: None))(model.init())
    x = np.asarray(end.qpos).reshape(10, 7)[:, :3]
    assert int(end.overflow) == 0
    assert np.abs(x[:, :2]).max() < 5e-3 and np.abs(np.asarray(end.qvel)).max() < 1e-2
    np.testing.assert_allclose(x[:, 2], 0.1 + 0.2 * np.arange(10), atol=0.02)


def cradle(gap):
    """Five equal balls on strings, elastic contacts, and the file."""
    stiff = 'solref="-2e7 0" solimp=".99 .99 .001" condim="1"'
    ball = (
        '<body pos="{0} 0 1"><joint axis="0 1 0" pos="0 0 0"/>'
        '<geom size=".05" pos="0 0 -.5" mass="1" {1}/></body>'
    )
    row = "".join(ball.format((0.1 + gap) * i, stiff) for i in range(5))
    return (
        f'<mujoco><option timestep="1e-4" integrator="RK4"/><worldbody>{row}</worldbody></mujoco>'
    )


@pytest.mark.slow
def test_the_last_ball_of_a_cradle_takes_what_the_first_brings():
    """One swings in, one swings out, where balls collide one after the other.

    Those that hang a tenth of a millimetre apart collide together, as soft as they are, and the
    last but one swings, too: as in MuJoCo.
    """
    model = rigid.load(cradle(2e-3), contacts=10)
    near = rigid.load(cradle(1e-4), contacts=10)

    def swung(pos):
        there = dataclasses.replace(model, bodies=dataclasses.replace(model.bodies, pos=pos))
        q = rolled(there, there.init([0.5, 0, 0, 0, 0]), 9000, lambda s: s.qpos)[1]
        return -jnp.min(q, 0)  # how far each swings to the other side

    both = jnp.stack([model.bodies.pos, near.bodies.pos])
    apart, together = np.asarray(jax.jit(jax.vmap(swung))(both))
    assert apart[4] > 0.49 and apart[:4].max() < 0.01
    m = mujoco.MjModel.from_xml_string(cradle(1e-4))
    data, seen = mujoco.MjData(m), np.zeros(5)
    data.qpos[0] = 0.5
    for _ in range(9000):
        mujoco.mj_step(m, data)
        seen = np.minimum(seen, data.qpos)
    np.testing.assert_allclose(together, -seen, rtol=0, atol=2e-4)
    assert together[4] > 0.42


@pytest.mark.slow
@pytest.mark.release
def test_derivatives_of_contact_are_finite_everywhere(x64):
    """Ten thousand random states of boxes, balls and capsules that overlap, touch or fly."""
    shapes = (
        '<body pos="0 0 .2"><freejoint/><geom type="box" size=".1 .2 .1"/></body>'
        '<body pos=".2 0 .2"><freejoint/><geom type="capsule" size=".1 .2"/></body>'
        '<body pos="0 .3 .2"><freejoint/><geom size=".15"/></body>'
    )
    model = world(shapes, contacts=16, iterations=6)

    def pushed(key):
        keys = jax.random.split(key, 3)
        place = jax.random.uniform(keys[0], (3, 3), minval=-0.2, maxval=0.3)
        turn = jax.random.normal(keys[1], (3, 4))
        q = jnp.concatenate([place, turn], 1).ravel()
        v = jax.random.normal(keys[2], (18,))
        value = lambda q, v: jnp.sum(model.step(model.init(q, v)).qvel)
        return jax.tree.map(lambda g: jnp.all(jnp.isfinite(g)), jax.grad(value, (0, 1))(q, v))

    fine = jax.lax.map(pushed, jax.random.split(jax.random.key(0), 10_000), batch_size=250)
    assert all(bool(x.all()) for x in fine)


BAD = {
    "a body without mass": ("<body><freejoint/></body>", "mass and inertia of moving bodies"),
    "an unknown element": ('<body><geom size=".1"/><wheel/></body>', "unrecognized element"),
    "an entity": ('<!ENTITY a "b">', "document type or entities"),
    "a document type": ("<!DOCTYPE a>", "document type or entities"),
    "deep nesting": ("<body>" * 99 + "</body>" * 99, "deeper than 64"),
}


@pytest.mark.parametrize("body, said", BAD.values(), ids=BAD.keys())
def test_what_muJoCo_refuses_is_one_sentence(body, said):
    with pytest.raises(ValueError, match=said) as raised:
        world(body)
    assert str(raised.value).startswith("load: ") and "\n" not in str(raised.value)


UNKNOWN = {
    "noslip": ('<option noslip_iterations="3"/>', "", "noslip_iterations"),
    "implicit": ('<option integrator="implicit"/>', "", "integrator"),
    "spatial tendon": (
        "",
        '<tendon><spatial name="rope"><site site="a"/><site site="b"/></spatial></tendon>',
        "spatial tendon 'rope'",
    ),
    "muscle": ("", '<actuator><muscle name="m" joint="j"/></actuator>', "muscle"),
}


@pytest.mark.parametrize("option, more, said", UNKNOWN.values(), ids=UNKNOWN.keys())
def test_what_is_not_simulated_is_refused_by_name(option, more, said):
    can = '<geom name="{0}" type="cylinder" size=".1 .1" contype="0" conaffinity="0"/>'
    bodies = (
        f'<site name="a"/><body><joint name="j" range="-1 1"/>{can.format("can")}'
        '<site name="b"/></body>'
        f'<body pos="1 0 0"><freejoint/>{can.format("tin")}</body>'
    )
    text = f"<mujoco>{option}<worldbody>{bodies}</worldbody>{more}</mujoco>"
    with pytest.raises(ValueError, match=f"load: .*{said}.* is not simulated here; "):
        rigid.load(text)


def test_states_and_arguments_are_looked_at():
    model = world('<body pos="0 0 1"><freejoint/><geom size=".1"/></body>')
    with pytest.raises(ValueError, match=r"qpos\[3:7\] is a quaternion of zeros"):
        model.init(np.zeros(7))
    with pytest.raises(ValueError, match="Model.init: qvel"):
        model.init(qvel=[1.0, 2])
    with pytest.raises(ValueError, match="Model.step: ctrl"):
        model.step(model.init(), [1.0])
    with pytest.raises(ValueError, match="for many states use jax.vmap"):
        model.step(jax.vmap(partial(model.init))(jnp.ones((2, 7))))
    with pytest.raises(ValueError, match="key='home'; the file has"):
        model.init(key="home")
    with pytest.raises(ValueError, match="no body 'arm'"):
        model.index("body", "arm")
    for word in ("contacts", "iterations"):
        with pytest.raises(ValueError, match=f"load: {word}=0; it must be a whole number of at"):
            world("", **{word: 0})
