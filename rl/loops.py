"""Training loops: `learn` (pure), `train` (with checkpoints) and `sweep` (many seeds).

Each passes the number of updates to `Learner.init`, the length of the schedules.
"""

from collections.abc import Callable
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
from jaxgpu.devices.mesh import check_mesh
from jaxgpu.inputs import arguments, ranges
from jaxgpu.inputs.explanations import explain_errors, on_host
from jaxgpu.inputs.fields import pytree, static
from jaxgpu.runs import Keep, Resume
from jaxgpu.runs.fresh_calls import call_fresh
from jaxgpu.runs.loop import Run, rollout, run
from jaxgpu.runs.program import mark_slow
from jaxgpu.runs.saving.branch import source

from . import collectives, devices, vector
from .checks import check_count
from .environment import Environment
from .learners import schedule as schedules
from .policies import Policy


class Learner(Protocol):
    """Protocol of all learners: a spec with these pure methods."""

    @property
    def steps_per_update(self) -> int:
        """Environment steps per update."""
        ...

    def init(self, env: Environment, key: Array, num_updates: Array | int | None = None) -> Any:
        """Return the initial state of a training.

        Args:
            env: the environment, of which the learner runs several copies.
            key: random key.
            num_updates: length of the training, for the schedules. A state without it can be
                inspected and used for acting, but not updated.
        """
        ...

    def update(self, env: Environment, state: Any, key: Array) -> Any:
        """Return the state after one update; `state.report` holds its metrics."""
        ...

    def policy(self, env: Environment, state: Any) -> Policy:
        """Return the deterministic learned policy: a function, or a `RecurrentPolicy`."""
        ...


@dataclass(frozen=True, repr=False)
class Training(Run[Any]):
    """Run returned by `train`, with the learned policy.

    Row 0 of the history is the initial report, before any episode has ended; updates follow.
    """

    env: Environment
    learner: Learner

    @property
    def policy(self) -> Policy:
        """The deterministic learned policy."""
        return self.learner.policy(self.env, self.state)


@explain_errors
@on_host
def learn(
    env: Environment,
    learner: Learner,
    key: Array,
    num_updates: int,
    *,
    measure: Callable[[Any], Any] | None = None,
) -> tuple[Any, Any]:
    """Return the final state and the history of a complete training, as a pure function.

    You can `vmap` it over keys and learners. Learning rates and exploration decay over
    `num_updates`.

    Args:
        env: the environment.
        learner: the learner.
        key: random key of the training.
        num_updates: number of updates.
        measure: pure function of the state; returns its report by default.

    Returns:
        The final state, and the measurements [1 + num_updates, ...]; row 0 is the initial state.

    Raises:
        ValueError: if a hyperparameter or an environment parameter is out of its range.
        TypeError: if the learner does not support the observations, actions or rewards.
    """
    whole = ranges.Range(least=0, whole=True, one=True)
    ranges.refuse("learn: num_updates", num_updates, whole)
    init_key, run_key = jax.random.split(key)
    state = learner.init(env, init_key, max(num_updates, 1))
    step = partial(_update, learner, env)
    return rollout(step, state, num_updates, key=run_key, measure=measure or _report)


