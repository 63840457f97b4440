"""The score table of classic control: every learner against published results."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxgpu import ranges, rl
from jaxgpu.pytree import number, size
from jaxgpu.render.palette import BAND, BLUE, GREY, styled
from jaxgpu.report import Headline, Report, Table, figure
from jaxgpu.run import Run
from jaxgpu.studies import SEEDS

PARTS, EPISODES = 10, 100  # measurements of a training; episodes of each


@dataclass(frozen=True)
class Options:
    """Options of the study."""

    seeds: int = size(default=8, least=3, most=10_000)
    """Trainings of each row, all in one program; at least 3, for an interval."""
    share: float = number(default=1.0, least=0.01, most=100)
    """Of each row's steps of environments."""
    only: str = ""
    """Part of the names of the rows that are run, `pendulum` or `PPO`; all if empty."""
    seed: int = size(default=0, **SEEDS)
    """Of the first training."""

    def __post_init__(self):
        ranges.check("classic-control", self)
        if not chosen(self.only):
            names = ", ".join(row.name for row in ROWS)
            raise ValueError(f"only: no row has {self.only!r} in its name; the rows are {names}")


@dataclass(frozen=True)
class Row:
    """A task, a learner, and what is asked of it; of the learner what is not its default."""

    task: str
    learner: Any
    steps: int  # of environments, about
    asked: float  # for the median over the seeds
    published: str = "none"

    @property
    def name(self) -> str:
        """Task and learner."""
        return f"{self.task}, {type(self.learner).__name__}"

    def every(self, share: float) -> int:
        """Updates before each measurement."""
        return max(1, round(share * self.steps / self.learner.steps_per_update / PARTS))


ROWS = (
    Row(
        "cartpole",
        rl.PPO(learning_rate=2.5e-3, clip_eps=0.1, num_envs=16, update_epochs=6, num_minibatches=4),
        100_000,
        495,
        published="500 at 100k, zoo PPO",
    ),
    Row(
        "cartpole",
        rl.PQN(learning_rate=2e-3, num_steps=32),
        200_000,
        480,
        published="500 at 50k, zoo DQN",
    ),
    Row("cartpole", rl.ES(), 640_000, 495),
    Row(
        "acrobot",
        rl.PPO(num_envs=16, num_minibatches=4),
        300_000,
        -85,
        published="-73.5 at 1M, zoo PPO",
    ),
    Row(
        "pendulum",
        rl.PPO(
            learning_rate=6e-4,
            gamma=0.97,
            gae_lambda=0.9,
            ent_coef=0.005,
            num_envs=16,
            num_steps=128,
            update_epochs=10,
            num_minibatches=16,
            normalize_reward=True,
        ),
        200_000,
        -180,
        published="-172 at 100k, zoo PPO with gSDE",
    ),
    Row(
        "pendulum",
        rl.SAC(learning_rate=3e-3, gamma=0.98, tau=0.01, start_steps=1000.0, num_steps=2),
        20_000,
        -165,
        published="-157 at 20k, zoo SAC",
    ),
    Row(
        "pendulum",
        rl.SHAC(learning_rate=5e-3, gamma=0.98, reset_prob=0.1, critic_iterations=4, num_envs=8),
        200_000,
        -165,
    ),
    Row(
        "mountain-car",
        rl.PQN(hold=0.9, exploration_fraction=0.3, num_steps=32),
        500_000,
        -120,
        published="-101 at 120k, zoo DQN",
    ),
    Row(
        "mountain-car-continuous",
        rl.ES(max_steps=999),
        1_900_000,
        90,
        published="94.7 at 50k, zoo SAC",
    ),
    Row(
        "mountain-car-continuous",
        rl.SAC(
            tau=0.01,
            target_entropy=-0.5,
            temperature=0.5,
            start_steps=8192.0,
            hold=0.95,
            gradient_steps=64,
            batch_size=256,
            num_steps=64,
        ),
        50_000,
        90,
        published="94.7 at 50k, zoo SAC with gSDE",
    ),
)


def chosen(only: str) -> list[Row]:
    """The rows with `only` in their names."""
    return [row for row in ROWS if only.lower() in row.name.lower()]


