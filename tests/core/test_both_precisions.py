"""Every spec runs in float64 as it does in float32: the same types in and out, and no other float.

Programs are traced and not run, so that all of them can be looked at; environments and learners
are walked in tests/rl.
"""

import conformance
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.evolution import multi, protocol, single
from jaxgpu.evolution.multi import das_dennis
from jaxgpu.evolution.problem import Problem, box
from jaxgpu.evolution.problems import dtlz
from jaxgpu.physics import continuum, rigid

REF_DIRS = das_dennis(3, 4)
ALGORITHMS = [
    multi.NSGA2(pop_size=16),
    multi.NSGA3(REF_DIRS, pop_size=16),
    multi.NSGA3(REF_DIRS, pop_size=16, unified=True),
    multi.MOEAD(REF_DIRS, 5),
    multi.MOEAD(REF_DIRS, 5, "tchebycheff"),
    multi.RVEA(REF_DIRS, generations=100),
    multi.HypE(pop_size=16, rays=64, rounds=2),
    single.CMAES(8),
    single.CMAES(8, factor="cholesky"),
    single.SepCMAES(8),
    single.LMMAES(8),
    single.XNES(8),
    single.SNES(8),
    single.OpenES(8),
    single.pgpe(8),
    single.Restarts(8, doublings=2),
    single.LSHADE(800, pop_size=16),
    single.PSO(8),
    single.CSO(8),
]
PRECISIONS = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def fixed_point(step, state, dtype):
    """The step gives back the types it was given, and its floats are all of one dtype."""
    with jax.numpy_dtype_promotion("standard"):
        assert conformance.avals(jax.eval_shape(step, state)) == conformance.avals(state)
    found = {leaf.dtype for leaf in jax.tree.leaves(state)}
    assert {kind for kind in found if jnp.issubdtype(kind, jnp.floating)} == {np.dtype(dtype)}


@PRECISIONS
@pytest.mark.parametrize("spec", ALGORITHMS, ids=lambda spec: type(spec).__name__)
def test_every_algorithm(spec, dtype):
    many = type(spec).__module__.startswith("jaxgpu.evolution.multi")
    with jax.enable_x64(dtype == np.float64):
        sphere = Problem(box(-5.0, 5.0, 4), lambda x: jnp.sum(x * x, keepdims=True))
        problem = dtlz.dtlz2(3, 5) if many else sphere
        key = jax.random.key(0)
        state = jax.eval_shape(lambda key: spec.init(key, problem), key)
        fixed_point(lambda state: protocol.step(spec, problem, state, key), state, dtype)


MATERIALS = [
    continuum.Liquid(1e4, viscosity=0.1),
    continuum.HerschelBulkley(1e4, yield_stress=1.0, consistency=1.0),
    continuum.NeoHookean(),
    continuum.Corotated(),
    continuum.VonMises(),
    continuum.DruckerPrager(),
    continuum.DruckerPrager(grain=1e-3),
    continuum.Snow(),
]


@PRECISIONS
@pytest.mark.parametrize("material", MATERIALS, ids=lambda spec: type(spec).__name__)
def test_every_material_beside_another_and_a_tool(material, dtype):
    rng = np.random.default_rng(0)
    with jax.enable_x64(dtype == np.float64):
        x = rng.uniform(0.3, 0.7, (2, 8, 3)).astype(dtype)
        others = (
            continuum.Body(x[0], material, dtype(1e-3)),
            continuum.Body(x[1], continuum.NeoHookean(), dtype(1e-3)),
        )
        tool = continuum.Collider(continuum.sdf.Ball(dtype(0.05)), (0.5, 0.5, 0.5))
        grid, gravity = continuum.Grid(0.1, (10, 10, 10)), (0.0, -9.8, 0.0)
        scene = continuum.Scene(others, grid, gravity, (tool,)).prepare()
        state = jax.eval_shape(lambda: scene.init())
        fixed_point(lambda state: scene.step(state), state, dtype)


@PRECISIONS
def test_bodies_with_joints(dtype):
    with jax.enable_x64(dtype == np.float64):
        inertia = np.diag([0.1, 0.2, 0.25])
        links = [rigid.Link(-1, "free", mass=1.0, inertia=inertia)]
        links += [rigid.Link(0, "revolute", mass=0.5, inertia=inertia)]
        tree = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), rigid.assemble(links))
        simulation = rigid.Simulation(tree, rigid.passive(tree))
        state = jax.eval_shape(lambda: simulation.init())
        fixed_point(simulation.step, state, dtype)
