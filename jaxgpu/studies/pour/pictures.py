"""Videos of the glass, and learning curves of the planners."""

from typing import Any

import jax
import numpy as np
from jax import Array

from jaxgpu import report
from jaxgpu.render.palette import BAND, GRAY, assign_colors, report_style
from jaxgpu.report import Figure
from jaxgpu.rl.envs.matter.task import MatterTask, State
from jaxgpu.rl.plan import trajectory

COLORS = assign_colors(["Adam", "CEM", "Adam, growing window", "MPPI"])


def video(env: MatterTask, state: State, plans: list[Array], caption: str) -> Figure:
    """Make a video of several plans side by side, with every other frame."""

    def episode(actions: Array) -> Array:
        states, _ = trajectory(env, state, actions)
        shown = jax.tree.map(lambda a: a[::2], states.matter)
        return jax.lax.map(lambda matter: env.render(matter, 320, 240), shown)

    draw = jax.jit(episode)
    images = np.concatenate([np.asarray(draw(actions)) for actions in plans], axis=2)
    return report.video(images, caption, seconds=0.08)


@report_style
def curves(
    returns: dict[str, np.ndarray],
    spent: dict[str, np.ndarray],
    ends: dict[str, np.ndarray],
    calls: int,
    still: float,
) -> Any:
    """Plot the best return so far over simulated episodes: medians and ranges of the seeds.

    Args:
        returns: returns of each planner, [updates, S].
        spent: episodes simulated so far, [updates].
        ends: final returns [S] of planners that are only known after all episodes.
        calls: total episodes.
        still: return of holding still.
    """
    import matplotlib.pyplot as plt

    drawing, axes = plt.subplots(figsize=(6.8, 3.6))
    for name, best in returns.items():
        drawn: dict[str, Any] = {"color": COLORS[name], "label": name}
        marker = "o" if len(best) < 9 else ""  # a line through one point is invisible
        axes.plot(spent[name], np.median(best, 1), marker=marker, **drawn)
        if best.shape[1] > 1:
            area = {"color": COLORS[name], "alpha": BAND, "lw": 0}
            axes.fill_between(spent[name], best.min(1), best.max(1), **area)
    for name, end in ends.items():
        middle = np.median(end)
        reach = [[middle - end.min()], [end.max() - middle]]
        axes.errorbar([calls], [middle], reach, fmt="o", color=COLORS[name], capsize=3, label=name)
    axes.axhline(still, color=GRAY, lw=0.8, ls="--", label="holding still")
    axes.set_xlabel("simulated episodes")
    axes.set_ylabel("return of the best plan so far")
    axes.legend()
    return drawing
