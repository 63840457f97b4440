"""Latte art: a stirrer led by gradients through milk and coffee, beside CEM, in a whole cup."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu import rl
from jaxgpu.report import Report
from jaxgpu.rl.plan import begun, planners
from jaxgpu.rl.plan.contest import POPULATION
from jaxgpu.studies.pour import CITATIONS, pictures, progress, raced, scored, table

FADE = 1.0  # creeping flow forgets little and is not chaotic: gradients are exact


@dataclass(frozen=True)
class Options:
    """How much is spent."""

    calls: int = 32
    """Episodes that each planner simulates, a multiple of 8."""
    seeds: int = 1
    """Runs of each planner, from particles placed at random."""
    planners: int = 3
    """How many: Adam on a growing window and CEM at 2, then Adam on the whole episode."""
    size: str = "full"
    """Of the task: full is a cup in space, small a plane."""
    rate: float = 0.1
    """Of Adam, in shares of the greatest velocity."""
    seed: int = 0
    """Of the first run."""

    def __post_init__(self):
        if self.calls < POPULATION or self.calls % POPULATION:
            raise ValueError(f"calls: {self.calls}; must be a multiple of {POPULATION}")
        if self.seeds < 1 or self.planners not in (2, 3):
            given = f"seeds: {self.seeds}, planners: {self.planners}"
            raise ValueError(f"{given}; must be at least 1, and 2 or 3")
        if not 0 < self.rate <= 1:
            raise ValueError(f"rate: {self.rate}; must be in (0, 1]")
        if self.size not in ("small", "full"):
            raise ValueError(f"size: {self.size!r}; must be small or full")


def study(options: Options, out: Path, resume: bool) -> Report:
    """Plan with gradients and by sampling, score the plans, and show the first seed's."""
    env: Any = rl.make("matter/latte-art-stir", size=options.size)
    states = begun(env, options.seeds, options.seed)
    known = planners(first=4, grow=4, rate=options.rate)
    names = ("Adam, growing window", "CEM", "Adam")[: options.planners]
    some = {name: known[name] for name in names}
    runs = raced(env, states, some, FADE, options, out, resume)
    scores = scored(env, states, runs)
    middle = {name: float(np.median(score)) for name, score in scores.items()}
    first = jax.tree.map(lambda a: a[0], states)
    grown = runs["Adam, growing window"].state
    plan, window = jnp.asarray(grown.best.actions[0]), int(grown.window[0])
    demo = jnp.asarray(env.goal.demo)
    particles = sum(body.x.shape[0] for body in env.scene.bodies)
    return Report(
        "Latte art",
        f"A stirrer is led for {env.horizon * 0.04:g} s through {particles} particles of milk and "
        f"coffee. After {options.calls} simulated episodes gradients on a growing window return "
        f"{middle['Adam, growing window']:.3f} and CEM {middle['CEM']:.3f} "
        f"({'one seed' if options.seeds == 1 else f'medians of {options.seeds} seeds'}).",
        figures=[
            pictures.film(
                env,
                first,
                [demo, plan],
                "Left what was shown, right the best plan on a growing window, which had come to "
                f"{window} of {env.horizon} frames; in later ones the stirrer stands.",
            ),
            progress(runs, options.calls, scores),
        ],
        tables=[table(scores, options.calls)],
        findings=FINDINGS,
        citations=CITATIONS,
        timing={name: one.timing for name, one in runs.items()},
        seed=options.seed,
    )


FINDINGS = [
    "1 would be every particle where it was shown, at the time it was shown; 0 is doing nothing.",
    "No planner is told the strokes that were shown, and all begin without any.",
]
