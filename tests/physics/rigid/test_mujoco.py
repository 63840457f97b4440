"""Accelerations and steps against MuJoCo, with every supported type of constraint."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import mujoco
import mujoco_c
import numpy as np
import pytest

from jaxgpu.physics import rigid
from jaxgpu.physics.rigid import integrators
from jaxgpu.physics.rigid.constraints import impedance

quick = functools.partial(jax.jit, compiler_options=mujoco_c.OPTIONS)


SPINNER = '<body pos="0 0 3"><freejoint/><geom type="box" size=".1 .2 .3"/></body></worldbody>'


@functools.cache
def full_model(cone, integrator):
    """Return every type of row and a free spinning body: MuJoCo's model, and jaxgpu's program."""
    text = mujoco_c.ROWS.format(cone=cone, integrator=integrator)
    if integrator == "RK4":  # contact by RK4 is that of the robots
        flag = 'timestep="0.004"><flag contact="disable"/></option>'
        text = text.replace('timestep="0.004"/>', flag)
    c, d, model = mujoco_c.load_model(text.replace("</worldbody>", SPINNER))
    return c, d, model, mujoco_c.motion(model)


KINDS = [("pyramidal", "Euler"), pytest.param("elliptic", "implicitfast", marks=pytest.mark.slow)]


@pytest.mark.parametrize("cone, integrator", KINDS)
def test_accelerations_and_forces_agree_with_c(x64, cone, integrator):
    """Both converge in float64: to rounding, amplified by the problem's condition number."""
    c, d, model, motion = full_model(cone, integrator)
    rows = []
    for q, v, act, ctrl in mujoco_c.states(c, 40):
        mujoco_c.set_data(c, d, q, v, act, ctrl)
        mujoco.mj_forward(c, d)
        _, (qacc, held, M) = motion(mujoco_c.make_state(model, q, v, act), ctrl)
        scale = np.abs(d.qacc).max()
        np.testing.assert_allclose(qacc, d.qacc, atol=1e-11 * scale)
        np.testing.assert_allclose(held, d.qfrc_constraint, atol=1e-10 * scale)
        full = np.zeros((c.nv, c.nv))
        mujoco.mj_fullM(c, d, full)
        np.testing.assert_allclose(M, full, atol=1e-13)
        rows.append({int(kind) for kind in d.efc_type})
    # Equality, friction of joints and tendons, limits of joints and tendons, contacts without
    # friction and with.
    assert set.union(*rows) >= {0, 1, 2, 3, 4, 5, 6 if cone == "pyramidal" else 7}


@pytest.mark.parametrize(
    "cone, integrator", [*KINDS, pytest.param("pyramidal", "RK4", marks=pytest.mark.slow)]
)
def test_steps_agree_with_c(x64, cone, integrator):
    """Run thirty steps from one state; compare all its fields, also of a free spinning body."""
    c, d, model, motion = full_model(cone, integrator)
    seed = 4 if cone == "elliptic" else 3  # from 3 C itself ends with huge numbers
    q, v, act, ctrl = mujoco_c.states(c, 1, seed=seed)[0]
    mujoco_c.set_data(c, d, q, v, act, ctrl)
    state = mujoco_c.make_state(model, q, v, act)
    for _ in range(30):
        mujoco.mj_step(c, d)
        state, _ = motion(state, ctrl)
        np.testing.assert_allclose(state.qpos, d.qpos, atol=1e-9)
        np.testing.assert_allclose(state.qvel, d.qvel, atol=1e-7)
        np.testing.assert_allclose(state.act, d.act, atol=1e-12)
    assert float(state.time) == pytest.approx(d.time) and int(state.overflow) == 0


