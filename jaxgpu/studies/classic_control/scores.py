"""Learners against target returns: trainings of many seeds, learning curves and a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import jax
import numpy as np

from jaxgpu import rl
from jaxgpu.inputs.fields import number
from jaxgpu.render.palette import BAND, BLUE, GRAY, report_style
from jaxgpu.report import Headline, Report, Table, figure
from jaxgpu.runs.loop import Run
from jaxgpu.studies import SeededOptions, seed_count, shared_parts

PARTS = 10  # measurements per training


@dataclass(frozen=True)
class Task:
    """Texts and evaluation length of a study of scores."""

    title: str
    episodes: int  # per measurement
    findings: list[str]
    citations: list[str]


@dataclass(frozen=True)
class Row:
    """A task, a learner with its non-default settings, and a target return."""

    task: str
    learner: Any
    steps: int  # environment steps, approximately
    asked: float  # target for the median over the seeds
    published: str = "none"

    @property
    def name(self) -> str:
        """Name of task and learner."""
        return f"{self.task}, {type(self.learner).__name__}"

    def interval(self, share: float) -> int:
        """Return the updates between measurements."""
        return max(1, round(share * self.steps / self.learner.steps_per_update / PARTS))


@dataclass(frozen=True)
class Options(SeededOptions):
    """Options of a study of scores."""

    ROWS: ClassVar[tuple[Row, ...]]
    seeds: int = seed_count(default=8, least=3)
    """Training seeds per row, all in one program; at least 3, for an interval."""
    share: float = number(default=1.0, least=0.01, most=100)
    """Environment steps relative to the default of each row."""
    only: str = ""
    """Substring of the names of the rows to run, such as `PPO` or a task; all rows if empty."""

    def __post_init__(self):
        super().__post_init__()
        select_rows(self.ROWS, self.only)


def select_rows(rows: Sequence[Row], only: str) -> list[Row]:
    """Return the rows with `only` in their names.

    Raises:
        ValueError: if there is none.
    """
    found = [row for row in rows if only.lower() in row.name.lower()]
    if not found:
        names = ", ".join(row.name for row in rows)
        raise ValueError(f"only: no row has {only!r} in its name; the rows are {names}")
    return found


def report(task: Task, options: Options, out: Path, resume: bool) -> Report:
    """Train every row and compare its returns with the published ones."""
    rows = select_rows(options.ROWS, options.only)
    runs = {row.name: train(row, task, options, out, resume) for row in rows}
    ends = {row.name: runs[row.name].history[-1] for row in rows}
    met = sum(np.median(ends[row.name]) >= row.asked for row in rows)
    return Report(
        task.title,
        f"Mean returns of {task.episodes} episodes without exploration noise, medians of "
        f"{options.seeds} seeds: {met} of {len(rows)} rows reach their target return.",
        figures=[
            figure(
                curves(rows, runs, options),
                f"Mean return during training: median (line) and range (area) of {options.seeds} "
                "seeds. Dotted: target return.",
            )
        ],
        tables=[table(rows, ends, options)],
        headlines=[
            Headline(
                "rows whose median return reaches its target",
                f"{met} of {len(rows)}",
                f"targets from published results; {options.seeds} seeds per row",
            )
        ],
        **shared_parts(options, runs, task.findings, task.citations),
    )


def train(row: Row, task: Task, options: Options, out: Path, resume: bool) -> Run:
    """Train all seeds of a row; the history is their mean returns, [1 + PARTS, seeds]."""
    env: Any = rl.make(row.task)

    def measure(state: Any) -> jax.Array:
        policy = row.learner.policy(env, state)
        scores = rl.evaluate(env, policy, jax.random.key(7), task.episodes, int(env.max_steps))
        return scores.episode_return.mean()

    keys = jax.random.split(jax.random.key(options.seed), options.seeds)
    folder = out / row.name.replace(", ", "-").lower()
    every = row.interval(options.share)
    return rl.sweep(
        env, row.learner, keys, PARTS, every, measure=measure, out=folder, resume=resume
    )


def table(rows: list[Row], ends: dict[str, np.ndarray], options: Options) -> Table:
    """Return a table of the final returns."""

    def line(row: Row) -> list:
        x = ends[row.name].astype(np.float32)
        middle = rl.interquartile_mean(x, jax.random.key(0))
        steps = PARTS * row.interval(options.share) * row.learner.steps_per_update
        spread = [float(np.median(x)), *middle, float(x.min())]
        held = "yes" if np.median(x) >= row.asked else "no"
        return [row.name, steps, *spread, row.asked, held, row.published]

    head = ["task, learner", "steps/seed", "median", "interquartile mean", "95 % from", "to", "min"]
    return Table("Returns", [*head, "target", "met", "published"], [line(row) for row in rows], 4)


@report_style
def curves(rows: list[Row], runs: dict[str, Run], options: Options) -> Any:
    """Plot one panel per row."""
    import matplotlib.pyplot as plt

    columns = min(4, len(rows))
    deep = -(-len(rows) // columns)
    size = (2.3 * columns, 2 * deep)
    drawing, axes = plt.subplots(deep, columns, figsize=size, squeeze=False)
    for panel, row in zip(axes.flat, rows):
        x, y = np.arange(PARTS + 1) * row.interval(options.share), runs[row.name].history
        x = x * row.learner.steps_per_update / 1e3
        panel.fill_between(x, y.min(1), y.max(1), color=BLUE, alpha=BAND, lw=0)
        panel.plot(x, np.median(y, 1), color=BLUE)
        panel.axhline(row.asked, color=GRAY, lw=0.8, ls=":")
        panel.set_title(row.name.replace("continuous", "cont."))
    for panel in axes.flat[len(rows) :]:
        panel.set_visible(False)
    drawing.supxlabel("environment steps, thousands", fontsize=9)
    return drawing
