"""Data-parallel training: each device steps its shard of the environments and learns from it.

Each device takes an equal part of every minibatch from its own rollout rows. The gradient is
averaged over the devices, with one reduction per minibatch, so that the networks are replicated.
Random values are sampled for all environments and then sharded, so that a training has the same
episodes on one device and on many, up to rounding. One thing depends on the number of devices:
where a learner splits a rollout into several minibatches, each device shuffles only its own rows,
so that minibatches combine different rows.
"""

from collections.abc import Callable
from typing import Any

import jax
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxgpu.devices.mesh import check_mesh

from .environment import Environment


def check(name: str, learner: Any, mesh: Mesh) -> None:
    """Raise if a learner cannot be sharded over this mesh; `name` starts the error message.

    Raises:
        TypeError: if the learner does not support several devices.
        ValueError: if environments, candidates or minibatches cannot be sharded evenly.
    """
    if not hasattr(learner, "check_devices"):
        raise TypeError(
            f"{name}: {type(learner).__name__} has no check_devices, so it cannot shard its "
            "environments over a mesh; leave mesh= out, or shard seeds by sweep"
        )
    learner.check_devices(mesh.size)


def shardings(state: Any, mesh: Mesh) -> Any:
    """Return the sharding of each part of a learner's state on a one-axis mesh.

    Environments are sharded, all else is replicated. `shard_update` has an example.
    """
    mesh = check_mesh("shardings: mesh", mesh)
    (axis,) = mesh.axis_names
    return jax.tree.map(lambda place: NamedSharding(mesh, place), state.partition_specs(axis))


def shard_update(learner: Any, env: Environment, mesh: Mesh) -> Callable[[Any, Array], Any]:
    """Return a function (sharded state, key) -> state for one update on all devices.

    Args:
        learner: learner with `check_devices` and an `update` that accepts `axis`, as all in `rl`.
        env: the environment.
        mesh: one-axis mesh, see `jaxgpu.devices.mesh.make_mesh`.

    Raises:
        ValueError: if environments, candidates or minibatches cannot be sharded evenly.
        TypeError: if the learner does not support several devices.

    >>> from jaxgpu import rl
    >>> from jaxgpu.devices import mesh
    >>> env, ppo, two = rl.make("cartpole"), rl.PPO(num_envs=4, num_steps=4), mesh.make_mesh(2)
    >>> state = ppo.init(env, jax.random.key(0), num_updates=1)
    >>> state = jax.device_put(state, shardings(state, two))
    >>> state = jax.jit(shard_update(ppo, env, two))(state, jax.random.key(1))
    >>> state.env_state.observation.sharding.shard_shape((4, 4))
    (2, 4)
    """
    mesh = check_mesh("shard_update: mesh", mesh)
    check("shard_update", learner, mesh)
    (axis,) = mesh.axis_names
    whole = PartitionSpec()

    def update(learner: Any, env: Any, state: Any, key: Array) -> Any:
        return learner.update(env, state, key, axis=axis)

    def update_sharded(state: Any, key: Array) -> Any:
        places = state.partition_specs(axis)
        # Each device differentiates the loss of its own rows, and the learner reduces once.
        # With `check_vma` JAX would also sum the gradients of the replicated networks by itself.
        each = jax.shard_map(
            update,
            mesh=mesh,
            in_specs=(whole, whole, places, whole),
            out_specs=places,
            check_vma=False,
        )
        return each(learner, env, state, key)

    return update_sharded


def shard_seeds(f: Callable[[Any, Any], Any], mesh: Mesh | None) -> Callable[[Any, Any], Any]:
    """Run `f(shared, seeds)` on each device with its shard of the seeds; without a mesh return `f`.

    Otherwise XLA would synchronize the devices after every loop iteration to find out whether all
    seeds are finished.

    Args:
        f: function of a replicated tree and of leaves [S, ...], one row per seed; returns such
            leaves.
        mesh: one-axis mesh over which the seeds are sharded; its size must divide S.
    """
    if mesh is None:
        return f
    each, whole = PartitionSpec(*mesh.axis_names), PartitionSpec()
    return jax.shard_map(f, mesh=mesh, in_specs=(whole, each), out_specs=each, check_vma=False)