# A chain of bodies, and a free one: drag of boxes and of ellipsoids.
WET = """<body pos="0 {1} 0"><freejoint/><geom type="box" size=".1 .2 .3"/>
<body pos=".3 0 0"><joint axis="0 1 0"/>
<geom type="capsule" size=".05 .1" {0}/><body pos=".2 0 .1"><joint axis="1 0 1"/>
<geom type="cylinder" size=".05 .12" euler="30 0 0" {0}/><geom size=".07" pos="0 .1 0" {0}/>
</body></body></body><body pos="0 {1} 1"><freejoint/><geom type="ellipsoid" size=".1 .06 .2" {0}/>
</body>"""
SHAPED = ("", 'fluidshape="ellipsoid"')
FLUID = """<mujoco><option density="800" viscosity=".05" wind="1 2 3" integrator="implicitfast"/>
<default><geom contype="0" fluidcoef=".4 .3 1.2 .8 .9"/></default><worldbody>"""
FLUID += WET.format(SHAPED[0], 0) + WET.format(SHAPED[1], 3) + "</worldbody></mujoco>"


@pytest.mark.slow
def test_the_fluid_drags_as_in_c_also_at_the_end_of_a_step(x64):
    """Compare accelerations, and steps by implicitfast."""
    c, d, model = mujoco_c.load_model(FLUID)
    motion = mujoco_c.motion(model)
    for q, v, act, ctrl in mujoco_c.states(c, 5, seed=4):
        mujoco_c.set_data(c, d, q, v, act, ctrl)
        mujoco.mj_forward(c, d)
        state = model.init(q, v)
        np.testing.assert_allclose(motion(state)[1][0], d.qacc, rtol=1e-10)
    for _ in range(20):
        mujoco.mj_step(c, d)
        state, _ = motion(state)
        np.testing.assert_allclose(state.qvel, d.qvel, atol=1e-9 * np.abs(d.qvel).max())


@pytest.mark.slow
def test_a_body_at_rest_in_still_water_has_finite_derivatives(x64):
    leaf = '<geom type="ellipsoid" size=".1 .06 .2" fluidshape="ellipsoid"/>'
    pond = f"""<mujoco><option density="800"/><worldbody><body><freejoint/>{leaf}</body>
    </worldbody></mujoco>"""
    model = rigid.load(pond)
    start = model.init()
    forces = lambda v: jnp.sum(model.forward(dataclasses.replace(start, qvel=v)).smooth)
    assert np.isfinite(quick(jax.grad(forces))(start.qvel)).all()


@pytest.mark.slow
def test_without_springs_and_dampers_there_is_no_fluid_and_no_held_weight_as_in_c(x64):
    c, d, model = mujoco_c.load_model("""<mujoco><option density="800">
    <flag spring="disable" damper="disable"/></option><worldbody><body gravcomp=".5">
    <freejoint/><geom type="box" size=".1 .06 .2"/></body></worldbody></mujoco>""")
    v = np.array([0.3, -2, 1, 0.4, 0.2, -3])
    mujoco_c.set_data(c, d, c.qpos0, v, [], [])
    mujoco.mj_forward(c, d)
    forward = quick(lambda v: model.forward(model.init(qvel=v)).qacc)
    np.testing.assert_allclose(forward(v), d.qacc, atol=1e-10)


def test_a_fluid_that_drives_what_moves_in_it_is_refused():
    leaf = '<geom type="ellipsoid" size=".1 .06 .2" fluidshape="ellipsoid" fluidcoef="-1 0 0 0 0"/>'
    pond = """<mujoco><option density="800"/><worldbody><body><freejoint/>{}</body></worldbody>
    </mujoco>"""
    with pytest.raises(ValueError, match=r"Geoms.fluid=-1 at \[0, 1\]; it must be .* least 0"):
        rigid.load(pond.format(leaf)).init()


@pytest.mark.slow
def test_the_constants_of_changed_masses_are_those_of_c(x64):
    c, d, model = mujoco_c.load_model(mujoco_c.ROWS.format(cone="pyramidal", integrator="Euler"))
    factor = np.random.default_rng(0).uniform(0.5, 2, c.nbody)
    c.body_mass *= factor
    c.body_inertia *= factor[:, None]
    mujoco.mj_setConst(c, d)

    def weigh(mass, inertia):
        bodies = dataclasses.replace(model.bodies, mass=mass, inertia=inertia)
        return rigid.update_invweight(dataclasses.replace(model, bodies=bodies))

    found = quick(weigh)(c.body_mass, c.body_inertia)
    np.testing.assert_allclose(found.bodies.invweight, c.body_invweight0, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.freedoms.invweight, c.dof_invweight0, rtol=1e-9)
    np.testing.assert_allclose(found.tendons.invweight, c.tendon_invweight0, rtol=1e-9)


