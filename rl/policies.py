"""A learnt policy by itself: what acts, without the training that made it.

It is saved in one file and loaded in another process without the script that trained it, and it is
exported as a program that runs without this package.
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
from jaxgpu.inputs.doors import explained, on_host
from jaxgpu.inputs.extras import extra
from jaxgpu.inputs.fields import pytree
from jaxgpu.runs.checkpoint import CheckpointError, save, sealed, tree
from jaxgpu.runs.checkpoint.plain import printable
from jaxgpu.runs.files import replacing
from jaxgpu.runs.saving import catalog, objects, structure
from jaxgpu.runs.saving.catalog import Trusted
from jaxgpu.runs.saving.objects import Missing

_KIND = "policy"  # what the file says it holds


@pytree
class LearntPolicy:
    """What a learner makes of observations: actions, without noise. Its methods `policy` make it.

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

    learner: Any  # the spec that learnt it, whose method `act` knows what to do
    observation_space: Any  # of the environment
    action_space: Any  # of the environment
    params: Any  # weights of what acts
    obs_stats: Any  # what observations are scaled by

    def __call__(self, *seen: Any) -> Any:
        """The action of an observation; of a carry and an observation, the carry and the action."""
        return self.learner.act(self, *seen)

    def save(self, path: str | Path) -> None:
        """Write it to a file, which `load_policy` reads."""
        _save(path, self)

    def save_weights(self, path: str | Path) -> None:
        """Write the weights alone, for other programs, as a file of safetensors.

        The names are those of Flax joined with dots: `params.actor.Dense_0.kernel`. The statistics
        that scale observations lie beside the weights, as `obs_stats.mean`, `obs_stats.square` and
        `obs_stats.count`.

        Raises:
            ModuleNotFoundError: safetensors is not installed; with the command that installs it.
        """
        _save_weights(path, self)

    @on_host
    def export(self, platforms: Sequence[str] = ("cpu", "cuda", "tpu")) -> jax.export.Exported:
        """The program from observations [B, ...], of any B, to actions, weights included."""
        return _exported(jax.vmap(self), (self.obs_stats.mean,), platforms)


@pytree
class RecurrentPolicy:
    """A policy with a memory; one without is a function from observation to action.

    >>> from jaxgpu import rl
    >>> swing = RecurrentPolicy(jnp.int32(0), lambda carry, observation: (1 - carry, carry))
    >>> scores = rl.evaluate(rl.make("cartpole"), swing, jax.random.key(0), 4, 50)
    >>> scores.episode_return.shape
    (4,)
    """

    carry: Any  # the memory at the start of an episode
    act: Callable[[Any, Any], tuple[Any, Any]]  # carry and observation to carry and action

    def save(self, path: str | Path) -> None:
        """Write it to a file, which `load_policy` reads.

        Raises:
            TypeError: it was not learnt here.
        """
        _save(path, self)

    def save_weights(self, path: str | Path) -> None:
        """Write the weights alone, for other programs, as `LearntPolicy.save_weights` does.

        Raises:
            ModuleNotFoundError: safetensors is not installed; with the command that installs it.
            TypeError: it was not learnt here.
        """
        _save_weights(path, _learnt("save_weights", self))

    @on_host
    def export(self, platforms: Sequence[str] = ("cpu", "cuda", "tpu")) -> jax.export.Exported:
        """The program from carries and observations [B, ...], of any B, to carries and actions.

        Raises:
            TypeError: it was not learnt here.
        """
        act = _learnt("export", self)
        return _exported(jax.vmap(act), (self.carry, act.obs_stats.mean), platforms)


type Policy = Callable[[Any], Any] | RecurrentPolicy


def remembering(policy: Policy) -> RecurrentPolicy:
    """The policy as one with a memory, which is empty where it has none.

    >>> remembering(lambda observation: 2 * observation).act((), 3)
    ((), 6)
    """
    if isinstance(policy, RecurrentPolicy):
        return policy
    return RecurrentPolicy((), lambda carry, observation: (carry, policy(observation)))


