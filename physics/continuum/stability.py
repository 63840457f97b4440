"""The largest time step of a scene that is stable, and the one that is chosen.

Explicit steps are stable while no wave crosses a cell and momentum diffuses less than one,

    dt <= 1 / ((c + |v|) / (A dx) + 2 D nu / (B dx^2)).

The limits A and B were measured (tests/physics/continuum/test_prepare.py): a step above them
blows up within a few hundred steps, so it is refused; `Scene.prepare` itself stays at 0.4 of them.
"""

import dataclasses

import jax.numpy as jnp
import numpy as np

from .grid.grid import Grid
from .particles import Body
from .scene_fields import SceneFields
from .tools.sources import Injector

WAVE = 0.8  # A: cells a wave may cross in a step
DIFFUSION = 1.0  # B: of the explicit limit on a square lattice
SAFETY = 0.4
DAMPING = 0.03  # of the transfers: the share of a wave that a step takes, over (k dx)^4
SHARE = 0.01  # of a viscosity that damping may be, before transfers are made sharp


def with_time_step[S: SceneFields](scene: S) -> S:
    """The scene with `dt` and `sharp`, chosen where they are not given.

    Raises:
        ValueError: a dt above the stable limit, or above the interval of an injector.
    """
    fall = np.linalg.norm(np.asarray(scene.gravity or (0.0,), float)) * max(scene.grid.cells)
    fastest = np.sqrt(2 * fall * scene.grid.dx) + _jet_speed(scene)
    limit = min(_limit(b, scene.grid, 0.0) for b in scene.bodies)
    wanted = SAFETY * min(_limit(b, scene.grid, fastest) for b in scene.bodies)
    if scene.dt is None:
        scene = dataclasses.replace(scene, dt=scene.bodies[0].x.dtype.type(wanted))
    elif not float(scene.dt) <= limit:
        raise ValueError(
            f"prepare: dt={float(scene.dt):.3g} s; it must lie in (0, {limit:.3g}] to be stable "
            f"with these materials at dx={scene.grid.dx:g} m; {wanted:.3g} s is what dt=None gives"
        )
    dt = float(np.asarray(scene.dt))
    _check_intervals(scene, dt)
    if scene.sharp is None:
        sharp = any(_damped(b, scene.grid, dt) for b in scene.bodies)
        scene = dataclasses.replace(scene, sharp=sharp)
    return scene


def _damped(body: Body, grid: Grid, dt: float) -> bool:
    """Whether a body has a viscosity of which damping would be more than `SHARE`."""
    largest, apparent = _viscosities(body)
    across = [n for n, face in zip(grid.cells, grid.faces) if face != "periodic"]
    k = np.pi / (min(across) * grid.dx) if across else 2 * np.pi / (max(grid.cells) * grid.dx)
    least = min(largest, apparent)
    return max(largest, apparent) > 0 and DAMPING * k**2 * grid.dx**4 > SHARE * least * dt


def _viscosities(body: Body) -> tuple[float, float]:
    """Largest kinematic viscosity of a body, m^2/s, and that at high rates where rates matter."""
    largest = float(np.max(body.material.kinematic_viscosity(body.density)))
    apparent = getattr(body.material, "viscosity", None)
    if not callable(apparent):
        return largest, largest
    return largest, float(
        np.min(np.asarray(jnp.asarray(apparent(jnp.asarray(1e3))) / body.density))
    )


def _jet_speed(scene: SceneFields) -> float:
    """Speed of the fastest injector, m/s."""
    jets = [source for source in scene.sources if isinstance(source, Injector)]
    return max((float(np.linalg.norm(np.asarray(jet.v))) for jet in jets), default=0.0)


def _check_intervals(scene: SceneFields, dt: float) -> None:
    for i, source in enumerate(scene.sources):
        if isinstance(source, Injector) and not float(source.interval) >= dt:
            raise ValueError(
                f"prepare: sources[{i}].interval={float(source.interval):.3g} s; it must be at "
                f"least dt={dt:.3g} s; give more points a layer instead"
            )


def _limit(body: Body, grid: Grid, extra: float) -> float:
    """Largest stable step of one body, s, at its fastest particle's speed plus `extra`."""
    speed = np.sqrt(np.max(np.sum(np.square(np.atleast_2d(body.v)), -1))) + extra
    c = float(np.max(body.material.sound_speed(body.density)))
    nu = float(np.max(body.material.kinematic_viscosity(body.density)))
    d = len(grid.cells)
    return 1 / ((c + speed) / (WAVE * grid.dx) + 2 * d * nu / (DIFFUSION * grid.dx**2))
