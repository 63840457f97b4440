"""Success rates along trainings of many seeds, in new episodes."""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu import rl
from jaxgpu.render.palette import BAND, BLUE, GRAY, report_style
from jaxgpu.report import Figure, Headline, Report, Table, figure
from jaxgpu.rl.policies import as_recurrent
from jaxgpu.runs.loop import Run
from jaxgpu.studies import shared_parts

PARTS = 10  # measurements of a training after the initial one


@dataclass(frozen=True)
class Course:
    """A task for training, the same task for evaluation, and a learner."""

    env: Any
    new: Any  # with other scenes than in training
    learner: Any
    episodes: int  # per measurement
    max_steps: int  # maximum steps of an episode
    parts: int = PARTS  # of a training; it is measured initially and after each part

    def interval(self, steps: int) -> int:
        """Return the updates between measurements for about `steps` environment steps in all."""
        return max(1, round(steps / self.learner.steps_per_update / self.parts))

    def steps(self, steps: int) -> int:
        """Return the exact number of environment steps of a training."""
        return self.parts * self.interval(steps) * self.learner.steps_per_update


def train_seeds(course: Course, steps: int, keys: Array, out: Path, resume: bool) -> Run:
    """Train all seeds in one program; the history is the success rate [1 + parts, seeds]."""

    def measure(state: Any) -> Array:
        policy = course.learner.policy(course.new, state)
        key = jax.random.key(7)
        scores = rl.evaluate(course.new, policy, key, course.episodes, course.max_steps)
        return scores.success.mean()

    every, saved = course.interval(steps), {"out": out, "resume": resume}
    return rl.sweep(course.env, course.learner, keys, course.parts, every, measure=measure, **saved)


def report(
    course: Course, run: Run, options: Any, film: Callable[..., Figure], asked: float, **told: Any
) -> Report:
    """Return the report: summary, video of the first seed, learning curves and final results.

    Args:
        course: task and learner.
        run: result of `train_seeds`.
        options: options of the study: `steps`, `seeds` and `seed`.
        film: function of a task, a policy and a key that makes a video.
        asked: target success rate.
        told: `title`, `findings` and `citations`; and `success`, its definition, after "in which".
    """
    ends, steps = 100 * np.asarray(run.history[-1]), course.steps(options.steps)
    median, million = f"{np.median(ends):.0f} %", f"{steps / 1e6:.2g} million steps"
    one = jax.jit(partial(jax.tree.map, operator.itemgetter(0)))  # one program, not one per shape
    first = course.learner.policy(course.new, one(run.state))
    success, learner = told["success"], type(course.learner).__name__
    return Report(
        told["title"],
        f"After {million} per seed {learner} succeeds in {median} of {course.episodes} new "
        f"episodes (median of {options.seeds} seeds); in a success {success}.",
        figures=[
            film(course.new, first, jax.random.key(options.seed)),
            figure(
                curves(course, run, options.steps, asked),
                "Success rate in new episodes, without exploration noise: median (line) and range "
                f"(area) of {options.seeds} seeds. In a success {success}. Dotted: target, "
                f"{100 * asked:.0f} %.",
            ),
        ],
        tables=[table("Final success rates in new episodes, %", run, steps)],
        headlines=[
            Headline(
                f"new episodes in which {success}, median of seeds", median, f"{million} per seed"
            )
        ],
        **shared_parts(options, {learner: run}, told["findings"], told["citations"]),
    )


def table(title: str, run: Run, steps: int) -> Table:
    """Return a table of the final success rates, in per cent."""
    share = 100 * np.asarray(run.history[-1], np.float32)
    middle = rl.interquartile_mean(share, jax.random.key(0))
    row = [len(share), steps, float(np.median(share)), *middle, float(share.min())]
    head = ["seeds", "steps per seed", "median", "interquartile mean", "95 % from", "to", "worst"]
    row += [run.timing.run, run.timing.compile]
    return Table(title, [*head, "run, s", "compilation, s"], [row], 3)


@report_style
def curves(course: Course, run: Run, steps: int, asked: float) -> Any:
    """Plot median and range of the seeds, and the target, in per cent."""
    import matplotlib.pyplot as plt

    drawing, axes = plt.subplots(figsize=(4.6, 2.8))
    share = 100 * np.asarray(run.history)
    x = np.linspace(0, course.steps(steps) / 1e6, course.parts + 1)
    axes.fill_between(x, share.min(1), share.max(1), color=BLUE, alpha=BAND, lw=0)
    axes.plot(x, np.median(share, 1), color=BLUE)
    axes.axhline(100 * asked, color=GRAY, lw=0.8, ls=":")
    axes.set(xlabel="environment steps, millions", ylabel="success rate, %", ylim=(-3, 103))
    return drawing


def record_episode(env: Any, policy: Any, key: Array, length: int) -> Any:
    """Return the states [T, ...] of a noise-free episode, repeating the last one after its end."""
    policy = as_recurrent(policy)

    def move(carry: tuple, _: None) -> tuple[tuple, Any]:
        state, observation, over, memory = carry
        memory, action = policy.act(memory, observation)
        step = env.step(state, action, key)
        keep_if_over = lambda new, old: jax.tree.map(lambda a, b: jnp.where(over, b, a), new, old)
        state, observation = (
            keep_if_over(step.state, state),
            keep_if_over(step.observation, observation),
        )
        return (state, observation, over | step.terminated | step.truncated, memory), state

    def run_episode() -> Any:
        first = (*env.reset(key), jnp.bool_(False), policy.carry)
        return jax.lax.scan(move, first, length=length)[1]

    return jax.jit(run_episode)()
