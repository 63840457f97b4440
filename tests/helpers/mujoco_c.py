"""C MuJoCo as an oracle: converged accelerations, and steps, of the same MJCF."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from jaxgpu.physics import rigid
from jaxgpu.physics.rigid import integrators

OPTIONS = {"xla_backend_optimization_level": 0}  # compiled once and run a few times
# All constraint rows: pyramidal or elliptic contacts of all condims, limits, friction loss and
# equalities. Bodies collide with the floor, and two balls with each other.
ROWS = """<mujoco><option cone="{cone}" impratio="3" integrator="{integrator}" timestep="0.004"/>
<default><geom contype="2"/><default class="ball"><geom contype="4" conaffinity="5"/></default>
</default>
<worldbody><geom type="plane" size="5 5 .1" friction=".7 .1 .01" condim="1" contype="1"/>
<body name="root" pos="0 0 .25"><freejoint/><geom size=".2 .1 .15" type="box" condim="3"/>
 <body pos=".3 0 0"><joint name="a" axis="0 1 0" range="-30 30" frictionloss=".2" damping="1"/>
  <geom type="capsule" size=".05 .2" euler="0 90 0" pos=".2 0 0" condim="4" solref="-900 -20"/>
  <body name="e" pos=".4 0 0"><joint type="ball" range="0 40" stiffness="2" damping=".1"/>
   <geom size=".08" friction=".9 .02 .003" condim="6" margin=".01" solimp=".8 .9 .01 .3 3"/></body>
 </body></body>
<body name="f" pos="0 .6 .3"><joint name="s" type="slide" axis="0 0 1" range="-.3 .1"/>
 <joint name="h" axis="1 0 0" ref="10" springref="20" stiffness="3" armature=".02"/>
 <geom type="capsule" size=".1 .2" euler="90 0 0" priority="1" friction=".4"/></body>
<body name="g" pos="0 1.2 .3" gravcomp=".5"><freejoint/>
 <geom type="cylinder" size=".1 .2" contype="0" conaffinity="0"/></body>
<body pos="0 -2 .1"><joint type="slide" axis="0 0 1"/><geom class="ball" size=".15" condim="1"/>
</body>
<body pos="0 -2 .3"><joint type="slide" axis="0 0 1"/><geom class="ball" size=".1"/></body>
</worldbody>
<contact><pair geom1="ground" geom2="tip" condim="6" friction=".5 .6 .01 .002 .003"/></contact>
<tendon><fixed name="t" limited="true" range="-.1 .1" frictionloss=".3" stiffness="2" damping=".3">
 <joint joint="a" coef="1"/><joint joint="h" coef="-2"/></fixed></tendon>
<equality><connect body1="e" body2="f" anchor="0 .1 0"/>
 <weld body1="f" body2="g" torquescale=".7" solref=".04 1.2"/>
 <joint joint1="s" joint2="h" polycoef=".1 .5 .2 .1 .05"/></equality>
<actuator><position joint="a" kp="5" kv=".3" gear="2"/><motor tendon="t" forcerange="-1 1"/>
 <general joint="h" dyntype="filter" dynprm=".1" gainprm="2"/></actuator></mujoco>""".replace(
    '<geom type="plane"', '<geom name="ground" type="plane"'
).replace('<geom size=".08"', '<geom name="tip" size=".08"')


def load_model(text: str, **options: int) -> tuple[mujoco.MjModel, mujoco.MjData, rigid.Model]:
    """Return MuJoCo's model with a converged solver, its data, and jaxgpu's model in float64."""
    c = mujoco.MjModel.from_xml_string(text)
    c.opt.jacobian, c.opt.tolerance, c.opt.iterations, c.opt.ls_iterations = 0, 0, 200, 100
    sizes = {"contacts": 64, "iterations": 20, **options}
    return c, mujoco.MjData(c), rigid.load(c, dtype=jnp.float64, **sizes)


def states(c: mujoco.MjModel, count: int, seed: int = 0) -> list[tuple[np.ndarray, ...]]:
    """Return random coordinates near the rest pose, velocities, activations and controls."""
    random, out = np.random.default_rng(seed), []
    for _ in range(count):
        q = c.qpos0 + 0.2 * random.normal(size=c.nq)
        mujoco.mj_normalizeQuat(c, q)
        rest = (random.normal(size=n) for n in (c.nv, c.na, c.nu))
        out.append((q, *rest))
    return out


def make_state(model: rigid.Model, q: jax.Array, v: jax.Array, act: jax.Array) -> rigid.State:
    """Return a state with activations."""

    return dataclasses.replace(model.init(q, v), act=jnp.asarray(act, model.qpos0.dtype))


def motion(model: rigid.Model):
    """Make a program from state and controls to the next state and the forces at its start."""

    @functools.partial(jax.jit, compiler_options=OPTIONS)
    def step_and_forces(state, ctrl=None):
        state = model.check_state("motion", state)
        ctrl = jnp.zeros(model.layout.nu) if ctrl is None else ctrl
        look = lambda d: (d.qacc, d.constraint, d.M)
        return integrators.step_and_look(model, state, ctrl, jnp.zeros(model.layout.nv), look)

    return step_and_forces


def set_data(c: mujoco.MjModel, d: mujoco.MjData, q, v, act, ctrl) -> None:
    """Set the data in C, without a warm start."""
    mujoco.mj_resetData(c, d)
    d.qpos[:], d.qvel[:], d.act[:], d.ctrl[:] = q, v, act, ctrl
