"""Pouring water off milk: a glass moved by plans from gradients through the liquids and by CEM."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu import rl
from jaxgpu.inputs.fields import size
from jaxgpu.report import Figure, Headline, Report, Table, figure, seeds_caption
from jaxgpu.rl.envs.matter.task import MatterTask, State
from jaxgpu.rl.plan import Plan, evaluate_plans, initial_states, plan_from_each, standard_planners
from jaxgpu.rl.plan.comparison import POPULATION
from jaxgpu.studies import SeededOptions, seed_count, shared_parts

from . import pictures

DISCOUNT = 0.9  # of gradients, per frame
PLANNERS = standard_planners(first=20, grow=10)


@dataclass(frozen=True)
class Options(SeededOptions):
    """Options of the study."""

    calls: int = size(default=64, least=POPULATION, most=1_000_000)
    """Episodes that each planner simulates, a multiple of 8."""
    seeds: int = seed_count(default=3, least=1)
    """Runs of each planner, from random initial particle positions."""
    planners: int = size(default=4, least=2, most=4)
    """Planners: 2 for Adam and CEM, 3 with Adam on a growing window, 4 with MPPI."""
    size: str = "small"
    """Size of the task: small is two-dimensional, full is three-dimensional."""

    def __post_init__(self):
        super().__post_init__()
        if self.calls % POPULATION:
            raise ValueError(f"calls: {self.calls}; must be a multiple of {POPULATION}")
        if self.size not in ("small", "full"):
            raise ValueError(f"size: {self.size!r}; must be small or full")


def study(options: Options, out: Path, resume: bool) -> Report:
    """Plan with every planner, score the plans, and film the first seed."""
    env: Any = rl.make("matter/pouring", size=options.size)
    states = initial_states(env, options.seeds, options.seed)
    chosen = {name: PLANNERS[name] for name in list(PLANNERS)[: options.planners]}
    runs = compare(env, states, chosen, DISCOUNT, options, out, resume)
    scores = evaluate(env, states, runs)
    middle, among = medians(scores)
    where = "in two dimensions" if options.size == "small" else "in three dimensions"
    return Report(
        "Pouring water off milk",
        f"A glass with milk under water moves {where} for {env.max_steps * 0.02:g} s. After "
        f"{options.calls} simulated episodes gradients through the liquids return "
        f"{middle['Adam']:.3f}, CEM {middle['CEM']:.3f} and holding still "
        f"{middle['holding still']:.3f} ({among}). A return of 1 means all water out and all milk "
        "in the glass.",
        figures=figures(env, states, runs, options.calls, scores),
        tables=[table(scores, options.calls)],
        headlines=[
            Headline(
                f"return of pouring after {options.calls} episodes, Adam with gradients",
                middle["Adam"],
                f"{middle['CEM']:.3f} for CEM, 0 for holding still ({among})",
            )
        ],
        **shared_parts(options, runs, FINDINGS, CITATIONS),
    )


def compare(
    env: MatterTask,
    states: State,
    chosen: dict[str, Any],
    discount: float,
    options: Any,
    out: Path,
    resume: bool,
) -> dict[str, Plan]:
    """Run each planner in its own folder; `discount` applies to gradient-based planners."""
    return {
        name: plan_from_each(
            env,
            planner,
            states,
            options.calls,
            gradient_discount=discount if name.startswith("Adam") else 1.0,
            seed=options.seed,
            out=out / name.replace(", ", "-").replace(" ", "-"),
            resume=resume,
        )
        for name, planner in chosen.items()
    }


def medians(scores: dict[str, np.ndarray]) -> tuple[dict[str, float], str]:
    """Return the median return over the seeds for each controller, and its description."""
    seeds = len(scores["holding still"])
    among = "one seed" if seeds == 1 else f"medians of {seeds} seeds"
    return {name: float(np.median(score)) for name, score in scores.items()}, among


def figures(
    env: MatterTask, states: State, runs: dict[str, Plan], calls: int, scores: dict[str, np.ndarray]
) -> list[Figure]:
    """Return the video of the first seed before and after planning, and the curves of all seeds."""
    first = jax.tree.map(lambda a: a[0], states)
    plan = runs["Adam"].actions[0]
    return [
        pictures.video(
            env,
            first,
            [env.initial_actions(), plan],
            "Left: initial tilt of all planners. Right: best plan of Adam.",
        ),
        progress(runs, calls, scores),
    ]


def progress(runs: dict[str, Plan], calls: int, scores: dict[str, np.ndarray]) -> Figure:
    """Plot the curves of all seeds, but only the end for growing windows, which are not comparable.

    scores: return [S] of each controller, from `evaluate`.
    """
    best = {name: -runs[name].history["best"][1:] for name in runs if "window" not in name}
    spent = {name: calls // len(b) * np.arange(1, len(b) + 1) for name, b in best.items()}
    ends = {name: scores[name] for name in runs if "window" in name}
    return figure(
        pictures.curves(best, spent, ends, calls, float(np.median(scores["holding still"]))),
        "Return of the best plan so far against simulated episodes; an episode with its gradient "
        "counts as one. "
        + seeds_caption(
            len(scores["holding still"]), "Lines: medians of {n} seeds; areas: their range."
        )
        + (" Plans on a growing window are complete only at the end." if ends else ""),
    )


def evaluate(env: MatterTask, states: State, runs: dict[str, Plan]) -> dict[str, np.ndarray]:
    """Return the return of each controller per seed; the best plans are simulated again."""
    shape = (*states.baseline.shape, env.max_steps, len(env.controls))
    noise = jax.random.uniform(jax.random.key(1), shape, minval=-1.0, maxval=1.0)
    guess = jnp.broadcast_to(env.initial_actions(), shape)
    plans: dict[str, Any] = {"holding still": 0 * guess, "random": noise, "first guess": guess}
    plans |= {name: run.actions for name, run in runs.items()}
    return dict(zip(plans, evaluate_plans(env, states, jnp.stack([*plans.values()]))))


def table(scores: dict[str, np.ndarray], calls: int) -> Table:
    """Return a table of returns, one row per controller."""
    rows = [
        [name, *(round(float(x), 3) + 0.0 for x in (np.median(r), r.min(), r.max())), len(r)]
        for name, r in scores.items()
    ]
    return Table(
        f"Return of an episode after {calls} simulated episodes",
        ["controller", "median", "worst", "best", "seeds"],
        rows,
        digits=3,
    )


FINDINGS = [
    "A return of 1: all water on the floor and all milk in place immediately; 0: no change.",
    f"Gradients are discounted by {DISCOUNT} per frame: the norms of exact gradients through a "
    "full splash are not informative.",
    "The curves count episodes; one with its gradient takes longer (see the timing).",
]

CITATIONS = [
    "Xian et al. (2023), arXiv:2303.02346: FluidLab, the task",
    "de Boer, Kroese, Mannor & Rubinstein (2005), doi:10.1007/s10479-005-5724-z: CEM",
    "Kingma & Ba (2015), arXiv:1412.6980: Adam",
    "Metz, Freeman, Schoenholz & Kachman (2021), arXiv:2111.05803: gradients of chaotic motion",
]
