"""Programs sharded over eight devices: their communication, in bytes and number of collectives."""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, PartitionSpec

from benchmarks.reach.program import KEY, Program, Spread, numbers
from benchmarks.reach.programs import GM, V, X, block
from jaxgpu import rl
from jaxgpu.devices import mesh as meshes
from jaxgpu.evolution import multi, protocol
from jaxgpu.evolution.problems import dtlz
from jaxgpu.physics import continuum
from jaxgpu.physics.continuum import devices, engine
from jaxgpu.physics.continuum.grid.device_grids import Slab
from jaxgpu.physics.nbody import sharding
from jaxgpu.physics.nbody.clusters import Cluster, Hermite, tracer_sharding
from jaxgpu.physics.nbody.forces import pairs
from jaxgpu.physics.nbody.planets import Planetary
from jaxgpu.rl import devices as learning

COUNT = 8


def _learner_update(task: str, learner: Any, n: int, mesh: Mesh) -> Spread:
    """Make an update with n environments, sharded over the devices."""
    env, spec = rl.make(task), learner(num_envs=n)
    start = lambda: (spec.init(env, KEY, 10), KEY)
    places = jax.eval_shape(start)[0].partition_specs(*mesh.axis_names)
    return learning.shard_update(spec, env, mesh), start, (places, REPLICATED)


def _slab_step(n: int, mesh: Mesh) -> Spread:
    """Make a step on slabs, without the migration of particles every sixteen steps or so."""
    spec = block(continuum.NeoHookean(2e4), n)
    start = devices.shard_state(spec, meshes.make_mesh(COUNT))
    places = jax.tree.map(lambda leaf: leaf.sharding.spec, start)
    (name,) = mesh.axis_names

    def step(shares: Any) -> Any:
        slab = Slab.from_grid(spec.grid, shares.partition.cut, name, shares.cuts)
        return replace(shares, state=engine.step(spec, shares.state, 0, slab))

    f = jax.shard_map(step, mesh=mesh, in_specs=(places,), out_specs=places, check_vma=False)
    return f, lambda: (start,), (places,)


def _pair_sums(n: int, mesh: Mesh) -> Spread:
    """Make pair sums at n points, which are sharded, over n sources."""
    pull = lambda x, stars, m: meshes.map_shards(lambda x: pairs.pull(x, stars, m), mesh, 1)(x)
    start = lambda: (numbers(6, n), numbers(6, n), numbers(n))
    return pull, start, (PartitionSpec(None, "batch"), REPLICATED, REPLICATED)


def _tracer_step(n: int, mesh: Mesh) -> Spread:
    """Make a step of planets with n tracers, which are sharded."""
    spec = Planetary(gm=jnp.asarray(GM), dt=0.1)

    def start() -> tuple[Any, ...]:
        x, v = numbers(2, n, 3, low=1.5, high=3.0)
        return (spec.init(jnp.asarray(X), jnp.asarray(V), (x, v)),)

    (state,) = jax.eval_shape(start)
    return partial(sharding.step, mesh, spec), start, (spec.partition(state, "batch"),)


def _cluster_interval(n: int, mesh: Mesh) -> Spread:
    """Make an interval of 256 stars with n tracers, which are sharded."""
    spec = jax.tree.map(jnp.asarray, Cluster(Hermite(), edge=20.0))

    def start() -> tuple[Any, ...]:
        x, v = jax.random.normal(KEY, (2, 256 + n, 3), jnp.result_type(float))
        tracers = (x[256:], v[256:])
        return (
            tracer_sharding.split_counters(
                spec.init(x[:256], v[:256], jnp.full(256, 1 / 256), tracers), mesh
            ),
        )

    (state,) = jax.eval_shape(start)
    return (
        partial(tracer_sharding.step, mesh, spec),
        start,
        (tracer_sharding.partition(state, "batch"),),
    )


def _generation(n: int, mesh: Mesh) -> Spread:
    """Make a generation of NSGA-II with n members, whose evaluation is sharded."""
    spec, problem = multi.NSGA2(pop_size=n), dtlz.dtlz2(3, 7)
    step = lambda state, key: protocol.step(spec, problem, state, key, mesh)
    return step, lambda: (spec.init(KEY, problem), KEY), (REPLICATED, REPLICATED)


def _seed_runs(n: int, mesh: Mesh) -> Spread:
    """Make 25 generations of NSGA-II with 100 members from n seeds, which are sharded."""
    spec, problem = multi.NSGA2(pop_size=100), dtlz.dtlz2(3, 7)
    each = jax.vmap(lambda key: protocol.evolve(spec, problem, key, 25))
    return meshes.map_shards(each, mesh), lambda: (jax.random.split(KEY, n),), (BATCH,)


REPLICATED, BATCH = PartitionSpec(), PartitionSpec("batch")


_PSM = "surgical/psm-reach"


def _eight_device_program(
    name: str, make: Any, small: int, full: int, wide: bool = False
) -> Program:
    return Program(name, None, small, full, wide, ("h100",), spread=make, devices=COUNT)


SHARDED = (
    _eight_device_program("pair sums at targets", _pair_sums, 4096, 1 << 20),
    _eight_device_program("planets with tracers, a step", _tracer_step, 8192, 1 << 20, True),
    _eight_device_program(
        "stars with tracers, an interval", _cluster_interval, 8192, 1 << 20, True
    ),
    _eight_device_program("evaluations of NSGA2, a generation", _generation, 1024, 1 << 16),
    _eight_device_program("seeds of NSGA2, 25 generations", _seed_runs, 64, 64),
    _eight_device_program(
        "PPO on cartpole, an update", partial(_learner_update, "cartpole", rl.PPO), 128, 16384
    ),
    _eight_device_program(
        "SHAC on psm-reach, an update", partial(_learner_update, _PSM, rl.SHAC), 128, 16384
    ),
    _eight_device_program("matter on slabs, a step", _slab_step, 1 << 16, 1 << 20),
)
