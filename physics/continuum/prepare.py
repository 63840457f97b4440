"""Checks a scene before it runs, and chooses its time step.

Explicit steps are stable while no wave crosses a cell and momentum diffuses less than one,

    dt <= 1 / ((c + |v|) / (A dx) + 2 D nu / (B dx^2)).

The limits A and B were measured (tests/physics/continuum/test_prepare.py): a step above them
blows up within a few hundred steps, so it is refused; `prepare` itself stays at 0.4 of them.
"""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from . import checks
from .grid.grid import Grid
from .scene import Body, Scene
from .tools.sources import Injector

WAVE = 0.8  # A: cells a wave may cross in a step
DIFFUSION = 1.0  # B: of the explicit limit on a square lattice
SAFETY = 0.4
DAMPING = 0.03  # of the transfers: the share of a wave that a step takes, over (k dx)^4
SHARE = 0.01  # of a viscosity that damping may be, before transfers are made sharp


def prepare(scene: Scene) -> Scene:
    """The scene with a time step, after checking what can be checked.

    The step chosen allows for the speed that gravity gives over the whole box. Where the damping
    of the transfers, 0.03 (k dx)^4 / dt, is more than a hundredth of what the viscosity of a body
    does, nu k^2, for a wave as long as twice the box is narrow, they are made `sharp`.

    Raises:
        ValueError: no bodies, an empty one, particles or free tools outside the box, a number
            outside the range of its field, a dt above the stable limit; each says what to change.
        TypeError: no tuple of bodies, no floating point numbers, other dtypes in another body.

    >>> from jaxgpu.physics.continuum import Liquid
    >>> water = Body(np.full((1, 2), 0.5, np.float32), Liquid(bulk_modulus=1e5), volume=1e-4)
    >>> scene = prepare(Scene((water,), Grid(0.1, (10, 10))))
    >>> round(float(scene.dt), 6)  # 0.4 x 0.8 x 0.1 m / (10 m/s)
    0.0032
    """
    scene = checks.whole("prepare", scene)
    checks.places(scene)
    _check_held(scene)
    fall = np.linalg.norm(np.asarray(scene.gravity or (0.0,), float)) * max(scene.grid.cells)
    fastest = np.sqrt(2 * fall * scene.grid.dx) + _jets(scene)
    limit = min(_limit(b, scene.grid, 0.0) for b in scene.bodies)
    wanted = SAFETY * min(_limit(b, scene.grid, fastest) for b in scene.bodies)
    if scene.dt is None:
        scene = dataclasses.replace(scene, dt=scene.bodies[0].x.dtype.type(wanted))
    elif not float(scene.dt) <= limit:
        raise ValueError(
            f"prepare: dt={float(scene.dt):.3g} s; it must lie in (0, {limit:.3g}] to be stable "
            f"with these materials at dx={scene.grid.dx:g} m; {wanted:.3g} s is what dt=None gives"
        )
    _check_intervals(scene)
    if scene.sharp is None:
        viscous = any(_drowned(b, scene.grid, float(scene.dt)) for b in scene.bodies)
        scene = dataclasses.replace(scene, sharp=viscous)
    return scene


def _drowned(body: Body, grid: Grid, dt: float) -> bool:
    """Whether a body has a viscosity of which damping would be more than `SHARE`."""
    nu = np.min(_kinematic(body))
    across = [n for n, face in zip(grid.cells, grid.faces) if face != "periodic"]
    k = np.pi / (min(across) * grid.dx) if across else 2 * np.pi / (max(grid.cells) * grid.dx)
    return bool(np.max(_kinematic(body)) > 0 and DAMPING * k**2 * grid.dx**4 > SHARE * nu * dt)


def _kinematic(body: Body) -> tuple[Any, ...]:
    """Largest kinematic viscosity of a body, m^2/s, and that at high rates where rates matter."""
    largest = np.max(body.material.diffusivity(body.density))
    apparent = getattr(body.material, "viscosity", 0.0)
    if not callable(apparent):
        return (largest,)
    return largest, np.min(apparent(jnp.asarray(1e3)) / body.density)


def _check_held(scene: Scene) -> None:
    held = any(getattr(body.material, "held", None) is not None for body in scene.bodies)
    for i, body in enumerate(scene.bodies):
        if held and np.ndim(body.density):
            raise ValueError(
                f"prepare: bodies[{i}].density has shape {list(np.shape(body.density))}; beside a "
                f"liquid that is held it must be one number, or the liquid be given held=None"
            )


def _jets(scene: Scene) -> float:
    """Speed of the fastest injector, m/s."""
    jets = [source for source in scene.sources if isinstance(source, Injector)]
    return max((float(np.linalg.norm(np.asarray(jet.v))) for jet in jets), default=0.0)


def _check_intervals(scene: Scene) -> None:
    for i, source in enumerate(scene.sources):
        if isinstance(source, Injector) and not float(source.interval) >= float(scene.dt):
            raise ValueError(
                f"prepare: sources[{i}].interval={float(source.interval):.3g} s; it must be at "
                f"least dt={float(scene.dt):.3g} s; give more points a layer instead"
            )


def _limit(body: Body, grid: Grid, extra: float) -> float:
    """Largest stable step of one body, s, at its fastest particle's speed plus `extra`."""
    speed = np.sqrt(np.max(np.sum(np.square(np.atleast_2d(body.v)), -1))) + extra
    c = float(np.max(body.material.speed(body.density)))
    nu = float(np.max(body.material.diffusivity(body.density)))
    d = len(grid.cells)
    return 1 / ((c + speed) / (WAVE * grid.dx) + 2 * d * nu / (DIFFUSION * grid.dx**2))
