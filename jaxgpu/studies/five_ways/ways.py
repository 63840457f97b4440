"""The task, who learns it and who plans it, at equally many simulated episodes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax
from jax import Array

from jaxgpu import rl
from jaxgpu.evolution.single import SNES
from jaxgpu.rl.envs.matter.task import Matter
from jaxgpu.rl.plan import CEM, Descent, evaluate_plans, initial_states, plan_from_each
from jaxgpu.run import Run, Timing

TOGETHER = 8  # episodes at a time: environments, candidates, samples
WINDOW = 15  # frames of SHAC's derivatives
MEASUREMENTS = 4  # along a training
HELD_OUT = 2  # episodes at each measurement, from starts that are not learnt on
DISCOUNT = 0.9  # of Adam's derivatives, a frame
LEARNERS = ("PPO", "SHAC", "ES")
PLANNERS = ("Adam", "CEM")


def task() -> Matter:
    """Pouring in a plane, from holding still."""
    env: Any = rl.make("matter/pouring")
    return replace(env, initial_plan=0.0)


def learner(name: str, frames: int) -> tuple[Any, int]:
    """A learner, and how many of its updates simulate `TOGETHER` episodes of so many frames."""
    if name == "PPO":
        return rl.PPO(learning_rate=1e-3, gamma=0.97, num_envs=TOGETHER, num_steps=frames), 1
    if name == "SHAC":
        return rl.SHAC(gamma=0.97, num_envs=TOGETHER, num_steps=WINDOW), frames // WINDOW
    return rl.ES(SNES(TOGETHER), max_weight=1.0, episodes=1, max_steps=frames), 1


def learn(env: Matter, name: str, options: Any, out: Path, resume: bool) -> Run:
    """All seeds of a learner in one program; the history is mean returns [1 + M, seeds]."""
    spec, updates = learner(name, env.max_steps)
    count = max(1, options.episodes // TOGETHER // MEASUREMENTS)
    keys = jax.random.split(jax.random.key(options.seed), options.seeds)
    measure = lambda state: held_out(env, spec.policy(env, state))
    return rl.sweep(
        env,
        spec,
        keys,
        options.episodes // TOGETHER // count,
        count * updates,
        measure=measure,
        out=out,
        resume=resume,
    )


def held_out(env: Matter, policy: Any) -> Array:
    """Mean return of a policy without noise over starts that are not learnt on."""

    def played(key: Array) -> Array:
        def move(carry: Any, _: None) -> tuple[Any, Array]:
            state, observation = carry
            step = env.step(state, policy(observation), key)
            return (step.state, step.observation), step.reward

        return jax.lax.scan(move, env.reset(key), length=env.max_steps)[1].sum()

    return jax.vmap(played)(jax.random.split(jax.random.key(1234), HELD_OUT)).mean()


def plan(
    env: Matter, name: str, options: Any, out: Path, resume: bool
) -> tuple[np.ndarray, Timing]:
    """Returns [1 + updates, seeds] of the best plan so far, and what they took."""
    rate = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(0.05, b2=0.99))
    adam = name == "Adam"
    states = initial_states(env, options.seeds, options.seed)
    done = plan_from_each(
        env,
        Descent(rate) if adam else CEM(TOGETHER, 3, sigma=0.3, correlation=0.9),
        states,
        options.episodes,
        gradient_discount=DISCOUNT if adam else 1.0,
        seed=options.seed,
        out=out,
        resume=resume,
    )
    still = evaluate_plans(env, states, env.initial_actions())
    return np.concatenate([still[None], -done.history["best"][1:]]), done.timing
