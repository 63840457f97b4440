"""The single-device programs that the README and the documents name, small and at full size.

The small ones are compiled for chips that are not present; their figures depend on the size only as
far as each row says. `benchmarks.device` runs them at full size on a present device.
"""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.reach import walkers
from benchmarks.reach.program import KEY, Made, Program, numbers
from jaxgpu import numerics, rl
from jaxgpu.evolution import multi, protocol, single
from jaxgpu.evolution.pareto import ranks
from jaxgpu.evolution.problem import Problem, box
from jaxgpu.evolution.problems import dtlz
from jaxgpu.geometry import sdf
from jaxgpu.geometry.solids import Boxes, Solids
from jaxgpu.physics import continuum, rigid, touch
from jaxgpu.physics.nbody.clusters import Hermite, Hermite6, Pairing
from jaxgpu.physics.nbody.forces import hilo, pairs
from jaxgpu.physics.nbody.planets import Ensemble, Planetary, WisdomHolman
from jaxgpu.render import Camera, depth_image
from jaxgpu.studies.robot_front.task import swimmer_policies


def _bessel(f: Callable[..., Any], n: int) -> Made:
    return f, lambda: (numbers(n, high=50.0), numbers(n, low=0.2, high=90.0))


def _grad_log_iv(n: int) -> Made:
    return _bessel(jax.grad(lambda order, x: numerics.log_iv(order, x).sum(), 1), n)


def _vmf_fit(n: int) -> Made:
    """Make the fit of n points in 64 dimensions, or in 384 from 4,096 points on."""
    return numerics.VonMisesFisher.fit, lambda: (_unit_vectors(n, 384 if n >= 4096 else 64),)


def _unit_vectors(*shape: int) -> jax.Array:
    x = numbers(*shape)
    return x / jnp.linalg.norm(x, axis=1, keepdims=True)


def _generation(spec: Any, problem: Problem) -> Made:
    def step(state: Any, key: Any) -> Any:
        x = spec.ask(state, key)
        return spec.tell(state, x, *problem.evaluate(x))

    return step, lambda: (spec.init(KEY, problem), KEY)


def _nsga2_generation(n: int) -> Made:
    return _generation(multi.NSGA2(pop_size=n), dtlz.dtlz2(3, 7))


def _nsga3_generation(n: int) -> Made:
    """Make a generation of NSGA-III with as many directions as fit into the members."""
    parts = int((2 * n) ** 0.5 - 1.5)
    return _generation(multi.NSGA3(multi.das_dennis(3, parts), pop_size=n), dtlz.dtlz2(3, 7))


