"""Checks a scene before it runs, and chooses its time step.

Explicit steps are stable while no wave crosses a cell and momentum diffuses less than one,

    dt <= 1 / ((c + |v|) / (A dx) + 2 D nu / (B dx^2)).

The limits A and B were measured (tests/physics/continuum/test_prepare.py): a step above them
blows up within a few hundred steps, so it is refused; `prepare` itself stays at 0.4 of them.
"""

import dataclasses
from typing import Any

import jax
import numpy as np

from jaxgpu.physics.continuum.collide import Collider
from jaxgpu.physics.continuum.grid import Grid
from jaxgpu.physics.continuum.scene import Body, Scene
from jaxgpu.physics.continuum.sources import Injector

WAVE = 0.8  # A: cells a wave may cross in a step
DIFFUSION = 1.0  # B: of the explicit limit on a square lattice
SAFETY = 0.4
_POSITIVE = ("young", "bulk_modulus", "exponent", "grain", "grain_density", "inertial_number")
_NOT_NEGATIVE = ("viscosity", "yield_stress", "consistency", "tension", "friction_angle",
                 "friction_rise", "held")  # fmt: skip


def prepare(scene: Scene) -> Scene:
    """The scene with a time step, after checking what can be checked.

    The step chosen allows for the speed that gravity gives over the whole box.

    Raises:
        ValueError: no bodies, an empty one, particles outside the box, a parameter that is not
            finite or of the wrong sign, a dt above the stable limit; each says what to change.

    >>> from jaxgpu.physics.continuum import Liquid
    >>> water = Body(np.full((1, 2), 0.5, np.float32), Liquid(bulk_modulus=1e5), volume=1e-4)
    >>> scene = prepare(Scene((water,), Grid(0.1, (10, 10))))
    >>> round(float(scene.dt), 6)  # 0.4 x 0.8 x 0.1 m / (10 m/s)
    0.0032
    """
    if not scene.bodies:
        raise ValueError("prepare: the scene has no bodies; give at least one Body of particles")
    d = len(scene.grid.cells)
    if len(scene.gravity) not in (0, d):
        raise ValueError(
            f"prepare: gravity has {len(scene.gravity)} numbers; the grid has {d} axes"
        )
    for i, body in enumerate(scene.bodies):
        _check(f"prepare: bodies[{i}]", body, scene.grid)
    for i, tool in enumerate(scene.colliders):
        _check_tool(f"prepare: colliders[{i}]", tool)
    _check_held(scene)
    jets = _check_sources(scene)
    fall = np.linalg.norm(np.asarray(scene.gravity or (0.0,), float)) * max(scene.grid.cells)
    fastest = np.sqrt(2 * fall * scene.grid.dx) + jets
    limit = min(_limit(b, scene.grid, 0.0) for b in scene.bodies)
    wanted = SAFETY * min(_limit(b, scene.grid, fastest) for b in scene.bodies)
    if scene.dt is None:
        dtype = scene.bodies[0].x.dtype
        scene = dataclasses.replace(scene, dt=dtype.type(wanted))
        _check_intervals(scene)
        return scene
    if not 0 < float(scene.dt) <= limit:
        raise ValueError(
            f"prepare: dt={float(scene.dt):.3g} s; it must lie in (0, {limit:.3g}] to be stable "
            f"with these materials at dx={scene.grid.dx:g} m; {wanted:.3g} s is what dt=None gives"
        )
    _check_intervals(scene)
    return scene


def _check_held(scene: Scene) -> None:
    held = any(getattr(body.material, "held", None) is not None for body in scene.bodies)
    for i, body in enumerate(scene.bodies):
        if held and np.ndim(body.density):
            raise ValueError(
                f"prepare: bodies[{i}].density has shape {list(np.shape(body.density))}; beside a "
                f"liquid that is held it must be one number, or the liquid be given held=None"
            )


