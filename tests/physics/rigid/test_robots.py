"""Gymnasium's robots in contact against MuJoCo: in single steps and along runs."""

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


STATES, STEPS = 100, 200
OFTEN = "humanoid swimmer reacher".split()  # the most joints, a medium, and no contact


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in OFTEN else pytest.mark.release) for name in ROBOTS],
)
def test_steps_are_those_of_c_and_so_are_runs_that_start_a_billionth_apart(x64, name):
    """Single steps from states along MuJoCo's runs, in contact if possible, agree to 1e-6.

    Consecutive steps deviate from MuJoCo by at most as much as MuJoCo's own runs from starts 1e-9
    away. These motions are chaotic, so rounding grows a thousandfold and more; sixteen of MuJoCo's
    runs from neighbouring starts show how fast. A different model would leave their band at once.
    """
    c, model = load_robot(name)
    rows = list(c_states(c, STATES, touching=name not in ("swimmer", "reacher")))
    qpos, qvel, ctrl, want, touched = (np.array(column) for column in zip(*rows))
    assert touched.min() > 0 or name in ("swimmer", "reacher")
    controls, speed, centre, band = runs(c)

    def step_row(state, row):
        given, q, v, ctrl = row
        fresh = model.init(q, v)
        state = jax.tree.map(lambda a, b: jnp.where(given, a, b), fresh, state)
        state = model.step(state, ctrl)
        return state, (state.qpos, state.qvel, state.overflow)

    # One program does both: the consecutive steps follow those that start from given states.
    rest = np.repeat([c.qpos0], STEPS, 0), np.repeat([speed], STEPS, 0)
    q, v = (np.concatenate([a, b]) for a, b in zip((qpos, qvel), rest))
    given = np.arange(STATES + STEPS) <= STATES
    scan = lambda *rows: jax.lax.scan(step_row, model.init(), rows)[1]
    run = jax.jit(scan, compiler_options={"xla_backend_optimization_level": 0})
    got = jax.tree.map(np.asarray, run(given, q, v, np.concatenate([ctrl, controls])))
    q, v, lost = got
    assert not lost.any()
    push = (v[:STATES] - want) / c.opt.timestep
    off = np.abs(push).max(1) / (1 + np.abs((want - qvel) / c.opt.timestep).max(1))
    assert off.max() < 1e-6
    assert (np.abs(q[STATES:] - centre).max(1) <= band).all()


def runs(c):
    """Return random controls [S, U], a start's velocities, MuJoCo's coordinates, and their band."""
    rng = np.random.default_rng(0)
    low, high = c.actuator_ctrlrange.T
    controls = np.repeat(rng.uniform(low, high, (STEPS // 5, c.nu)), 5, 0)
    speed = 0.1 * rng.normal(size=c.nv)

    def path(away):
        d = mujoco.MjData(c)
        d.qvel[:], out = speed + away, np.empty((STEPS, c.nq))
        for at, ctrl in enumerate(controls):
            d.ctrl[:] = ctrl
            mujoco.mj_step(c, d)
            out[at] = d.qpos
        return out

    centre = path(0)
    near = [path(1e-9 * rng.normal(size=c.nv)) for _ in range(16)]
    band = np.max([np.abs(x - centre).max(1) for x in near], 0)
    return controls, speed, centre, np.maximum.accumulate(band)


def load_robot(name):
    """Return a robot: MuJoCo's model with a converged solver, and jaxgpu's."""
    file, contacts = ROBOTS[name]
    c = mujoco.MjModel.from_xml_path(str(WALKERS / file))
    c.opt.jacobian, c.opt.tolerance, c.opt.iterations, c.opt.ls_iterations = 0, 0, 200, 100
    c.opt.solver = int(mujoco.mjtSolver.mjSOL_NEWTON)
    return c, rigid.load(c, dtype=jnp.float64, iterations=20, contacts=contacts)


def c_states(c, count, touching):
    """Yield states of MuJoCo's runs under random controls, and velocities a step later."""
    d, after, rng = mujoco.MjData(c), mujoco.MjData(c), np.random.default_rng(1)
    low, high = c.actuator_ctrlrange.T
    while True:
        mujoco.mj_resetData(c, d)
        d.qvel[:] = rng.normal(size=c.nv)
        for _ in range(40):
            d.ctrl[:] = rng.uniform(low, high)
            for _ in range(5):
                mujoco.mj_step(c, d)
            mujoco.mj_forward(c, d)
            if d.ncon or not touching:
                after.qpos[:], after.qvel[:], after.ctrl[:] = d.qpos, d.qvel, d.ctrl
                after.qacc_warmstart[:] = 0
                mujoco.mj_step(c, after)
                yield d.qpos.copy(), d.qvel.copy(), d.ctrl.copy(), after.qvel.copy(), d.ncon
                count -= 1
                if not count:
                    return