def _sphere_generation(make: Callable[[int], Any], n: int) -> Made:
    """Make a generation on the sphere with half as many variables as members, at most 1,000."""
    sphere = Problem(box(-5.0, 5.0, min(n // 2, 1000)), lambda x: jnp.sum(x * x, keepdims=True))
    return _generation(make(n), sphere)


def _ranks(objectives: int, n: int) -> Made:
    return ranks, lambda: (numbers(n, objectives),)


def _pair_sums(n: int) -> Made:
    return pairs.pull, lambda: (numbers(6, n), numbers(6, n), numbers(n))


def _hilo_pair_sums(n: int) -> Made:
    hilo_values = lambda: jnp.stack([numbers(6, n), 1e-8 * numbers(6, n)])
    return hilo.pull, lambda: (hilo_values(), hilo_values(), numbers(n))


def _cluster_step(spec: Any, n: int) -> Made:
    """Make a step of stars sampled from a Gaussian, at rest in the mean."""

    def start() -> tuple[Any, ...]:
        x, v = 0.5 * jax.random.normal(KEY, (2, n, 3), jnp.result_type(float))
        return (spec.init(x, v, jnp.full(n, 1 / n)),)

    return spec.step, start


GM = np.array([1.0, 1e-3, 3e-4])
X = np.array([[0.0, 0.0, 0.0], [1.0, 0.1, 0.0], [-0.3, 2.1, 0.2]])
V = np.array([[0.0, 0.0, 0.0], [-0.1, 1.0, 0.05], [-0.68, -0.1, 0.0]])


def _planetary_step(n: int) -> Made:
    """Make a step of two planets and n tracers on circular orbits outside them."""
    spec = Planetary(gm=jnp.asarray(GM), dt=0.1)

    def start() -> tuple[Any, ...]:
        r, turn = numbers(n, low=3.0, high=6.0), 2 * jnp.pi * numbers(n)
        x = jnp.stack([r * jnp.cos(turn), r * jnp.sin(turn), 0.01 * r], axis=1)
        v = jnp.stack([-jnp.sin(turn), jnp.cos(turn), 0 * turn], axis=1) / jnp.sqrt(r)[:, None]
        return (spec.init(jnp.asarray(X), jnp.asarray(V), (x, v)),)

    return lambda state: spec.step(state), start


def _wisdom_holman_step(n: int) -> Made:
    """Make a step of n identical systems of three bodies; a single one without `vmap`."""
    spec = WisdomHolman(gm=jnp.asarray(GM), dt=0.1)
    step = lambda state: spec.step(state)
    start = lambda: spec.init(jnp.asarray(X), jnp.asarray(V))
    if n == 1:
        return step, lambda: (start(),)
    return jax.vmap(step), lambda: (_stack_copies(start(), n),)


def _stack_copies(tree: Any, n: int) -> Any:
    return jax.tree.map(lambda a: jnp.broadcast_to(a, (n, *jnp.shape(a))), tree)


def _ensemble_step(n: int) -> Made:
    spec = Ensemble(dt=0.1)
    return spec.step, lambda: (spec.init(*(jnp.stack([jnp.asarray(a)] * n) for a in (X, V, GM))),)


def block(material: Any, n: int) -> continuum.Scene:
    """Return particles that fill 0.4 metres cubed, about five per cell, in a box twice as wide."""
    dx = (4096 / n) ** (1 / 3) / 24
    x = jnp.asarray(np.random.default_rng(0).uniform(0.3, 0.7, (n, 3)), jnp.float32)
    body = continuum.Body(x, material, (dx / 2) ** 3)
    cells = round(0.8 / dx)
    grid = continuum.Grid(dx, (cells,) * 3, lower=(2 * dx,) * 3)
    return continuum.Scene((body,), grid, gravity=(0.0, -9.8, 0.0), dt=2.4e-3 * dx)


def _continuum_step(material: Any, n: int) -> Made:
    scene = block(material, n)
    return lambda state: scene.step(state), lambda: (scene.init(),)


def _scenes_step(n: int) -> Made:
    """Make a step of n scenes of 4,096 particles."""
    f, start = _continuum_step(continuum.Liquid(1e5), 4096)
    return jax.vmap(f), lambda: (_stack_copies(start()[0], n),)


def _liquid_gradient(n: int) -> Made:
    """Make value and gradient of 4 steps of a liquid in its initial velocity."""
    scene = block(continuum.Liquid(1e5), n)

    def height(v: Any, state: Any) -> Any:
        (body,) = state.bodies
        moving = dataclasses.replace(state, bodies=(body.replace(v=body.v + v),))
        end, _ = continuum.rollout(scene, moving, 1, substeps=4)
        return jnp.mean(end.bodies[0].x[:, 1])

    return jax.value_and_grad(height), lambda: (jnp.zeros(3), scene.init())


def _mechanism_step(text: Callable[[], str], n: int) -> Made:
    """Make a step of n copies of a mechanism; a single one without `vmap`."""
    model = rigid.load(text())
    if n == 1:
        return model.step, lambda: (model.init(),)
    return jax.vmap(lambda state: model.step(state)), lambda: (_stack_copies(model.init(), n),)


def _arm_mjcf() -> str:
    """Return an arm of four links without contacts, as MJCF."""
    link = (
        '<body pos="0.3 0 0"><joint/><inertial pos="0 0 0" mass="0.5" diaginertia="0.1 0.2 0.25"/>'
    )
    return f"<mujoco><worldbody>{link * 4}{'</body>' * 4}</worldbody></mujoco>"


def _learner_update(task: str, learner: Callable[..., Any], n: int) -> Made:
    """Make an update with n environments and n / 2 steps, at most 32."""
    env, spec = rl.make(task), learner(num_envs=n, num_steps=min(32, n // 2))
    step = lambda state, key: spec.update(env, state, key)
    return step, lambda: (spec.init(env, KEY, 10), KEY)


def _num_env_steps(n: int) -> float:
    return float(n * min(32, n // 2))


def _environment_step(task: str, n: int) -> Made:
    envs = rl.vectorize(rl.make(task), n)

    def step(state: Any, key: Any) -> Any:
        act, move = jax.random.split(key)
        actions = jax.vmap(envs.env.action_space.sample)(jax.random.split(act, n))
        return envs.step(state, actions, move)

    return step, lambda: (envs.reset(KEY), KEY)


def _depth_images(size: int, n: int) -> Made:
    """Make n depth images of 320 upright boxes each."""

    def start() -> tuple[Any, ...]:
        centre = 8 * numbers(n, 320, 3, low=-1.0)
        boxes = Boxes(centre, 0.3 * numbers(n, 320, 3), 6 * numbers(n, 320))
        eye = numbers(n, 3)
        return boxes, eye, eye + numbers(n, 3)

    def image(boxes: Boxes, eye: Any, target: Any) -> Any:
        camera = Camera(eye, target, (0.0, 0.0, 1.0), angle=1.05, width=size, height=size)
        return depth_image(camera, Solids(boxes))

    return jax.vmap(image), start


def _policy_generation(n: int) -> Made:
    """Make a generation of n policies on the swimmer, with 4 steps (1,000 if n >= 1,024)."""
    problem = swimmer_policies(1000 if n >= 1024 else 4).problem()
    spec = multi.NSGA3(multi.das_dennis(2, n - 1))
    step = partial(protocol.advance_search, spec, problem)
    return step, lambda: (protocol.init_search(spec, problem, KEY), KEY)


def _force_field_step(n: int) -> Made:
    """Make a step of the anchored law for n pads of 10 x 10 taxels, each with one rod pose."""
    field = touch.ForceField(stiffness=100.0, shear_stiffness=50.0, friction=0.6)

    def step(anchors: Any, pos: Any, velocity: Any) -> Any:
        points, quat = touch.taxels(0.02, 0.02, 10, 10), jnp.array([0.8, 0.6, 0.0, 0.0])
        seen = touch.probe(sdf.Capsule(8e-3, 4e-3), points, pos, quat, velocity, 10 * velocity)
        return field.force(anchors, *seen, 0.01)

    return jax.vmap(step), lambda: (jnp.zeros((n, 100, 3)), numbers(n, 3) / 250, numbers(n, 3))


def _tactile_images(smooth: bool, n: int) -> Made:
    """Make n images of 60 x 80 pixels, from a sensor with tables of the measured sensors' size."""
    entries = 129 if smooth else 125
    blurs = tuple(jnp.full(taps, 1 / taps) for taps in (17, 9, 5, 3))
    sensor = touch.GelSight(
        gel=jnp.zeros((60, 80)),
        rest=jnp.full((60, 80, 3), 0.5),
        table=jnp.zeros((6, entries, entries, 3)),
        down=blurs,
        across=blurs,
        pixel=2.95e-5,
        smooth=smooth,
    )
    draw = jax.vmap(lambda sensor, height: sensor.image(height), (None, 0))
    return draw, lambda: (sensor, numbers(n, 60, 80) / 1e3 - 5e-4)


_POINTS: dict[str, Any] = {"amount": float, "unit": "points"}
_PAIRS: dict[str, Any] = {"amount": lambda n: float(n) ** 2, "unit": "pairs"}
_STEPS: dict[str, Any] = {"amount": float, "unit": "particle steps"}
_LEARNED: dict[str, Any] = {"amount": _num_env_steps, "unit": "steps of environments"}
_FRAMES: dict[str, Any] = {"amount": float, "unit": "frames"}
_LIQUID = partial(_continuum_step, continuum.Liquid(1e5))
_CMA = partial(single.CMAES, factor="cholesky")
_LSHADE = lambda n: single.LSHADE(8000, pop_size=n)
_PSM = "surgical/psm-reach"

SINGLE_DEVICE = (
    Program("log_iv", partial(_bessel, numerics.log_iv), 4096, 1 << 20, **_POINTS),
    Program("log_kv", partial(_bessel, numerics.log_kv), 4096, 1 << 20, **_POINTS),
    Program("log_iv, its slope", _grad_log_iv, 4096, 1 << 20, **_POINTS),
    Program("VonMisesFisher.fit", _vmf_fit, 512, 30522),
    Program("NSGA2, a generation", _nsga2_generation, 512, 1 << 15),
    Program("NSGA3, a generation", _nsga3_generation, 512, 1 << 15, goal=250.0),
    Program("ranks, 3 objectives", partial(_ranks, 3), 2048, 1 << 16),
    Program("ranks, 5 objectives", partial(_ranks, 5), 2048, 1 << 16),
    Program("CMAES, a generation", partial(_sphere_generation, _CMA), 64, 4096),
    Program("LSHADE, a generation", partial(_sphere_generation, _LSHADE), 64, 4096),
    # operations per pair: the issue slots of its formula, counted by hand, two operations each
    Program("pair sums", _pair_sums, 2048, 1 << 15, goal=8e11, operations=56, **_PAIRS),
    Program(
        "pair sums, float64", _pair_sums, 2048, 1 << 15, True, goal=2.5e11, operations=86, **_PAIRS
    ),
    Program("pair sums, hi/lo", _hilo_pair_sums, 2048, 1 << 15, operations=152, **_PAIRS),
    Program("Hermite, a step", partial(_cluster_step, Hermite()), 256, 1024, True),
    Program(
        "Hermite with pairs, a step",
        partial(_cluster_step, Hermite(pairing=Pairing(close=1e-3, slots=64))),
        256,
        1024,
        True,
        chips=("h100",),
    ),
    Program("Hermite6, a step", partial(_cluster_step, Hermite6()), 256, 1024, True),
    Program("Planetary, a step", _planetary_step, 1024, 1 << 14, True),
    Program("WisdomHolman, a step", _wisdom_holman_step, 1, 4096, True, chips=("h100",)),
    # float64 is emulated on the TPU and would take a minute to compile
    Program("WisdomHolman, float32, a step", _wisdom_holman_step, 1, 4096, chips=("v5e",)),
    Program("Ensemble, a step", _ensemble_step, 64, 4096, True),
    Program("Liquid, a step", _LIQUID, 4096, 1 << 20, goal=1e9, **_STEPS),
    Program(
        "Corotated, a step",
        partial(_continuum_step, continuum.Corotated()),
        4096,
        1 << 20,
        **_STEPS,
    ),
    Program(
        "DruckerPrager, a step",
        partial(_continuum_step, continuum.DruckerPrager()),
        4096,
        1 << 20,
        **_STEPS,
    ),
    Program("liquids in scenes of their own, a step", _scenes_step, 8, 64),
    Program("Liquid, slope of 4 steps", _liquid_gradient, 4096, 1 << 16),
    Program("rigid arm, a step", partial(_mechanism_step, _arm_mjcf), 1, 4096),
    Program("ant, a step", partial(_mechanism_step, walkers.ant), 16, 4096),
    Program("humanoid, a step", partial(_mechanism_step, walkers.humanoid), 16, 4096),
    Program(
        "force fields, a step",
        _force_field_step,
        64,
        1 << 15,
        goal=2e7,
        amount=float,
        unit="fields",
    ),
    Program(
        "pictures of touch",
        partial(_tactile_images, False),
        16,
        1024,
        amount=float,
        unit="pictures",
    ),
    Program(
        "pictures of touch, smooth",
        partial(_tactile_images, True),
        16,
        1024,
        amount=float,
        unit="pictures",
    ),
    Program(
        "policies of a swimmer, a generation",
        _policy_generation,
        16,
        1 << 16,
        chips=("h100",),
        calls=1,
    ),
    Program(
        "PPO on cartpole, an update",
        partial(_learner_update, "cartpole", rl.PPO),
        16,
        2048,
        goal=1e7,
        **_LEARNED,
    ),
    Program(
        "PPO on psm-reach, an update", partial(_learner_update, _PSM, rl.PPO), 16, 2048, **_LEARNED
    ),
    Program(
        "SHAC on psm-reach, an update",
        partial(_learner_update, _PSM, rl.SHAC),
        16,
        2048,
        **_LEARNED,
    ),
    Program(
        "psm-reach, a step",
        partial(_environment_step, _PSM),
        16,
        1 << 16,
        goal=2e8,
        amount=float,
        unit="steps of environments",
    ),
    Program(
        "depth images, 64 x 64", partial(_depth_images, 64), 1024, 1 << 14, goal=4e5, **_FRAMES
    ),
    Program(
        "depth images, 128 x 128", partial(_depth_images, 128), 1024, 1 << 12, goal=1e5, **_FRAMES
    ),
    Program(
        "peg insertion, a step", partial(_environment_step, "touch/peg-insertion"), 16, 1 << 14
    ),
    Program("mobile pick, a step", partial(_environment_step, "rearrange/mobile-pick"), 16, 1024),
    Program(
        "mobile pick with masses, a step",
        partial(_environment_step, "rearrange/mobile-pick-dynamic"),
        16,
        1024,
        chips=("h100",),
    ),
    Program("pouring, a step", partial(_environment_step, "matter/pouring"), 16, 64),
)
