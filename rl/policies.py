"""Learned policies that act without the training that produced them.

A policy is saved to one file and loaded in another process without the training script. It can also
be exported as a program that runs without this package.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.export
import jax.numpy as jnp

from jaxgpu.inputs import arguments
from jaxgpu.inputs.explanations import explain_errors, on_host
from jaxgpu.inputs.extras import extra
from jaxgpu.inputs.fields import pytree
from jaxgpu.runs.checkpoint import CheckpointError, save, sealed_files, tree
from jaxgpu.runs.checkpoint.untrusted_data import printable
from jaxgpu.runs.files import replace_file
from jaxgpu.runs.saving import catalog, objects, structure
from jaxgpu.runs.saving.catalog import Trusted
from jaxgpu.runs.saving.objects import Missing

_KIND = "policy"  # type tag in the file's metadata


@pytree
class LearnedPolicy:
    """Deterministic policy of a learner, a callable that maps observations to actions.

    >>> import tempfile
    >>> from jaxgpu import rl
    >>> env, ppo, key = rl.make("cartpole"), rl.PPO(hidden_sizes=(4,)), jax.random.key(0)
    >>> policy = ppo.policy(env, ppo.init(env, key))
    >>> file = Path(tempfile.mkdtemp(), "policy.npz")
    >>> policy.save(file)
    >>> x = env.reset(key)[1]
    >>> bool(rl.load_policy(file)(x) == policy(x))
    True
    """

    learner: Any  # spec of the learner, whose method `act` computes the action
    observation_space: Any  # of the environment
    action_space: Any  # of the environment
    params: Any  # weights of the acting networks
    obs_stats: Any  # statistics that normalize observations

    def __call__(self, *seen: Any) -> Any:
        """Return the action for an observation; for a carry and an observation, (carry, action)."""
        return self.learner.act(self, *seen)

    def save(self, path: str | Path) -> None:
        """Write the policy to a file that `load_policy` reads."""
        _save(path, self)

    def save_weights(self, path: str | Path) -> None:
        """Write only the weights, for other programs, as a safetensors file.

        The names are those of Flax joined with dots: `params.actor.Dense_0.kernel`. The statistics
        that normalize observations are `obs_stats.mean`, `obs_stats.square` and `obs_stats.count`.

        Raises:
            ModuleNotFoundError: if safetensors is not installed, with the install command.
        """
        _save_weights(path, self)

    @on_host
    def export(self, platforms: Sequence[str] = ("cpu", "cuda", "tpu")) -> jax.export.Exported:
        """Return the program from observations [B, ...], of any B, to actions, weights included."""
        return _export_batched(jax.vmap(self), (self.obs_stats.mean,), platforms)


@pytree
class RecurrentPolicy:
    """Recurrent policy; a memoryless policy is a plain function from observation to action.

    >>> from jaxgpu import rl
    >>> swing = RecurrentPolicy(jnp.int32(0), lambda carry, observation: (1 - carry, carry))
    >>> scores = rl.evaluate(rl.make("cartpole"), swing, jax.random.key(0), 4, 50)
    >>> scores.episode_return.shape
    (4,)
    """

    carry: Any  # initial carry of an episode
    act: Callable[[Any, Any], tuple[Any, Any]]  # (carry, observation) -> (carry, action)

    def save(self, path: str | Path) -> None:
        """Write the policy to a file that `load_policy` reads.

        Raises:
            TypeError: if no learner of this package made it.
        """
        _save(path, self)

    def save_weights(self, path: str | Path) -> None:
        """Write only the weights, for other programs, as `LearnedPolicy.save_weights` does.

        Raises:
            ModuleNotFoundError: if safetensors is not installed, with the install command.
            TypeError: if no learner of this package made it.
        """
        _save_weights(path, _acting_policy("save_weights", self))

    @on_host
    def export(self, platforms: Sequence[str] = ("cpu", "cuda", "tpu")) -> jax.export.Exported:
        """Return the program from carries and observations [B, ...] to carries and actions.

        Raises:
            TypeError: if no learner of this package made it.
        """
        act = _acting_policy("export", self)
        return _export_batched(jax.vmap(act), (self.carry, act.obs_stats.mean), platforms)


type Policy = Callable[[Any], Any] | RecurrentPolicy


def as_recurrent(policy: Policy) -> RecurrentPolicy:
    """Return the policy as a `RecurrentPolicy`, with an empty carry if it is memoryless.

    >>> as_recurrent(lambda observation: 2 * observation).act((), 3)
    ((), 6)
    """
    if isinstance(policy, RecurrentPolicy):
        return policy
    return RecurrentPolicy((), lambda carry, observation: (carry, policy(observation)))


@explain_errors
def load_policy(path: str | Path, *, trusted: Trusted = ()) -> LearnedPolicy | RecurrentPolicy:
    """Return the policy that `policy.save(path)` wrote.

    Untrusted files are safe to load: learners and networks of this package, Flax networks and
    activation functions are restored by name from a fixed list. No code from the file runs, and
    nothing is imported by name.

    Args:
        path: the file.
        trusted: your modules (or their names), already imported, that define a network or a
            learner. Pass them only for your own files: the author of a file can select any
            definition in them.

    Raises:
        CheckpointError: if the file does not exist, was altered or is not a policy, or if its
            learner or network is unknown.
        ValueError, TypeError: if `trusted` names a module that is not imported, or is not a module.

    >>> load_policy("/nowhere/policy.npz")
    Traceback (most recent call last):
    jaxgpu.runs.checkpoint.sealed_files.CheckpointError: /nowhere/policy.npz: no such checkpoint;
        ...
    """
    path = arguments.path("load_policy: path", path, "a file")
    trusted = catalog.check("load_policy", trusted)
    if path.is_dir():
        raise CheckpointError(f"{path}: no such checkpoint; give a file that jaxgpu wrote")
    leaves, meta = tree.read_leaves(path)
    if not isinstance(meta, dict) or meta.get("kind") != _KIND:
        raise CheckpointError(
            f"{path}: holds a checkpoint that is not a policy; write one by policy.save(path)"
        )
    with sealed_files.convert_errors(path):
        policy = objects.build(meta["tree"], [jnp.asarray(leaf) for leaf in leaves], trusted)
        _check_known(path, policy, meta["learnt"])
        return policy


def _check_known(path: Path, policy: Any, learnt: list[str]) -> None:
    """Raise if the learner or its network is unknown, or if the learner has no method `act`."""
    learner = _acting_policy("load_policy", policy).learner
    parts = [learner, getattr(learner, "network", None)]
    for part, name in zip(parts, learnt):
        if isinstance(part, SimpleNamespace | Missing):
            raise CheckpointError(
                f"{path}: was learnt by {printable(name)}, which is not known here; import the "
                "module that defines it, and pass trusted=(module,) if you trust the file"
            )
    if not callable(getattr(type(learner), "act", None)):
        raise CheckpointError(
            f"{path}: learner={arguments.format_value(learner)}; it must be a learner; use another"
        )


def _save(path: str | Path, policy: LearnedPolicy | RecurrentPolicy) -> None:
    path = arguments.path("save: path", path, "a file")
    learner = _acting_policy("save", policy).learner
    parts = [learner, getattr(learner, "network", None)]
    learnt = [f"{type(part).__module__}.{type(part).__qualname__}" for part in parts]
    save(path, policy, {"kind": _KIND, "tree": structure.describe_tree(policy), "learnt": learnt})


def _save_weights(path: str | Path, policy: LearnedPolicy) -> None:
    path = arguments.path("save_weights: path", path, "a file")
    tensors = extra("safetensors.flax", "studies", "save_weights")
    named = jax.tree.leaves_with_path({**policy.params, "obs_stats": policy.obs_stats})
    arrays = {jax.tree_util.keystr(at, simple=True, separator="."): x for at, x in named}
    with replace_file(path, "wb") as file:
        file.write(tensors.save(jax.tree.map(jnp.asarray, arrays), {"format": "flax"}))


def _acting_policy(name: str, policy: LearnedPolicy | RecurrentPolicy) -> LearnedPolicy:
    """Return the `LearnedPolicy` that acts in a policy.

    Raises:
        TypeError: if no learner of this package made it.
    """
    act = policy.act if isinstance(policy, RecurrentPolicy) else policy
    if not isinstance(act, LearnedPolicy):
        raise TypeError(
            f"{name}: act={arguments.format_value(act)}; it must be that of a learner's policy; "
            "keep the code of your own function, and save its arrays by checkpoint.save"
        )
    return act


def _export_batched(
    function: Callable[..., Any], like: tuple[Any, ...], platforms: Sequence[str]
) -> jax.export.Exported:
    """Export `function` for arguments [B, ...] whose rows have the shapes of `like`."""
    (count,) = jax.export.symbolic_shape("b")
    rows = lambda x: jax.ShapeDtypeStruct((count, *jnp.shape(x)), jnp.result_type(x))
    return jax.export.export(jax.jit(function), platforms=platforms)(*jax.tree.map(rows, like))


def make_policy(
    learner: Any, env: Any, params: Any, obs_stats: Any, keys: tuple[str, ...] | None = None
) -> LearnedPolicy:
    """Return the policy of a learner; with dictionary observations it reads only `keys`."""
    select = lambda stats: stats if keys is None else {key: stats[key] for key in keys}
    return LearnedPolicy(
        learner=learner,
        observation_space=env.observation_space,
        action_space=env.action_space,
        params=params,
        obs_stats=replace(obs_stats, mean=select(obs_stats.mean), square=select(obs_stats.square)),
    )
