"""Latte art: a stirrer in milk and coffee, planned by gradients and by CEM, in a full cup."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from jaxgpu import rl
from jaxgpu.inputs.fields import number, size
from jaxgpu.report import Headline, Report
from jaxgpu.rl.plan import initial_states, standard_planners
from jaxgpu.rl.plan.comparison import POPULATION
from jaxgpu.studies import pour, seed_count, shared_parts
from jaxgpu.studies.pour import CITATIONS, compare, evaluate, medians, pictures, progress, table

DISCOUNT = 1.0  # creeping flow has a long memory and is not chaotic, so gradients stay exact


@dataclass(frozen=True)
class Options(pour.Options):
    """Options of the study."""

    calls: int = size(default=32, least=POPULATION, most=1_000_000)
    """Episodes that each planner simulates, a multiple of 8."""
    seeds: int = seed_count(default=1, least=1)
    """Runs of each planner, from random initial particle positions."""
    planners: int = size(default=3, least=2, most=3)
    """Planners: 2 for Adam on a growing window and CEM, 3 with Adam on full episodes."""
    rate: float = number(default=0.1, above=0, most=1)
    """Learning rate of Adam, as a fraction of the maximum velocity."""
    size: str = "full"
    """Size of the task: full is three-dimensional, small is two-dimensional."""


def study(options: Options, out: Path, resume: bool) -> Report:
    """Plan with gradients and by sampling, score the plans, and film the first seed."""
    env: Any = rl.make("matter/latte-art-stir", size=options.size)
    states = initial_states(env, options.seeds, options.seed)
    known = standard_planners(first=4, grow=4, rate=options.rate)
    names = ("Adam, growing window", "CEM", "Adam")[: options.planners]
    chosen = {name: known[name] for name in names}
    runs = compare(env, states, chosen, DISCOUNT, options, out, resume)
    scores = evaluate(env, states, runs)
    middle, among = medians(scores)
    first = jax.tree.map(lambda a: a[0], states)
    grown = runs["Adam, growing window"].state
    plan, window = jnp.asarray(grown.best.actions[0]), int(grown.window[0])
    demo = jnp.asarray(env.goal.demo)
    particles = sum(body.x.shape[0] for body in env.simulation.bodies)
    return Report(
        "Latte art",
        f"A stirrer moves for {env.max_steps * 0.04:g} s through {particles} particles of milk "
        f"and coffee. After {options.calls} simulated episodes gradients on a growing window "
        f"return {middle['Adam, growing window']:.3f} and CEM {middle['CEM']:.3f} ({among}).",
        figures=[
            pictures.video(
                env,
                first,
                [demo, plan],
                "Left: demonstration. Right: best plan of Adam on a growing window, which reached "
                f"{window} of {env.max_steps} frames; afterwards the stirrer rests.",
            ),
            progress(runs, options.calls, scores),
        ],
        tables=[table(scores, options.calls)],
        headlines=[
            Headline(
                f"return of latte art after {options.calls} episodes, Adam on a growing window",
                middle["Adam, growing window"],
                f"{middle['CEM']:.3f} for CEM ({among})",
            )
        ],
        **shared_parts(options, runs, FINDINGS, CITATIONS),
    )


FINDINGS = [
    "A return of 1: every particle follows the demonstration at every time; 0: no action.",
    "No planner knows the demonstrated strokes, and all start without strokes.",
]
