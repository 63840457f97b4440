"""Environment for tasks that manipulate materials with a tool.

A frame is `substeps` steps of `Scene.step` at the tool velocity of the action. With the loss l of a
task, in metres unless the task states otherwise, the reward of a frame is

    (1 - l / l_0) / max_steps,

where l_0 is the loss of zero actions. An episode without improvement returns about 0, and one with
l = 0 throughout would return 1. Rewards are differentiable in the actions and in all numeric
parameters of the scene.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs.arguments import format_value
from jaxgpu.inputs.calls import defer_check
from jaxgpu.inputs.explanations import explain_errors, on_host
from jaxgpu.inputs.fields import number, pytree, size, static
from jaxgpu.physics import continuum
from jaxgpu.physics.continuum import Scene, SoftContact, rollout
from jaxgpu.render import Balls, Camera

from ...environment import Step, check_actions
from ...spaces import Box
from .rendering import draw_matter, fit_camera
from .workspace import Unbounded

# Tool velocities that an action can set: the field of `continuum.Tool`, and its axis.
CONTROLS = {
    "vx": ("v", 0),
    "vy": ("v", 1),
    "vz": ("v", 2),
    "angular_velocity": ("spin", -1),
}

type Play = Callable[[Array, Callable[[continuum.State], Any]], Any]


class Goal(Protocol):
    """Protocol of the goal of a task; its methods are pure."""

    def reference(self, state: continuum.State, play: Play) -> Any:
        """Return the data of the start that the loss needs.

        `play(actions, measure)` simulates actions [T, A] from there and returns measures [T, ...].
        """
        ...

    def loss(self, state: continuum.State, reference: Any) -> Array:
        """Return the nonnegative distance of the materials from the goal, []."""
        ...

    def baseline(self, state: continuum.State, reference: Any) -> Array:
        """Return the loss l_0 of zero actions, []; `state` is the start."""
        ...

    def success(self, state: continuum.State, reference: Any) -> Array:
        """Return whether the goal is reached, [] bool."""
        ...


@pytree
class State:
    """State of materials and tools, and the task's data of the start."""

    matter: continuum.State
    reference: Any  # result of `goal.reference`
    baseline: Array  # [] loss of zero actions
    t: Array  # [] frames since the start


