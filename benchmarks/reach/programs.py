"""The programs that the README and the documents name, in small form: nothing is computed here.

Their structure does not depend on their size, beyond what each row says. A program is a function
and the shapes of its arguments.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu import numerics, rl
from jaxgpu.evolution import multi, single
from jaxgpu.evolution.pareto import ranks
from jaxgpu.evolution.problem import Problem, box
from jaxgpu.evolution.problems import dtlz
from jaxgpu.physics import continuum, rigid
from jaxgpu.physics.nbody.clusters import Hermite, Hermite6
from jaxgpu.physics.nbody.forces import hilo, pairs
from jaxgpu.physics.nbody.planets import Ensemble, Planetary, WisdomHolman

KEY = jax.random.key(0)
# a function and the shapes of its arguments
type Made = tuple[Callable[..., Any], tuple[Any, ...]]


@dataclass(frozen=True)
class Program:
    """One row: what it is, and how it is made under its precision."""

    name: str
    make: Callable[[], Made]
    wide: bool = False  # of float64
    chips: tuple[str, ...] = ("h100", "v5e")  # whose compilers take it

    def made(self) -> Made:
        """The function and the shapes of its arguments."""
        f, args = self.make()
        return f, jax.tree.map(_shape, args)


def _shape(leaf: Any) -> jax.ShapeDtypeStruct:
    aval = jax.typeof(leaf) if not isinstance(leaf, jax.ShapeDtypeStruct) else leaf
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype)


def _numbers(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.result_type(float))


def _bessel(f: Callable[..., Any]) -> Made:
    return f, (_numbers(4096), _numbers(4096))


def _slope_of_log_iv() -> Made:
    return _bessel(jax.grad(lambda order, x: numerics.log_iv(order, x).sum(), 1))


def _directions() -> Made:
    return numerics.VonMisesFisher.fit, (_numbers(512, 64),)


def _generation(spec: Any, problem: Problem) -> Made:
    def step(state: Any, key: Any) -> Any:
        x = spec.ask(state, key)
        return spec.tell(state, x, *problem.evaluate(x))

    state = jax.eval_shape(lambda key: spec.init(key, problem), KEY)
    return step, (state, KEY)


def _many_objectives(spec: Any) -> Made:
    return _generation(spec, dtlz.dtlz2(3, 7))


def _with_directions() -> Made:
    return _many_objectives(multi.NSGA3(multi.das_dennis(3, 29), pop_size=512))


def _one_objective(spec: Any) -> Made:
    sphere = Problem(box(-5.0, 5.0, 32), lambda x: jnp.sum(x * x, keepdims=True))
    return _generation(spec, sphere)


def _pairs() -> Made:
    return pairs.pull, (_numbers(6, 2048), _numbers(6, 2048), _numbers(2048))


def _pairs_in_pairs() -> Made:
    return hilo.pull, (_numbers(2, 6, 2048), _numbers(2, 6, 2048), _numbers(2048))


def _cluster(spec: Any) -> Made:
    """256 stars; how they lie decides nothing of the program."""
    rng = np.random.default_rng(0)
    x, v = jnp.asarray(rng.normal(size=(2, 256, 3)))
    return spec.step, (spec.init(x, v, jnp.full(256, 1 / 256)),)


GM = np.array([1.0, 1e-3, 3e-4])
X = np.array([[0.0, 0.0, 0.0], [1.0, 0.1, 0.0], [-0.3, 2.1, 0.2]])
V = np.array([[0.0, 0.0, 0.0], [-0.1, 1.0, 0.05], [-0.68, -0.1, 0.0]])


def _planets(tracers: int) -> Made:
    x, v = jnp.asarray(np.random.default_rng(0).uniform(1.5, 3.0, (2, tracers, 3)))
    spec = Planetary(gm=jnp.asarray(GM), dt=0.1)
    return lambda state: spec.step(state), (spec.init(jnp.asarray(X), jnp.asarray(V), (x, v)),)


def _symplectic() -> Made:
    spec = WisdomHolman(gm=jnp.asarray(GM), dt=0.1)
    return lambda state: spec.step(state), (spec.init(jnp.asarray(X), jnp.asarray(V)),)


def _ensemble() -> Made:
    spec = Ensemble(dt=0.1)
    systems = (jnp.stack([jnp.asarray(a)] * 64) for a in (X, V, GM))
    return spec.step, (spec.init(*systems),)


def _scene(material: Any) -> continuum.Scene:
    """4,096 particles in 19^3 cells."""
    dx = 1 / 24
    x = jnp.asarray(np.random.default_rng(0).uniform(0.3, 0.7, (4096, 3)), jnp.float32)
    body = continuum.Body(x, material, (dx / 2) ** 3)
    grid = continuum.Grid(dx, (19,) * 3, lower=(2 * dx,) * 3)
    return continuum.Scene((body,), grid, gravity=(0.0, -9.8, 0.0), dt=1e-4)


def _matter(material: Any) -> Made:
    scene = _scene(material)
    return lambda state: scene.step(state), (jax.eval_shape(scene.init),)


def _scenes() -> Made:
    f, (state,) = _matter(continuum.Liquid(1e5))
    stacked = jax.tree.map(lambda a: jax.ShapeDtypeStruct((64, *a.shape), a.dtype), state)
    return jax.vmap(f), (stacked,)


def _slope_of_matter() -> Made:
    """Value and gradient of 4 steps of a liquid in its initial velocity."""
    scene = _scene(continuum.Liquid(1e5))

    def height(v: Any, state: Any) -> Any:
        (body,) = state.bodies
        moving = dataclasses.replace(state, bodies=(body.updated(v=body.v + v),))
        end, _ = continuum.rollout(scene, moving, 1, substeps=4)
        return jnp.mean(end.bodies[0].x[:, 1])

    return jax.value_and_grad(height), (_numbers(3), jax.eval_shape(scene.init))


def _arm() -> Made:
    inertia = np.diag([0.1, 0.2, 0.25])
    links = [
        rigid.Link(i - 1, "revolute", mass=0.5, position=(0.3, 0.0, 0.0), inertia=inertia)
        for i in range(4)
    ]
    tree = rigid.assemble(links)
    spec = rigid.Simulation(tree, rigid.passive(tree))
    return spec.step, (spec.init(),)


def _learning(task: str, spec: Any) -> Made:
    env = rl.make(task)
    state = jax.eval_shape(lambda key: spec.init(env, key, 10), KEY)
    return lambda state, key: spec.update(env, state, key), (state, KEY)


def _playing(task: str) -> Made:
    envs = rl.vectorize(rl.make(task), 16)

    def step(state: Any, key: Any) -> Any:
        act, move = jax.random.split(key)
        actions = jax.vmap(envs.env.action_space.sample)(jax.random.split(act, 16))
        return envs.step(state, actions, move)

    return step, (jax.eval_shape(envs.reset, KEY), KEY)


_FEW: dict[str, Any] = {"num_envs": 16, "num_steps": 8}

PROGRAMS = (
    Program("log_iv", lambda: _bessel(numerics.log_iv)),
    Program("log_kv", lambda: _bessel(numerics.log_kv)),
    Program("log_iv, its slope", _slope_of_log_iv),
    Program("VonMisesFisher.fit", _directions),
    Program("NSGA2, a generation", lambda: _many_objectives(multi.NSGA2(pop_size=512))),
    Program("NSGA3, a generation", _with_directions),
    Program("ranks, 3 objectives", lambda: (ranks, (_numbers(2048, 3),))),
    Program("ranks, 5 objectives", lambda: (ranks, (_numbers(2048, 5),))),
    Program("CMAES, a generation", lambda: _one_objective(single.CMAES(64, factor="cholesky"))),
    Program("LSHADE, a generation", lambda: _one_objective(single.LSHADE(8000, pop_size=64))),
    Program("pair sums", _pairs),
    Program("pair sums, float64", _pairs, wide=True),
    Program("pair sums, hi/lo", _pairs_in_pairs),
    Program("Hermite, a step", lambda: _cluster(Hermite()), wide=True),
    Program("Hermite6, a step", lambda: _cluster(Hermite6()), wide=True),
    Program("Planetary, a step", lambda: _planets(1024), wide=True),
    Program("WisdomHolman, a step", _symplectic, wide=True),
    Program("Ensemble, a step", _ensemble, wide=True),
    Program("Liquid, a step", lambda: _matter(continuum.Liquid(1e5))),
    Program("Corotated, a step", lambda: _matter(continuum.Corotated())),
    Program("DruckerPrager, a step", lambda: _matter(continuum.DruckerPrager())),
    # the TPU's compiler of libtpu 0.0.50.1 ends on this one: "Check failed: window.pad_low[i] == 0"
    Program("64 liquids, a step", _scenes, chips=("h100",)),
    Program("Liquid, slope of 4 steps", _slope_of_matter),
    Program("rigid arm, a step", _arm),
    Program("PPO on cartpole, an update", lambda: _learning("cartpole", rl.PPO(**_FEW))),
    Program("PPO on psm-reach, an update", lambda: _learning("surgical/psm-reach", rl.PPO(**_FEW))),
    Program(
        "SHAC on psm-reach, an update", lambda: _learning("surgical/psm-reach", rl.SHAC(**_FEW))
    ),
    Program("pouring, a step of 16", lambda: _playing("matter/pouring")),
)
