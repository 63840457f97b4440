"""Forces of contacts on bodies, against MuJoCo's C library."""

import jax
import mujoco
import numpy as np
from doors import as_users

from jaxgpu.physics.rigid.model import load
from jaxgpu.physics.rigid.sensors import contact_forces

# a floor, and bodies on it and on one another, with contacts of every dimension of friction
SCENE = """<mujoco><option jacobian="dense" iterations="200" ls_iterations="100" tolerance="0"/>
<worldbody><geom type="plane" size="9 9 1" condim="1"/>
<body pos="3 0 0.1"><freejoint/><geom size="0.1" condim="1"/>
  <body pos="0.3 0 0"><joint axis="0 1 0"/><geom size="0.1" condim="4"/></body></body>
<body pos="3.1 0 0.25"><freejoint/><geom size="0.1" condim="6" friction="1 0.1 0.1"/></body>
<body pos="0 -5 0.1"><freejoint/><geom type="capsule" size="0.1 0.2" euler="80 0 0"/></body>
</worldbody></mujoco>"""


def test_forces_of_contacts_are_those_of_mujoco(x64):
    """Moments are about the centre of mass of each tree; the world has none."""
    m = mujoco.MjModel.from_xml_string(SCENE)
    d, rng, robot = mujoco.MjData(m), np.random.default_rng(3), load(m)

    @jax.jit
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