@pytree
class MatterTask:
    """Environment in which actions move the first tool of a scene towards a goal.

    >>> from jaxgpu import rl
    >>> task = rl.make("matter/mixing")
    >>> task.initial_actions().shape, type(task.goal).__name__
    ((50, 2), 'SpreadGoal')
    """

    simulation: Scene  # with dt; the first collider is the tool
    goal: Any  # a `Goal`
    speed: Any = number()  # [A] velocity of the tool at action 1, m/s or rad/s
    initial_plan: Any = number(default=0.0)  # [A] or [T, A] actions from which planning starts
    script: Any = number(
        default=0.0
    )  # [D] or [T, D] velocity of the tool that is added to that of the actions, m/s
    workspace: Any = Unbounded()  # of the tool's position
    jitter: Array | float = number(
        default=0.1, least=0, below=0.5
    )  # [] of the particles at the start, relative to their spacing
    max_steps: int = size(default=50, least=1)  # frames
    substeps: int = size(default=100, least=1)  # steps in a frame
    controls: tuple[str, ...] = static(
        default=("vx", "vy", "angular_velocity")
    )  # velocities that the actions set, names in `CONTROLS`
    observed_particles: int = size(default=16, least=1)  # number of observed particles per body
    body_names: tuple[str, ...] = static(default=("milk", "water"))  # for rendering
    view_direction: tuple[float, ...] = static(
        default=(0.18, 0.22, 1.0)
    )  # from the center to the camera

    differentiable = True  #: piecewise: contact starts node by node

    @property
    def observation_space(self) -> Box:
        """Marked particles (position in box widths, velocity in m/s), then tools (pose, velocity).

        Orientations are as in `continuum.Tool`: an angle in 2-D, a quaternion in 3-D.
        """
        d, tools = len(self.simulation.grid.cells), len(self.simulation.colliders)
        size = len(self.simulation.bodies) * self.observed_particles * 2 * d
        return Box(-np.inf, np.inf, (size + tools * (6 if d == 2 else 13),))

    @property
    def action_space(self) -> Box:
        """Box of the tool's velocities, as fractions of the maximum."""
        return Box(-1.0, 1.0, (len(self.controls),))

    def initial_actions(self) -> Array:
        """Return initial actions [max_steps, A] for planners: `initial_plan` for all steps."""
        plan = jnp.asarray(self.initial_plan, self.simulation.bodies[0].x.dtype)
        return jnp.broadcast_to(plan, (self.max_steps, len(self.controls)))

    def reset(self, key: Array) -> tuple[State, Array]:
        """Start from the scene, with every particle displaced a little at random."""
        bodies = []
        for body, k in zip(
            self.simulation.bodies, jax.random.split(key, len(self.simulation.bodies))
        ):
            spacing = jnp.asarray(body.volume, body.x.dtype) ** (1 / body.x.shape[1])
            shift = jax.random.uniform(k, body.x.shape, body.x.dtype, -1, 1)
            bodies.append(dataclasses.replace(body, x=body.x + self.jitter * spacing * shift))
        matter = dataclasses.replace(self.simulation, bodies=tuple(bodies)).init()
        play = lambda actions, measure: self._simulate(matter, actions, 0, measure)[1]
        reference = self.goal.reference(matter, play)
        baseline = self.goal.baseline(matter, reference)
        state = State(matter, reference, baseline, jnp.int32(0))
        return state, self._observe(state)

    def scene(self, state: State, camera: Camera | None = None) -> Balls:
        """Return materials and tools as seen by a camera, by default `camera()`."""
        camera = self.camera() if camera is None else camera
        return draw_matter(self.simulation, state.matter, self.body_names, camera)

    @on_host
    def camera(self, width: int = 400, height: int = 300) -> Camera:
        """Return the camera whose image contains the whole box of the task."""
        return fit_camera(self.simulation.grid, self.view_direction, width, height)

    def render(self, matter: continuum.State, width: int = 400, height: int = 300) -> Array:
        """Return an image [height, width, 3] in 0 ... 1 of materials and tools. Pure; `jit` it."""
        camera = self.camera(width, height)
        return draw_matter(self.simulation, matter, self.body_names, camera).picture(camera)

    @check_actions
    def step(self, state: State, action: Array, key: Array) -> Step:
        """Advance one frame with the tool at the velocity of `action`."""
        action = action.astype(state.baseline.dtype)  # the dtype is that of the scene
        end, _ = self._simulate(state.matter, action[None], state.t, lambda _: ())
        new = State(end, state.reference, state.baseline, state.t + 1)
        loss = self.goal.loss(end, state.reference)
        over = new.t >= self.max_steps
        info = {"success": self.goal.success(end, state.reference), "loss": loss}
        reward = (1 - loss / state.baseline) / self.max_steps
        return Step(new, self._observe(new), reward, jnp.zeros_like(over), over, info)

    def _simulate(
        self, matter: continuum.State, actions: Array, first: Array | int, measure: Any
    ) -> tuple[continuum.State, Any]:
        """Simulate actions [T, A]; return the final state and measures [T, ...] of the frames."""
        drive = lambda scene, matter, control: (scene, self._drive_tool(matter, *control))
        frames = first + jnp.arange(actions.shape[0], dtype=jnp.int32)
        end, seen = rollout(
            self.simulation,
            matter,
            (jnp.clip(actions, -1, 1), frames),
            drive,
            substeps=self.substeps,
            measure=measure,
            checkpoint=(0, 1),
        )
        return end, jax.tree.map(lambda a: a[1:], seen)  # without the start

    def _drive_tool(self, matter: continuum.State, action: Array, frame: Array) -> continuum.State:
        """Set the first tool's velocity for a frame from the action and the script."""
        tool, *others = matter.tools
        script = jnp.asarray(self.script, tool.v.dtype)
        script = jnp.broadcast_to(script, (self.max_steps, tool.v.shape[0]))
        velocity = {"v": script[frame], "spin": jnp.zeros_like(tool.spin)}
        rate = jnp.asarray(self.speed, action.dtype) * action
        for i, name in enumerate(self.controls):
            field, axis = CONTROLS[name]
            velocity[field] = velocity[field].at[axis].add(rate[i])
        duration = self.substeps * jnp.asarray(self.simulation.dt, tool.v.dtype)
        sent = tool.x + duration * velocity["v"]
        # Limit the velocity so that the tool ends the frame inside the workspace.
        v = velocity["v"] + (self.workspace.project(sent) - sent) / duration
        led = dataclasses.replace(tool, v=v, spin=velocity["spin"])
        return dataclasses.replace(matter, tools=(led, *others))

    def _observe(self, state: State) -> Array:
        grid, parts = self.simulation.grid, []
        for body, p in zip(self.simulation.bodies, state.matter.bodies):
            index = np.linspace(0, body.x.shape[0] - 1, self.observed_particles).astype(int)
            for i, a in enumerate(p.x.T):
                parts.append((a.ravel()[index] - grid.lower[i]) / (grid.cells[i] * grid.dx))
            parts += [a.ravel()[index] for a in p.v.T]
        for tool in state.matter.tools:
            x = [(tool.x[i] - grid.lower[i]) / (n * grid.dx) for i, n in enumerate(grid.cells)]
            parts += [jnp.stack(x), tool.turn, tool.v, tool.spin]
        return jnp.concatenate(parts)


@explain_errors
@on_host
def with_soft_contact(
    env: MatterTask, length: Array | float, rate: Array | float = 100.0
) -> MatterTask:
    """Return the task with soft contact of its first tool, as FluidLab plans (arXiv:2303.02346).

    It serves for planning, not for scoring: states are the same, so that a plan found here can be
    played in `env`.

    Args:
        env: any task of matter.
        length: range of the tool's soft contact, m; a cell or two.
        rate: strength, 1/s; see `continuum.SoftContact`.

    >>> from jaxgpu import rl
    >>> soft = with_soft_contact(rl.make("matter/mixing"), length=0.003)
    >>> soft.simulation.colliders[0].soft.length
    0.003
    """
    led, *others = env.simulation.colliders
    tools = (dataclasses.replace(led, soft=SoftContact(length, rate)), *others)
    return dataclasses.replace(env, simulation=dataclasses.replace(env.simulation, colliders=tools))


def masked_mean(quantity: Array, filled: Array) -> Array:
    """Return the mean of a quantity [C, P] over the slots of a mask [C, P].

    Raises:
        TypeError: the mask is not boolean.
        ValueError: the mask is empty.
    """
    if not jnp.issubdtype(jnp.result_type(filled), jnp.bool_):
        raise TypeError(f"masked_mean: filled={format_value(filled)}; it must be a bool array")
    defer_check(_check_not_empty, filled)
    return jnp.sum(jnp.where(filled, quantity, 0)) / jnp.sum(filled).astype(quantity.dtype)


def _check_not_empty(filled: Array) -> None:
    if not np.any(np.asarray(filled)):
        raise ValueError("masked_mean: filled marks no slot; it must mark at least one")
