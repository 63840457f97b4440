"""Comparison of planners over many seeds, at equal numbers of episodes; one program per planner."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from jaxgpu.devices import allocation
from jaxgpu.inputs import ranges
from jaxgpu.inputs.explanations import explain_errors, on_host
from jaxgpu.runs import Keep, Resume
from jaxgpu.runs.fresh_calls import call_fresh
from jaxgpu.runs.loop import run

from ..environment import Environment
from .gradient import Descent, TemporalExpansion
from .objective import EpisodeCost, cost
from .planning import Plan, Planner
from .sampling import CEM, MPPI

POPULATION = 8  # of CEM and MPPI


@explain_errors
def standard_planners(first: int = 10, grow: int = 10, rate: float = 0.05) -> dict[str, Any]:
    """Return four standard planners by the names used in the documentation and the studies.

    Args:
        first, grow: initial frames of the growing window, and its increment.
        rate: learning rate of Adam, as a fraction of the maximum action.

    >>> sorted(standard_planners())
    ['Adam', 'Adam, growing window', 'CEM', 'MPPI']
    """
    adam = Descent(optax.chain(optax.clip_by_global_norm(1.0), optax.adam(rate, b2=0.99)))
    return {
        "Adam": adam,
        "CEM": CEM(POPULATION, 3, sigma=0.3, correlation=0.9),
        "Adam, growing window": TemporalExpansion(adam, first=first, grow=grow, patience=2),
        "MPPI": MPPI(POPULATION, sigma=0.3, correlation=0.9),
    }


@explain_errors
@on_host
def initial_states(env: Environment, seeds: int, seed: int = 0) -> Any:
    """Return the initial states of all seeds, stacked."""
    ranges.check("initial_states", env)
    return call_fresh(_initial_states, env, jax.random.split(jax.random.key(seed), seeds))


@explain_errors
@on_host
def plan_from_each(
    env: Any,
    planner: Planner,
    states: Any,
    evaluations: int,
    *,
    gradient_discount: Array | float = 1.0,
    seed: int = 0,
    until: Callable[[Any], Array] | None = None,
    out: Path | None = None,
    resume: Resume = False,
    keep: Keep = None,
) -> Plan:
    """Plan from every state, until `evaluations` episodes have been simulated for each.

    Args:
        env: environment with `initial_actions()` [T, A], from which planning starts.
        planner: `Descent`, `CEM`, `MPPI` or `TemporalExpansion`; an episode with its gradient
            counts as one, and so does an episode of a window.
        states: S stacked states, see `initial_states`.
        evaluations: episodes per state; a remainder smaller than a population is not simulated.
        gradient_discount: see `cost`.
        seed: seed of the planner's random numbers.
        until: `until(states)` -> [] bool of the stacked planner states; planning stops when it
            holds.
        out: folder of checkpoints.
        resume: continue from the last checkpoint, with a bitwise identical result: True, names of
            values that may differ, or a `Branch`, see `jaxgpu.runs.run`.
        keep: checkpoints to retain, counted in updates, see `jaxgpu.runs.run`.
    Returns:
        A `Plan`: the stacked planner states, their best `actions` [S, T, A], and the history of the
        latest `loss` and of `best` [1 + updates, S].

    >>> from jaxgpu.inputs.fields import pytree
    >>> from jaxgpu.rl.envs.classic import Pendulum
    >>> from jaxgpu.rl.plan import CEM
    >>> class Swing(Pendulum):
    ...     def initial_actions(self):
    ...         return jnp.zeros((5, 1))
    >>> env = pytree(Swing)()
    >>> states = initial_states(env, seeds=2)
    >>> found = plan_from_each(env, CEM(population=8, elites=4), states, 32)
    >>> returns = evaluate_plans(env, states, found.actions)
    >>> bool((returns > evaluate_plans(env, states, env.initial_actions())).all())
    True
    """
    ranges.check("plan_from_each", planner)
    counts = ranges.Range(least=1, whole=True, one=True)
    ranges.refuse("plan_from_each: evaluations", evaluations, counts)
    shares = ranges.Range(least=0, most=1)
    ranges.refuse("plan_from_each: gradient_discount", gradient_discount, shares)
    seeds = jax.tree.leaves(states)[0].shape[0]
    done = run(
        partial(_update_each, EpisodeCost(env, states, gradient_discount), planner),
        call_fresh(_init_each, planner, jnp.stack([env.initial_actions()] * seeds)),
        evaluations // getattr(planner, "population", 1),
        key=jax.random.key(seed),
        measure=_progress,
        until=until,
        out=out,
        resume=resume,
        keep=keep,
    )
    return Plan(done.state, done.history, done.timing)


@explain_errors
@on_host
def evaluate_plans(env: Environment, states: Any, actions: Any) -> np.ndarray:
    """Return the sum of rewards of actions from every state, computed in one program.

    Args:
        states: S stacked states, see `initial_states`.
        actions: [T, A] for all states, [S, T, A], or [K, S, T, A] for K planners.
    Returns:
        [S], or [K, S].
    """
    seeds = jax.tree.leaves(states)[0].shape[0]
    actions = jnp.asarray(actions)
    actions = jnp.broadcast_to(actions, (*actions.shape[:-3], seeds, *actions.shape[-2:]))
    ways = actions.reshape(-1, *actions.shape[-3:])
    return np.asarray(call_fresh(_returns, env, states, ways)).reshape(actions.shape[:-2])


@allocation.limit_memory
@jax.jit
def _initial_states(env: Environment, keys: Array) -> Any:
    return jax.lax.map(lambda key: env.reset(key)[0], keys)


@allocation.limit_memory
@jax.jit
def _init_each(planner: Planner, actions: Array) -> Any:
    return jax.vmap(planner.init)(actions)


@allocation.limit_memory
@jax.jit
def _returns(env: Environment, states: Any, ways: Array) -> Array:
    episode = lambda args: -cost(env, *args)
    return jax.lax.map(lambda plans: jax.lax.map(episode, (states, plans)), ways)


def _update_each(loss: EpisodeCost, planner: Planner, planners: Any, key: Array) -> Any:
    """Update every planner, sequentially, so that memory does not exceed one episode's."""

    def update_planner(args: tuple[Any, Any, Array]) -> Any:
        start, state, key = args
        own = EpisodeCost(loss.env, start, loss.gradient_discount)
        return planner.update(own, state, key)

    seeds = jax.tree.leaves(planners)[0].shape[0]
    return jax.lax.map(update_planner, (loss.state, planners, jax.random.split(key, seeds)))


def _progress(planners: Any) -> dict[str, Array]:
    return {"loss": planners.best.latest, "best": planners.best.loss}
