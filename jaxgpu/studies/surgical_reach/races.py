"""Learners of the study, and trainings of many seeds with evaluations."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import Array

from jaxgpu import rl
from jaxgpu.evolution.single import SNES
from jaxgpu.runs.loop import Run

MEASUREMENTS, GOALS = 20, 64  # per training; goals per evaluation
HORIZON = 100  # steps of an episode


@dataclass(frozen=True)
class Racer:
    """A learner and the fraction of the steps that it gets."""

    learner: Any
    share: float

    def interval(self, steps: int) -> int:
        """Return the updates between two measurements."""
        return max(1, round(self.share * steps / self.learner.steps_per_update / MEASUREMENTS))

    def steps(self, steps: int) -> int:
        """Return the total environment steps per seed."""
        return MEASUREMENTS * self.interval(steps) * self.learner.steps_per_update


# PPO and SHAC have the hyperparameters of the score tests.
RACERS = {
    "PPO": Racer(
        rl.PPO(learning_rate=2e-3, gamma=0.9, num_envs=128, num_steps=32),
        1.0,
    ),
    "SHAC": Racer(rl.SHAC(gamma=0.8, num_steps=8), 0.2),
    "ES": Racer(rl.ES(SNES(64), max_weight=1.0, episodes=8, max_steps=HORIZON), 5.0),
}


def race(name: str, seeds: int, steps: int, seed: int, out: Path, resume: bool) -> Run:
    """Train all seeds in one program; the history has errors [1 + M, seeds, goals] in mm."""
    racer, env = RACERS[name], rl.Reach()
    keys = jax.random.split(jax.random.key(seed), seeds)
    measure = lambda state: errors(env, racer.learner.policy(env, state))
    every = racer.interval(steps)
    return rl.sweep(
        env, racer.learner, keys, MEASUREMENTS, every, measure=measure, out=out, resume=resume
    )


def errors(env: rl.Reach, policy: Any) -> Array:
    """Return the tip's distance [goals], mm, from each of a fixed set of goals at the end."""
    return 1e3 * jax.vmap(lambda key: record_episode(env, policy, key)[2][-1])(
        jax.random.split(jax.random.key(1234), GOALS)
    )


def record_episode(env: rl.Reach, policy: Any, key: Array) -> tuple[Array, Array, Array]:
    """Return joints [T, J], goal [3] and distance [T] in m of one noise-free episode."""

    def move(carry: Any, _: None) -> tuple[Any, Any]:
        state, observation = carry
        out = env.step(state, policy(observation), key)
        return (out.state, out.observation), (out.state.q, out.info["distance"])

    start = env.reset(key)
    q, distance = jax.lax.scan(move, start, length=HORIZON)[1]
    return q, start[0].goal, distance


def curve(history: np.ndarray, tolerance: float) -> np.ndarray:
    """Return the seeds' interquartile mean share of reached goals and its interval, [M, 3]."""
    share = (history < tolerance).mean(2)
    key = jax.random.key(0)
    return np.array([rl.interquartile_mean(row.astype(np.float32), key) for row in share])
