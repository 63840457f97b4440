"""Stable time steps: the limit of a scene, and the step that `Scene.prepare` chooses.

Explicit steps are stable while no wave crosses a cell and momentum diffuses less than one,

    dt <= 1 / ((c + |v|) / (A dx) + 2 D nu / (B dx^2)).

The limits A and B were measured (tests/physics/continuum/test_prepare.py): a step above them
diverges within a few hundred steps, so it is rejected. `Scene.prepare` chooses 0.4 of the limit.
"""

import dataclasses

import jax.numpy as jnp
import numpy as np

from .grid.grid import Grid
from .particles import Body
from .scene_fields import SceneFields
from .tools.sources import Injector

WAVE_LIMIT = 0.8  # A: cells that a wave may cross per step
DIFFUSION_LIMIT = 1.0  # B: fraction of the explicit limit on a square lattice
SAFETY = 0.4
DAMPING = 0.03  # by the transfers: fraction of a wave lost per step, divided by (k dx)^4
MAX_DAMPING = 0.01  # maximum damping relative to a viscosity, before transfers become sharp


def with_time_step[S: SceneFields](scene: S) -> S:
    """Return the scene with `dt` and `sharp`, which are chosen if None.

    Raises:
        ValueError: dt is above the stable limit, or above the interval of an injector.
    """
    fall = np.linalg.norm(np.asarray(scene.gravity or (0.0,), float)) * max(scene.grid.cells)
    fastest = np.sqrt(2 * fall * scene.grid.dx) + _jet_speed(scene)
    limit = min(_max_stable_step(b, scene.grid, 0.0) for b in scene.bodies)
    wanted = SAFETY * min(_max_stable_step(b, scene.grid, fastest) for b in scene.bodies)
    if scene.dt is None:
        scene = dataclasses.replace(scene, dt=scene.bodies[0].x.dtype.type(wanted))
    elif not float(scene.dt) <= limit:
        raise ValueError(
            f"prepare: dt={float(scene.dt):.3g} s; it must lie in (0, {limit:.3g}] to be stable "
            f"with these materials at dx={scene.grid.dx:g} m; dt=None gives {wanted:.3g} s"
        )
    dt = float(np.asarray(scene.dt))
    _check_intervals(scene, dt)
    if scene.sharp is None:
        sharp = any(_needs_sharp_transfers(b, scene.grid, dt) for b in scene.bodies)
        scene = dataclasses.replace(scene, sharp=sharp)
    return scene


def _needs_sharp_transfers(body: Body, grid: Grid, dt: float) -> bool:
    """Return whether the damping of the transfers exceeds `MAX_DAMPING` of a body's viscosity."""
    largest, apparent = _viscosities(body)
    across = [n for n, face in zip(grid.cells, grid.faces) if face != "periodic"]
    k = np.pi / (min(across) * grid.dx) if across else 2 * np.pi / (max(grid.cells) * grid.dx)
    least = min(largest, apparent)
    return max(largest, apparent) > 0 and DAMPING * k**2 * grid.dx**4 > MAX_DAMPING * least * dt


def _viscosities(body: Body) -> tuple[float, float]:
    """Return a body's largest kinematic viscosity, m^2/s, and the apparent one at high rates."""
    largest = float(np.max(body.material.kinematic_viscosity(body.density)))
    apparent = getattr(body.material, "viscosity", None)
    if not callable(apparent):
        return largest, largest
    return largest, float(
        np.min(np.asarray(jnp.asarray(apparent(jnp.asarray(1e3))) / body.density))
    )


def _jet_speed(scene: SceneFields) -> float:
    """Return the speed of the fastest injector, m/s."""
    jets = [source for source in scene.sources if isinstance(source, Injector)]
    return max((float(np.linalg.norm(np.asarray(jet.v))) for jet in jets), default=0.0)


def _check_intervals(scene: SceneFields, dt: float) -> None:
    for i, source in enumerate(scene.sources):
        if isinstance(source, Injector) and not float(source.interval) >= dt:
            raise ValueError(
                f"prepare: sources[{i}].interval={float(source.interval):.3g} s; it must be at "
                f"least dt={dt:.3g} s; give more points per layer instead"
            )


def _max_stable_step(body: Body, grid: Grid, extra: float) -> float:
    """Return the largest stable step of a body, s, at its fastest particle's speed plus `extra`."""
    speed = np.sqrt(np.max(np.sum(np.square(np.atleast_2d(body.v)), -1))) + extra
    c = float(np.max(body.material.sound_speed(body.density)))
    nu = float(np.max(body.material.kinematic_viscosity(body.density)))
    d = len(grid.cells)
    return 1 / ((c + speed) / (WAVE_LIMIT * grid.dx) + 2 * d * nu / (DIFFUSION_LIMIT * grid.dx**2))
