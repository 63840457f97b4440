"""The work that the continuum benchmark gives to every program."""

from dataclasses import dataclass

import numpy as np

STEPS = 20
DT = 1e-4  # s
GRAVITY = -9.8  # m/s^2
DENSITY = 1000.0  # kg/m^3
KINDS = {"liquid": 0, "neo-hookean": 1, "corotated": 2, "sand": 3}


@dataclass(frozen=True)
class Work:
    """Number and material of the particles, on a grid of nodes^3 over the unit cube."""

    particles: int
    nodes: int
    material: str
    young: float = 1e5  # Pa; the liquid's bulk modulus
    poisson: float = 0.2
    friction: float = 0.5  # rad


def start(work: Work) -> np.ndarray:
    """Return positions [N, 3], uniform in a cube at 8 particles per cell, in random order."""
    side = (work.particles / 8) ** (1 / 3) / work.nodes
    rng = np.random.default_rng(0)
    return (rng.random((work.particles, 3)) * side + 0.15).astype(np.float32)


def constants(work: Work) -> tuple[float, float, float, float, float]:
    """Return Lame's mu and lambda, particle volume, cone slope and grid spacing."""
    mu = work.young / (2 * (1 + work.poisson))
    lam = work.young * work.poisson / ((1 + work.poisson) * (1 - 2 * work.poisson))
    sine = np.sin(work.friction)
    dx = 1 / work.nodes
    return mu, lam, (dx / 2) ** 3, np.sqrt(2 / 3) * 2 * sine / (3 - sine), dx
