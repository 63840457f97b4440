"""Planners beside one another: every seed of one in one program, at equally many episodes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from jaxgpu import ranges
from jaxgpu.run import Run, run

from ..environment import Environment
from .descent import Descent
from .expansion import Expansion
from .objective import cost
from .sampling import CEM, MPPI

POPULATION = 8  # of CEM and MPPI


def planners(first: int = 10, grow: int = 10, rate: float = 0.05) -> dict[str, Any]:
    """Four planners by name, as the tables of the documents and the studies call them.

    Args:
        first, grow: frames of the growing window, at the start and at a time.
        rate: of Adam, in shares of the greatest action.
    """
    adam = Descent(optax.chain(optax.clip_by_global_norm(1.0), optax.adam(rate, b2=0.99)))
    return {
        "Adam": adam,
        "CEM": CEM(POPULATION, 3, sigma=0.3, correlation=0.9),
        "Adam, growing window": Expansion(adam, first=first, grow=grow, patience=2),
        "MPPI": MPPI(POPULATION, sigma=0.3, correlation=0.9),
    }


def begun(env: Environment, seeds: int, seed: int = 0) -> Any:
    """First states of all seeds, stacked."""
    keys = jax.random.split(jax.random.key(seed), seeds)
    return jax.jit(lambda keys: jax.lax.map(lambda key: env.reset(key)[0], keys))(keys)


def race(
    env: Any,
    planner: Any,
    states: Any,
    calls: int,
    *,
    fade: Array | float = 1.0,
    seed: int = 0,
    out: Path | None = None,
    resume: bool = False,
) -> Run:
    """A planner from every state, until it has simulated `calls` episodes in each.

    Args:
        env: with `guess()`, the actions [T, A] from which planning starts.
        planner: `Descent`, `CEM`, `MPPI` or `Expansion`; an episode with its gradient counts as
            one, and so does one of a window.
        states: stacked, as `begun` gives them.
        calls: episodes; what is left of a population is not simulated.
        fade: of gradients, see `cost`.
    Returns:
        a `Run`: the planners' states stacked; history of `loss`, the newest, and of `best`
        [updates, seeds].
    """
    ranges.check("race", planner)
    ranges.refuse("race: calls", calls, ranges.Range(least=1, whole=True, one=True))
    ranges.refuse("race: fade", fade, ranges.Range(least=0, most=1))
    keys = lambda key: jax.random.split(key, jax.tree.leaves(states)[0].shape[0])

    def step(all: Any, key: Array) -> Any:
        def one(args: tuple[Any, Any, Array]) -> Any:
            state, at, key = args
            loss = lambda actions, frames=None: cost(env, at, actions, frames, fade)
            return planner.update(loss, state, key)

        return jax.lax.map(one, (all, states, keys(key)))

    key = jax.random.key(seed)
    first = jax.vmap(lambda _: planner.init(env.guess()))(keys(key))
    measure = lambda all: {"loss": all.best.last, "best": all.best.loss}
    updates = calls // getattr(planner, "population", 1)
    done = run(step, first, updates, key=key, measure=measure, out=out, resume=resume)
    return replace(done, history=jax.tree.map(lambda rows: rows[1:], done.history))


def returns(env: Environment, states: Any, actions: Any) -> np.ndarray:
    """Sum of rewards of actions from every state, in one program.

    Args:
        states: S of them, stacked, as `begun` gives them.
        actions: [T, A] for all states, [S, T, A], or [K, S, T, A] of K ways to act.
    Returns:
        [S], or [K, S].
    """
    seeds = jax.tree.leaves(states)[0].shape[0]
    actions = jnp.asarray(actions)
    actions = jnp.broadcast_to(actions, (*actions.shape[:-3], seeds, *actions.shape[-2:]))
    play = lambda args: -cost(env, *args)
    way = lambda plans: jax.lax.map(play, (states, plans))
    ways = actions.reshape(-1, *actions.shape[-3:])
    played = jax.jit(lambda: jax.lax.map(way, ways))()
    return np.asarray(played).reshape(actions.shape[:-2])
