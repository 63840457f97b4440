"""Chaos in double pendulums: many rigid-body simulations from nearly equal states in one program.

Two equal rods hang from each other. The study compares small oscillations with the exact
frequencies, the energy error with the order of the method, and a derivative through one second of
large oscillations with finite differences. The growth of separations gives a Lyapunov exponent.
"""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu import show
from jaxgpu.devices import memory
from jaxgpu.devices.precision import with_float64
from jaxgpu.inputs.fields import size
from jaxgpu.physics import rigid
from jaxgpu.physics.rigid import Model, State
from jaxgpu.render.palette import BLUE, GRAY, ORANGE, report_style
from jaxgpu.report import Figure, Headline, Report, Table, figure, view
from jaxgpu.runs.loop import Run, run
from jaxgpu.studies import SeededOptions

G, START = 9.81, (2.2, 0.4)  # m/s^2; initial joint angles, rad
RATE, SUBSTEPS = 30, 32  # frames per second, steps per frame
APART, NUM_SHOWN = 1e-9, 24  # initial separation, rad; pendulums in the picture


@dataclass(frozen=True)
class Options(SeededOptions):
    """Number of pendulums and duration."""

    pendulums: int = size(default=200, least=50, most=10_000_000)
    """Pendulums, with initial angles within 1e-9 rad."""
    seconds: int = size(default=16, least=10, most=60)
    """Simulated time, s."""


ROD = (
    "<inertial pos='0 0 -.5' mass='1' diaginertia='.08333333333333333 .08333333333333333 1e-6'/>"
    "<joint axis='0 1 0'/>"
)
RODS = f"<mujoco><worldbody><body>{ROD}<body pos='0 0 -1'>{ROD}</body></body></worldbody></mujoco>"


def pendulum(dt: float) -> Model:
    """Return the model: two frictionless rods of 1 m and 1 kg, the second below the first."""
    model = rigid.load(RODS, dtype=jnp.float64)
    return replace(model, option=replace(model.option, timestep=jnp.asarray(dt)))


@with_float64
def study(options: Options, out: Path, resume: bool) -> Report:
    """Simulate with two time steps and compare with known values."""
    step, frames = 1 / RATE / SUBSTEPS, RATE * options.seconds
    coarse = swing(pendulum(step), options, frames, out / "coarse", resume)
    fine = swing(pendulum(step / 2), options, frames, out / "fine", resume)
    times = np.arange(frames + 1) / RATE
    exponent, line = growth(times, coarse.history["spread"])
    # Compare while both are on the same path; later chaos separates paths with different steps.
    early = [
        np.ptp(coarse.history["energy"][: 2 * RATE]),
        np.ptp(fine.history["energy"][: 4 * RATE]),
    ]
    drift = [float(one) / (4 * G) for one in early]  # over that which lifts both rods to the top
    slow, fast = small_swings(step)
    exact = frequencies()
    slope, difference = derivative(step)
    return Report(
        "Chaos in double pendulums",
        f"{options.pendulums} double pendulums start within {APART:g} rad and separate by a "
        f"factor of e every {1 / exponent:.2f} s; small oscillations have the theoretical "
        f"frequencies to {max(abs(slow / exact[0] - 1), abs(fast / exact[1] - 1)):.0e}.",
        figures=[
            pendulum_view(coarse, times),
            spread_figure(times, coarse.history["spread"], line),
        ],
        tables=[
            Table(
                "Comparison with reference values",
                ["quantity", "simulated", "reference", "source"],
                [
                    ["frequency of the slow mode, rad/s", slow, float(exact[0]), "eigenvalues"],
                    ["frequency of the fast mode, rad/s", fast, float(exact[1]), "eigenvalues"],
                    ["d(tip height after 1 s) / d(initial angle), m/rad", slope, difference]
                    + ["central differences"],
                    ["ratio of energy errors, time step to half of it", drift[0] / drift[1], 2.0]
                    + ["first-order method"],
                ],
                digits=6,
            )
        ],
        findings=[
            f"Within 2 s the energy of the first pendulum varies by {drift[0]:.1e} (peak to peak) "
            f"of what lifts both rods to the top, and by {drift[1]:.1e} with half the time step.",
            "The Lyapunov exponent is fitted at small separations, from one initial state.",
        ],
        citations=[
            "Featherstone (2008), doi:10.1007/978-1-4899-7560-7: dynamics of trees",
            "Shinbrot, Grebogi, Wisdom & Yorke (1992), doi:10.1119/1.16860: chaos in a double "
            "pendulum",
        ],
        timing={"steps of 1.04 ms": coarse.timing, "steps of 0.52 ms": fine.timing},
        seed=options.seed,
        headlines=[
            Headline(
                "frequency of the slow mode of small oscillations, rad/s",
                slow,
                f"{exact[0]:.5f} from the eigenvalue",
                digits=6,
            ),
            Headline(
                "derivative through 1 s of large oscillations, m/rad",
                slope,
                f"{difference:.6g} by central differences",
                digits=6,
            ),
        ],
    )


def swing(spec: Model, options: Options, frames: int, out: Path, resume: bool) -> Run:
    """Simulate all pendulums for `frames` frames; record angles of some, spread and energy."""
    # angles and velocities, 16 bytes each, with temporaries and the copy kept by `run`
    memory.check_size("double-pendulum", 100 * options.pendulums)
    key = jax.random.key(options.seed)
    begin = jnp.asarray(START)[None] + APART * jax.random.uniform(
        key, (options.pendulums, 2), jnp.float64
    )
    state = jax.vmap(spec.init)(begin)
    step, measure = jax.vmap(partial(advance_frame, spec)), partial(measure_state, spec)
    return run(step, state, frames, measure=measure, out=out, resume=resume)


