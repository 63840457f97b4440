"""Bodies in contact against elementary mechanics: falling, sliding, rolling, stacking, swinging."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from jaxgpu.physics import rigid
from jaxgpu.physics.rigid.constraints import contacts
from jaxgpu.physics.rigid.motion import inertia, poses

FLOOR = '<geom type="plane" size="9 9 .1" friction="{0}"/>'
G = 9.81
OPTIONS = {"xla_backend_optimization_level": 0}  # compiled once and run once


def world(bodies, friction=1.0, option="", **sizes):
    text = f"<mujoco>{option}<worldbody>{FLOOR.format(friction)}{bodies}</worldbody></mujoco>"
    return rigid.load(text, **sizes)


def run_steps(model, state, steps, seen):
    """Return the last state, and `seen` of the state after every step [steps, ...]."""

    def step_once(s, _):
        s = model.step(s)
        return s, seen(s)

    return jax.lax.scan(step_once, state, length=steps)


def tilt(model, angle):
    """Return the world on a slope: gravity rotated by `angle` in rad."""
    g = jnp.stack([G * jnp.sin(angle), jnp.zeros_like(angle), -G * jnp.cos(angle)])
    return dataclasses.replace(model, option=dataclasses.replace(model.option, gravity=g))


@functools.cache
def ball(cone="pyramidal", dtype=jnp.float32):
    """Make a program: float32 or float64 balls fall, roll and slide on a floor for 300 steps."""
    text = '<body pos="0 0 .03"><freejoint/><geom size=".01" mass="1"/></body>'
    option = f'<option timestep=".002" cone="{cone}" tolerance="0"/>'
    model = world(text, option=option, contacts=1, dtype=dtype)

    def run(mass, radius, friction, gravity, height, spin):
        bodies = model.bodies
        inertia = mass * (radius / 0.01) ** 2 * bodies.inertia
        heavy = dataclasses.replace(bodies, mass=mass * bodies.mass, inertia=inertia)
        size = model.geoms.size.at[1, 0].set(radius)
        rough = model.geoms.friction.at[:, 0].set(friction)
        geoms = dataclasses.replace(model.geoms, size=size, friction=rough)
        option = dataclasses.replace(model.option, gravity=gravity)
        here = dataclasses.replace(model, bodies=heavy, geoms=geoms, option=option)
        here = rigid.update_invweight(here)
        zero = jnp.zeros_like(spin)
        q = here.qpos0.at[2].set(height)
        start = here.init(q, jnp.stack([zero, zero, zero, spin, spin, zero]))
        return run_steps(here, start, 300, lambda s: (s.qpos, s.qvel))[1]

    several = jax.jit(jax.vmap(run), compiler_options=OPTIONS)

    def go(mass, radius, friction, gravity, height, spin):
        given = np.broadcast_arrays(mass, radius, friction, height, spin)
        mass, radius, friction, height, spin = (np.asarray(x, dtype) for x in given)
        gravity = np.broadcast_to(np.asarray(gravity, dtype), (*mass.shape, 3))
        moved = several(mass, radius, friction, gravity, height, spin)
        return tuple(np.asarray(x) for x in moved)

    return go


SLIPPERY = np.array([0.0, 1e-4, 1e-3, 1e-2, 0.1, 1.0])
SLOPE = [1.7, 0, -9.7]  # gravity on a slope of 10 degrees


@functools.cache
def balls():
    """Return paths [19, 300, 7] and velocities of balls that fall, slide and roll.

    Those that fall have 1 g to 100 kg, with and without spin.
    """
    fall, slide = np.ones(12), np.ones(6)
    steep = [G * np.sin(0.2), 0, -G * np.cos(0.2)]
    mass = [*np.geomspace(1e-3, 100, 12), *(0.5 * slide), 4.0]
    radius = [*(0.01 * fall), *(0.05 * slide), 0.1]
    friction = [*fall, *SLIPPERY, 1.0]
    gravity = [[0, 0, -G]] * 12 + [SLOPE] * 6 + [steep]
    height = [*(0.03 * fall), *(0.051 * slide), 0.1]
    return ball()(
        mass, radius, friction, gravity, height, [*np.tile([0.0, 30], 6), *(0 * slide), 0]
    )


def test_a_dropped_ball_never_rises_above_where_it_came_from():
    """Test 1 g to 100 kg at the default settings, with and without spin."""
    height = balls()[0][:12, :, 2]
    assert (height[:, 40:].max(1) < 0.02).all()
    np.testing.assert_allclose(height[:, -1], 0.01, atol=5e-4)


# A ball overlaps the floor and another ball: contacts of dimension 3 and 6.
TOUCHING = """<mujoco><option cone="{cone}" impratio="3"/><worldbody>
<geom name="floor" type="plane" size="9 9 .1" friction=".7 .1 .01"/>
<body pos="0 0 .19"><freejoint/>
 <geom name="a" size=".2" margin=".01" solref=".03 .8" solimp=".8 .9 .05 .3 3"/></body>