@pytest.mark.slow
def test_slopes_by_masses_are_finite_where_a_link_has_none(x64):
    """The slope by a link's zero mass was nan from 1 / m, though nothing used it."""
    model = rigid.load(
        '<mujoco><worldbody><body><joint/><body pos="0 1 0"><geom size=".1" mass="2"/></body>'
        "</body></worldbody></mujoco>"
    )
    assert model.bodies.mass[1] == 0

    def softness(mass):
        bodies = dataclasses.replace(model.bodies, mass=mass)
        now = rigid.update_invweight(dataclasses.replace(model, bodies=bodies))
        return jnp.sum(now.freedoms.invweight)

    both, step = quick(jax.value_and_grad(softness)), np.array([0, 0, 1e-5])
    mass = np.asarray(model.bodies.mass)
    slope = np.asarray(both(mass)[1])
    wide = both(mass + step)[0] - both(mass - step)[0]
    np.testing.assert_allclose(slope[2], wide / 2e-5, rtol=1e-6)
    assert np.isfinite(slope).all() and slope[2] != 0


@pytest.mark.slow
def test_inverse_dynamics_energy_and_levers_agree_with_c(x64):
    c, d, model = mujoco_c.load_model(mujoco_c.ROWS.format(cone="pyramidal", integrator="Euler"))
    c.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
    q, v, act, ctrl = mujoco_c.states(c, 1, seed=5)[0]
    mujoco_c.set_data(c, d, q, v, act, ctrl)
    mujoco.mj_forward(c, d)
    body, point = model.index("body", "e"), np.array([0.3, -0.2, 0.5])

    @quick
    def dynamics(state, qacc):
        lever = rigid.jacobian(model, state, body, point)
        return rigid.inverse_dynamics(model, state, qacc), rigid.energy(model, state)[1], lever

    force, kinetic, lever = dynamics(mujoco_c.make_state(model, q, v, act), d.qacc)
    np.testing.assert_allclose(force, d.qfrc_actuator + d.qfrc_constraint, rtol=1e-8, atol=1e-8)
    assert float(kinetic) == pytest.approx(d.energy[1], rel=1e-10)
    shift, turn = np.zeros((3, c.nv)), np.zeros((3, c.nv))
    mujoco.mj_jac(c, d, shift, turn, point, body)
    np.testing.assert_allclose(lever[0], shift, atol=1e-12)
    np.testing.assert_allclose(lever[1], turn, atol=1e-12)


PUSHED = """<mujoco><option cone="{0}"/><worldbody>
<geom type="plane" size="2 2 .1" friction=".3 .004"/>
<body pos="0 0 .45"><joint name="j" axis="0 1 0" frictionloss=".2"/>
<joint type="slide" axis="1 0 0" range="0 .1"/>
<geom type="capsule" size=".05" fromto="0 0 0 .1 .1 -.41" friction=".4"/></body>
<body pos=".5 0 .08"><freejoint/><geom size=".1" friction=".4" condim="4"/></body></worldbody>
<actuator><motor joint="j"/></actuator></mujoco>"""


FOOT = """<mujoco><option cone="{0}"/><worldbody><geom type="plane" size="2 2 .1" friction=".3"/>
<body pos="0 0 .4"><joint axis="0 1 0" frictionloss=".2"/>
<joint type="slide" axis="0 0 1" range="-.1 .1"/><geom pos="0 0 -.36" size=".05"/></body>
</worldbody></mujoco>"""


