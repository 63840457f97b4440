"""Figures of the study: fronts, hypervolumes, and a video of two swimmers."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu import rl
from jaxgpu.render import Camera, Capsules
from jaxgpu.render.capsules import BLUE, ORANGE
from jaxgpu.render.palette import BAND, assign_colors, report_style
from jaxgpu.rl.learners.evolved.neuroevolution import ObjectiveState

FRAME = 2  # steps per video frame
# endpoints of the links in their body frames, and their radius, m, as in the robot's file
LINKS = np.array([[[1.5, 0, 0], [0, 0, 0], [0, 0, 0]], [[0.5, 0, 0], [-1, 0, 0], [-1, 0, 0]]])
THICK = 0.1


@report_style
def fronts(points: dict[str, np.ndarray]) -> Any:
    """Plot the non-dominated policies [K, 2] of each method by speed and effort."""
    import matplotlib.pyplot as plt

    drawing, axes = plt.subplots(figsize=(6.4, 3.8))
    inks, marks = assign_colors(list(points)), "os^vDP*X"
    for i, ((name, f), mark) in enumerate(zip(points.items(), marks)):
        f, line = f[np.argsort(f[:, 0])], "-" if i < len(set(inks.values())) else "--"
        axes.plot(-f[:, 0], f[:, 1], line, marker=mark, ms=5, lw=0.8, color=inks[name], label=name)
    axes.set(xlabel="summed speed, m/s", ylabel="effort")
    axes.set_xlim(left=0)
    axes.grid()
    drawing.legend(loc="outside right upper")
    return drawing


@report_style
def volumes(courses: dict[str, np.ndarray], steps: int) -> Any:
    """Plot means and ranges over seeds of the hypervolumes [M, S] of the populations."""
    import matplotlib.pyplot as plt

    drawing, axes = plt.subplots(figsize=(6.4, 3.4))
    inks = assign_colors(list(courses))
    for name, course in courses.items():
        spent = steps * np.arange(1, len(course) + 1) / 1000
        axes.plot(spent, course.mean(1), color=inks[name], label=name)
        low, high = course.min(1), course.max(1)
        axes.fill_between(spent, low, high, color=inks[name], alpha=BAND, linewidth=0)
    axes.set(xlabel="simulated steps per seed, thousands", ylabel="hypervolume, noisy evaluations")
    axes.grid()
    drawing.legend(loc="outside right upper")
    return drawing


def make_frames(
    policies: rl.PolicyObjective, x: jax.Array, known: ObjectiveState, key: jax.Array
) -> np.ndarray:
    """Return uint8 images [T, H, W, 3] of two policies x [2, D] from one start, side by side."""
    links = jax.jit(jax.vmap(lambda x: _links(policies, x, known, key)))(x)
    shift = np.array([[0.0, 1.0, 0.0], [0.0, -1.0, 0.0]])[:, None, None]
    start, end = (np.concatenate([*(np.asarray(a) + shift)], 1) for a in links)  # [T, 2 M, 3]
    count = start.shape[1]
    inks = np.repeat([ORANGE, BLUE], count // 2, 0)
    middle = float(start[..., 0].mean())
    camera = Camera(
        eye=(middle, -4.5, 6.0),
        target=(middle, 0.0, 0.0),
        up=(0.0, 0.0, 1.0),
        angle=0.8,
        width=480,
        height=300,
    )

    def picture(ends: tuple[jax.Array, jax.Array]) -> jax.Array:
        there = Capsules(
            start=ends[0],
            end=ends[1],
            radius=jnp.full(count, THICK),
            colour=jnp.asarray(inks, jnp.float32),
            floor=jnp.float32(-0.1),
            tile=jnp.float32(0.5),
        )
        return jnp.round(255 * there.picture(camera)).astype(jnp.uint8)

    ends = (jnp.asarray(start[::FRAME], jnp.float32), jnp.asarray(end[::FRAME], jnp.float32))
    return np.asarray(jax.jit(lambda ends: jax.lax.map(picture, ends))(ends))


def _links(
    policies: rl.PolicyObjective, x: jax.Array, known: ObjectiveState, key: jax.Array
) -> Any:
    """Return both endpoints [T, 3, 3] of the links along an episode, m."""
    env, act = policies.env, policies.policy(x, known)

    def move(loop: tuple[Any, Any], _: None) -> tuple[Any, Any]:
        step = env.step(loop[0], act(loop[1]), key)
        return (step.state, step.observation), step.state.body

    _, bodies = jax.lax.scan(move, env.reset(key), length=policies.max_steps)

    def ends(body: Any) -> tuple[jax.Array, jax.Array]:
        there = env.model.poses(body)
        start, end = (there.of(np.array([1, 2, 3]), jnp.asarray(a, x.dtype))[0] for a in LINKS)
        return start.T, end.T

    return jax.vmap(ends)(bodies)
