"""A surgical arm learns to reach goals to 5 mm by PPO, by analytic gradients and by evolution."""

from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np

from jaxgpu import rl
from jaxgpu.inputs.fields import size
from jaxgpu.report import Headline, Report, Table, figure
from jaxgpu.runs.loop import Run
from jaxgpu.studies import SeededOptions, seed_count, shared_parts

from . import pictures, races


@dataclass(frozen=True)
class Options(SeededOptions):
    """Options of the study."""

    steps: int = size(default=1_000_000, least=100_000, most=10**12)
    """Environment steps per seed of PPO; SHAC has a fifth of them, ES five times as many."""
    seeds: int = seed_count(default=8, least=3)
    """Training seeds per learner, all in one program; at least 3, for an interval."""


def study(options: Options, out: Path, resume: bool) -> Report:
    """Train all three learners on the same task and compare their learning curves."""
    env = rl.Reach()
    runs = {
        name: races.race(
            name, options.seeds, options.steps, options.seed, out / name.lower(), resume
        )
        for name in races.RACERS
    }
    parts = np.arange(1, races.MEASUREMENTS + 1) / races.MEASUREMENTS
    steps = {name: races.RACERS[name].steps(options.steps) * parts for name in runs}
    tolerance = 1e3 * float(env.tolerance)
    # Drop the initial measurement, since the step axis is logarithmic.
    errors = {name: one.history[1:] for name, one in runs.items()}
    shares = {name: races.curve(rows, tolerance) for name, rows in errors.items()}
    best = max(runs, key=lambda name: shares[name][-1, 0])
    learner = races.RACERS[best].learner
    one = jax.tree.map(lambda x: x[0], runs[best].state)
    film = pictures.video(
        env,
        learner.policy(env, one),
        jax.random.key(5),
        f"The first seed of {best} reaches for three goals, which turn green within 5 mm. "
        "Ray-traced capsules, rendered on the device.",
    )
    ends = {name: f"{100 * shares[name][-1, 0]:.0f} %" for name in runs}
    return Report(
        "A surgical arm learns to reach",
        f"{best} brings the tip of the dVRK's arm within 5 mm of {ends[best]} of {races.GOALS} "
        f"goals after {steps[best][-1] / 1e6:.2g} million steps (interquartile mean of "
        f"{options.seeds} seeds).",
        figures=[
            film,
            figure(
                pictures.curves(steps, shares, errors),
                "Left: fraction of goals reached to 5 mm, interquartile mean over "
                f"{options.seeds} seeds with 95 % bootstrap intervals. Right: median error over "
                "the goals, median and range of the seeds; dotted: 5 mm.",
            ),
        ],
        tables=[table(runs, steps, shares)],
        headlines=[
            Headline(
                f"goals reached to 5 mm by {name}, interquartile mean of {options.seeds} seeds",
                ends[name],
                f"{steps[name][-1] / 1e6:.2g} million steps per seed",
            )
            for name in runs
        ],
        **shared_parts(options, runs, FINDINGS, CITATIONS),
    )


def table(
    runs: dict[str, Run], steps: dict[str, np.ndarray], shares: dict[str, np.ndarray]
) -> Table:
    """Return a table of the final results of each training."""

    def row(name: str) -> list:
        share = 100 * shares[name]
        there = np.flatnonzero(share[:, 0] >= 90)
        first = int(steps[name][there[0]]) if there.size else "not reached"
        error = float(np.median(runs[name].history[-1]))
        timing = runs[name].timing
        ends = [float(x) for x in share[-1]]
        return [name, int(steps[name][-1]), *ends, first, error, timing.run, timing.compile]

    return Table(
        "Goals reached to 5 mm, per cent (interquartile mean, 95 % interval), and median error, mm",
        [
            "learner",
            "steps per seed",
            "reached",
            "95 % from",
            "to",
            "steps to 90 %",
            "median error, mm",
            "run, s",
            "compilation, s",
        ],
        [row(name) for name in runs],
        3,
    )


FINDINGS = [
    "PPO uses rewards only; SHAC differentiates kinematics and reward through windows of eight "
    "steps; ES perturbs the weights of a small network and follows the scores. A step costs ES "
    "the least, so it has five times as many as PPO.",
    "Policies are evaluated without exploration noise, on the same goals; the arm is kinematic.",
]

CITATIONS = [
    "Schulman et al. (2017), arXiv:1707.06347: PPO",
    "Xu et al. (2022), arXiv:2204.07137: SHAC",
    "Salimans et al. (2017), arXiv:1703.03864: evolution strategies; Wierstra et al. (2014): SNES",
    "Agarwal et al. (2021), arXiv:2108.13264: interquartile means",
    "Schmidgall, Krieger & Eshraghian (2023), arXiv:2310.04676: Surgical Gym",
    "jhu-dvrk/sawIntuitiveResearchKit: kinematics of the da Vinci research kit",
]
