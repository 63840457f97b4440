"""Fields of a scene, separate from `scene` so that all modules it uses can import them."""

from typing import Any

from jax import Array

from jaxgpu.inputs.fields import number, pytree, static

from .grid.grid import Grid
from .particles import Body
from .tools.contact import Collider
from .tools.sources import Collector, Injector


@pytree
class SceneFields:
    """Bodies, tools and sources in a box, and the parameters of a time step."""

    bodies: tuple[Body, ...]
    grid: Grid = static()
    gravity: tuple[Any, ...] = number(default=(), unit="m/s^2")  # D components; zero by default
    colliders: tuple[Collider, ...] = ()
    # time step; chosen by `prepare` if None
    dt: Array | float | None = number(default=None, above=0, unit="s", one=True, none=True)  # []
    sources: tuple[Injector | Collector, ...] = ()  # applied after every step, in this order
    # twice as many transfers, which do not damp a viscous flow; chosen by `prepare` if None
    sharp: bool | None = static(default=None)