def advance_frame(spec: Model, state: State) -> State:
    """Return the state one frame later."""
    return lax.fori_loop(0, SUBSTEPS, lambda _, now: spec.step(now), state)


def measure_state(spec: Model, state: State) -> dict[str, Array]:
    """Return angles of the first pendulums, rms distance of tips from their mean, and energy."""
    tip = tips(state.qpos)
    off = tip - jnp.mean(tip, 0)[None]
    return {
        "q": state.qpos[:NUM_SHOWN],
        "spread": jnp.sqrt(jnp.mean(jnp.sum(off**2, -1))),
        "energy": jnp.add(*rigid.energy(spec, jax.tree.map(lambda a: a[0], state))),
    }


def tips(q: Array) -> Array:
    """Return the ends of the lower rods [..., 2] in the plane of motion, m."""
    upper, lower = q[..., 0], q[..., 0] + q[..., 1]
    return jnp.stack([-jnp.sin(upper) - jnp.sin(lower), -jnp.cos(upper) - jnp.cos(lower)], -1)


def frequencies() -> np.ndarray:
    """Return the frequencies of small oscillations, rad/s, from mass and stiffness matrices."""
    mass, weight = np.array([[4 / 3, 1 / 2], [1 / 2, 1 / 3]]), G * np.diag([1.5, 0.5])
    return np.sqrt(np.sort(np.linalg.eigvals(np.linalg.solve(mass, weight)).real))


def small_swings(step: float) -> list[float]:
    """Measure the frequencies [2] of oscillations of 0.01 rad along each mode by zero crossings."""
    mass, weight = np.array([[4 / 3, 1 / 2], [1 / 2, 1 / 3]]), G * np.diag([1.5, 0.5])
    values, modes = np.linalg.eig(np.linalg.solve(mass, weight))
    modes = modes.real[:, np.argsort(values.real)]
    angles = 1e-2 * np.array([[1, 0], [-1, 1]]) @ (modes / np.abs(modes).max(0))
    spec = pendulum(step)
    state = jax.vmap(spec.init)(jnp.asarray(angles.T))

    def advance(now: State, _: None) -> tuple[State, Array]:
        now = jax.vmap(spec.step)(now)
        return now, now.qpos[:, 0]

    q = np.asarray(jax.jit(lambda s: lax.scan(advance, s, length=round(10 / step)))(state)[1])
    found = []
    for course in q.T:
        at = np.flatnonzero(course[:-1] * course[1:] < 0)
        zeros = at + course[at] / (course[at] - course[at + 1])
        found.append(float(np.pi * (len(zeros) - 1) / (zeros[-1] - zeros[0]) / step))
    return found


def derivative(step: float) -> tuple[float, float]:
    """Return d(tip height after 1 s)/d(first angle) by `jax.jvp` and by differences, m/rad."""
    spec = pendulum(step)

    @jax.jit
    def height(angle: Array) -> Array:
        begin = jnp.stack([angle, jnp.asarray(START[1], angle.dtype)])
        end = lax.scan(lambda s, _: (advance_frame(spec, s), None), spec.init(begin), length=RATE)[
            0
        ]
        return tips(end.qpos)[1]

    angle, h = jnp.asarray(START[0]), 1e-5
    slope = jax.jvp(height, (angle,), (jnp.ones_like(angle),))[1]
    return float(slope), float((height(angle + h) - height(angle - h)) / (2 * h))


def growth(times: np.ndarray, spread: np.ndarray) -> tuple[float, np.ndarray]:
    """Fit the exponent, 1/s, of the spread while it is small; return it and the curve [T]."""
    early = (spread > 10 * spread[0]) & (spread < 0.05)
    early &= np.cumsum(spread >= 0.05) == 0
    exponent, at = np.polyfit(times[early], np.log(spread[early]), 1)
    return float(exponent), np.exp(at + exponent * times)


def pendulum_view(done: Run, times: np.ndarray) -> Figure:
    """Return an interactive view of the first pendulums."""
    q = done.history["q"][::5]
    upper, lower = q[..., 0], q[..., 0] + q[..., 1]
    depth = np.broadcast_to(np.linspace(-0.6, 0.6, q.shape[1]), upper.shape)
    rod_vector = lambda angle: np.stack([-np.sin(angle), 0 * angle, -np.cos(angle)], -1)
    pivot = np.stack([0 * upper, depth, 0 * upper], -1)
    elbow = pivot + rod_vector(upper)
    rods = {"upper": (pivot, elbow), "lower": (elbow, elbow + rod_vector(lower))}
    return view(
        show(rods, times=times[::5]),
        f"{q.shape[1]} of the pendulums, displaced in depth; times in seconds.",
    )


@report_style
def spread_figure(times: np.ndarray, spread: np.ndarray, line: np.ndarray) -> Figure:
    """Plot the growth of the spread."""
    import matplotlib.pyplot as plt

    drawing, axes = plt.subplots(figsize=(7.4, 3.2))
    axes.semilogy(times, spread, color=BLUE, label="simulation")
    small = line < 3
    axes.semilogy(times[small], line[small], color=ORANGE, ls="--", label="exponential fit")
    axes.axhline(2, color=GRAY, lw=0.8)
    axes.set(xlabel="time, s", ylabel="rms distance of tips, m")
    axes.legend()
    return figure(
        drawing,
        "Root mean square distance of the tips from their mean. It grows exponentially with the "
        "largest Lyapunov exponent until it saturates near the total length of 2 m (grey).",
    )
