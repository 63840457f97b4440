"""Scores of planners on continuum tasks: `python -m benchmarks.continuum_tasks [TASK ...]`.

Every planner simulates the same number of episodes from every seed, and its best plan is then
evaluated again. An episode with its gradient counts as one and costs about five, as the seconds
show. The output is a row of docs/tasks.md per task: medians over the seeds, worst and best.
"""

import time
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
import tyro

from jaxgpu import report, rl
from jaxgpu.rl.plan import evaluate_plans, initial_states, plan_from_each, standard_planners

TASKS = {  # discount of gradients, learning rate of Adam, frames of the growing window
    "pouring": (0.9, 0.05, 12),
    "latte-art-stir": (1.0, 0.1, 4),
    "mixing": (1.0, 0.05, 10),
    "gathering-easy": (0.95, 0.05, 12),
    "ice-cream-static": (1.0, 0.1, 6),
    "transporting": (0.95, 0.1, 10),
}


def main(
    names: tyro.conf.Positional[Annotated[tuple[str, ...], tyro.conf.arg(metavar="TASK")]] = (),
    calls: int = 32,
    seeds: int = 3,
    size: str = "small",
):
    """Score the named tasks, or all."""
    unknown = set(names) - set(TASKS)
    if unknown:
        raise SystemExit(
            f"matter_tasks: no {', '.join(sorted(unknown))}; there are {', '.join(TASKS)}"
        )
    about = report.environment()
    print(", ".join(f"{k} {about[k]}" for k in ("jaxgpu", "jax", "python", "device")))
    print(f"{calls} episodes a planner, {seeds} seeds: median (worst to best)")
    for name in names or TASKS:
        for line in _score_lines(name, calls, seeds, size):
            print(line, flush=True)


def _score_lines(name: str, calls: int, seeds: int, size: str):
    """Yield the lines of the table, each as soon as it is known."""
    discount, rate, part = TASKS[name]
    env: Any = rl.make(f"matter/{name}", size=size)
    states = initial_states(env, seeds)
    shape = (seeds, env.max_steps, len(env.controls))
    noise = jax.random.uniform(jax.random.key(1), shape, minval=-1.0, maxval=1.0)
    given = jnp.stack([jnp.zeros(shape), noise, jnp.broadcast_to(env.initial_actions(), shape)])
    for way, score in zip(("no-op", "random", "first guess"), evaluate_plans(env, states, given)):
        yield _table_row(name, way, score, 0.0)
    for way, planner in standard_planners(part, part, rate).items():
        began = time.process_time()
        own = discount if way.startswith("Adam") else 1.0
        done = plan_from_each(env, planner, states, calls, gradient_discount=own)
        spent = (time.process_time() - began) / seeds
        yield _table_row(name, way, evaluate_plans(env, states, done.actions), spent)


def _table_row(task: str, way: str, score: np.ndarray, seconds: float) -> str:
    spread = f"{np.median(score):.3f} ({score.min():.3f} to {score.max():.3f})"
    return f"| {task} | {way} | {spread} | {seconds:.0f} |"


if __name__ == "__main__":
    tyro.cli(main, prog="python -m benchmarks.continuum_tasks")
