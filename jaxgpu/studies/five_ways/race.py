"""Comparison of all five methods on one task: returns over simulated time and over CPU time."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.report import replace_text
from jaxgpu.rl.plan import evaluate_plans, plan_from_each
from jaxgpu.runs.loop import Run

from .methods import (
    BLOCKS,
    DISCOUNT,
    LEARNERS,
    PLANNERS,
    WITH_GRADIENTS,
    Score,
    Starts,
    make_starts,
    train_learner,
)

METHODS = (*LEARNERS, *PLANNERS)


@dataclass(frozen=True)
class Curve:
    """Returns of one method by the number of episodes."""

    episodes: np.ndarray  # [K] simulated so far, per seed
    returns: np.ndarray  # [K, S] on the initial states of the planners

    def interpolate(self, episodes: float) -> np.ndarray:
        """Return the returns [S] after a number of episodes, by linear interpolation."""
        return np.array([np.interp(episodes, self.episodes, one) for one in self.returns.T])


@dataclass(frozen=True)
class Race:
    """Results of all methods; S seeds, N new initial states."""

    curves: dict[str, Curve]
    own: dict[str, np.ndarray]  # [S] final return, on the initial states of the curves
    new: dict[str, np.ndarray]  # [S] mean return on new initial states
    fixed: dict[str, np.ndarray]  # [N] return of the fixed plans on new initial states
    price: dict[str, float]  # CPU time per episode of each method, s
    runs: dict[str, Run]


@dataclass(frozen=True)
class Budget:
    """Episodes per seed for methods with gradients, and the factor for the others."""

    episodes: int
    longer: int

    def episodes_of(self, way: str) -> int:
        """Return the number of episodes that a method simulates."""
        return self.episodes * (1 if way in WITH_GRADIENTS else self.longer)


@dataclass(frozen=True)
class Setup:
    """Common setting of all methods: the task, initial states for plans, and new initial states."""

    env: Any
    starts: Starts  # [S]
    unseen: Starts  # [N]
    keys: Array  # [S] of the learners

    @classmethod
    def create(cls, env: Any, seeds: int, unseen: int, seed: int) -> "Setup":
        """Return the setting for a seed, independent of the methods."""
        own, new, learners = jax.random.split(jax.random.key(seed), 3)
        return cls(
            env,
            make_starts(env, jax.random.split(own, seeds)),
            make_starts(env, jax.random.split(new, unseen)),
            jax.random.split(learners, seeds),
        )


def run_race(
    field: Setup, budget: Budget, fixed: dict[str, Array], seed: int, out: Path, resume: bool
) -> Race:
    """Run every method from every seed, and evaluate its result on new initial states.

    Args:
        field: task and initial states.
        budget: episodes of each method.
        fixed: plans [T, A] that were not optimized, by name.
        seed: seed of the planners.
        out: folder for checkpoints.
        resume: continue from its checkpoints.
    """
    curves: dict[str, Curve] = {}
    new: dict[str, np.ndarray] = {}
    runs: dict[str, Run] = {}
    for name in LEARNERS:
        done = runs[name] = train_policies(field, name, budget.episodes_of(name), out, resume)
        seen = np.asarray(done.history).mean(-1)
        curves[name] = Curve(np.linspace(0, budget.episodes_of(name), len(seen)), seen)
        score = Score(field.env, LEARNERS[name], field.unseen)
        new[name] = np.asarray(jax.jit(jax.vmap(score))(done.state)).mean(-1)
    for name in PLANNERS:
        done = runs[name] = optimize_plans(field, name, budget.episodes_of(name), seed, out, resume)
        seen = -np.asarray(done.history["best"])[1:]
        steps = budget.episodes_of(name) // len(seen)
        curves[name] = Curve(steps * (1 + np.arange(len(seen))), seen)
        new[name] = replay_plans(field, done.actions).mean(-1)
    own = {name: curve.returns[-1] for name, curve in curves.items()}
    known = {name: replay_plans(field, jnp.asarray(plan)[None])[0] for name, plan in fixed.items()}
    price = measure_costs(field, out, resume)  # after the race, when all programs are compiled
    return Race(curves=curves, own=own, new=new, fixed=known, price=price, runs=runs)


def train_policies(field: Setup, name: str, episodes: int, out: Path | None, resume: bool) -> Run:
    """Train a policy per seed, scored on the way on the initial states of the planners."""
    folder = None if out is None else out / name
    return train_learner(field.env, name, field.keys, field.starts, episodes, folder, resume)


def optimize_plans(
    field: Setup, name: str, episodes: int, seed: int, out: Path | None, resume: bool
) -> Any:
    """Optimize a plan from each initial state."""
    return plan_from_each(
        field.env,
        PLANNERS[name],
        field.starts.state,
        episodes,
        gradient_discount=DISCOUNT if name in WITH_GRADIENTS else 1.0,
        seed=seed,
        out=None if out is None else out / name,
        resume=resume,
    )


def replay_plans(field: Setup, plans: Array) -> np.ndarray:
    """Return the returns [K, N] of plans [K, T, A] on new initial states."""
    return evaluate_plans(field.env, field.unseen.state, plans[:, None])


def measure_costs(field: Setup, out: Path, resume: bool) -> dict[str, float]:
    """Measure the CPU time per episode of each method, s; a resumed run keeps its own values.

    It runs some compiled updates of the race, counts all threads, and subtracts the evaluations.
    """
    file = out / "prices.json"
    if resume and file.exists():
        return json.loads(file.read_text())
    seeds = len(field.keys)
    zero = field.env.initial_actions()
    evaluate_plans(field.env, field.starts.state, zero)
    look = seeds * _seconds(lambda: evaluate_plans(field.env, field.starts.state, zero))
    found: dict[str, float] = {}
    for name in LEARNERS:
        spent = _seconds(
            lambda name=name: train_policies(field, name, BLOCKS[name], None, False).state
        )
        found[name] = (spent - 2 * look) / (seeds * BLOCKS[name])
    for name in PLANNERS:
        spent = _seconds(
            lambda name=name: optimize_plans(field, name, BLOCKS[name], 0, None, False).state
        )
        found[name] = spent / (seeds * BLOCKS[name])
    out.mkdir(parents=True, exist_ok=True)
    replace_text(file, json.dumps(found))
    return found


def _seconds(call: Callable[[], Any]) -> float:
    """Return the CPU time of a precompiled call, s."""
    began = time.process_time()
    jax.block_until_ready(call())
    return time.process_time() - began
