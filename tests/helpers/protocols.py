"""What steps, at its smallest: algorithms, matter, bodies, stars, environments and learners.

A `Machine` names the classes that it covers and makes `init(key) -> state` and
`step(state, key) -> state` in a precision. The rules below hold for every protocol; each public
class that has a method of a protocol must be covered by one of the machines.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import conformance
import jax
import jax.numpy as jnp
import numpy as np
from doors import as_users
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
from jaxgpu.rl.envs.locomotion import Robot

KEY = jax.random.key(0)
REF_DIRS = das_dennis(3, 4)


@dataclass(frozen=True)
class Machine:
    """Something that steps: how it begins and goes on, in either precision."""

    name: str
    covers: tuple[type, ...]
    make: Callable[[Any], tuple[Callable, Callable]]  # dtype -> init(key), step(state, key)
    floats: str = "same"  # "same": those of the state are of the dtype; "own": of its own
    dear: bool = False  # traced in the slow tier only
    rtol: float = 1e-4  # between one step under jit or vmap, and a plain one
    compared: Any = np.float32  # the precision in which the two are compared


def algorithm(spec: Any, name: str) -> Machine:
    many = type(spec).__module__.startswith("jaxgpu.evolution.multi")

    def make(dtype: Any) -> tuple[Callable, Callable]:
        sphere = Problem(box(-5.0, 5.0, 4), lambda x: jnp.sum(x * x, keepdims=True))
        problem = dtlz.dtlz2(3, 5) if many else sphere

        def step(state: Any, key: Any) -> Any:
            x = spec.ask(state, key)
            return spec.tell(state, x, *problem.evaluate(x))

        return lambda key: spec.init(key, problem), step

    return Machine(f"evolution.{name}", (type(spec),), make)


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


def matter(material: Any, name: str) -> Machine:
    """A material beside another and a tool."""

    def make(dtype: Any) -> tuple[Callable, Callable]:
        x = np.random.default_rng(0).uniform(0.3, 0.7, (2, 8, 3)).astype(dtype)
        others = (
            continuum.Body(x[0], material, dtype(1e-3)),
            continuum.Body(x[1], continuum.NeoHookean(), dtype(1e-3)),
        )
        tool = continuum.Collider(continuum.sdf.Ball(dtype(0.05)), (0.5, 0.5, 0.5))
        grid, gravity = continuum.Grid(0.1, (10, 10, 10)), (0.0, -9.8, 0.0)
        scene = continuum.Scene(others, grid, gravity, (tool,)).prepare()
        return lambda key: scene.init(), lambda state, key: scene.step(state)

    return Machine(f"continuum.{name}", (type(material), continuum.Scene), make)


MATERIALS = {
    "Liquid": continuum.Liquid(1e4, viscosity=0.1),
    "HerschelBulkley": continuum.HerschelBulkley(1e4, yield_stress=1.0, consistency=1.0),
    "NeoHookean": continuum.NeoHookean(),
    "Corotated": continuum.Corotated(),
    "VonMises": continuum.VonMises(),
    "DruckerPrager": continuum.DruckerPrager(),
    "DruckerPrager, grains": continuum.DruckerPrager(grain=1e-3),
    "Snow": continuum.Snow(),
}


def joints(dtype: Any) -> tuple[Callable, Callable]:
    arm = '<body pos="0 0 .3"><joint axis="0 1 0"/><geom type="capsule" size=".05 .1"/></body>'
    text = f'<body pos="0 0 .18"><freejoint/><geom size=".2"/>{arm}</body>'
    ground = '<geom type="plane" size="1 1 1"/>'
    model = rigid.load(f"<mujoco><worldbody>{ground}{text}</worldbody></mujoco>", dtype=dtype)
    return lambda key: model.init(), lambda state, key: model.step(state)


def grasp(dtype: Any) -> tuple[Callable, Callable]:
    """A peg that hangs in a hand above its socket."""
    spec = touch.Grasp.of(*touch.peg_and_socket(), taxels=(4, 3))
    hand = jnp.asarray([0.01, 0.0, 0.1], dtype)
    start = spec.init(hand, hand.at[2].add(dtype(-0.02)))
    shift = jnp.asarray([0.0, 0.01, 0.0], dtype)
    return lambda key: start, lambda state, key: spec.step(state, shift)


# three bodies of unlike masses, and two tracers
GM = np.array([1.0, 1e-3, 3e-4])
X = np.array([[0.0, 0.0, 0.0], [1.0, 0.1, 0.0], [-0.3, 2.1, 0.2]])
V = np.array([[0.0, 0.0, 0.0], [-0.1, 1.0, 0.05], [-0.68, -0.1, 0.0]])
TRACERS = np.array([[0.0, 1.5, 0.1], [3.0, 0.0, -0.2]])


def planets(dtype: Any) -> tuple[Callable, Callable]:
    x, v, gm, tracers = (jnp.asarray(a, dtype) for a in (X, V, GM, TRACERS))
    spec = Planetary(gm=gm, dt=dtype(0.1))
    start = spec.init(x, v, (tracers, jnp.flip(tracers, 1) / 3))  # checked on the host
    return lambda key: start, lambda state, key: spec.step(state)


def symplectic(dtype: Any) -> tuple[Callable, Callable]:
    x, v, gm = (jnp.asarray(a, dtype) for a in (X, V, GM))
    spec = WisdomHolman(gm=gm, dt=dtype(0.1))
    start = spec.init(x, v)
    return lambda key: start, lambda state, key: spec.step(state)


def ensemble(dtype: Any) -> tuple[Callable, Callable]:
    x, v, m = (jnp.stack([jnp.asarray(a, dtype)] * 2) for a in (X, V, GM))
    spec = Ensemble(dt=dtype(0.1))
    return lambda key: spec.init(x, v, m), lambda state, key: spec.step(state)


def leapfrog(dtype: Any) -> tuple[Callable, Callable]:
    spec = Leapfrog(lambda t, x: -x, dt=dtype(0.1), order=8)
    x, v = jnp.asarray(X, dtype), jnp.asarray(V, dtype)
    return lambda key: spec.init(x, v), lambda state, key: spec.step(state)


def stars(spec: Any, name: str) -> Machine:
    """Five stars of unlike masses and two tracers."""

    def make(dtype: Any) -> tuple[Callable, Callable]:
        rng = np.random.default_rng(1)
        x, v = (jnp.asarray(rng.normal(size=(5, 3)) * scale, dtype) for scale in (1.0, 0.3))
        m = jnp.asarray([0.4, 0.3, 0.15, 0.1, 0.05], dtype)
        tracers = jnp.asarray(rng.normal(size=(2, 3)), dtype)
        start = spec.init(x, v, m, (tracers, tracers / 4))
        return lambda key: start, lambda state, key: spec.step(state)

    return Machine(f"nbody.{name}", (type(spec),), make)


def environment(name: str) -> Machine:
    """An environment under actions that are drawn."""
    env = rl.make(name)

    def make(dtype: Any) -> tuple[Callable, Callable]:
        env = rl.make(name)

        def step(state: Any, key: Any) -> Any:
            act, move = jax.random.split(key)
            done = env.step(state[0], env.action_space.sample(act), move)
            assert done.reward.shape == ()
            assert done.terminated.dtype == done.truncated.dtype == jnp.bool_
            return done.state, done.observation

        return env.reset, step

    tasks = name.startswith("matter/")  # matter keeps 32-bit numbers, and takes a second to trace
    dear = tasks and name != "matter/mixing"
    dear |= name.startswith("touch/") and name != "touch/peg-insertion"
    dear |= isinstance(env, Robot) and name != "reacher"
    dear |= name.startswith("rearrange/") and name != "rearrange/navigate"
    floats, rtol = ("own", 1e-4) if tasks else ("same", 1e-5)
    if name.startswith("rearrange/") and name.endswith("-dynamic"):
        rtol = 1e-3  # 30 steps of servos of 1000 N m/rad
    if name == "rearrange/place-dynamic":
        rtol = 0.05  # held: moved by 2e-7, one in 64 is 0.1 m/s off after a step, in float64 too
    compared: Any = np.float32
    if name.startswith("touch/"):  # fingers at rest: a rate of 1e-5 m/s is what forces of 3 N leave
        compared, rtol = np.float64, 1e-10
    return Machine(f"rl.{name}", (type(env),), make, floats, dear, rtol, compared)


def learner(name: str) -> Machine:
    """A learner; its weights are of 32 bits in either precision."""
    task, spec = LEARNERS[name]

    def make(dtype: Any) -> tuple[Callable, Callable]:
        env = rl.make(task)
        return lambda key: spec.init(env, key, 10), lambda s, key: spec.update(env, s, key)

    return Machine(f"rl.{name}", (type(spec),), make, "own")


MACHINES = [
    *(algorithm(spec, name) for name, spec in ALGORITHMS.items()),
    *(matter(material, name) for name, material in MATERIALS.items()),
    Machine("rigid.Model", (rigid.Model,), joints),
    Machine("touch.Grasp", (touch.Grasp,), grasp),
    Machine("nbody.Planetary", (Planetary,), planets),
    Machine("nbody.WisdomHolman", (WisdomHolman,), symplectic),
    Machine("nbody.Ensemble", (Ensemble,), ensemble),
    Machine("nbody.Leapfrog", (Leapfrog,), leapfrog),
    stars(Hermite(), "Hermite"),
    stars(Hermite6(), "Hermite6"),
    *(environment(name) for name in rl.names()),
    *(learner(name) for name in LEARNERS),
]


def in_precision(machine: Machine, dtype: Any) -> None:
    """A step gives back the types that it was given, in one program without a call to the host."""
    with jax.enable_x64(np.dtype(dtype) == np.float64), as_users():
        init, step = machine.make(dtype)
        state = jax.eval_shape(init, KEY)
        assert conformance.avals(jax.eval_shape(step, state, KEY)) == conformance.avals(state)
        if machine.floats == "same" or np.dtype(dtype) == np.float32:
            conformance.check_program(step, state, KEY)
    found = {str(x.dtype) for x in jax.tree.leaves(state) if jnp.issubdtype(x.dtype, jnp.floating)}
    if machine.floats == "same":
        assert found <= {np.dtype(dtype).name}, f"{machine.name}: {found}"


def both_precisions(machine: Machine) -> None:
    """A program of 64 bits is traced after one of 32 in one process.

    Arrays that outlive the first must not keep its types in the second, as jax 0.12 lets NumPy's
    do of which it made constants.
    """

    def traced(dtype: Any) -> Any:
        init, step = machine.make(dtype)
        return jax.jit(lambda key: step(init(key), key)).trace(KEY)

    with as_users():
        kept = traced(np.float32)  # the fault is seen while this program lives
        with jax.enable_x64(True):
            traced(np.float64)
    del kept


def portable(machine: Machine) -> None:
    """A step lowers for a CPU, a CUDA device and a TPU."""
    with as_users():
        init, step = machine.make(np.float32)
        conformance.exports(step, jax.eval_shape(init, KEY), KEY)


def jit_and_vmap(machine: Machine) -> None:
    """A step of two copies under `vmap` is that of each alone, and has the same bits again."""
    with jax.enable_x64(machine.compared == np.float64), as_users():
        init, step = machine.make(machine.compared)
        keys, one = jax.random.split(KEY), jax.jit(step)
        states = jax.jit(jax.vmap(init))(keys)
        got = jax.jit(jax.vmap(step))(states, keys)
        for lane in range(2):
            state = jax.tree.map(operator.itemgetter(lane), states)
            want = one(state, keys[lane])
            conformance.same(jax.tree.map(operator.itemgetter(lane), got), want, machine.rtol)
        conformance.same(one(state, keys[1]), want)


RULES: dict[str, Callable[[Machine], None]] = {
    "float32": lambda machine: in_precision(machine, np.float32),
    "float64": lambda machine: in_precision(machine, np.float64),
    "both precisions": both_precisions,
    "export": portable,
    "jit and vmap": jit_and_vmap,
}
