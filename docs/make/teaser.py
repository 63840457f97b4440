"""Draw the animation of the first page, docs/pictures/teaser.gif, and a card picture per domain.

Six panels, one per domain, each from a program of some seconds. `python docs/make/teaser.py`
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np

from jaxgpu import rl
from jaxgpu.evolution import multi, protocol
from jaxgpu.evolution.problems import dtlz
from jaxgpu.numerics import VonMisesFisher
from jaxgpu.physics import nbody, rigid
from jaxgpu.physics.continuum import Body, Grid, Liquid, Scene, fill_box, simulate
from jaxgpu.physics.nbody.forces import potentials, tide
from jaxgpu.render import Camera, gif
from jaxgpu.rl.envs.surgical.drawing import draw_arm
from jaxgpu.runs.loop import run

PICTURES = Path(__file__).parents[1] / "pictures"
FRAMES, INK, PAPER = 48, "#e8ecf2", "#10141c"
BLUE, ORANGE, GREEN, RED = "#5aa9e6", "#f6a13c", "#7bd389", "#ff6b6b"
VIEW = Camera((0.27, -0.33, 0.03), (0.0, 0.0, -0.11), (0.0, 0.0, 1.0), 0.58, 200, 150)

# a function that draws frame i of a panel on its axes
type Panel = Callable[[Any, int], None]


def cluster() -> Panel:
    """Make the panel of a star cluster with massless tracers in the tide of a galaxy."""
    with jax.enable_x64(True):
        x, v = nbody.plummer(jax.random.key(0), 64)
        y, w = nbody.plummer(jax.random.key(1), 3000)
        origin = tide.Origin(jnp.array([25.0, 0.0, 0.0]), jnp.array([0.0, 10.0, 0.0]))
        field = tide.Tide(potentials.PointMass(2500.0), origin)
    spec = nbody.Cluster(nbody.Hermite(softening=0.05, tide=field))
    m = np.full(64, 1 / 64)
    done = nbody.evolve(x, v, m, 12.0, spec=spec, tracers=(y, w), measure=places)
    stars, tracers = (done.history[name][1::2] for name in ("stars", "tracers"))

    def draw(ax: Any, i: int) -> None:
        ax.plot(*tracers[i, :, :2].T, ".", ms=0.7, color=BLUE, alpha=0.7)
        ax.plot(*stars[i, :, :2].T, ".", ms=2.5, color="#fff3c4")
        ax.set(xlim=(-6, 6), ylim=(-4.5, 4.5))

    return draw


def places(state: Any) -> Any:
    """Return the positions [N, 3] of stars and tracers."""
    return {"stars": state.x, "tracers": state.tracer_x}


def dam() -> Panel:
    """Make the panel of two columns of liquid that collide."""
    dx = 1 / 48
    sides = ((0.0, 0.0), (0.3, 0.6)), ((1.03, 0.0), (1.33, 0.4))
    volume = (dx / 2) ** 2
    bodies = tuple(
        Body(fill_box(*side, dx / 2), Liquid(bulk_modulus=1e5), volume) for side in sides
    )
    scene = Scene(bodies, Grid(dx, (64, 48)), gravity=(0.0, -9.81))
    course = simulate(scene, 1.2, frames=FRAMES - 1, measure=bodies_of)
    left, right = course.history

    def draw(ax: Any, i: int) -> None:
        ax.plot(*left[i].T, ".", ms=2, color=BLUE)
        ax.plot(*right[i].T, ".", ms=2, color=ORANGE)
        ax.set(xlim=(-0.02, 1.35), ylim=(-0.02, 0.85))

    return draw


def bodies_of(state: Any) -> Any:
    """Return the particle positions of both bodies; nan for inactive slots."""
    return tuple(jnp.where(b.active[:, None], b.x, jnp.nan) for b in state.bodies)


def pendulums() -> Panel:
    """Make the panel of forty double pendulums, started a thousandth of a radian apart."""
    rod = '<joint axis="0 1 0"/><inertial pos="0 0 -.5" mass="1" diaginertia=".0833 .0833 .001"/>'
    bodies = f'<body>{rod}<body pos="0 0 -1">{rod}</body></body>'
    option = '<option timestep="0.005" integrator="RK4"/>'
    model = rigid.load(f"<mujoco>{option}<worldbody>{bodies}</worldbody></mujoco>")
    many = 40
    start = jax.vmap(model.init)(jnp.full((many, 2), 2.4).at[:, 1].add(1e-3 * jnp.arange(many)))
    course = run(jax.vmap(lambda s: model.step(s)), start, 25 * (FRAMES - 1), measure=angles)
    upper, lower = np.moveaxis(course.history[::25], -1, 0)
    knee = np.stack([-np.sin(upper), -np.cos(upper)], -1)
    tip = knee + np.stack([-np.sin(upper + lower), -np.cos(upper + lower)], -1)
    shades = matplotlib.colormaps["plasma"](np.linspace(0.15, 0.95, many))

    def draw(ax: Any, i: int) -> None:
        for j, shade in enumerate(shades):
            rods = np.stack([np.zeros(2), knee[i, j], tip[i, j]])
            ax.plot(*rods.T, color=shade, lw=0.8)
        ax.set(xlim=(-2.75, 2.75), ylim=(-2.05, 2.05))

    return draw


def angles(state: Any) -> Any:
    """Return the joint angles of all copies."""
    return state.qpos


def front() -> Panel:
    """Make the panel of a population that converges to a front of three objectives."""
    spec = multi.NSGA3(multi.das_dennis(3, 12), pop_size=92)
    done = protocol.run(spec, dtlz.dtlz2(3), jax.random.key(2), FRAMES, measure=objectives)
    f = done.history[1:]
    turn = np.array([[-np.sqrt(0.5), np.sqrt(0.5), 0], [-0.41, -0.41, 0.82]])
    edges = np.linspace(0, np.pi / 2, 40)
    arc = np.stack([np.cos(edges), np.sin(edges), 0 * edges], 1)

    def draw(ax: Any, i: int) -> None:
        for k in range(3):
            ax.plot(*(turn @ np.roll(arc, k, 1).T), color=INK, lw=0.6, alpha=0.6)
        ax.plot(*(turn @ f[i].T), "o", ms=2.6, color=GREEN)
        ax.set(xlim=(-1.7, 1.7), ylim=(-1.25, 1.3))

    return draw


def objectives(state: Any) -> Any:
    """Return the objectives [N, m] of the population."""
    return state.population.f


def directions() -> Panel:
    """Make the panel of samples about three directions at rising concentration, and their fits."""
    means = np.array([[1.0, 0.2, 0.4], [-0.6, 0.8, 0.3], [-0.2, -0.9, 0.5]])
    means = jnp.asarray(means / np.linalg.norm(means, axis=1, keepdims=True), jnp.float32)

    @jax.jit
    def sample_and_fit(k: Any) -> Any:
        sample_about = lambda mean, key: VonMisesFisher(mean, k).sample(key, 300)
        x = jax.vmap(sample_about)(means, jax.random.split(jax.random.key(3), 3))
        return x, jax.vmap(VonMisesFisher.fit)(x)

    course = [sample_and_fit(k) for k in np.geomspace(1.0, 300.0, FRAMES).astype(np.float32)]
    round_ = np.linspace(0, 2 * np.pi, 100)

    def draw(ax: Any, i: int) -> None:
        turn = 0.9 * np.sin(2 * np.pi * i / FRAMES)
        see = np.array(
            [[np.cos(turn), np.sin(turn), 0], [0.4 * np.sin(turn), -0.4 * np.cos(turn), 0.9]]
        )
        ax.plot(np.cos(round_), np.sin(round_), color=INK, lw=0.6)
        x, fits = course[i]
        for cloud, mean, colour in zip(x, fits.mean_direction, (BLUE, ORANGE, RED)):
            ax.plot(*(see @ np.asarray(cloud).T), ".", ms=1.4, color=colour)
            ax.plot(*np.stack([np.zeros(2), see @ np.asarray(mean)]).T, color=INK, lw=1.2)
        ax.set(xlim=(-1.5, 1.5), ylim=(-1.13, 1.13))

    return draw


def reach() -> Panel:
    """Make the panel of a surgical arm under a policy that PPO learns in half a minute."""
    env, ppo = (
        rl.make("surgical/psm-reach"),
        rl.PPO(learning_rate=2e-3, gamma=0.9, num_envs=128, num_steps=32),
    )
    state, _ = jax.jit(lambda key: rl.learn(env, ppo, key, 24))(jax.random.key(1))
    act = ppo.policy(env, state)

    def frame(carry: Any, _: None) -> Any:
        state, seen = carry
        out = env.step(state, act(seen), jax.random.key(0))
        scene = draw_arm(env.arm, out.state.q, state.goal, out.info["success"], 0.006)
        return (out.state, out.observation), scene.picture(VIEW)

    film = jax.jit(lambda key: jax.lax.scan(frame, env.reset(key), length=FRAMES // 2)[1])
    images = np.concatenate([np.asarray(film(jax.random.key(seed))) for seed in (7, 11)])

    def draw(ax: Any, i: int) -> None:
        ax.imshow(images[i], aspect="auto")

    return draw


PANELS = {
    "nbody": ("N-body: a cluster in a galaxy's tide", cluster),
    "continuum": ("matter: two columns of liquid", dam),
    "rigid": ("rigid bodies: forty double pendulums", pendulums),
    "evolution": ("evolution: a front of three objectives", front),
    "numerics": ("numerics: von Mises-Fisher fits", directions),
    "rl": ("learning: a surgical arm by PPO", reach),
}


def draw_frame(axes: Any, title: str, panel: Panel, i: int) -> None:
    """Draw one frame of one panel."""
    axes.clear()
    axes.axis("off")
    panel(axes, i)
    axes.set_title(title, color=INK, fontsize=8, pad=2)


def main() -> None:
    """Write the animation and the cards."""
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    panels = {name: (title, make()) for name, (title, make) in PANELS.items()}
    fig, axes = plt.subplots(2, 3, figsize=(6.6, 3.7), dpi=100, facecolor=PAPER)
    fig.subplots_adjust(0.005, 0.005, 0.995, 0.95, 0.01, 0.08)
    film = []
    for i in range(FRAMES):
        for ax, (title, panel) in zip(axes.flat, panels.values()):
            draw_frame(ax, title, panel, i)
        fig.canvas.draw()
        film.append(np.asarray(fig.canvas.buffer_rgba())[..., :3].copy())
    film += [film[-1]] * 6
    (PICTURES / "teaser.gif").write_bytes(gif(np.stack(film), seconds=0.1))
    for name, (_, panel) in panels.items():
        fig, ax = plt.subplots(figsize=(2.4, 1.8), dpi=100, facecolor=PAPER)
        fig.subplots_adjust(0, 0, 1, 1)
        draw_frame(ax, "", panel, FRAMES * 2 // 3)
        fig.savefig(PICTURES / "cards" / f"{name}.png", facecolor=PAPER)
        plt.close(fig)


if __name__ == "__main__":
    main()
