"""Five ways to lead matter: learning, planning and evolution on one task at equal simulated time.

A glass of milk under water is to be poured off (`matter/pouring`). PPO learns from rewards, SHAC
from their derivatives, an evolution strategy from returns alone; Adam and CEM plan one episode,
with derivatives and without. All begin from holding still and simulate equally many episodes. How
far derivatives can be trusted is measured beside them.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jaxgpu import ranges
from jaxgpu.pytree import size
from jaxgpu.report import Report
from jaxgpu.studies import SEEDS

from . import slopes, ways
from .findings import written


@dataclass(frozen=True)
class Options:
    """How much is spent."""

    episodes: int = size(default=48, least=8, most=1_000_000)
    """Episodes that each way simulates from each seed, a multiple of 8."""
    seeds: int = size(default=5, least=1, most=10_000)
    """Of each way."""
    seed: int = size(default=0, **SEEDS)
    """Of the first of them."""

    def __post_init__(self):
        ranges.check("five-ways", self)
        if self.episodes % ways.TOGETHER:
            raise ValueError(f"episodes: {self.episodes}; must be a multiple of {ways.TOGETHER}")


def study(options: Options, out: Path, resume: bool) -> Report:
    """Learn and plan in all ways, score what each found, and measure its derivatives."""
    env = ways.task()
    taught = {name: ways.learn(env, name, options, out / name, resume) for name in ways.LEARNERS}
    planned = {name: ways.plan(env, name, options, out / name, resume) for name in ways.PLANNERS}
    scores = {name: run.history for name, run in taught.items()}
    scores |= {name: np.asarray(curve) for name, (curve, _) in planned.items()}
    timing = {name: run.timing for name, run in taught.items()}
    timing |= {name: timing for name, (_, timing) in planned.items()}
    agreement = slopes.agreement(env, options.seeds, options.seed)
    return written(options, env, scores, agreement, timing)
