"""Gymnasium's robots in contact against C MuJoCo: along a thousand steps, and in as many states."""

from pathlib import Path

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from jaxgpu.physics import rigid
from jaxgpu.rl.envs import locomotion

WALKERS = Path(locomotion.__file__).parent / "assets"


ROBOTS = {  # of gymnasium's own files; how many contacts are kept
    "hopper": ("hopper.xml", 16),
    "half-cheetah": ("half_cheetah.xml", 16),
    "walker2d": ("walker2d_v5.xml", 16),
    "ant": ("ant.xml", 32),
    "humanoid": ("humanoid.xml", 64),
    "swimmer": ("swimmer.xml", 8),
    "reacher": ("reacher.xml", 8),
    "pusher": ("pusher_v5.xml", 16),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ROBOTS)
def test_a_thousand_steps_stay_where_c_is_when_pushed_by_a_billionth(x64, name):
    """Under random controls: no farther from C than C itself is from a start 1e-9 away.

    These motions are chaotic, so that rounding grows a thousandfold and more; how fast, sixteen
    runs of C from neighbouring starts say. A model that differed would leave their band at once.
    """
    c, model = loaded(name)
    rng, steps = np.random.default_rng(0), 1000
    low, high = c.actuator_ctrlrange.T
    controls = np.repeat(rng.uniform(low, high, (steps // 5, c.nu)), 5, 0)
    speed = 0.1 * rng.normal(size=c.nv)

    def path(away):
        d = mujoco.MjData(c)
        d.qvel[:], out = speed + away, np.empty((steps, c.nq))
        for at, ctrl in enumerate(controls):
            d.ctrl[:] = ctrl
            mujoco.mj_step(c, d)
            out[at] = d.qpos
        return out

    centre = path(0)
    near = [path(1e-9 * rng.normal(size=c.nv)) for _ in range(16)]
    apart = lambda x: np.abs(x - centre).max(1)
    band = np.maximum.accumulate(np.max([apart(x) for x in near], 0))

    def further(state, ctrl):
        state = model.step(state, ctrl)
        return state, state.qpos

    end, ours = jax.jit(lambda s: jax.lax.scan(further, s, controls))(model.init(qvel=speed))
    off = apart(np.asarray(ours))
    assert int(end.overflow) == 0
    assert (off <= band).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ROBOTS)
def test_accelerations_of_a_thousand_states_are_those_of_c(x64, name):
    """Along runs of C under random controls, in contact where the robot ever is: to 1e-6."""
    c, model = loaded(name)
    rows = list(met(c, 1000, touching=name not in ("swimmer", "reacher")))
    qpos, qvel, ctrl, want, touched = (np.array(column) for column in zip(*rows))

    @jax.jit
    def accelerations(qpos, qvel, ctrl):
        def one(args):
            state = model.init(args[0], args[1])
            return model.forward(state, args[2]).qacc, model.step(state, args[2]).overflow

        return jax.lax.map(one, (qpos, qvel, ctrl), batch_size=50)

    got, lost = accelerations(qpos, qvel, ctrl)
    assert not np.any(lost)
    off = np.abs(got - want).max(1) / (1 + np.abs(want).max(1))
    assert off.max() < 1e-6
    assert touched.min() > 0 or name in ("swimmer", "reacher")


def loaded(name):
    """A robot in C, with a solver that converges, and ours."""
    file, contacts = ROBOTS[name]
    c = mujoco.MjModel.from_xml_path(str(WALKERS / file))
    c.opt.jacobian, c.opt.tolerance, c.opt.iterations, c.opt.ls_iterations = 0, 0, 200, 100
    c.opt.solver = int(mujoco.mjtSolver.mjSOL_NEWTON)
    return c, rigid.load(c, dtype=jnp.float64, iterations=20, contacts=contacts)


def met(c, count, touching):
    """States of runs of C from random starts under random controls, and C's accelerations."""
    d, rng = mujoco.MjData(c), np.random.default_rng(1)
    low, high = c.actuator_ctrlrange.T
    while True:
        mujoco.mj_resetData(c, d)
        d.qvel[:] = rng.normal(size=c.nv)
        for _ in range(40):
            d.ctrl[:] = rng.uniform(low, high)
            for _ in range(5):
                mujoco.mj_step(c, d)
            d.qacc_warmstart[:] = 0
            mujoco.mj_forward(c, d)
            if d.ncon or not touching:
                yield d.qpos.copy(), d.qvel.copy(), d.ctrl.copy(), d.qacc.copy(), d.ncon
                count -= 1
                if not count:
                    return