@explained
def load_policy(path: str | Path, *, trusted: Trusted = ()) -> LearntPolicy | RecurrentPolicy:
    """Return the policy that `policy.save(path)` wrote.

    The file may be a stranger's: learners and networks of this package, networks of Flax and
    activation functions come back by their names, from a list; no code runs, and nothing is
    imported for a name.

    Args:
        path: the file.
        trusted: modules of yours (or their names), already imported, which define a network or a
            learner. Pass them for files of your own alone: whoever wrote the file chooses among all
            that they define.

    Raises:
        CheckpointError: no such file, one that was altered, one that holds something else, or a
            learner or network that is not known here.
        ValueError, TypeError: `trusted` names a module that is not imported, or no module.

    >>> load_policy("/nowhere/policy.npz")
    Traceback (most recent call last):
    jaxgpu.runs.checkpoint.sealed.CheckpointError: /nowhere/policy.npz: no such checkpoint; ...
    """
    path = arguments.path("load_policy: path", path, "a file")
    trusted = catalog.check("load_policy", trusted)
    if path.is_dir():
        raise CheckpointError(f"{path}: no such checkpoint; give a file that jaxgpu wrote")
    leaves, meta = tree.leaves(path)
    if not isinstance(meta, dict) or meta.get("kind") != _KIND:
        raise CheckpointError(
            f"{path}: holds a checkpoint that is no policy; write one by policy.save(path)"
        )
    with sealed.as_written(path):
        policy = objects.build(meta["tree"], [jnp.asarray(leaf) for leaf in leaves], trusted)
        _refuse_unknown(path, policy, meta["learnt"])
        return policy


def _refuse_unknown(path: Path, policy: Any, learnt: list[str]) -> None:
    """Raise where the learner or its network is not known here, or does not act."""
    learner = _learnt("load_policy", policy).learner
    parts = [learner, getattr(learner, "network", None)]
    for part, name in zip(parts, learnt):
        if isinstance(part, SimpleNamespace | Missing):
            raise CheckpointError(
                f"{path}: was learnt by {printable(name)}, which is not known here; import the "
                "module that defines it, and pass trusted=(module,) if you trust the file"
            )
    if not callable(getattr(type(learner), "act", None)):
        raise CheckpointError(
            f"{path}: learner={arguments.shown(learner)}; it must be a learner; use another"
        )


def _save(path: str | Path, policy: LearntPolicy | RecurrentPolicy) -> None:
    path = arguments.path("save: path", path, "a file")
    learner = _learnt("save", policy).learner
    parts = [learner, getattr(learner, "network", None)]
    learnt = [f"{type(part).__module__}.{type(part).__qualname__}" for part in parts]
    save(path, policy, {"kind": _KIND, "tree": structure.of_tree(policy), "learnt": learnt})


def _save_weights(path: str | Path, policy: LearntPolicy) -> None:
    path = arguments.path("save_weights: path", path, "a file")
    tensors = extra("safetensors.flax", "studies", "save_weights")
    named = jax.tree.leaves_with_path({**policy.params, "obs_stats": policy.obs_stats})
    arrays = {jax.tree_util.keystr(at, simple=True, separator="."): x for at, x in named}
    with replacing(path, "wb") as file:
        file.write(tensors.save(jax.tree.map(jnp.asarray, arrays), {"format": "flax"}))


def _learnt(name: str, policy: LearntPolicy | RecurrentPolicy) -> LearntPolicy:
    """What acts in a policy.

    Raises:
        TypeError: it was not learnt here.
    """
    act = policy.act if isinstance(policy, RecurrentPolicy) else policy
    if not isinstance(act, LearntPolicy):
        raise TypeError(
            f"{name}: act={arguments.shown(act)}; it must be that of a learner's policy; "
            "of a function of your own keep the code, and its arrays by checkpoint.save"
        )
    return act


def _exported(
    function: Callable[..., Any], like: tuple[Any, ...], platforms: Sequence[str]
) -> jax.export.Exported:
    """The program of arguments [B, ...] that are one by one like `like`."""
    (count,) = jax.export.symbolic_shape("b")
    rows = lambda x: jax.ShapeDtypeStruct((count, *jnp.shape(x)), jnp.result_type(x))
    return jax.export.export(jax.jit(function), platforms=platforms)(*jax.tree.map(rows, like))


def learnt(
    learner: Any, env: Any, params: Any, obs_stats: Any, keys: tuple[str, ...] | None = None
) -> LearntPolicy:
    """The policy of a learner; of observations that are dictionaries it sees `keys` alone."""
    seen = lambda stats: stats if keys is None else {key: stats[key] for key in keys}
    return LearntPolicy(
        learner=learner,
        observation_space=env.observation_space,
        action_space=env.action_space,
        params=params,
        obs_stats=replace(obs_stats, mean=seen(obs_stats.mean), square=seen(obs_stats.square)),
    )
