"""Contact forces on bodies, against MuJoCo's C library."""

import dataclasses
import functools

import jax
import mujoco
import numpy as np
import pytest
from api_cases import as_users

from jaxgpu.physics.rigid.model import load
from jaxgpu.physics.rigid.sensors import contact_forces

OPTIONS = {"xla_backend_optimization_level": 0}  # compiled once and run a few times
# A floor, and bodies on it and on one another, with contacts of every friction dimension.
SCENE = """<mujoco><option jacobian="dense" iterations="200" ls_iterations="100" tolerance="0"/>
<worldbody><geom type="plane" size="9 9 1" condim="1"/>
<body pos="3 0 0.1"><freejoint/><geom size="0.1" condim="1"/>
  <body pos="0.3 0 0"><joint axis="0 1 0"/><geom size="0.1" condim="4"/></body></body>
<body pos="3.1 0 0.25"><freejoint/><geom size="0.1" condim="6" friction="1 0.1 0.1"/></body>
<body pos="0 -5 0.1"><freejoint/><geom type="capsule" size="0.1 0.2" euler="80 0 0"/></body>
</worldbody></mujoco>"""


@pytest.mark.slow
def test_forces_of_contacts_are_those_of_mujoco(x64):
    """Moments are about the centre of mass of each tree; the world has none."""
    m = mujoco.MjModel.from_xml_string(SCENE)
    d, rng, robot = mujoco.MjData(m), np.random.default_rng(3), load(m)

    @functools.partial(jax.jit, compiler_options=OPTIONS)
    def ours(qpos, qvel):
        return contact_forces(robot, robot.forward(robot.init(qpos, qvel)))

    dims = set()
    for _ in range(5):
        d.qpos[:] = m.qpos0 + 0.01 * rng.normal(size=m.nq)
        d.qvel[:] = rng.normal(size=m.nv)
        mujoco.mj_forward(m, d)
        mujoco.mj_rnePostConstraint(m, d)
        dims |= set(d.contact.dim.tolist())
        with as_users():
            got = ours(d.qpos.copy(), d.qvel.copy())
        np.testing.assert_allclose(got, d.cfrc_ext, rtol=1e-8, atol=1e-8 * np.abs(d.cfrc_ext).max())
        assert not np.asarray(got)[0].any()
    assert dims == {1, 3, 4, 6}


# All sensors: on frames of every type, relative to other frames, of joints, actuators and tendons.
ROBOT = """<mujoco><option jacobian="dense" iterations="200" ls_iterations="100" tolerance="0"/>
<default><geom contype="0"/></default>
<worldbody><geom type="plane" size="9 9 1" contype="1"/>
<site name="fixed" pos="1 2 3" euler="20 30 40"/>
<body name="trunk" pos="0 0 0.2"><freejoint/>
  <geom name="hull" type="box" size="0.2 0.1 0.1" pos="0.02 0.01 0" euler="10 0 20"/>
  <site name="tilted" pos="0.1 0.05 0.02" euler="30 40 50"/>
  <body name="arm" pos="0.3 0 0" euler="0 20 0"><joint name="ball" type="ball" pos="-0.1 0 0"/>
    <geom type="capsule" size="0.05 0.1" pos="0 0 0.1"/><site name="end" pos="0 0.1 0.2"/>
    <body name="hand" pos="0 0 0.3"><joint name="hinge" axis="0 1 0"/>
      <geom size="0.06" pos="0.05 0 0"/><site name="palm" size="0.07"/>
      <body name="thumb" pos="0.1 0 0"><joint name="slide" type="slide" axis="1 1 0"/>
        <geom type="ellipsoid" size="0.05 0.04 0.03"/></body></body></body></body>
<body name="foot" pos="2 0 0.099"><joint name="up" type="slide" axis="0 0 1"/>
  <geom type="box" size="0.1 0.1 0.1"/>
  <site name="a" type="sphere" size="0.15" pos="0.1 0.1 -0.1"/>
  <site name="b" type="capsule" size="0.03 0.12" pos="0 0.1 -0.12" euler="0 90 0"/>
  <site name="c" type="ellipsoid" size="0.05 0.15 0.02" pos="0.1 0 -0.1"/>
  <site name="d" type="cylinder" size="0.12 0.05" pos="-0.1 0.05 -0.1"/>
  <site name="e" type="box" size="0.05 0.3 0.01" pos="-0.1 0 -0.11" euler="0 0 5"/>
  <site name="f" type="sphere" size="0.05" pos="0 0 0"/></body>
</worldbody>
<tendon><fixed name="cord"><joint joint="hinge" coef="0.5"/><joint joint="slide" coef="-2"/></fixed>
</tendon>
<actuator><motor name="turn" joint="hinge" gear="3"/><position name="pull" tendon="cord" kp="7"/>
  <general name="slow" joint="slide" dyntype="filter" dynprm="0.1" gainprm="2"/></actuator>
<sensor>
  <accelerometer site="tilted"/><velocimeter site="end"/><gyro site="end"/>
  <force site="end"/><torque site="end"/><force site="palm"/><torque site="palm"/>
  <jointpos joint="hinge"/><jointvel joint="slide"/><tendonpos tendon="cord"/>
  <tendonvel tendon="cord"/><actuatorpos actuator="pull"/><actuatorvel actuator="turn"/>
  <actuatorfrc actuator="slow"/><actuatorfrc actuator="pull"/><jointactuatorfrc joint="hinge"/>
  <ballquat joint="ball"/><ballangvel joint="ball"/>
  <framepos objtype="body" objname="arm"/><framequat objtype="geom" objname="hull"/>
  <framepos objtype="site" objname="end" reftype="site" refname="tilted"/>
  <framequat objtype="xbody" objname="hand" reftype="body" refname="trunk"/>
  <framexaxis objtype="site" objname="end"/><frameyaxis objtype="geom" objname="hull"/>
  <framezaxis objtype="xbody" objname="arm" reftype="site" refname="tilted"/>
  <framelinvel objtype="body" objname="thumb"/><frameangvel objtype="xbody" objname="thumb"/>
  <framelinvel objtype="site" objname="palm" reftype="xbody" refname="trunk"/>
  <frameangvel objtype="site" objname="palm" reftype="geom" refname="hull"/>
  <framelinvel objtype="site" objname="palm" reftype="site" refname="fixed"/>
  <framelinacc objtype="site" objname="end"/><frameangacc objtype="body" objname="hand"/>
  <subtreecom body="arm"/><subtreecom body="world"/><subtreelinvel body="hand"/>
  <subtreeangmom body="trunk"/><subtreeangmom body="world"/><clock/>
  <touch site="a"/><touch site="b"/><touch site="c"/><touch site="d"/><touch site="e"/>
  <touch site="f"/>
  <velocimeter site="palm" cutoff="0.3"/><touch site="a" cutoff="5"/>
  <framepos objtype="site" objname="fixed" cutoff="1.5"/>
</sensor></mujoco>"""