@explain_errors
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
    """Train for `steps` environment steps, like `learn`, with checkpoints in `out`.

    An interrupted and resumed training gives bitwise the same result. Another call with the same
    types and shapes reuses the compiled program, even if values of parameters differ.

    Args:
        env: the environment.
        learner: the learner.
        key: random key of the training.
        steps: total number of environment steps, including those before a resume.
        until: condition on the state, evaluated on the device; training stops after the update
            where it holds.
        measure: pure function of the state; returns its report by default.
        out: folder of checkpoints.
        resume: continue from the last checkpoint in `out`: True, names of values that may differ,
            or a `Branch`, see `jaxgpu.runs.run`.
        keep: checkpoints to retain, counted in updates, see `jaxgpu.runs.run`.
        guard: stop at the first value that is not finite and report its name, before saving it.
        schedule: environment steps over which learning rates and exploration decay; `steps` if not
            given. It is part of the training, and a resume must pass the same. To stop early and
            continue later, start with the `schedule` of the full training; the result is then
            bitwise that of the full training. After its end learning rates are zero.
        mesh: one-axis device mesh over which the environments (for `ES`, the candidates) are
            sharded, see `jaxgpu.rl.devices`; one device if not given. Resume on the same number of
            devices.

    Returns:
        A run over updates, whose history starts with the initial state, with the learned `policy`.

    Raises:
        ValueError: if `steps` is less than one update, a resumed training has another schedule, or
            a mesh cannot shard environments, candidates or minibatches evenly.
        TypeError: if `mesh` is not a mesh, or the learner does not support several devices.
        CheckpointError: if the folder belongs to another training or network.
    """
    ranges.check("train", learner)
    ranges.check("train", env)
    arguments.key("train: key", key)
    check_count("train: steps", steps)
    if schedule is not None:
        check_count("train: schedule", schedule)
    if mesh is not None:
        mesh = check_mesh("train: mesh", mesh)
        devices.check("train", learner, mesh)
    updates = int(steps) // learner.steps_per_update
    if updates < 1:
        raise ValueError(
            f"train: steps={steps}; one update has {learner.steps_per_update}; increase it"
        )
    length = updates if schedule is None else max(int(schedule) // learner.steps_per_update, 1)
    if resume:
        schedules.check_length("train", source(out, resume), length, learner.steps_per_update)
    init_key, run_key = jax.random.split(key)
    task = _make_task(learner, env)
    state = _init_state(task, init_key, np.int32(length), mesh)
    _check_finite_start(env, state)
    done = run(
        partial(_update, learner, env)
        if mesh is None
        else partial(_update_sharded, learner, env, mesh),
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


@explain_errors
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
    resume: Resume = False,
    keep: Keep = None,
    guard: bool = False,
    schedule: int | None = None,
    mesh: Mesh | None = None,
) -> Run[Any]:
    """Train from each of the keys [S] in one program, with checkpoints in `out`.

    Args:
        env: environment of all trainings.
        learner: learner of all trainings.
        keys: one key per training, [S].
        parts: number of measurements after the initial one.
        every: updates between measurements.
        until: condition on the states [S], evaluated on the device; the sweep stops where it holds.
        measure: pure function of the state of one training; returns its report by default.
        out: folder of checkpoints; `resume` and `guard` are as in `train`.
        schedule: updates over which learning rates and exploration decay, `parts * every` if not
            given; as in `train`, a resumed sweep must pass the same.
        mesh: one-axis device mesh over which the seeds are sharded, as independent trainings; one
            device if not given. Resume on the same number of devices.
        keep: checkpoints that stay, counted in parts, as `jaxgpu.runs.run` says.

    Returns:
        A run whose state has a leading axis [S], and whose history is [1 + parts, S, ...].

    Raises:
        ValueError: if `keys` is a single key, or a mesh cannot shard them evenly.
        TypeError: if `keys` are not random keys, or `mesh` is not a mesh.

    >>> from jaxgpu import rl
    >>> env, ppo = rl.make("cartpole"), rl.PPO(num_envs=4, num_steps=8, num_minibatches=2)
    >>> run = sweep(env, ppo, jax.random.split(jax.random.key(0), 3), parts=2, every=1)
    >>> run.history["episode_return"].shape
    (3, 3)
    """
    _check_keys(keys)
    ranges.check("sweep", learner)
    ranges.check("sweep", env)
    check_count("sweep: parts", parts)
    check_count("sweep: every", every)
    length = parts * every if schedule is None else schedule
    if resume:
        schedules.check_length("sweep", source(out, resume), length, 1)
    task = _make_task(learner, env)
    if mesh is not None:
        mesh = check_mesh("sweep: mesh", mesh)
        if len(keys) % mesh.size:
            raise ValueError(
                f"sweep: {len(keys)} keys over a mesh of {mesh.size} devices; the keys must be a "
                "multiple of the devices; give more, or fewer devices by mesh.make_mesh(count)"
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
        keep=keep,
        guard=guard,
    )


def _check_keys(keys: Any) -> None:
    if not arguments.is_key(keys):
        found = arguments.format_value(keys)
        raise TypeError(
            f"sweep: keys={found}; they must be keys [S]; make them by jax.random.split(key, S)"
        )
    if keys.ndim != 1 or not len(keys):
        raise ValueError(
            f"sweep: keys of shape {list(keys.shape)}; they must be [S], one key per training; "
            "make them by jax.random.split(key, S)"
        )


# The loops call module-level functions, so that learner and environment are operands of one
# compiled program and not constants of a new program per call.


@pytree
class _Task:
    """Learner and environment as one pytree; objects that are not pytrees are static."""

    trees: tuple[Any, Any]
    fixed: tuple[Any, Any] = static()

    @property
    def learner(self) -> Learner:
        return self.trees[0] if self.fixed[0] is None else self.fixed[0]

    @property
    def env(self) -> Environment:
        return self.trees[1] if self.fixed[1] is None else self.fixed[1]


def _make_task(learner: Learner, env: Environment) -> _Task:
    opaque = [jax.tree_util.all_leaves([x]) for x in (learner, env)]
    trees = [None if whole else x for x, whole in zip((learner, env), opaque)]
    fixed = [x if whole else None for x, whole in zip((learner, env), opaque)]
    return _Task((trees[0], trees[1]), (fixed[0], fixed[1]))


def _init_state(task: _Task, key: Array, num_updates: np.int32, mesh: Mesh | None) -> Any:
    """Return the initial state; on a mesh no device ever holds all environments."""
    where = None
    if mesh is not None:
        where = devices.shardings(jax.eval_shape(_init, task, key, num_updates), mesh)
    init = allocation.limit_memory(jax.jit(_init, out_shardings=where))
    return call_fresh(init, task, key, num_updates)


def _init(task: _Task, key: Array, num_updates: Array) -> Any:
    return task.learner.init(task.env, key, num_updates)


def _update(learner: Learner, env: Environment, state: Any, key: Array) -> Any:
    return learner.update(env, state, key)


def _update_sharded(learner: Learner, env: Environment, mesh: Mesh, state: Any, key: Array) -> Any:
    return devices.shard_update(learner, env, mesh)(state, key)


def _report(state: Any) -> Any:
    return state.report


@allocation.limit_memory
@partial(jax.jit, static_argnums=0)
def _init_seeds(mesh: Mesh | None, task: _Task, keys: Array, num_updates: Array) -> Any:
    def init_all(shared: tuple[_Task, Array], keys: Array) -> Any:
        return jax.vmap(lambda key: _init(shared[0], key, shared[1]))(keys)

    return devices.shard_seeds(init_all, mesh)((task, num_updates), keys)


@mark_slow
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
            keys = collectives.local_rows(jax.random.split(jax.random.fold_in(key, i), seeds), axis)
            return jax.vmap(partial(_update, task.learner, task.env))(states, keys)

        return jax.lax.fori_loop(0, every, update, states)

    return devices.shard_seeds(advance, mesh)((_make_task(learner, env), key), states)


def _measure_seeds(mesh: Mesh | None, measure: Callable[[Any], Any], states: Any) -> Any:
    measure_all = lambda _, states: jax.vmap(measure)(states)
    return devices.shard_seeds(measure_all, mesh)((), states)


def _check_finite_start(env: Environment, state: Any) -> None:
    """Raise if no environment has a finite initial observation, since nothing could be learned."""
    env_state = getattr(state, "env_state", None)
    if env_state is None:
        return
    if not jnp.any(vector.is_finite(env_state.observation)):
        raise ValueError(
            f"train: no copy of {type(env).__name__} starts with finite values; correct its reset, "
            "or its parameters"
        )
