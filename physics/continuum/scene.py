"""A scene to simulate: bodies of material, and the tools that touch them, in a box.

A `Scene` specifies a run and a `State` is its state at one time. All quantities are SI; in 2-D a
body is one metre deep, so that masses are kg and stresses Pa there too.
"""

import jax
import jax.numpy as jnp

from jaxgpu.devices import allocation
from jaxgpu.inputs import ranges
from jaxgpu.inputs.explanations import on_host
from jaxgpu.inputs.fields import pytree
from jaxgpu.runs.fresh_calls import call_fresh

from . import checks, engine, stability
from .particles import State, fill
from .scene_fields import SceneFields
from .tools.sources import SourceCounts


@pytree
class Scene(SceneFields):
    """Specification of a simulation: `prepare` checks it and chooses dt, `init` and `step` run it.

    >>> from jaxgpu.physics.continuum import Body, Grid, Liquid
    >>> body = Body(jnp.full((3, 2), 0.5), Liquid(), volume=1e-2)
    >>> scene = Scene((body,), Grid(0.1, (10, 10)), gravity=(0.0, -10.0)).prepare()
    >>> end = jax.jit(scene.step)(scene.init())
    >>> float(end.bodies[0].v[0, 1] / end.t)
    -10.0
    """

    @on_host
    def prepare(self) -> "Scene":
        """Check the scene and return it with a time step; for use on the host only.

        The chosen step allows for the speed gained in a fall across the box. If the damping of the
        transfers, 0.03 (k dx)^4 / dt, exceeds a hundredth of a body's viscous damping nu k^2, for a
        wave twice as long as the box is narrow, they become `sharp`.

        Raises:
            ValueError: there are no bodies, a body is empty, particles or free tools are outside
                the box, a value is outside the range of its field, or dt is above the stable limit;
                the message says how to correct it.
            TypeError: bodies are not a tuple, not floating point, or of different dtypes.

        >>> from jaxgpu.physics.continuum import Body, Grid, Liquid
        >>> water = Body(jnp.full((1, 2), 0.5), Liquid(bulk_modulus=1e5), volume=1e-4)
        >>> scene = Scene((water,), Grid(0.1, (10, 10))).prepare()
        >>> round(float(scene.dt), 6)  # 0.4 x 0.8 x 0.1 m / (10 m/s)
        0.0032
        """
        scene = checks.check_scene("prepare", self)
        checks.check_positions(scene)
        checks.check_densities(scene)
        return stability.with_time_step(scene)

    def init(self, shares: int = 1) -> State:
        """Return the state at time zero, in the dtype of the bodies' positions.

        Args:
            shares: the number of chunks of particles becomes a multiple of it.
        Raises:
            ValueError, TypeError: parts do not fit each other, or a value is outside its range.
        Differentiable in positions, velocities, densities and volumes.
        """
        scene = checks.check_scene("init", self)
        for i, body in enumerate(scene.bodies):
            ranges.refuse(f"init: bodies[{i}].x", body.x, ranges.Range(unit="m"))
        return call_fresh(_init, scene, shares)

    def step(self, state: State) -> State:
        """Return the state after dt; see `engine` for the method.

        Args:
            state: as returned by `init`.
        Differentiable in the scene (materials, gravity, tools, dt) and the state, in reverse and
        forward mode. Here liquids are relaxed to the density of the grid in every step; `rollout`
        and `simulate` do so once in sixteen steps, which saves a sixth of the time.
        """
        return engine.step(self, state)


def _initial_state(scene: Scene, shares: int) -> State:
    dtype = scene.bodies[0].x.dtype
    return State(
        bodies=tuple(fill(body, scene.grid, shares) for body in scene.bodies),
        tools=tuple(collider.start(dtype) for collider in scene.colliders),
        t=jnp.zeros((), dtype),
        flows=tuple(SourceCounts.zeros() for _ in scene.sources),
    )


_init = allocation.limit_memory(
    jax.jit(_initial_state, static_argnames="shares")
)  # compiled once per shape
