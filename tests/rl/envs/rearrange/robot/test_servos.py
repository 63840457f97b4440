"""Fetch with masses: accelerations among boxes equal those of C MuJoCo."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from jaxgpu.rl.envs.rearrange.robot import mechanism, servos
from jaxgpu.rl.envs.rearrange.robot.contact import Boxes
from jaxgpu.rl.envs.rearrange.robot.fetch import Joints, forward_kinematics

TABLE, FLOOR = (1.2, 0.0, 0.35, 0.4, 0.6, 0.35, 0.8, 0.6), (0.0, 0.0, -0.05, 9.0, 9.0, 0.05, 1, 0)
NOWHERE = (0.0, 0.0, -1000.0, 0.1, 0.1, 0.1, 1.0, 0.0)
HALF = (0.03, 0.025, 0.05)


def states(count):
    """Yield robots in front of a table at random velocities, most in contact with something."""
    rng, spec = np.random.default_rng(0), servos.Servos()
    while count:
        base = np.array([rng.uniform(0.25, 0.5), rng.uniform(-0.5, 0.5), rng.uniform(-0.4, 0.4)])
        arm = np.array([*rng.uniform(-1, 1, 2), *rng.uniform(-2, 2, 5)])
        joints = Joints(*map(jnp.asarray, (base, 0.3, np.array([0.0, 0.562]), arm)))
        driven, thing, axes = spec.init_holding(joints, servos.finger_load(jnp.asarray(HALF)))
        if forward_kinematics(joints).origin[-1, 2] < 0.6:
            continue
        qvel = jnp.asarray(rng.normal(size=19) * 0.2)
        qpos = driven.physics.qpos.at[servos.FINGERS].add(-2e-4)  # pressed in by 0.2 mm
        count -= 1
        yield replace(driven, physics=replace(driven.physics, qpos=qpos, qvel=qvel))


@pytest.mark.slow
def test_c_mujoco_finds_the_same_accelerations_among_the_same_boxes():
    """The C library receives only the boxes, the object, the state and the controls."""
    with jax.enable_x64(True):
        spec = servos.Servos()
        spec = replace(spec, model=servos.load_model(iterations=20))
        boxes = Boxes(jnp.array([TABLE, FLOOR, *[NOWHERE] * 30]))
        half = jnp.asarray(HALF)
        m = mujoco.MjModel.from_xml_string(mechanism.mjcf_text())
        m.opt.iterations, m.opt.tolerance = 200, 1e-14
        m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_MIDPHASE  # its trees are of before
        m.geom_sameframe[:] = 0  # boxes turn
        data = mujoco.MjData(m)

        @partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
        def run_forward(driven, ctrl):
            model, _ = spec.local_model(boxes, driven, half, driven.arm)
            return model, model.forward(driven.physics, ctrl)

        touched = []
        for i, driven in enumerate(states(16)):
            ctrl = np.random.default_rng(i).normal(size=13) * 0.1
            model, ours = run_forward(driven, ctrl)
            m.geom_pos, m.geom_quat, m.geom_size = (
                np.asarray(x) for x in (model.geoms.pos, model.geoms.quat, model.geoms.size)
            )
            kind = m.geom_type == mujoco.mjtGeom.mjGEOM_BOX
            m.geom_rbound[kind] = np.linalg.norm(m.geom_size[kind], axis=1)
            m.body_mass, m.body_inertia = model.bodies.mass, model.bodies.inertia
            m.body_invweight0 = model.bodies.invweight
            m.dof_M0[-6:] = np.append(np.full(3, m.body_mass[-1]), m.body_inertia[-1])
            data.qpos, data.qvel, data.ctrl = driven.physics.qpos, driven.physics.qvel, ctrl
            mujoco.mj_forward(m, data)
            if data.contact.dist.min() < -0.03:
                continue  # no posture is so deep
            touched.append({int(k) for k in data.contact.geom.ravel()})
            scale = np.abs(data.qacc).max()
            np.testing.assert_allclose(ours.qacc, data.qacc, rtol=0, atol=1e-7 * scale)
        base = model.index("geom", "base 0")
        assert len(touched) >= 8 and any(base in known for known in touched)