def _check_sources(scene: Scene) -> float:
    """Refuse sources that cannot work; the speed of the fastest injector, m/s."""
    d, fastest = len(scene.grid.cells), 0.0
    for i, source in enumerate(scene.sources):
        name = f"prepare: sources[{i}]"
        for field, among in (("body", scene.bodies), ("tool", scene.colliders)):
            index = getattr(source, field)
            if not (-1 if field == "tool" else 0) <= index < len(among):
                raise ValueError(f"{name}.{field}={index}; the scene has {len(among)} of them")
        if not isinstance(source, Injector):
            continue
        x, v = np.asarray(source.x), np.asarray(source.v)
        if x.ndim != 2 or 0 in x.shape or x.shape[1] != d or v.shape != (d,):
            raise ValueError(
                f"{name}: x has shape {list(x.shape)} and v {list(v.shape)}; they must be "
                f"[n, {d}] with n >= 1 and [{d}]"
            )
        inside = np.all((x >= scene.grid.lower) & (x <= scene.grid.upper))
        if not np.all(np.isfinite(v)) or not (inside or source.tool >= 0):
            raise ValueError(f"{name}: x must lie inside the box and v be finite numbers, in m/s")
        if np.ndim(scene.bodies[source.body].volume) or np.ndim(scene.bodies[source.body].density):
            raise ValueError(f"{name}: bodies[{source.body}] must have one volume and density")
        fastest = max(fastest, float(np.linalg.norm(v)))
    return fastest


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
    c = float(body.material.speed(body.density))
    nu = float(body.material.diffusivity(body.density))
    d = len(grid.cells)
    return 1 / ((c + speed) / (WAVE * grid.dx) + 2 * d * nu / (DIFFUSION * grid.dx**2))


def _check(name: str, body: Body, grid: Grid) -> None:
    d = len(grid.cells)
    x = np.asarray(body.x)
    if x.ndim != 2 or x.shape[1] != d or x.shape[0] == 0 == body.capacity:
        raise ValueError(
            f"{name}.x has shape {list(x.shape)}; it must be [N, {d}] with N >= 1, or N = 0 and "
            f"a capacity for injectors"
        )
    outside = ~np.all((x >= grid.lower) & (x <= grid.upper), -1)  # nan is outside
    if outside.any():
        raise ValueError(
            f"{name}.x: {outside.sum()} of {len(x)} particles are outside the box {grid.lower} "
            f"to {grid.upper}, the first at {x[outside.argmax()].tolist()}; move them or widen it"
        )
    v = np.asarray(body.v)
    if v.shape not in ((), (d,), x.shape) or not np.all(np.isfinite(v)):
        raise ValueError(
            f"{name}.v has shape {list(v.shape)} and {np.sum(~np.isfinite(v))} entries that are "
            f"not finite; give finite numbers, [{d}] or {list(x.shape)}, in m/s"
        )
    for field in ("volume", "density"):
        _positive(f"{name}.{field}", getattr(body, field))
    for path, leaf in jax.tree.leaves_with_path(body.material):
        if not np.all(np.isfinite(np.asarray(leaf))):
            raise ValueError(f"{name}.material{jax.tree_util.keystr(path)} is not a finite number")
    _ranges(name, body.material)


def _check_tool(name: str, tool: Collider) -> None:
    soft = {} if tool.soft is None else {"length": tool.soft.length, "rate": tool.soft.rate}
    given = {"mass": tool.mass, "inertia": tool.inertia}
    given |= {f"soft.{field}": value for field, value in soft.items()}
    for field, value in given.items():
        if value is not None and not isinstance(value, jax.core.Tracer):
            _positive(f"{name}.{field}", value)
    if not isinstance(tool.friction, jax.core.Tracer) and not np.all(
        np.asarray(tool.friction) >= 0
    ):
        raise ValueError(f"{name}.friction={tool.friction:g}; it must not be negative")


def _positive(name: str, value: Any) -> None:
    value = np.asarray(value)
    if not np.all(np.isfinite(value) & (value > 0)):
        raise ValueError(f"{name}={value.min():g}; it must be above zero, in SI units")


def _ranges(name: str, material: Any) -> None:
    for field in _POSITIVE:
        if getattr(material, field, None) is not None:
            _positive(f"{name}.material.{field}", getattr(material, field))
    poisson = np.asarray(getattr(material, "poisson", 0.0))
    if not np.all((poisson > -1) & (poisson < 0.5)):
        raise ValueError(f"{name}.material.poisson={poisson:g}; it must lie in (-1, 0.5)")
    for field in _NOT_NEGATIVE:
        value = getattr(material, field, 0.0)
        if value is not None and not callable(value) and np.any(np.asarray(value) < 0):
            raise ValueError(f"{name}.material.{field}={value:g}; it must not be negative")
