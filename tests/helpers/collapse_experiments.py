"""A dam break and collapsing columns of sand, with measurements from experiments.

Water: Martin & Moyce (1952), doi:10.1098/rsta.1952.0006, a = 5.715 cm and height 2 a. Sand: the
laws that Lube, Huppert, Sparks & Freundt (2005), doi:10.1103/PhysRevE.72.041301, fitted to
two-dimensional columns of width L and height a L,

    run-out / L = 1.2 a (a < 2.3), 1.9 a^(2/3) above;  height / L = a (a < 1.15), 0.65 a^(2/5).

The angle of repose is 30.5 degrees and the grain size is L / 100 (1 mm in 10 cm; both assumed). The
friction rises with the shear rate as measured for glass beads.
"""

import jax.numpy as jnp
import numpy as np
from continuum_run import positions

from jaxgpu.physics.continuum import Body, DruckerPrager, Grid, Liquid, Scene, fill_box, simulate

G, A = 9.81, 0.05715
# table 2: t sqrt(2 g / a), front x / a; table 6: t sqrt(g / a), height / 2 a
FRONT = np.array([
    [0.41, 0.84, 1.19, 1.43, 1.63, 1.83, 1.98, 2.20, 2.32, 2.51, 2.65, 2.83, 2.98, 3.11, 3.33],
    [1.11, 1.22, 1.44, 1.67, 1.89, 2.11, 2.33, 2.56, 2.78, 3.00, 3.22, 3.44, 3.67, 3.89, 4.11],
])  # fmt: skip
HEIGHT = np.array([
    [0.56, 0.77, 0.93, 1.08, 1.28, 1.46, 1.66, 1.84, 2.00, 2.21, 2.45, 2.70, 3.06, 3.44, 4.20,
     5.25, 7.40],
    [0.94, 0.89, 0.83, 0.78, 0.72, 0.67, 0.61, 0.56, 0.50, 0.44, 0.39, 0.33, 0.28, 0.22, 0.17,
     0.11, 0.06],
])  # fmt: skip
COLUMNS = ((0.5, 160), (1.0, 80), (2.0, 40), (4.0, 40))  # a, cells in L
REPOSE, GRAIN = 30.5, 0.01  # degrees, diameter / L


def dam_break(cells: int, length: int, end: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return t sqrt(2 g / a), front x / a and wall height y / 2 a of a column `cells` wide."""
    dx = A / cells
    x = fill_box((0.0, 0.0), (A, 2 * A), dx / 2)
    grid = Grid(dx, (int(length * cells), int(2.5 * cells)))
    scene = Scene((Body(x, Liquid(4e5), (dx / 2) ** 2),), grid, gravity=(0.0, -G))

    def measure_surface(s):
        # the surface is level near the wall, and particles that start at the wall leave it
        x, y = jnp.where(s.bodies[0].active[:, None], s.bodies[0].x, 0).T
        return jnp.max(x) + dx / 4, jnp.max(jnp.where(x < A / 4, y, 0)) + dx / 4

    front, top = simulate(
        scene, end / np.sqrt(2 * G / A), frames=150, measure=measure_surface
    ).history
    return np.linspace(0, end, 151), front / A, top / (2 * A)


def best_delay(time: np.ndarray, front: np.ndarray) -> tuple[float, float]:
    """Return the mean error of the front against table 2 at the best gate delay, and that delay."""
    lags = np.linspace(0, 0.25, 26)
    seen = [np.interp(FRONT[0] - lag, time, front, left=1) / FRONT[1] - 1 for lag in lags]
    errors = np.abs(seen).mean(1)
    return errors.min(), lags[errors.argmin()]


def column(aspect: float, cells: int, grain: float | None = GRAIN) -> np.ndarray:
    """Return points [N, 2] of a column of width 1 m at rest; no grain: friction without rate."""
    dx, high, density = 1 / cells, aspect, 1600.0
    x = fill_box((0.0, 0.0), (1.0, high), dx / 2)
    young = 100 * density * G * high  # the column shortens by less than 1 % under its weight
    angle = np.arcsin(np.tan(np.deg2rad(REPOSE)))
    sand = DruckerPrager(young, friction_angle=angle, plane=True, grain=grain)
    longest = 2.0 + (1.6 * aspect if aspect < 2.3 else 2.6 * aspect ** (2 / 3))
    shape = int(longest * cells), int(np.ceil(1.1 * high * cells))
    grid = Grid(dx, shape, faces=("slip", "stick"))
    body = Body(x, sand, (dx / 2) ** 2, density)
    settled = 3 * np.sqrt(2 * high / G) + 1.5 * np.sqrt(1 / G)
    end = simulate(Scene((body,), grid, gravity=(0.0, -G)), settled).state
    return positions(end.bodies[0])


def measures(points: np.ndarray, cells: int) -> tuple[float, float, float]:
    """Return the run-out of the foremost point and of sand two grains deep, and the wall height."""
    dx = 1 / cells
    deep = np.bincount((points[:, 0] * cells).astype(int)) * dx / 4
    deep = np.append(deep, 0.0)
    last = np.flatnonzero(deep >= 2 * GRAIN)[-1]
    part = (deep[last] - 2 * GRAIN) / (deep[last] - deep[last + 1])
    wall = points[points[:, 0] < dx, 1]
    return (
        points[:, 0].max() + dx / 4 - 1,
        (last + 0.5 + part) * dx - 1,
        wall.max() + dx / 4,
    )


def laws(aspect):
    """Return run-out and height over the width, as published."""
    low = np.asarray(aspect)
    run = np.where(low < 2.3, 1.2 * low, 1.9 * low ** (2 / 3))
    return run, np.where(low < 1.15, low, 0.65 * low**0.4)
