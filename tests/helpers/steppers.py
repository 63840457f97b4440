"""Steppers at minimal size: algorithms, materials, bodies, stars, environments and learners.

A `Stepper` names the classes that it covers and makes `init(key) -> state` and `step(state, key) ->
state` in a given precision. The rules below hold for every protocol. Each public class that has a
method of a protocol must be covered by one of the machines.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import conformance
import jax
import jax.numpy as jnp
import numpy as np
from api_cases import as_users, cheap_programs
from cases_continuum import MATERIALS
from cases_rearrange import make_task, task_class
from rl_learners import LEARNERS

from jaxgpu import rl
from jaxgpu.evolution import multi, single
from jaxgpu.evolution.multi import das_dennis
from jaxgpu.evolution.problem import Problem, box
from jaxgpu.evolution.problems import dtlz
from jaxgpu.physics import continuum, rigid, touch
from jaxgpu.physics.nbody.clusters import Hermite, Hermite6
from jaxgpu.physics.nbody.planets import Ensemble, Planetary, WisdomHolman
from jaxgpu.physics.nbody.steps.leapfrog import Leapfrog

KEY = jax.random.key(0)
REF_DIRS = das_dennis(3, 4)


@dataclass(frozen=True)
class Stepper:
    """A test case that initialises and steps a state, in either precision."""

    name: str
    covers: tuple[type, ...]
    make: Callable[[Any], tuple[Callable, Callable]]  # dtype -> init(key), step(state, key)
    floats: str = "same"  # "same": floats of the state have the dtype; "own": fixed ones
    alike: str = ""  # a machine with nearly the same program, which is run instead of this
    rtol: float = 1e-4  # tolerance between a step under jit or vmap and a plain one
    compared: Any = np.float32  # the precision of this comparison


def algorithm(spec: Any, name: str) -> Stepper:
    many = type(spec).__module__.startswith("jaxgpu.evolution.multi")

    def make(dtype: Any) -> tuple[Callable, Callable]:
        sphere = Problem(box(-5.0, 5.0, 4), lambda x: jnp.sum(x * x, keepdims=True))
        problem = dtlz.dtlz2(3, 5) if many else sphere

        def step(state: Any, key: Any) -> Any:
            x = spec.ask(state, key)
            return spec.tell(state, x, *problem.evaluate(x))

        return lambda key: spec.init(key, problem), step

    return Stepper(f"evolution.{name}", (type(spec),), make)


ALGORITHMS = {
    "NSGA2": multi.NSGA2(pop_size=16),
    "NSGA3": multi.NSGA3(REF_DIRS, pop_size=16),
    "NSGA3, unified": multi.NSGA3(REF_DIRS, pop_size=16, unified=True),
    "MOEAD": multi.MOEAD(REF_DIRS, 5),
    "MOEAD, Tchebycheff": multi.MOEAD(REF_DIRS, 5, "tchebycheff"),
    "RVEA": multi.RVEA(REF_DIRS, generations=100),
    "HypE": multi.HypE(pop_size=16, rays=64, rounds=2),
    "CMAES": single.CMAES(8),
    "CMAES, Cholesky": single.CMAES(8, factor="cholesky"),
    "SepCMAES": single.SepCMAES(8),
    "LMMAES": single.LMMAES(8),
    "XNES": single.XNES(8),
    "SNES": single.SNES(8),
    "OpenES": single.OpenES(8),
    "PGPE": single.pgpe(8),
    "Restarts": single.Restarts(8, doublings=2),
    "LSHADE": single.LSHADE(800, pop_size=16),
    "PSO": single.PSO(8),
    "CSO": single.CSO(8),
}


def matter(dtype: Any) -> tuple[Callable, Callable]:
    """Make a scene with one body per material, and a tool."""
    materials = list({type(material): material for material in MATERIALS.values()}.values())
    shape = (len(materials), 8, 3)
    x = np.random.default_rng(0).uniform(0.3, 0.7, shape).astype(dtype)
    bodies = [continuum.Body(x, m, dtype(1e-3)) for x, m in zip(x, materials)]
    tool = continuum.Collider(continuum.sdf.Ball(dtype(0.05)), (0.5, 0.5, 0.5))
    grid, gravity = continuum.Grid(0.1, (10, 10, 10)), (0.0, -9.8, 0.0)
    scene = continuum.Scene(tuple(bodies), grid, gravity, (tool,)).prepare()
    return lambda key: scene.init(), lambda state, key: scene.step(state)


def joints(dtype: Any) -> tuple[Callable, Callable]:
    arm = '<body pos="0 0 .3"><joint axis="0 1 0"/><geom type="capsule" size=".05 .1"/></body>'
    text = f'<body pos="0 0 .18"><freejoint/><geom size=".2"/>{arm}</body>'
    ground = '<geom type="plane" size="1 1 1"/>'
    model = rigid.load(f"<mujoco><worldbody>{ground}{text}</worldbody></mujoco>", dtype=dtype)
    return lambda key: model.init(), lambda state, key: model.step(state)


def grasp(dtype: Any) -> tuple[Callable, Callable]:
    """Make a peg that is held by a gripper above its socket."""
    spec = touch.Grasp.from_parts(*touch.peg_and_socket(), taxels=(4, 3))
    hand = jnp.asarray([0.01, 0.0, 0.1], dtype)
    start = spec.init(hand, hand.at[2].add(dtype(-0.02)))
    shift = jnp.asarray([0.0, 0.01, 0.0], dtype)
    return lambda key: start, lambda state, key: spec.step(state, shift)


# three bodies of different masses, and two tracers
GM = np.array([1.0, 1e-3, 3e-4])
X = np.array([[0.0, 0.0, 0.0], [1.0, 0.1, 0.0], [-0.3, 2.1, 0.2]])
V = np.array([[0.0, 0.0, 0.0], [-0.1, 1.0, 0.05], [-0.68, -0.1, 0.0]])
TRACERS = np.array([[0.0, 1.5, 0.1], [3.0, 0.0, -0.2]])


def perturb(a: np.ndarray, key: Any, dtype: Any) -> Any:
    """Return the values, each multiplied by a random factor near 1."""
    return jnp.asarray(a, dtype) * (1 + dtype(1e-3) * jax.random.normal(key, a.shape, dtype))


def planets(dtype: Any) -> tuple[Callable, Callable]:
    v, gm, tracers = (jnp.asarray(a, dtype) for a in (V, GM, TRACERS))
    spec, moving = Planetary(gm=gm, dt=dtype(0.1)), (tracers, tracers[:, ::-1] / 3)
    init = lambda key: spec.init(perturb(X, key, dtype), v, moving)
    return init, lambda state, key: spec.step(state)


def symplectic(dtype: Any) -> tuple[Callable, Callable]:
    v, gm = (jnp.asarray(a, dtype) for a in (V, GM))
    spec = WisdomHolman(gm=gm, dt=dtype(0.1))
    return lambda key: spec.init(perturb(X, key, dtype), v), lambda state, key: spec.step(state)


def ensemble(dtype: Any) -> tuple[Callable, Callable]:
    x, v, m = (jnp.stack([jnp.asarray(a, dtype)] * 2) for a in (X, V, GM))
    spec = Ensemble(dt=dtype(0.1))
    return lambda key: spec.init(x, v, m), lambda state, key: spec.step(state)


def leapfrog(dtype: Any) -> tuple[Callable, Callable]:
    spec = Leapfrog(lambda t, x: -x, dt=dtype(0.1), order=8)
    x, v = jnp.asarray(X, dtype), jnp.asarray(V, dtype)
    return lambda key: spec.init(x, v), lambda state, key: spec.step(state)


def stars(spec: Any, name: str) -> Stepper:
    """Return a machine of five stars of different masses and two tracers."""

    def make(dtype: Any) -> tuple[Callable, Callable]:
        rng = np.random.default_rng(1)
        x, v = (rng.normal(size=(5, 3)) * scale for scale in (1.0, 0.3))
        m = np.array([0.4, 0.3, 0.15, 0.1, 0.05], dtype)
        tracers = rng.normal(size=(2, 3)).astype(dtype)
        moving = (tracers, tracers / 4)
        init = lambda key: spec.init(perturb(x, key, dtype), v.astype(dtype), m, moving)
        return init, lambda state, key: spec.step(state)

    return Stepper(f"nbody.{name}", (type(spec),), make)


# machines whose step runs in less than 1.5 s, and machines whose trace takes more
QUICK = """rl.acrobot rl.cartpole rl.cartpole-masked rl.mountain-car rl.mountain-car-continuous
    rl.pendulum rl.surgical/ecm-reach rl.surgical/ecm-reach-compat nbody.Leapfrog""".split()
SLOW = """continuum.Scene evolution.NSGA2 nbody.Ensemble nbody.Hermite nbody.Hermite6
    nbody.Planetary rigid.Model touch.Grasp rl.PQN rl.SAC rl.DAgger rl.KickstartedPPO
    rl.RecurrentPPO""".split()
SLOW_KINDS = "rl.matter/", "rl.rearrange/", "rl.touch/"


def is_slow(name: str, rule: str) -> bool:
    """Return True if a rule takes more than 1.5 s for a machine."""
    robots = [f"rl.{robot}" for robot in ("reacher", *ALIKE["reacher"].split())]
    if rule == "run":
        return name not in QUICK
    dear = name in SLOW or name in robots or name.startswith(SLOW_KINDS)
    return dear or name.endswith(("-dynamic", "-contact"))


# groups of similar environments, of which only the first is exported and run
ALIKE = {
    "reacher": """ant half-cheetah hopper humanoid humanoid-standup inverted-double-pendulum pusher
        swimmer walker2d""",
    "matter/mixing": """matter/gathering-easy matter/ice-cream-static matter/latte-art-stir
        matter/pouring matter/transporting""",
    "rearrange/mobile-pick": "rearrange/place rearrange/rearrange",
    "rearrange/mobile-pick-dynamic": "rearrange/place-dynamic rearrange/rearrange-dynamic",
    "surgical/ecm-reach": "surgical/psm-reach surgical/star-reach",
    "surgical/ecm-reach-compat": "surgical/psm-reach-compat surgical/star-reach-compat",
    "surgical/ecm-reach-dynamic": "surgical/psm-reach-dynamic surgical/star-reach-dynamic",
    "surgical/psm-track": "surgical/star-track",
}


def environment(name: str) -> Stepper:
    """Return a machine of an environment under random actions."""

    def make(dtype: Any) -> tuple[Callable, Callable]:
        env = make_task(name)

        def step(state: Any, key: Any) -> Any:
            act, move = jax.random.split(key)
            done = env.step(state[0], env.action_space.sample(act), move)
            assert done.reward.shape == ()
            assert done.terminated.dtype == done.truncated.dtype == jnp.bool_
            return done.state, done.observation

        return env.reset, step

    alike = next((first for first, names in ALIKE.items() if name in names.split()), "")
    floats, rtol = ("own", 1e-4) if name.startswith("matter/") else ("same", 1e-5)
    if name.startswith("rearrange/") and name.endswith("-dynamic"):
        rtol = 1e-3  # 30 steps of servos of 1000 N m/rad
    compared: Any = np.float32
    if name.startswith("touch/"):  # fingers at rest: forces of 3 N cancel up to 1e-5 m/s
        compared, rtol = np.float64, 1e-10
    return Stepper(f"rl.{name}", (task_class(name),), make, floats, alike, rtol, compared)


def learner(name: str) -> Stepper:
    """Return a machine of a learner, whose weights have 32 bits in either precision."""
    task, spec = LEARNERS[name]

    def make(dtype: Any) -> tuple[Callable, Callable]:
        env = rl.make(task)
        return lambda key: spec.init(env, key, 10), lambda s, key: spec.update(env, s, key)

    alike = "PPO" if name == "PPO, scaled" else ""
    return Stepper(f"rl.{name}", (type(spec),), make, "own", alike)


STEPPERS = [
    *(algorithm(spec, name) for name, spec in ALGORITHMS.items()),
    Stepper("continuum.Scene", (continuum.Scene, *map(type, MATERIALS.values())), matter),
    Stepper("rigid.Model", (rigid.Model,), joints, alike="physics.rigid.Model.step"),
    Stepper("touch.Grasp", (touch.Grasp,), grasp, alike="physics.touch.Grasp.step"),
    Stepper("nbody.Planetary", (Planetary,), planets),
    Stepper("nbody.WisdomHolman", (WisdomHolman,), symplectic),
    Stepper("nbody.Ensemble", (Ensemble,), ensemble),
    Stepper("nbody.Leapfrog", (Leapfrog,), leapfrog),
    stars(Hermite(), "Hermite"),
    stars(Hermite6(), "Hermite6"),
    *(environment(name) for name in rl.names()),
    *(learner(name) for name in LEARNERS),
]


def check_trace(machine: Stepper) -> None:
    """Assert that a step preserves the types of its state, in one portable program.

    The 64-bit program is traced while the 32-bit one is alive. Arrays that outlive the first must
    not impose its types on the second, as jax 0.12 allows for NumPy arrays turned into constants.
    """
    kept = []
    for dtype in (np.float32, np.float64):
        with jax.enable_x64(dtype is np.float64), as_users():
            init, step = (jax.jit(f) for f in machine.make(dtype))
            begun = init.trace(KEY)
            state = begun.out_info
            traced = step.trace(state, KEY)
            kept += [begun, traced]
            assert conformance.avals(traced.out_info) == conformance.avals(state)
            if machine.floats == "same" or dtype is np.float32:
                conformance.check_jaxpr(traced.jaxpr)
            if not machine.alike and dtype is np.float32:
                conformance.assert_exports(step, state, KEY)
        leaves = jax.tree.leaves(state)
        found = {str(x.dtype) for x in leaves if jnp.issubdtype(x.dtype, jnp.floating)}
        if machine.floats == "same":
            assert found <= {np.dtype(dtype).name}, f"{machine.name}: {found}"


def check_run(machine: Stepper) -> None:
    """Compare a step of two copies under `vmap` with separate steps, and a second step bitwise."""
    with jax.enable_x64(machine.compared is np.float64), as_users(), cheap_programs():
        init, step = (jax.jit(f) for f in machine.make(machine.compared))
        keys = jax.random.split(KEY)
        states = jax.jit(jax.vmap(init))(keys)
        got = jax.jit(jax.vmap(step))(states, keys)
        for i in range(2):
            state = conformance.take_copy(states, i)
            want = step(state, keys[i])
            conformance.assert_same(conformance.take_copy(got, i), want, machine.rtol)
        conformance.assert_same(step(state, keys[1]), want)


RULES: dict[str, Callable[[Stepper], None]] = {"traced": check_trace, "run": check_run}