@pytest.mark.slow
def test_sensors_read_what_those_of_mujoco_read(x64):
    """Compare at states with contacts, driven actuators and an active filter."""
    m = mujoco.MjModel.from_xml_string(ROBOT)
    d, rng, robot = mujoco.MjData(m), np.random.default_rng(3), load(m)

    @functools.partial(jax.jit, compiler_options=OPTIONS)
    def ours(qpos, qvel, act, time, ctrl):
        state = dataclasses.replace(robot.init(qpos, qvel), act=act, time=time)
        return robot.sensors(state, ctrl)

    touched = np.zeros(m.nsensor, bool)
    for _ in range(8):
        d.qpos[:] = m.qpos0 + 0.05 * rng.normal(size=m.nq)
        d.qpos[2] -= 0.1
        d.qpos[-1] = 0.005 * rng.normal()
        d.qvel[:], d.act[:], d.ctrl[:] = (rng.normal(size=n) for n in (m.nv, m.na, m.nu))
        d.time = rng.uniform()
        mujoco.mj_forward(m, d)
        got = np.asarray(ours(*(np.array(a) for a in (d.qpos, d.qvel, d.act, d.time, d.ctrl))))
        for i in range(m.nsensor):
            own = slice(m.sensor_adr[i], m.sensor_adr[i] + m.sensor_dim[i])
            want = d.sensordata[own]
            touched[i] |= want.any()
            scale = max(1.0, np.abs(want).max())
            kind = robot.layout.sensors[i].kind
            np.testing.assert_allclose(got[own], want, rtol=1e-7, atol=1e-7 * scale, err_msg=kind)
    assert touched.sum() >= m.nsensor - 1, "the sensor in the middle of the foot feels nothing"


def test_a_sensor_is_found_by_its_name_and_one_that_is_not_read_is_named():
    body = '<body><freejoint/><geom size="0.1"/><site name="in"/></body>'
    text = "<mujoco><worldbody>{}</worldbody><sensor>{}</sensor></mujoco>"
    robot = load(
        text.format(body, '<gyro site="in"/><framepos name="at" objtype="site" objname="in"/>')
    )
    assert robot.sensor("at") == slice(3, 6)
    with pytest.raises(ValueError, match="no sensor 'eye'; there are \\['at'\\]"):
        robot.sensor("eye")
    blind = load(text.format(body, '<rangefinder name="eye" site="in"/>'))
    with pytest.raises(
        ValueError, match="Model.sensors: eye is a sensor of MuJoCo's kind 7, which"
    ):
        blind.sensors(blind.init())
    deaf = load(text.format(body, ""))
    assert jax.eval_shape(deaf.sensors, deaf.init()).shape == (0,)


def test_forces_of_what_is_no_motion_are_refused():
    with pytest.raises(TypeError, match=r"contact_forces: model=.*; it must be"):
        contact_forces(["a"], None)
    robot = load('<mujoco><worldbody><body><joint/><geom size="1"/></body></worldbody></mujoco>')
    with pytest.raises(TypeError, match=r"contact_forces: d=3; it must be"):
        contact_forces(robot, 3)
    with pytest.raises(ValueError, match=r"Layout: joint_kind=.*; it must be a tuple of"):
        dataclasses.replace(robot.layout, joint_kind=({"hinge": 1},))
