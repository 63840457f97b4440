"""The loops of learning: `learn`, pure; `train`, in the package's loop; `sweep`, of many seeds.

Each knows how many updates it has and tells `init`, so that rates and exploration end with it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh

from jaxgpu.devices import allocation
from jaxgpu.devices.mesh import flat
from jaxgpu.inputs import arguments, ranges
from jaxgpu.inputs.doors import explained, on_host
from jaxgpu.inputs.fields import pytree, static
from jaxgpu.runs import Keep, Resume
from jaxgpu.runs.fresh_calls import call_fresh
from jaxgpu.runs.loop import Run, rollout, run
from jaxgpu.runs.program import long
from jaxgpu.runs.saving.branch import source

from . import devices, shares, vector
from .doors import check_count
from .environment import Environment
from .learners import schedule as schedules
from .policies import Policy


class Learner(Protocol):
    """What every algorithm has: a spec with these methods, all pure."""

    @property
    def steps_per_update(self) -> int:
        """Steps of environments in one update."""
        ...

    def init(self, env: Environment, key: Array, num_updates: Array | int | None = None) -> Any:
        """Return the state before a training.

        Args:
            env: what is played, in as many copies at once as the learner says.
            key: of everything random in it.
            num_updates: how many the training will have, the length of its schedules; without it
                the state can be looked at and played, but not updated.
        """
        ...

    def update(self, env: Environment, state: Any, key: Array) -> Any:
        """The state after one update; `state.report` holds its measurements."""
        ...

    def policy(self, env: Environment, state: Any) -> Policy:
        """The learnt policy, without noise: a function, or a `RecurrentPolicy`."""
        ...


@dataclass(frozen=True, repr=False)
class Training(Run[Any]):
    """What `train` returns: a run that knows what was learnt.

    The history holds the report of the start, in which no episode ended, and of every update.
    """

    env: Environment
    learner: Learner

    @property
    def policy(self) -> Policy:
        """The learnt policy, without noise."""
        return self.learner.policy(self.env, self.state)


@explained
@on_host
def learn(
    env: Environment,
    learner: Learner,
    key: Array,
    num_updates: int,
    *,
    measure: Callable[[Any], Any] | None = None,
) -> tuple[Any, Any]:
    """The last state and the history of a whole training, as a pure function.

    `vmap` it over keys and over learners. Learning rates fall, and exploration settles, over these
    `num_updates`.

    Args:
        env: what the learner plays.
        learner: what learns.
        key: of the whole training.
        num_updates: how many there are.
        measure: pure function of the state; its report by default.

    Returns:
        The last state, and what was measured, [1 + num_updates, ...]; row 0 is the start.

    Raises:
        ValueError: a hyper-parameter, or a parameter of the environment, out of its range.
        TypeError: observations, actions or rewards of a kind that the learner does not take.
    """
    whole = ranges.Range(least=0, whole=True, one=True)
    ranges.refuse("learn: num_updates", num_updates, whole)
    init_key, run_key = jax.random.split(key)
    state = learner.init(env, init_key, max(num_updates, 1))
    step = partial(_update, learner, env)
    return rollout(step, state, num_updates, key=run_key, measure=measure or _report)


@explained
@on_host
def train(
    env: Environment,
    learner: Learner,
    key: Array,
    steps: int,
    *,
    until: Callable[[Any], Any] | None = None,
    measure: Callable[[Any], Any] | None = None,
    out: str | Path | None = None,
    resume: Resume = False,
    keep: Keep = None,
    guard: bool = False,
    schedule: int | None = None,
    mesh: Mesh | None = None,
) -> Training:
    """`learn` for `steps` steps of environments in the package's loop, with checkpoints in `out`.

    The result is the same whether it was interrupted or not, to the bit. Another call with the
    same kinds of environment and learner, of other numbers, compiles nothing.

    Args:
        env: what the learner plays.
        learner: what learns.
        key: of the whole training.
        steps: of environments in all, those of a resumed training counted in.
        until: condition on the state, on the device: the training ends after the update where it
            holds.
        measure: pure function of the state; its report by default.
        out: folder of checkpoints.
        resume: go on from what is there:
            True, names of values that may be others, or a `Branch`, as `jaxgpu.runs.run` says.
        keep: checkpoints that stay, counted in updates, as `jaxgpu.runs.run` says.
        guard: stop at the first value that is not finite, with its name, before it is saved.
        schedule: steps over which learning rates fall to zero and exploration settles; `steps` if
            not said. It is a part of the training, and a resumed one keeps it: to stop early and
            go on later, begin with the `schedule` of the whole. The bits are those of the whole
            training. Steps beyond the end of the schedule have a learning rate of zero.
        mesh: devices of one axis over which the environments are spread (of `ES`, the candidates),
            as `jaxgpu.rl.devices` says; one device if not given. Resume on as many devices.

    Returns:
        A run of updates, whose history begins at the start, with the `policy` that was learnt.

    Raises:
        ValueError: fewer steps than one update has, a resumed training whose schedule is
            another, or environments, candidates or minibatches that a mesh cannot share out evenly.
        TypeError: what is no mesh, or a learner that knows nothing of devices.
        CheckpointError: a folder that holds another training, or another network.
    """
    ranges.check("train", learner)
    ranges.check("train", env)
    arguments.key("train: key", key)
    check_count("train: steps", steps)
    if schedule is not None:
        check_count("train: schedule", schedule)
    if mesh is not None:
        mesh = flat("train: mesh", mesh)
        devices.check("train", learner, mesh)
    updates = int(steps) // learner.steps_per_update
    if updates < 1:
        raise ValueError(
            f"train: steps={steps}; one update has {learner.steps_per_update}; give as many"
        )
    length = updates if schedule is None else max(int(schedule) // learner.steps_per_update, 1)
    if resume:
        schedules.refuse_another("train", source(out, resume), length, learner.steps_per_update)
    init_key, run_key = jax.random.split(key)
    task = _task(learner, env)
    state = _begun(task, init_key, np.int32(length), mesh)
    _refuse_broken(env, state)
    done = run(
        partial(_update, learner, env)
        if mesh is None
        else partial(_update_spread, learner, env, mesh),
        state,
        updates,
        key=run_key,
        measure=measure or _report,
        until=until,
        out=out,
        resume=resume,
        keep=keep,
        guard=guard,
    )
    return Training(
        state=done.state,
        history=done.history,
        timing=done.timing,
        env=env,
        learner=learner,
    )


@explained
@on_host
def sweep(
    env: Environment,
    learner: Learner,
    keys: Array,
    parts: int,
    every: int,
    *,
    until: Callable[[Any], Any] | None = None,
    measure: Callable[[Any], Any] | None = None,
    out: str | Path | None = None,
    resume: bool | Sequence[str] = False,
    guard: bool = False,
    schedule: int | None = None,
    mesh: Mesh | None = None,
) -> Run[Any]:
    """Train from each of the keys [S], all in one program, with checkpoints in `out`.

    Args:
        env: of all trainings.
        learner: of all.
        keys: of the seeds, [S].
        parts: how often all trainings are measured, the start left aside.
        every: updates before each measurement.
        until: condition on the states [S], on the device: the sweep ends where it holds.
        measure: pure function of the state of one training; its report by default.
        out: folder of checkpoints, which `resume` and `guard` treat as those of `train` do.
        schedule: updates over which learning rates fall and exploration settles, `parts * every`
            if not said; as that of `train`, and kept by a resumed sweep.
        mesh: devices of one axis over which the seeds are spread, whole trainings that have nothing
            to do with each other; one device if not given. Resume on as many devices.

    Returns:
        A run whose state has an axis [S] in front, and whose history is [1 + parts, S, ...].

    Raises:
        ValueError: one key where a row of them is wanted, or a mesh that cannot share them out.
        TypeError: what is no key, or no mesh.

    >>> from jaxgpu import rl
    >>> env, ppo = rl.make("cartpole"), rl.PPO(num_envs=4, num_steps=8, num_minibatches=2)
    >>> run = sweep(env, ppo, jax.random.split(jax.random.key(0), 3), parts=2, every=1)
    >>> run.history["episode_return"].shape
    (3, 3)
    """
    _refuse_one_key(keys)
    ranges.check("sweep", learner)
    ranges.check("sweep", env)
    check_count("sweep: parts", parts)
    check_count("sweep: every", every)
    length = parts * every if schedule is None else schedule
    if resume:
        schedules.refuse_another("sweep", source(out, resume), length, 1)
    task = _task(learner, env)
    if mesh is not None:
        mesh = flat("sweep: mesh", mesh)
        if len(keys) % mesh.size:
            raise ValueError(
                f"sweep: {len(keys)} keys over a mesh of {mesh.size} devices; they must be a "
                "multiple of them; give more, or fewer devices by mesh.devices(count)"
            )
    return run(
        partial(_update_seeds, mesh, learner, env, every, len(keys)),
        call_fresh(_init_seeds, mesh, task, keys, np.int32(length)),
        parts,
        key=jax.random.fold_in(keys[0], len(keys)),
        measure=partial(_measure_seeds, mesh, measure or _report),
        until=until,
        out=out,
        resume=resume,
        guard=guard,
    )


def _refuse_one_key(keys: Any) -> None:
    if not arguments.is_key(keys):
        found = arguments.shown(keys)
        raise TypeError(
            f"sweep: keys={found}; they must be keys [S]; make them by jax.random.split(key, S)"
        )
    if keys.ndim != 1 or not len(keys):
        raise ValueError(
            f"sweep: keys of shape {list(keys.shape)}; they must be [S], a key for each training; "
            "make them by jax.random.split(key, S)"
        )


# What the loops run: functions of the module, so that what they carry are operands of programs
# that are compiled once, and not parts of new programs.


@pytree
class _Task:
    """A learner and its environment; one of a class that is no pytree is baked in whole."""

    trees: tuple[Any, Any]
    fixed: tuple[Any, Any] = static()

    @property
    def learner(self) -> Learner:
        return self.trees[0] if self.fixed[0] is None else self.fixed[0]

    @property
    def env(self) -> Environment:
        return self.trees[1] if self.fixed[1] is None else self.fixed[1]


def _task(learner: Learner, env: Environment) -> _Task:
    opaque = [jax.tree_util.all_leaves([x]) for x in (learner, env)]
    trees = [None if whole else x for x, whole in zip((learner, env), opaque)]
    fixed = [x if whole else None for x, whole in zip((learner, env), opaque)]
    return _Task((trees[0], trees[1]), (fixed[0], fixed[1]))


def _begun(task: _Task, key: Array, num_updates: np.int32, mesh: Mesh | None) -> Any:
    """The state before a training; on a mesh no device ever holds all environments."""
    where = None
    if mesh is not None:
        where = devices.shardings(jax.eval_shape(_init, task, key, num_updates), mesh)
    init = allocation.bounded(jax.jit(_init, out_shardings=where))
    return call_fresh(init, task, key, num_updates)


def _init(task: _Task, key: Array, num_updates: Array) -> Any:
    return task.learner.init(task.env, key, num_updates)


def _update(learner: Learner, env: Environment, state: Any, key: Array) -> Any:
    return learner.update(env, state, key)


def _update_spread(learner: Learner, env: Environment, mesh: Mesh, state: Any, key: Array) -> Any:
    return devices.shard_update(learner, env, mesh)(state, key)


def _report(state: Any) -> Any:
    return state.report


@allocation.bounded
@partial(jax.jit, static_argnums=0)
def _init_seeds(mesh: Mesh | None, task: _Task, keys: Array, num_updates: Array) -> Any:
    def begin(shared: tuple[_Task, Array], keys: Array) -> Any:
        return jax.vmap(lambda key: _init(shared[0], key, shared[1]))(keys)

    return devices.shard_seeds(begin, mesh)((task, num_updates), keys)


@long
def _update_seeds(
    mesh: Mesh | None,
    learner: Learner,
    env: Environment,
    every: int,
    seeds: int,
    states: Any,
    key: Array,
) -> Any:
    axis = None if mesh is None else mesh.axis_names[0]

    def advance(shared: tuple[_Task, Array], states: Any) -> Any:
        task, key = shared

        def update(i: Array, states: Any) -> Any:
            keys = shares.own(jax.random.split(jax.random.fold_in(key, i), seeds), axis)
            return jax.vmap(partial(_update, task.learner, task.env))(states, keys)

        return jax.lax.fori_loop(0, every, update, states)

    return devices.shard_seeds(advance, mesh)((_task(learner, env), key), states)


def _measure_seeds(mesh: Mesh | None, measure: Callable[[Any], Any], states: Any) -> Any:
    look = lambda _, states: jax.vmap(measure)(states)
    return devices.shard_seeds(look, mesh)((), states)


def _refuse_broken(env: Environment, state: Any) -> None:
    """Raise where not one copy can begin: nothing would ever be learnt."""
    env_state = getattr(state, "env_state", None)
    if env_state is None:
        return
    if not jnp.any(vector.finite(env_state.observation)):
        raise ValueError(
            f"train: no copy of {type(env).__name__} begins with finite numbers; "
            "mend what its reset returns, or the numbers that it is given"
        )