@pytest.mark.slow
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_on_a_cpu_the_turns_of_newton_end_at_the_minimum(x64, cone):
    """A million iterations are allowed, for each of a batch: only rounding remains."""
    c, _, model = mujoco_c.load_model(FOOT.format(cone), iterations=10**6)
    forward = lambda *at: model.forward(mujoco_c.make_state(model, *at[:3]), at[3])
    rows = [np.stack(x) for x in zip(*mujoco_c.states(c, 64, seed=5))]
    found = quick(jax.vmap(forward))(*rows)
    left = jnp.einsum("bvw,bw->bv", found.M, found.qacc) - found.smooth - found.constraint
    assert (np.abs(left).max(1) < 1e-11 * np.abs(found.constraint).max(1)).all()


@pytest.mark.slow
@pytest.mark.parametrize("cone", ["elliptic", pytest.param("pyramidal", marks=pytest.mark.release)])
def test_gradients_are_finite_and_those_of_central_differences(x64, cone):
    """Differentiate accelerations and a step in coordinates, velocities, controls, mass, friction.

    Slopes are finite for all ways in which bodies overlap, touch, fly and rest. Near the floor they
    equal differences, except where contacts change within these or jump to other points of a face.
    """
    c, d, model = mujoco_c.load_model(PUSHED.format(cone), contacts=4)
    weights, random = np.random.default_rng(1).normal(size=c.nv), np.random.default_rng(2)

    def value(q, v, ctrl, mass, friction):
        bodies = dataclasses.replace(model.bodies, mass=mass)
        geoms = dataclasses.replace(model.geoms, friction=friction)
        changed = dataclasses.replace(model, bodies=bodies, geoms=geoms)
        look = lambda d: (d.qacc, [x.dist < x.margin for x in d.contacts])
        start = changed.init(q, v)
        end, (qacc, acts) = integrators.step_and_look(changed, start, ctrl, jnp.zeros_like(v), look)
        return weights @ qacc + jnp.sum(end.qpos), jnp.concatenate(acts)

    slopes = jax.value_and_grad(value, argnums=(0, 1, 2, 3, 4), has_aux=True)
    both = quick(jax.vmap(slopes))
    wild = [np.stack(x) for x in zip(*mujoco_c.states(c, 247, seed=6))]
    wild[0][:, -7:-4] = random.uniform(-0.3, 0.5, (247, 3))
    near = [np.stack(x) for x in zip(*mujoco_c.states(c, 8, seed=7))]
    near[0] = c.qpos0 + 0.1 * (near[0] - c.qpos0)
    rest = [c.qpos0[None], np.zeros((1, c.nv)), np.zeros((1, c.na)), np.zeros((1, c.nu))]
    q, v, _, ctrl = (np.concatenate(x) for x in zip(near, wild, rest))
    repeat_x = lambda x: np.repeat(x[None], len(q), 0)
    at = [q, v, ctrl, repeat_x(c.body_mass), repeat_x(c.geom_friction)]
    got = both(*at)[1]
    assert all(np.isfinite(x).all() for x in got)
    held, tried = 0, 0
    for k, x in enumerate(at):
        way, h = random.normal(size=x.shape), 1e-6
        ends = [both(*at[:k], x + s * h * way, *at[k + 1 :])[0] for s in (1, -1)]
        apart = np.asarray(ends[0][0] - ends[1][0])[:8]
        same = (ends[0][1] == ends[1][1]).all(1)[:8] & (np.abs(apart) < 1)
        want = apart / (2 * h)
        slope = np.sum(np.asarray(got[k]) * way, tuple(range(1, x.ndim)))[:8]
        tried += same.sum()
        held += (same & (np.abs(slope - want) < 1e-5 * (1 + np.abs(want)))).sum()
    assert held == tried >= 30


def test_the_contacts_of_a_pair_have_the_dimension_that_c_gives_them():
    """The larger one counts at equal priority, otherwise the higher-priority geom's."""
    geoms = [(1, 0), (3, 0), (6, 0), (1, 1), (4, 1), (3, 2)]
    ball = '<body pos="{} 0 0"><freejoint/><geom size="1" condim="{}" priority="{}"/></body>'
    balls = "".join(ball.format(0.1 * i, *each) for i, each in enumerate(geoms))
    c, d, model = mujoco_c.load_model(f"<mujoco><worldbody>{balls}</worldbody></mujoco>")
    mujoco.mj_forward(c, d)
    want = {(*map(int, pair), int(dim)) for pair, dim in zip(d.contact.geom, d.contact.dim)}
    groups = model.layout.groups
    got = {(*map(int, ends), g.condim) for g in groups for ends in zip(g.first, g.second)}
    assert got == want and len(want) == 15


