"""The fields of a scene, below everything that reads them; `scene` adds the methods."""

from typing import Any

from jax import Array

from jaxgpu.inputs.fields import number, pytree, static

from .grid.grid import Grid
from .particles import Body
from .tools.collide import Collider
from .tools.sources import Collector, Injector


@pytree
class SceneFields:
    """Bodies, tools and sources in a box, and the numbers of a step."""

    bodies: tuple[Body, ...]
    grid: Grid = static()
    gravity: tuple[Any, ...] = number(default=(), unit="m/s^2")  # D numbers; none by default
    colliders: tuple[Collider, ...] = ()
    # step; `prepare` chooses
    dt: Array | float | None = number(default=None, above=0, unit="s", one=True, none=True)  # []
    sources: tuple[Injector | Collector, ...] = ()  # act after every step, in this order
    # transfers that do not damp a viscous flow, for twice as many of them; `prepare` chooses
    sharp: bool | None = static(default=None)
