"""Growth and validity of a rollout's gradient on its way back through time.

Chaotic or stiff motion makes the adjoint grow by a factor per frame until a gradient is exact but
useless (Metz, Freeman, Schoenholz & Kachman 2021, arXiv:2111.05803, section 3), and one derivative
that is not finite spoils all before it. `examine` measures both: at the start of each frame the
state passes through an identity, whose reverse rule passes the adjoint on and records its size.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.devices.precision import safe_tiny
from jaxgpu.inputs.explanations import explain_errors, on_host
from jaxgpu.inputs.fields import pytree
from jaxgpu.runs.program import call_checked

from .particles import State
from .scene import Scene
from .trajectory import Drive, count_frames, rollout


@pytree
class GradientHealth:
    """Norms of the derivative of a loss in the state at the start of each frame."""

    x: Array  # [T] norm of dloss/dx over particles and axes, loss / m
    v: Array  # [T] norm of dloss/dv, loss s / m
    broken: Array  # [T] number of non-finite entries of the state's derivative
    span: Array  # [] duration of a frame, s

    @property
    def growth(self) -> Array:
        """Growth rate backwards in time [1/s]: least-squares fit of log |dloss/dv|.

        Above a few over the length of the rollout, shorten the rollout or extend it stepwise.
        """
        back = -self.span * jnp.arange(self.v.shape[0], dtype=self.v.dtype)
        back = back - jnp.mean(back)
        size = jnp.log(jnp.maximum(self.v, safe_tiny(self.v.dtype)))
        return jnp.sum(back * size) / jnp.sum(back * back)

    @property
    def broken_frame(self) -> Array:
        """Last frame [] with a broken derivative at its start, the origin of all; -1 if none."""
        frames = jnp.arange(self.broken.shape[0], dtype=jnp.int32)
        return jnp.max(jnp.where(self.broken > 0, frames, -1))


@explain_errors
@on_host
def examine(
    scene: Scene,
    state: State,
    controls: Any,
    drive: Drive,
    loss: Callable[[State, Any], Array],
    **options: Any,
) -> tuple[Array, Any, GradientHealth]:
    """Return a loss, its gradient in the controls, and a `GradientHealth`; jit the caller.

    Args:
        scene, state, controls, drive: as in `rollout`.
        loss: scalar function of the last state and the measurements [1 + T, ...].
        options: substeps and the other options of `rollout`.
    Returns:
        the loss, its gradient shaped as the controls, and a `GradientHealth`, at the cost of the
        gradient.

    >>> from dataclasses import replace
    >>> from jaxgpu.physics.continuum import Body, Grid, Liquid
    >>> scene = Scene((Body(jnp.ones((1, 2)), Liquid(), volume=1e-4),), Grid(0.2, (9, 9))).prepare()
    >>> push = lambda scene, state, g: (replace(scene, gravity=(g, 0.0)), state)
    >>> place = lambda state, _: state.bodies[0].x[0, 0]
    >>> _, slope, health = examine(scene, scene.init(), jnp.zeros(3), push, place, substeps=2)
    >>> [round(float(a), 3) for a in health.v / scene.dt]  # what a velocity moves: the steps left
    [6.0, 4.0, 2.0]
    """
    frames = count_frames(scene, controls)
    zeros = jnp.zeros((frames, 3), state.t.dtype)

    def probed_drive(scene: Scene, state: State, tapped: Any) -> tuple[Scene, State]:
        control, probe = tapped
        return drive(scene, _tap(state, probe), control)

    def total_loss(controls: Any, probes: Array) -> Array:
        end, history = rollout(scene, state, (controls, probes), probed_drive, **options)
        return call_checked("examine: loss", loss, end, history)

    value, (slope, sizes) = jax.value_and_grad(total_loss, (0, 1))(controls, zeros)
    span = options["substeps"] * jnp.asarray(scene.dt, state.t.dtype)
    x, v = jnp.sqrt(sizes[:, :2]).T
    return value, slope, GradientHealth(x=x, v=v, broken=sizes[:, 2], span=span)


@jax.custom_vjp
def _tap(state: State, probe: Array) -> State:
    """Return the state; in reverse, the probe [3] receives the adjoint's squares and faults."""
    return state


def _tap_forward(state: State, probe: Array):
    return state, None


def _tap_backward(_, adjoint: State):
    dtype = adjoint.t.dtype
    squares = lambda arrays: sum(jnp.sum(a * a) for a in arrays)
    x, v = (sum(squares(getattr(b.chunks, name)) for b in adjoint.bodies) for name in ("x", "v"))
    floats = [a for a in jax.tree.leaves(adjoint) if jnp.issubdtype(a.dtype, jnp.floating)]
    broken = sum(jnp.sum(~jnp.isfinite(a), dtype=jnp.int32) for a in floats)
    return adjoint, jnp.stack([x, v, jnp.asarray(broken, dtype)])


_tap.defvjp(_tap_forward, _tap_backward)