def study(options: Options, out: Path, resume: bool) -> Report:
    """Train every row, and hold its returns beside the published ones."""
    rows = chosen(options.only)
    runs = {row.name: train(row, options, out, resume) for row in rows}
    ends = {row.name: runs[row.name].history[-1] for row in rows}
    met = sum(np.median(ends[row.name]) >= row.asked for row in rows)
    return Report(
        "Classic control",
        f"Mean returns of {EPISODES} episodes without noise, medians of {options.seeds} seeds: "
        f"{met} of {len(rows)} rows are at or above what was asked of them.",
        figures=[
            figure(
                curves(rows, runs, options),
                f"Returns along the training: median of {options.seeds} seeds, and the best and "
                "worst of them. Dotted: what was asked for.",
            )
        ],
        tables=[table(rows, ends, options)],
        findings=FINDINGS,
        citations=CITATIONS,
        timing={name: run.timing for name, run in runs.items()},
        seed=options.seed,
        headlines=[
            Headline(
                "rows whose median return is at or above what was asked",
                f"{met} of {len(rows)}",
                f"results of Stable-Baselines3's zoo; {options.seeds} seeds a row",
            )
        ],
    )


def train(row: Row, options: Options, out: Path, resume: bool) -> Run:
    """All seeds of a row; the history is their mean returns, [1 + PARTS, seeds]."""
    env: Any = rl.make(row.task)

    def measure(state: Any) -> jax.Array:
        policy = row.learner.policy(env, state)
        scores = rl.evaluate(env, policy, jax.random.key(7), EPISODES, int(env.max_steps))
        return scores.episode_return.mean()

    keys = jax.random.split(jax.random.key(options.seed), options.seeds)
    folder = out / row.name.replace(", ", "-").lower()
    every = row.every(options.share)
    return rl.sweep(
        env, row.learner, keys, PARTS, every, measure=measure, out=folder, resume=resume
    )


def table(rows: list[Row], ends: dict[str, np.ndarray], options: Options) -> Table:
    """The ends of all trainings."""

    def line(row: Row) -> list:
        x = ends[row.name].astype(np.float32)
        middle = rl.interquartile_mean(x, jax.random.key(0))
        steps = PARTS * row.every(options.share) * row.learner.steps_per_update
        spread = [float(np.median(x)), *middle, float(x.min())]
        held = "yes" if np.median(x) >= row.asked else "no"
        return [row.name, steps, *spread, row.asked, held, row.published]

    head = ["task, learner", "steps a seed", "median", "middle mean", "low", "high", "worst"]
    return Table("Returns", [*head, "asked", "met", "published"], [line(row) for row in rows], 4)


@styled
def curves(rows: list[Row], runs: dict[str, Run], options: Options) -> Any:
    """A panel a row."""
    import matplotlib.pyplot as plt

    columns = min(4, len(rows))
    deep = -(-len(rows) // columns)
    size = (2.3 * columns, 2 * deep)
    drawing, axes = plt.subplots(deep, columns, figsize=size, squeeze=False)
    for panel, row in zip(axes.flat, rows):
        x, y = np.arange(PARTS + 1) * row.every(options.share), runs[row.name].history
        x = x * row.learner.steps_per_update / 1e3
        panel.fill_between(x, y.min(1), y.max(1), color=BLUE, alpha=BAND, lw=0)
        panel.plot(x, np.median(y, 1), color=BLUE)
        panel.axhline(row.asked, color=GREY, lw=0.8, ls=":")
        panel.set_title(row.name.replace("continuous", "cont."))
    for panel in axes.flat[len(rows) :]:
        panel.set_visible(False)
    drawing.supxlabel("thousand steps of environments", fontsize=9)
    return drawing


FINDINGS = [
    "What was asked lies near the results of Stable-Baselines3's zoo, one training each, some of "
    "them with state-dependent exploration, which is not used here.",
    "Tasks give the states and rewards of gymnasium 1.4.0; their mean returns are comparable.",
]

CITATIONS = [
    "Raffin (2020), RL Baselines3 Zoo: the published results",
    "Towers et al. (2024), arXiv:2407.17032: gymnasium",
    "Agarwal et al. (2021), arXiv:2108.13264: interquartile means",
]