<body pos=".15 .15 .3"><freejoint/>
 <geom name="b" size=".1" contype="0" conaffinity="0"/></body></worldbody><contact>
<pair geom1="a" geom2="b" condim="6" friction=".5 .6 .01 .002 .003" solref="-900 -20"
 solreffriction=".05 1.5"/></contact></mujoco>"""


def test_the_rows_of_contacts_are_those_of_c(x64):
    """Compare J, aref and D: for pyramid edges, or for normal and friction.

    Friction in an ellipse is as stiff as its ratio to the first one determines, times impratio.
    """
    cones = ("pyramidal", "elliptic")
    cs = [mujoco.MjModel.from_xml_string(TOUCHING.format(cone=cone)) for cone in cones]
    models = [rigid.load(c, dtype=jnp.float64) for c in cs]
    rng = np.random.default_rng(0)
    q, v = cs[0].qpos0 + 0.002 * rng.normal(size=14), rng.normal(size=12)
    q[3:7], q[10:] = rng.normal(size=(2, 4))
    mujoco.mj_normalizeQuat(cs[0], q)

    @functools.partial(jax.jit, compiler_options=OPTIONS)
    def rows(q, v):
        model = models[0]  # poses, motion and contacts do not know of cones
        state = model.init(q, v)
        where = poses.poses(model, q, (state.mocap_pos, state.mocap_quat))
        seen, touch = inertia.motion(model, where, v), contacts.contacts(model, where)
        return [[contacts.contact_cone(model, seen, v, each) for each in touch] for model in models]

    for cone, c, ours in zip(cones, cs, jax.tree.map(np.asarray, rows(q, v))):
        c.opt.jacobian = 0
        d = mujoco.MjData(c)
        d.qpos[:], d.qvel[:] = q, v
        mujoco.mj_forward(c, d)
        theirs = {int(dim): k for k, dim in enumerate(d.contact.dim)}
        assert [each.J.shape[1] for each in ours] == sorted(theirs) == [3, 6]
        for each, k in zip(ours, map(theirs.get, (3, 6))):
            J, aref, D = edges(each) if cone == "pyramidal" else axes(each)
            own = d.efc_id == k
            np.testing.assert_allclose(J, d.efc_J.reshape(-1, c.nv)[own], atol=1e-12)
            np.testing.assert_allclose(aref, d.efc_aref[own], rtol=1e-10)
            np.testing.assert_allclose(D, d.efc_D[own], rtol=1e-10)
            if cone == "elliptic":
                assert float(each.mu[0]) == pytest.approx(d.contact.mu[k], rel=1e-12)


def edges(cone):
    """Return the rows of pyramid edges: the normal with each friction direction, both signs."""
    signs = np.stack([cone.friction[0], -cone.friction[0]], 1).ravel()[:, None]
    J, aref = (x[:1] + signs * np.repeat(x[1:], 2, 0) for x in (cone.J[0], cone.aref[0][:, None]))
    return J, aref[:, 0], np.repeat(cone.D, len(J))


def axes(cone):
    """Return the rows of an ellipse: the normal, and friction."""
    return cone.J[0], cone.aref[0], cone.D[0] * np.append(1, cone.friction[0] / cone.mu[0]) ** 2


@pytest.mark.slow
def test_a_block_holds_below_the_angle_of_friction_and_slides_above_it():
    """Check a = g (sin t - mu cos t); a held block creeps as fast as its softness permits."""
    block = (
        '<body pos="0 0 .02"><freejoint/><geom type="box" size=".2 .2 .02" friction=".5"/></body>'
    )
    model = world(block, friction=0.5, option='<option cone="elliptic" impratio="10"/>')

    def speed(angle):
        here = tilt(model, angle)
        return run_steps(here, here.init(), 750, lambda s: s.qvel[0])[1]

    angles = np.array([0.2, 0.4, 0.6, 0.8])
    run = jax.jit(jax.vmap(speed), compiler_options=OPTIONS)
    v = np.asarray(run(np.asarray(angles, np.float32)))
    slides = G * (np.sin(angles) - 0.5 * np.cos(angles))
    assert (v[:2, -1] < 0.01).all()
    got = (v[2:, -1] - v[2:, 249]) / (500 * 0.002)
    np.testing.assert_allclose(got, slides[2:], rtol=0.03)  # the plate rocks on what is soft


@pytest.mark.slow
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_what_hardly_rubs_slides_as_in_mujoco(cone, x64):
    """Vary friction from zero to 1: at small friction the edges of a pyramid nearly coincide."""
    mass = 4 / 3 * np.pi * 50**3 * 1e-6  # kg, as the file's ball of 50 mm and 1 g / cm^3
    ours, _ = ball(cone, jnp.float64)(mass, 0.05, SLIPPERY, SLOPE, 0.051, 0.0)
    for mu, got in zip(SLIPPERY, ours[:, 99]):
        drop = f'<body pos="0 0 .051"><freejoint/><geom size=".05" friction="{mu}"/></body>'
        option = f'<option timestep=".002" cone="{cone}" tolerance="0" gravity="1.7 0 -9.7"/>'
        text = f"<mujoco>{option}<worldbody>{FLOOR.format(mu)}{drop}</worldbody></mujoco>"
        m = mujoco.MjModel.from_xml_string(text)
        data = mujoco.MjData(m)
        mujoco.mj_step(m, data, nstep=100)
        np.testing.assert_allclose(got, data.qpos, rtol=0, atol=1e-12)


def test_what_hardly_rubs_slides_in_float32():
    """Check x = g_x t^2 / 2 without friction, and five sevenths of it when it rolls."""
    end = balls()[0][12:18, 99]
    np.testing.assert_allclose(end[0, 0], 1.7 * 0.2**2 / 2, rtol=0.01)
    np.testing.assert_allclose(end[0, 3:], [1, 0, 0, 0], atol=1e-4)
    np.testing.assert_allclose(end[-1, 0], 5 / 7 * 1.7 * 0.2**2 / 2, rtol=0.05)


def test_a_ball_rolls_down_a_slope_with_five_sevenths_of_its_pull():
    speed = balls()[1][18, :, 0]
    got = (speed[249] - speed[124]) / (125 * 0.002)
    assert got == pytest.approx(5 / 7 * G * np.sin(0.2), rel=0.02)


@pytest.mark.slow
def test_contacts_that_are_not_kept_are_counted():
    """Two boxes touch the floor with four corners each; two contacts are kept."""
    boxes = "".join(
        f'<body pos="{x} 0 .099"><freejoint/>'
        '<geom type="box" size=".1 .1 .1" conaffinity="0"/></body>'
        for x in (0, 1)
    )
    model = world(boxes, contacts=2)
    assert int(jax.jit(model.step, compiler_options=OPTIONS)(model.init()).overflow) == 6


@pytest.mark.slow
def test_six_boxes_stand_on_one_another_for_three_seconds():
    boxes = "".join(
        f'<body pos="0 0 {0.1 + 0.2 * i}"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
        for i in range(6)
    )
    model = world(boxes, contacts=32, iterations=10)
    run = jax.jit(lambda s: run_steps(model, s, 1500, lambda s: None)[0], compiler_options=OPTIONS)
    end = run(model.init())
    x = np.asarray(end.qpos).reshape(6, 7)[:, :3]
    assert int(end.overflow) == 0
    assert np.abs(x[:, :2]).max() < 1.5e-3 and np.abs(np.asarray(end.qvel)).max() < 1e-2
    np.testing.assert_allclose(x[:, 2], 0.1 + 0.2 * np.arange(6), atol=0.01)


def cradle(gap):
    """Make five equal balls on strings with elastic contacts; return the file, too."""
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
    """One ball swings in and one swings out if balls collide one after the other.

    Those that are a tenth of a millimetre apart collide together, because they are soft, and the
    last but one swings, too: as in MuJoCo.
    """
    model = rigid.load(cradle(2e-3), contacts=10)
    near = rigid.load(cradle(1e-4), contacts=10)

    def max_swing(pos):
        there = dataclasses.replace(model, bodies=dataclasses.replace(model.bodies, pos=pos))
        q = run_steps(there, there.init([0.5, 0, 0, 0, 0]), 9000, lambda s: s.qpos)[1]
        return -jnp.min(q, 0)  # how far each swings to the other side

    both = jnp.stack([model.bodies.pos, near.bodies.pos])
    apart, together = np.asarray(jax.jit(jax.vmap(max_swing), compiler_options=OPTIONS)(both))
    assert apart[4] > 0.49 and apart[:4].max() < 0.01
    m = mujoco.MjModel.from_xml_string(cradle(1e-4))
    data, seen = mujoco.MjData(m), np.zeros(5)
    data.qpos[0] = 0.5
    for _ in range(9000):
        mujoco.mj_step(m, data)
        seen = np.minimum(seen, data.qpos)
    np.testing.assert_allclose(together, -seen, rtol=0, atol=2e-4)
    assert together[4] > 0.42


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


@pytest.mark.parametrize(
    "held, said",
    [
        (
            "<worldbody>" + "<body>" * 2000 + "</body>" * 2000 + "</worldbody>",
            "nesting is too deep",
        ),
        ('<include file="whole.xml"/>', "already included"),
    ],
    ids=["deep nesting", "itself"],
)
def test_an_included_file_is_held_to_the_limits_of_mujoco(tmp_path, held, said):
    (tmp_path / "part.xml").write_text(f"<mujoco>{held}</mujoco>")
    whole = tmp_path / "whole.xml"
    whole.write_text('<mujoco><include file="part.xml"/></mujoco>')
    with pytest.raises(ValueError, match=said) as raised:
        rigid.load(whole)
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
    with pytest.raises(ValueError, match=f"load: .*{said}.* is not supported; "):
        rigid.load(text)


def test_states_and_arguments_are_looked_at():
    model = world('<body pos="0 0 1"><freejoint/><geom size=".1"/></body>')
    with pytest.raises(ValueError, match=r"qpos\[3:7\] is 0; it must be a quaternion"):
        model.init(np.zeros(7))
    turned = rigid.load(
        '<mujoco><worldbody><body><joint type="slide"/><joint name="j" type="ball"/>'
        '<joint type="slide" axis="0 1 0"/><geom size=".1"/></body></worldbody></mujoco>'
    )
    with pytest.raises(ValueError, match=r"qpos\[1:5\] is 0; it must be a quaternion"):
        turned.init(np.array([1.0, 0, 0, 0, 0, 1]))
    for i in range(4):  # any one number is enough
        turned.init(np.eye(6)[1 + i])
        model.init(np.eye(7)[3 + i])
    with pytest.raises(ValueError, match="Model.init: qvel"):
        model.init(qvel=[1.0, 2])
    with pytest.raises(ValueError, match="Model.step: ctrl"):
        model.step(model.init(), [1.0])
    with pytest.raises(ValueError, match="for many states use jax.vmap"):
        model.step(jax.vmap(model.init)(jnp.ones((2, 7))))
    with pytest.raises(ValueError, match="key='home'; the file has"):
        model.init(key="home")
    with pytest.raises(ValueError, match="no body 'arm'"):
        model.index("body", "arm")
    for word in ("contacts", "iterations"):
        with pytest.raises(ValueError, match=f"load: {word}=0; it must be a whole number of at"):
            world("", **{word: 0})
