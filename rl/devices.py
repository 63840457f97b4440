"""One training on several devices: each plays its share of the environments and learns from it.

Each takes an equal part of every minibatch out of the rows that it played, and the devices' mean
gradient, reduced once a minibatch, is what all of them descend: the networks are the same on every
device, and stay so. What is random is drawn for all environments and shared out, so that a training
plays the same episodes on one device and on many, to rounding. One thing depends on how many there
are: where a learner cuts a rollout into more than one minibatch, a device shuffles its own rows,
so that other rows come together.
"""

from collections.abc import Callable
from typing import Any

import jax
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxgpu.devices.mesh import flat

from .environment import Environment


def check(name: str, learner: Any, mesh: Mesh) -> None:
    """Raise where a learner cannot be spread over this mesh; `name` begins the sentence.

    Raises:
        TypeError: a learner that knows nothing of devices.
        ValueError: environments, candidates or minibatches that cannot be shared out evenly.
    """
    if not hasattr(learner, "check_devices"):
        raise TypeError(
            f"{name}: {type(learner).__name__} has no check_devices, so it cannot share out its "
            "environments over a mesh; leave mesh= out, or spread seeds by sweep"
        )
    learner.check_devices(mesh.size)


def shardings(state: Any, mesh: Mesh) -> Any:
    """Where each part of a learner's state belongs on a mesh of one axis, for `jax.device_put`.

    Environments are shared out, all else is on every device. Example in `shard_update`.
    """
    mesh = flat("shardings: mesh", mesh)
    (axis,) = mesh.axis_names
    return jax.tree.map(lambda place: NamedSharding(mesh, place), state.places(axis))


def shard_update(learner: Any, env: Environment, mesh: Mesh) -> Callable[[Any, Array], Any]:
    """A function of a spread state and a key: the state after an update on all devices; `jit` it.

    Args:
        learner: with `check_devices`, and `update` that takes an `axis`, as all of `rl` have.
        env: what it plays.
        mesh: of one axis, as `jaxgpu.devices.mesh.devices` gives it.

    Raises:
        ValueError: environments, candidates or minibatches that cannot be shared out evenly.
        TypeError: a learner that knows nothing of devices.

    >>> from jaxgpu import rl
    >>> from jaxgpu.devices import mesh
    >>> env, ppo, two = rl.make("cartpole"), rl.PPO(num_envs=4, num_steps=4), mesh.devices(2)
    >>> state = ppo.init(env, jax.random.key(0), num_updates=1)
    >>> state = jax.device_put(state, shardings(state, two))
    >>> state = jax.jit(shard_update(ppo, env, two))(state, jax.random.key(1))
    >>> state.env_state.observation.sharding.shard_shape((4, 4))
    (2, 4)
    """
    mesh = flat("shard_update: mesh", mesh)
    check("shard_update", learner, mesh)
    (axis,) = mesh.axis_names
    whole = PartitionSpec()

    def update(learner: Any, env: Any, state: Any, key: Array) -> Any:
        return learner.update(env, state, key, axis=axis)

    def spread(state: Any, key: Array) -> Any:
        places = state.places(axis)
        # gradients are those of a device's own rows, and are reduced once: with `check_vma` JAX
        # would sum those of the networks, which all devices have, by itself
        each = jax.shard_map(
            update,
            mesh=mesh,
            in_specs=(whole, whole, places, whole),
            out_specs=places,
            check_vma=False,
        )
        return each(learner, env, state, key)

    return spread


def shard_seeds(f: Callable[[Any, Any], Any], mesh: Mesh | None) -> Callable[[Any, Any], Any]:
    """`f(shared, seeds)` of the seeds of each device by itself; without a mesh it is `f`.

    Left to itself XLA would let the devices ask each other after every turn of a loop whether all
    seeds are done with it.

    Args:
        f: of what all seeds share, and of leaves [S, ...], a row a seed; returns such leaves.
        mesh: of one axis, whose devices share out the seeds; they must divide S.
    """
    if mesh is None:
        return f
    each, whole = PartitionSpec(*mesh.axis_names), PartitionSpec()
    return jax.shard_map(f, mesh=mesh, in_specs=(whole, each), out_specs=each, check_vma=False)
