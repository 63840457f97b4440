"""Handling matter with a led tool, as an environment: what all tasks share.

A frame is `substeps` steps of `continuum.step` at the velocity that the action gives the tool. With
the loss l of a task, in metres or as the task says, the reward of a frame is

    (1 - l / l_0) / horizon,

l_0 the loss of doing nothing: an episode in which nothing gets better returns about 0, and one
with l = 0 throughout would return 1. Rewards are differentiable in actions and in every number of
the scene.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.physics import continuum
from jaxgpu.physics.continuum import Scene, rollout
from jaxgpu.pytree import number, pytree, size, static

from ...environment import Step
from ...spaces import Box
from .limits import Anywhere

LEADS = {"x": ("v", 0), "y": ("v", 1), "z": ("v", 2), "turn": ("spin", -1)}

type Show = Callable[[Array, Callable[[continuum.State], Any]], Any]


class Goal(Protocol):
    """What a task wants; all functions are pure."""

    def remember(self, state: continuum.State, show: Show) -> Any:
        """What the loss needs to know of the start.

        `show(actions, measure)` plays actions [T, A] from there and gives measures [T, ...].
        """
        ...

    def loss(self, state: continuum.State, memory: Any) -> Array:
        """How far from the goal, [], zero or more."""
        ...

    def scale(self, state: continuum.State, memory: Any) -> Array:
        """The loss l_0 of doing nothing, []; `state` is the start."""
        ...

    def success(self, state: continuum.State, memory: Any) -> Array:
        """Whether the goal is reached, [] bool."""
        ...


@pytree
class State:
    """Matter and tools, and what the task remembers of the start."""

    matter: continuum.State
    memory: Any  # what `goal.remember` gave
    first: Array  # [] loss of doing nothing
    t: Array  # [] frames since the start


@pytree
class Matter:
    """A scene whose first tool is led by actions towards a goal."""

    scene: Scene  # with dt; the first collider is the tool
    goal: Any  # a `Goal`
    speed: Any = number()  # [A] velocity of the tool at action 1, m/s or rad/s
    tilt: Any = number(default=0.0)  # [A] or [T, A] actions from which planning starts
    script: Any = number(
        default=0.0
    )  # [D] or [T, D] velocity of the tool that comes to that of the actions, m/s
    limits: Any = Anywhere()  # of the tool's place
    jitter: Array | float = number(
        default=0.1, least=0, below=0.5
    )  # [] of the particles at the start, in their spacing
    horizon: int = size(default=50, least=1)  # frames
    substeps: int = size(default=100, least=1)  # steps in a frame
    leads: tuple[str, ...] = static(default=("x", "y", "turn"))  # what the actions move
    marks: int = size(default=16, least=1)  # particles of each body that are observed
    names: tuple[str, ...] = static(default=("milk", "water"))  # of the bodies, for pictures
    sight: tuple[float, ...] = static(default=(0.18, 0.22, 1.0))  # from the middle to the camera

    @property
    def observation_space(self) -> Box:
        """Marked particles (place in box widths, velocity in m/s), then pose and velocity of tools.

        Turns are as in `continuum.Tool`: an angle in 2-D, a quaternion in 3-D.
        """
        d, tools = len(self.scene.grid.cells), len(self.scene.colliders)
        size = len(self.scene.bodies) * self.marks * 2 * d
        return Box(-np.inf, np.inf, (size + tools * (6 if d == 2 else 13),))

    @property
    def action_space(self) -> Box:
        """Velocities of the tool, in shares of the greatest."""
        return Box(-1.0, 1.0, (len(self.leads),))

    @property
    def differentiable(self) -> bool:
        """Piecewise: contact sets in node by node."""
        return True

    def guess(self) -> Array:
        """Actions [horizon, A] from which all planners begin."""
        tilt = jnp.asarray(self.tilt, jnp.float32)
        return jnp.zeros((self.horizon, len(self.leads))) + jnp.broadcast_to(
            tilt, (self.horizon, len(self.leads))
        )

    def reset(self, key: Array) -> tuple[State, Array]:
        """The scene, every particle moved a little at random."""
        bodies = []
        for body, k in zip(self.scene.bodies, jax.random.split(key, len(self.scene.bodies))):
            spacing = jnp.asarray(body.volume, body.x.dtype) ** (1 / body.x.shape[1])
            shift = jax.random.uniform(k, body.x.shape, body.x.dtype, -1, 1)
            bodies.append(dataclasses.replace(body, x=body.x + self.jitter * spacing * shift))
        matter = continuum.init(dataclasses.replace(self.scene, bodies=tuple(bodies)))
        show = lambda actions, measure: self._run(matter, actions, 0, measure)[1]
        memory = self.goal.remember(matter, show)
        state = State(matter, memory, self.goal.scale(matter, memory), jnp.int32(0))
        return state, self._observe(state)

    def step(self, state: State, action: Array, key: Array) -> Step:
        """A frame with the tool at the velocity of `action`."""
        action = action.astype(state.first.dtype)  # matter is as wide as its scene was made
        end, _ = self._run(state.matter, action[None], state.t, lambda _: ())
        new = State(end, state.memory, state.first, state.t + 1)
        loss = self.goal.loss(end, state.memory)
        over = new.t >= self.horizon
        info = {"success": self.goal.success(end, state.memory), "loss": loss}
        reward = (1 - loss / state.first) / self.horizon
        return Step(new, self._observe(new), reward, jnp.zeros_like(over), over, info)

    def _run(
        self, matter: continuum.State, actions: Array, first: Array | int, measure: Any
    ) -> tuple[continuum.State, Any]:
        """The end of frames at the velocities of the actions [T, A], and measures [T, ...]."""
        drive = lambda scene, matter, control: (scene, self._lead(matter, *control))
        frames = first + jnp.arange(actions.shape[0], dtype=jnp.int32)
        return rollout(
            self.scene,
            matter,
            (jnp.clip(actions, -1, 1), frames),
            drive,
            substeps=self.substeps,
            measure=measure,
            checkpoint=(0, 1),
        )

    def _lead(self, matter: continuum.State, action: Array, frame: Array) -> continuum.State:
        """The first tool with the velocity of the action; it keeps it until the next."""
        tool, *others = matter.tools
        script = jnp.asarray(self.script, tool.v.dtype)
        script = jnp.broadcast_to(script, (self.horizon, tool.v.shape[0]))
        velocity = {"v": script[frame], "spin": jnp.zeros_like(tool.spin)}
        rate = jnp.asarray(self.speed, action.dtype) * action
        for i, name in enumerate(self.leads):
            field, axis = LEADS[name]
            velocity[field] = velocity[field].at[axis].add(rate[i])
        duration = self.substeps * jnp.asarray(self.scene.dt, tool.v.dtype)
        sent = tool.x + duration * velocity["v"]
        v = velocity["v"] + (self.limits.nearest(sent) - sent) / duration
        led = dataclasses.replace(tool, v=v, spin=velocity["spin"])
        return dataclasses.replace(matter, tools=(led, *others))

    def _observe(self, state: State) -> Array:
        grid, parts = self.scene.grid, []
        for body, p in zip(self.scene.bodies, state.matter.bodies):
            some = np.linspace(0, body.x.shape[0] - 1, self.marks).astype(int)
            for i, a in enumerate(p.x):
                parts.append((a.ravel()[some] - grid.lower[i]) / (grid.cells[i] * grid.dx))
            parts += [a.ravel()[some] for a in p.v]
        for tool in state.matter.tools:
            x = [(tool.x[i] - grid.lower[i]) / (n * grid.dx) for i, n in enumerate(grid.cells)]
            parts += [jnp.stack(x), tool.turn, tool.v, tool.spin]
        return jnp.concatenate(parts)


def mean(quantity: Array, filled: Array) -> Array:
    """Mean of a quantity [C, P] over the slots of a mask [C, P]."""
    return jnp.sum(jnp.where(filled, quantity, 0)) / jnp.sum(filled).astype(quantity.dtype)