def test_switches_are_those_of_the_file():
    """Check that each has its own name and does not change the others."""
    names = "constraint equality frictionloss limit contact spring damper gravity".split()
    for name in names:
        switch = f'<option><flag {name}="disable"/></option>'
        body = "<worldbody><body><freejoint/><geom size='.1'/></body></worldbody>"
        model = rigid.load(f"<mujoco>{switch}{body}</mujoco>")
        assert model.layout.disabled == {name}


@pytest.mark.parametrize(
    "source, sentence",
    [
        ("<mujoco><worldbody><bodi/></worldbody></mujoco>", "load: MuJoCo rejects it, "),
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><mujoco/>", "load: the file declares a document type"),
        (
            "no/such/robot.xml",
            "load: source='no/such/robot.xml' is not a file; give a path or XML",
        ),
    ],
)
def test_a_file_is_refused_once_and_by_who_refuses_it(source, sentence):
    """MuJoCo's own message follows jaxgpu's; an error of jaxgpu is not reported as MuJoCo's."""
    with pytest.raises(ValueError) as said:
        rigid.load(source)
    assert str(said.value).startswith(sentence) and str(said.value).count("load: ") == 1


@pytest.mark.slow
def test_springs_of_all_joints_and_what_holds_two_bodies_pull_as_in_c(x64):
    joints = {
        "hinge": 'type="hinge" axis="0 1 0" ref="20" springref="50"',
        "slide": 'type="slide" axis="0 0 1" springref=".1"',
        "ball": 'type="ball"',
        "free": 'type="free"',
    }
    body = '<body pos="{} 0 1"><joint {} stiffness="7"/><geom size=".1 .2" type="capsule"/></body>'
    bodies = "".join(body.format(3 * i, joint) for i, joint in enumerate(joints.values()))
    box = '<body name="{}" pos="{} 4 1"><freejoint/><geom type="box" size=".1 .2 .3"/></body>'
    bodies += "".join(box.format(*each) for each in zip("abcd", (0, 0.5, 4, 4.5)))
    held = """<weld body1="a" body2="b" torquescale=".7"/>
    <connect body1="c" body2="d" anchor=".1 .2 0"/>"""
    c, d, model = mujoco_c.load_model(f"""<mujoco><option><flag contact="disable"/></option>
    <worldbody>{bodies}</worldbody><equality>{held}</equality></mujoco>""")
    q, v, act, ctrl = mujoco_c.states(c, 1)[0]
    mujoco_c.set_data(c, d, q, v, act, ctrl)
    mujoco.mj_forward(c, d)
    got = quick(lambda q, v: model.forward(model.init(q, v)).qacc)(q, v)
    assert d.nefc == 9 and np.count_nonzero(d.qfrc_spring) == c.nv - 24
    np.testing.assert_allclose(got, d.qacc, atol=1e-11 * np.abs(d.qacc).max())


def test_stiffness_and_damping_of_a_row_are_those_of_the_manual(x64):
    """Check k = 1 / (d T z)^2, b = 2 / (d T) of a time T and a ratio z; values below 0 as given."""
    model = rigid.load("<mujoco><worldbody/></mujoco>", dtype=jnp.float64)
    solimp = np.array([[0.9, 0.95, 0.001, 0.5, 2.0]] * 3)
    solref = np.array([[0.02, 1.0], [0.04, 0.5], [-900.0, -20.0]])
    k, b = quick(lambda *rows: impedance.spring(model, *rows))(solref, solimp)
    high = 0.95
    want = [1 / (high * 0.02) ** 2, 1 / (high * 0.04 * 0.5) ** 2, 900 / high**2]
    np.testing.assert_allclose(k, want, rtol=1e-12)
    np.testing.assert_allclose(b, [2 / (high * 0.02), 2 / (high * 0.04), 20 / high], rtol=1e-12)
