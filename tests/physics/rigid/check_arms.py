"""Check accelerations of arms whose model files are in a package that the tests do not require.

pip install gymnasium-robotics, then
python -m pytest -p no:cacheprovider tests/physics/rigid/check_arms.py
"""

import importlib.util
import os
from dataclasses import replace

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from jaxgpu.physics import rigid
from jaxgpu.physics.rigid import forward
from jaxgpu.physics.rigid.collision import FAR

PACKAGE = importlib.util.find_spec("gymnasium_robotics").origin
ARMS = os.path.join(os.path.dirname(PACKAGE), "envs", "assets")
PANDA = """<mujoco><include file="{0}/franka_assets/assets.xml"/>
<include file="{0}/franka_assets/actuator.xml"/>
<compiler angle="radian" meshdir="{0}/franka_assets/meshes"/>
<worldbody><geom type="plane" size="2 2 .1"/>
<geom type="box" size=".2 .4 .15" pos=".5 0 .15"/>
<body pos=".4 .1 .36"><freejoint/><geom type="capsule" size=".04 .06" mass=".3"/></body>
<include file="{0}/franka_assets/chain.xml"/></worldbody></mujoco>"""
MOST = 96  # contacts that the oracle hands over, of each dimension


BLOCK = (1.3, 0.75, 0.425)  # where the block of Fetch lies on its table


def arm(name, tmp_path):
    """Return an arm at a table: MuJoCo's model, with converged solvers, and jaxgpu's."""
    path = tmp_path / "panda.xml"
    path.write_text(PANDA.format(os.path.join(ARMS, "kitchen_franka")))
    fetch = os.path.join(ARMS, "fetch", "pick_and_place.xml")
    c = mujoco.MjModel.from_xml_path({"panda": str(path), "fetch": fetch}[name])
    if name == "fetch":
        c.qpos0[-7:-4] = BLOCK
    c.opt.jacobian, c.opt.tolerance, c.opt.iterations, c.opt.ls_iterations = 0, 0, 200, 100
    c.opt.ccd_tolerance, c.opt.ccd_iterations = 1e-12, 200
    return c, mujoco.MjData(c), rigid.load(c, dtype=jnp.float64, iterations=20, contacts=64)


def draw(c, d, rng):
    """Sample coordinates over the ranges of joints, free bodies near their places, and velocities.

    A body that is welded to a mocap body is a centimetre from it.
    """
    mujoco.mj_resetData(c, d)
    for joint in range(c.njnt):
        at = c.jnt_qposadr[joint]
        if c.jnt_type[joint] == 0:
            d.qpos[at : at + 3] += rng.uniform(-0.1, 0.1, 3)
            d.qpos[at + 3 : at + 7] = rng.normal(size=4)
        elif c.jnt_limited[joint]:
            d.qpos[at] = rng.uniform(*c.jnt_range[joint])
        else:
            d.qpos[at] += rng.uniform(-0.1, 0.1)
    mujoco.mj_normalizeQuat(c, d.qpos)
    d.qvel[:] = rng.normal(size=c.nv)
    mujoco.mj_kinematics(c, d)
    for held in range(c.nmocap):
        weld = next(i for i in range(c.neq) if c.body_mocapid[c.eq_obj1id[i]] == held)
        d.mocap_pos[held] = d.xpos[c.eq_obj2id[weld]] + rng.uniform(-0.01, 0.01, 3)
        d.mocap_quat[held] = d.xquat[c.eq_obj2id[weld]]


def pad_contacts(c, d, condim):
    """Return C's contacts of one dimension, padded with inactive ones."""
    own = np.flatnonzero(d.contact.dim == condim)
    assert len(own) <= MOST
    pad_rows = lambda a, rest: np.concatenate(
        [a[own], np.broadcast_to(rest, (MOST - len(own), *np.shape(rest)))]
    )
    k = d.contact
    return dict(
        geoms=pad_rows(k.geom, np.zeros(2, int)),
        dist=pad_rows(k.dist, FAR),
        pos=pad_rows(k.pos, np.zeros(3)),
        frame=pad_rows(k.frame.reshape(-1, 3, 3), np.eye(3)),
        friction=pad_rows(k.friction, np.ones(5)),
        solref=pad_rows(k.solref, [0.02, 1]),
        solreffriction=pad_rows(k.solreffriction, np.zeros(2)),
        solimp=pad_rows(k.solimp, [0.9, 0.95, 0.001, 0.5, 2]),
        margin=pad_rows(k.includemargin, 0.0),
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["panda", "fetch"])
def test_an_arm_in_contact_accelerates_as_in_c(tmp_path, monkeypatch, x64, name):
    """Check 1,000 random states with contact: with C's contacts all accelerations, to rounding.

    Where jaxgpu's contacts are as many and as deep as C's, accelerations agree to 1e-3. Flat faces
    of meshes and boxes on one another have other corners, and are left out.
    """
    c, d, model = arm(name, tmp_path)
    rng, states, given, want, depths = np.random.default_rng(0), [], [], [], []
    dims = sorted({group.condim for group in model.layout.groups})
    while len(states) < 1000:
        draw(c, d, rng)
        mujoco.mj_forward(c, d)
        if d.ncon:
            states.append([d.qpos.copy(), d.qvel.copy(), d.mocap_pos.copy(), d.mocap_quat.copy()])
            given.append([pad_contacts(c, d, dim) for dim in dims])
            want.append(d.qacc.copy())
            depths.append(np.sort(d.contact.dist))
    own = jax.jit(jax.vmap(lambda *state: qacc_dist(model, *state)))
    states = [np.stack(part) for part in zip(*states)]
    want = np.stack(want)
    scale = np.abs(want).max(1)
    parts = [own(*(part[i : i + 100] for part in states)) for i in range(0, 1000, 100)]
    qacc, dist = (np.concatenate(part) for part in zip(*parts))
    off = np.abs(qacc - want).max(1) / scale

    def fed(state, contacts):
        zero = jnp.zeros((), jnp.int32)
        found = tuple(
            rigid.Contacts(condim=dim, beyond=zero, **each) for dim, each in zip(dims, contacts)
        )
        monkeypatch.setattr(forward.contacts, "contacts", lambda model, where: found)
        return qacc_dist(model, *state)[0]

    batch = jax.tree.map(lambda *rows: np.stack(rows), *given)
    fed_qacc = np.asarray(jax.jit(jax.vmap(fed))(states, batch))
    fed_off = np.abs(fed_qacc - want).max(1) / scale
    same = np.array(
        [
            len(t) == np.sum(o < 0) and np.abs(np.sort(o)[: len(t)] - t).max() < 1e-6
            for o, t in zip(dist, depths)
        ]
    )
    assert fed_off.max() < 1e-6
    assert same.sum() > 100 and off[same].max() < 1e-3


def qacc_dist(model, q, v, pos, quat):
    """Return accelerations and the distances of all contacts."""
    state = replace(model.init(q, v), mocap_pos=pos, mocap_quat=quat)
    found = model.forward(state)
    return found.qacc, jnp.concatenate([each.dist - each.margin for each in found.contacts])
