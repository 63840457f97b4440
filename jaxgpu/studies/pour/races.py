"""Planners on the task, all seeds of one of them in one program, and what each may spend."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array

from jaxgpu import rl
from jaxgpu.rl.envs.matter.task import Matter, State
from jaxgpu.rl.plan import CEM, MPPI, Descent, Expansion, cost
from jaxgpu.run import Run, run

POPULATION = 8  # of CEM and MPPI
FADE = 0.9  # of gradients, a frame
RATE = 0.05  # of Adam, in shares of the greatest velocity

NAMES = ("Adam", "CEM", "Adam, growing window", "MPPI")


def planner(name: str) -> Any:
    """A planner by the name that the report gives it."""
    adam = Descent(optax.chain(optax.clip_by_global_norm(1.0), optax.adam(RATE, b2=0.99)))
    known = {
        "Adam": adam,
        "Adam, growing window": Expansion(adam, first=20, grow=10, patience=2),
        "CEM": CEM(POPULATION, 3, sigma=0.3, correlation=0.9),
        "MPPI": MPPI(POPULATION, sigma=0.3, correlation=0.9),
    }
    return known[name]


def begun(env: Matter, seeds: int, seed: int) -> State:
    """First states of all seeds, stacked: the particles' places differ."""
    keys = jax.random.split(jax.random.key(seed), seeds)
    return jax.jit(lambda keys: jax.lax.map(lambda key: env.start(key)[0], keys))(keys)


def race(
    env: Matter, name: str, states: State, calls: int, seed: int, out: Path, resume: bool
) -> Run:
    """All seeds of a planner, until each has simulated `calls` episodes.

    Returns:
        a `Run`: planners' states stacked; history of `loss`, the newest, and of `best`
        [updates, seeds].
    """
    spec, seeds = planner(name), states.first.shape[0]
    updates = calls // POPULATION if name in ("CEM", "MPPI") else calls
    fade = FADE if name.startswith("Adam") else 1.0

    def step(all: Any, key: Array) -> Any:
        def one(args: tuple[Any, State, Array]) -> Any:
            state, at, key = args
            loss = lambda actions, frames=None: cost(env, at, actions, frames, fade)
            return spec.update(loss, state, key)

        return jax.lax.map(one, (all, states, jax.random.split(key, seeds)))

    first = jax.vmap(lambda _: spec.init(env.guess()))(jnp.arange(seeds))
    measure = lambda all: {"loss": all.best.last, "best": all.best.loss}
    key = jax.random.key(seed)
    return run(step, first, updates, key=key, measure=measure, out=out, resume=resume)


def task(size: str) -> Matter:
    """The environment of the study."""
    env: Any = rl.make("matter/pouring", size=size)
    return env
