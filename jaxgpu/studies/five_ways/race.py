"""All five ways on one task: what they return over simulated seconds, and over processor time."""

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

from .ways import BLOCKS, DISCOUNT, LEARNERS, PLANNERS, WITH_GRADIENTS, Score, Starts, begin, learnt

WAYS = (*LEARNERS, *PLANNERS)


@dataclass(frozen=True)
class Curve:
    """What one way returns after so many episodes."""

    episodes: np.ndarray  # [K] simulated by then, in each of the seeds
    returns: np.ndarray  # [K, S] on the starts that plans are found for

    def at(self, episodes: float) -> np.ndarray:
        """Returns [S] after so many episodes, between two looks by a straight line."""
        return np.array([np.interp(episodes, self.episodes, one) for one in self.returns.T])


@dataclass(frozen=True)
class Race:
    """What all ways came to; S seeds, N new starts."""

    curves: dict[str, Curve]
    own: dict[str, np.ndarray]  # [S] return at the end, on the starts of the curves
    new: dict[str, np.ndarray]  # [S] on new starts, the mean over them
    fixed: dict[str, np.ndarray]  # [N] of the plans that nobody searched for, on new starts
    price: dict[str, float]  # processor time of an episode as each way needs it, s
    runs: dict[str, Run]


@dataclass(frozen=True)
class Budget:
    """Episodes of each seed: of ways with gradients, and how many times that of the others."""

    episodes: int
    longer: int

    def of(self, way: str) -> int:
        """Episodes that a way simulates."""
        return self.episodes * (1 if way in WITH_GRADIENTS else self.longer)


@dataclass(frozen=True)
class Field:
    """Where all ways run: the task, a start for each plan, and new ones."""

    env: Any
    starts: Starts  # [S]
    unseen: Starts  # [N]
    keys: Array  # [S] of the learners

    @classmethod
    def of(cls, env: Any, seeds: int, unseen: int, seed: int) -> "Field":
        """The one of a seed: nothing in it depends on what is run there."""
        own, new, learners = jax.random.split(jax.random.key(seed), 3)
        return cls(
            env,
            begin(env, jax.random.split(own, seeds)),
            begin(env, jax.random.split(new, unseen)),
            jax.random.split(learners, seeds),
        )


def raced(
    field: Field, budget: Budget, fixed: dict[str, Array], seed: int, out: Path, resume: bool
) -> Race:
    """Run every way from every seed, and play what it found on new starts.

    Args:
        field: the task and its starts.
        budget: episodes of each way.
        fixed: plans [T, A] that nobody searched for, by name.
        seed: of the planners.
        out: folder for checkpoints.
        resume: go on from what is there.
    """
    curves: dict[str, Curve] = {}
    new: dict[str, np.ndarray] = {}
    runs: dict[str, Run] = {}
    for name in LEARNERS:
        done = runs[name] = taught(field, name, budget.of(name), out, resume)
        seen = np.asarray(done.history).mean(-1)
        curves[name] = Curve(np.linspace(0, budget.of(name), len(seen)), seen)
        score = Score(field.env, LEARNERS[name], field.unseen)
        new[name] = np.asarray(jax.jit(jax.vmap(score))(done.state)).mean(-1)
    for name in PLANNERS:
        done = runs[name] = planned(field, name, budget.of(name), seed, out, resume)
        seen = -np.asarray(done.history["best"])[1:]
        steps = budget.of(name) // len(seen)
        curves[name] = Curve(steps * (1 + np.arange(len(seen))), seen)
        new[name] = replayed(field, done.actions).mean(-1)
    own = {name: curve.returns[-1] for name, curve in curves.items()}
    known = {name: replayed(field, jnp.asarray(plan)[None])[0] for name, plan in fixed.items()}
    price = prices(field, out, resume)  # after the race, by when all programs are compiled
    return Race(curves=curves, own=own, new=new, fixed=known, price=price, runs=runs)


def taught(field: Field, name: str, episodes: int, out: Path | None, resume: bool) -> Run:
    """A policy of each seed, scored on the starts of the plans on the way."""
    folder = None if out is None else out / name
    return learnt(field.env, name, field.keys, field.starts, episodes, folder, resume)


def planned(
    field: Field, name: str, episodes: int, seed: int, out: Path | None, resume: bool
) -> Any:
    """A plan from each start."""
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


def replayed(field: Field, plans: Array) -> np.ndarray:
    """Returns [K, N] of plans [K, T, A] on new starts."""
    return evaluate_plans(field.env, field.unseen.state, plans[:, None])


def prices(field: Field, out: Path, resume: bool) -> dict[str, float]:
    """Processor time of an episode as each way needs it, s; a resumed run keeps its own.

    Of some updates in the programs of the race, which are compiled, all threads counted and the
    scores left aside.
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
        spent = _seconds(lambda name=name: taught(field, name, BLOCKS[name], None, False).state)
        found[name] = (spent - 2 * look) / (seeds * BLOCKS[name])
    for name in PLANNERS:
        spent = _seconds(lambda name=name: planned(field, name, BLOCKS[name], 0, None, False).state)
        found[name] = spent / (seeds * BLOCKS[name])
    out.mkdir(parents=True, exist_ok=True)
    replace_text(file, json.dumps(found))
    return found


def _seconds(call: Callable[[], Any]) -> float:
    """Processor time of a call whose program is compiled before, s."""
    began = time.process_time()
    jax.block_until_ready(call())
    return time.process_time() - began
