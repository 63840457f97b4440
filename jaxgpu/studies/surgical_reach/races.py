"""The learners of the study, and how a training of many seeds is run and measured."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import Array

from jaxgpu import rl
from jaxgpu.evolution.single import SNES
from jaxgpu.runs.loop import Run

MEASUREMENTS, GOALS = 20, 64  # along a training; goals reached for at each
HORIZON = 100  # steps of an episode


@dataclass(frozen=True)
class Racer:
    """A learner, and the share of the steps it is given."""

    learner: Any
    share: float

    def every(self, steps: int) -> int:
        """Updates between two measurements."""
        return max(1, round(self.share * steps / self.learner.steps_per_update / MEASUREMENTS))

    def steps(self, steps: int) -> int:
        """Steps of environments in all, of each seed."""
        return MEASUREMENTS * self.every(steps) * self.learner.steps_per_update


# hyper-parameters of PPO and SHAC as in the tests of the scores
RACERS = {
    "PPO": Racer(
        rl.PPO(learning_rate=2e-3, gamma=0.9, num_envs=128, num_steps=32),
        1.0,
    ),
    "SHAC": Racer(rl.SHAC(gamma=0.8, num_steps=8), 0.2),
    "ES": Racer(rl.ES(SNES(64), max_weight=1.0, episodes=8, max_steps=HORIZON), 5.0),
}


def race(name: str, seeds: int, steps: int, seed: int, out: Path, resume: bool) -> Run:
    """All seeds of a learner in one program; the history is errors, mm, [1 + M, seeds, goals]."""
    racer, env = RACERS[name], rl.Reach()
    keys = jax.random.split(jax.random.key(seed), seeds)
    measure = lambda state: errors(env, racer.learner.policy(env, state))
    every = racer.every(steps)
    return rl.sweep(
        env, racer.learner, keys, MEASUREMENTS, every, measure=measure, out=out, resume=resume
    )


def errors(env: rl.Reach, policy: Any) -> Array:
    """How far, in mm, the tip is from each of the same goals at the end of an episode, [goals]."""
    return 1e3 * jax.vmap(lambda key: played(env, policy, key)[2][-1])(
        jax.random.split(jax.random.key(1234), GOALS)
    )


def played(env: rl.Reach, policy: Any, key: Array) -> tuple[Array, Array, Array]:
    """Joints [T, J], goal [3] and distance [T] in m of one episode without noise."""

    def move(carry: Any, _: None) -> tuple[Any, Any]:
        state, observation = carry
        out = env.step(state, policy(observation), key)
        return (out.state, out.observation), (out.state.q, out.info["distance"])

    start = env.reset(key)
    q, distance = jax.lax.scan(move, start, length=HORIZON)[1]
    return q, start[0].goal, distance


def curve(history: np.ndarray, tolerance: float) -> np.ndarray:
    """Interquartile mean over the seeds of the share of goals reached, and its interval, [M, 3]."""
    share = (history < tolerance).mean(2)
    key = jax.random.key(0)
    return np.array([rl.interquartile_mean(row.astype(np.float32), key) for row in share])
