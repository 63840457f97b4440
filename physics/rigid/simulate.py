"""Steps in time: semi-implicit Euler, in which motors, springs, damping and limits are implicit.

    (M + h D + h^2 K) dv = h (force - bias + K (target - q - h v) - D v),   q' = q + h (v + dv)

K and D sum the motors' gains, the joints' springs and damping, and the limits that the motion runs
into. Linear forces are taken at the end of the step, so no gain is too stiff for the step; the
method is of first order and, without such forces, symplectic in the limit of small steps. With
K = 0 it is MuJoCo's Euler integrator.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.pytree import number, pytree
from jaxgpu.ranges import check, numbers

from .dynamics import forward
from .kinematics import check_position, check_rows, lift, rows
from .links import FREEDOMS
from .mobility import check_inertia
from .tree import Tree, check_tree


@pytree
class Drive:
    """A motor on each degree of freedom: stiffness (target - q) - damping v."""

    stiffness: Array = number(least=0)  # [N] N m/rad or N/m; 0 on free joints
    damping: Array = number(least=0)  # [N] N m s/rad or N s/m


@pytree
class Simulation:
    """What is simulated, and in which steps."""

    tree: Tree
    drive: Drive
    dt: Array | float = number(default=0.005, above=0, unit="s")  # [] s
    limit_stiffness: Array | float = number(default=1e4, least=0)  # [] of the stops, N m/rad or N/m
    limit_damping: Array | float = number(default=1e2, least=0)  # [] at a stop, N m s/rad or N s/m


@pytree
class State:
    """Where the mechanism is."""

    q: Array  # [Q] coordinates, rad or m; batch axes may follow
    v: Array  # [N] velocities, rad/s or m/s


def passive(tree: Tree) -> Drive:
    """No motors."""
    check_tree("passive", tree)
    return Drive(jnp.zeros_like(tree.damping), jnp.zeros_like(tree.damping))


def init(spec: Simulation, batch: tuple[int, ...] = ()) -> State:
    """At rest at q = 0, free links where they were put; `batch` copies along trailing axes.

    Raises:
        ValueError: a number of the spec outside its range, motors for another number of freedoms,
            or a link that moves without inertia.
    """
    check_simulation("init", spec)
    if not isinstance(batch, tuple) or not all(isinstance(n, int) and n > 0 for n in batch):
        raise ValueError(f"init: batch={batch!r}; it must be a tuple of whole numbers above 0")
    tree = spec.tree
    q = lift(tree.rest_position, jnp.zeros((1, *batch)))
    q = jnp.broadcast_to(q, (tree.coordinates, *batch))
    return State(q, jnp.zeros((tree.freedoms, *batch), q.dtype))


def check_simulation(name: str, spec: Simulation) -> None:
    """Raise one sentence, which begins with `name`, if the spec cannot be simulated."""
    check(name, spec)
    tree, drive, h = spec.tree, spec.drive, spec.dt
    check_tree(name, tree)
    for field in ("dt", "limit_stiffness", "limit_damping"):
        if jnp.size(getattr(spec, field)) == 0:
            raise ValueError(f"{name}: Simulation.{field} is empty; it must be a number")
    for gain in ("stiffness", "damping"):
        numbers(f"{name}: Drive.{gain}", getattr(drive, gain), (tree.freedoms,))
    if not any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves((tree, drive, h))):
        stiffness, damping = (
            np.asarray(a, float) + np.asarray(b, float)
            for a, b in ((drive.stiffness, tree.stiffness), (drive.damping, tree.damping))
        )
        h = float(np.max(h))
        check_inertia(name, tree, h * damping + h * h * stiffness)


def step(
    spec: Simulation, state: State, target: Array | None = None, force: Array | None = None
) -> State:
    """Advance by `dt`.

    Args:
        spec: mechanism, motors and step.
        state: where it is.
        target: of the motors [N, ...], rad or m; zero where it is left out.
        force: further forces on the degrees of freedom [N, ...], N m or N, held over the step.

    Differentiable in everything; at a stop's first touch the derivative has a jump.

    >>> from jaxgpu.physics.rigid import Link, assemble
    >>> falling = Simulation(tree := assemble([Link(-1, "prismatic")]), passive(tree), 0.1)
    >>> round(float(step(falling, init(falling)).v[0]), 5)
    -0.981
    """
    check_simulation("step", spec)
    tree, h = spec.tree, spec.dt
    q, v = check_position("step", tree, state.q), check_rows("step", "v", state.v, tree.freedoms)
    if target is not None:
        target = check_rows("step", "target", target, tree.freedoms)
    if force is not None:
        force = check_rows("step", "force", force, tree.freedoms)
    now = rows(q, _coordinate_of(tree))
    soon = now + h * v
    stiffness, damping = lift(spec.drive.stiffness, v), lift(spec.drive.damping, v)
    total = stiffness * ((0.0 if target is None else target) - soon) - damping * v
    spring = lift(tree.stiffness, v)
    total = total + spring * (lift(tree.rest, v) - soon) - lift(tree.damping, v) * v

    lower, upper = lift(tree.lower, v), lift(tree.upper, v)
    low, high = soon < lower, soon > upper
    stopped = jnp.where(low | high, jnp.ones_like(v), 0.0)
    depth = jnp.where(low, lower - soon, jnp.where(high, upper - soon, 0.0))
    total = total + spec.limit_stiffness * depth - spec.limit_damping * stopped * v

    K = stiffness + spring + spec.limit_stiffness * stopped
    D = damping + lift(tree.damping, v) + spec.limit_damping * stopped
    total = total if force is None else total + force
    v = v + h * forward(tree, q, v, total, h * D + h * h * K)
    return State(integrate(tree, q, v, h), v)


def integrate(tree: Tree, q: Array, v: Array, h: Any) -> Array:
    """Coordinates after moving with the velocities `v` [N, ...] for the time `h`."""
    if "free" not in tree.joint:
        return q + h * v
    parts, freedom = [], 0
    for joint, start in zip(tree.joint, tree.starts):
        move = h * v[freedom : freedom + FREEDOMS[joint]]
        freedom += FREEDOMS[joint]
        if joint == "free":
            parts += [q[start : start + 3] + move[:3], _turn(q[start + 3 : start + 7], move[3:])]
        else:
            parts.append(q[start : start + 1] + move)
    return jnp.concatenate(parts)


def _turn(quaternion: Array, angle: Array) -> Array:
    """The quaternion after a turn by the rotation vector `angle`, in the body's axes."""
    square = jnp.sum(angle * angle, 0)
    turning = square > jnp.finfo(square.dtype).tiny ** 0.5
    half = jnp.sqrt(jnp.where(turning, square, 1.0)) / 2
    s = jnp.where(turning, jnp.sin(half) / (2 * half), 0.5)  # sin(|a|/2) / |a|
    w, (x, y, z) = jnp.where(turning, jnp.cos(half), 1.0), s[None] * angle
    a, b, c, d = quaternion
    new = jnp.stack(
        [
            a * w - b * x - c * y - d * z,
            a * x + b * w + c * z - d * y,
            a * y - b * z + c * w + d * x,
            a * z + b * y - c * x + d * w,
        ]
    )
    return new / jnp.sqrt(jnp.sum(new * new, 0))[None]


def _coordinate_of(tree: Tree) -> np.ndarray:
    """The coordinate that motors, springs and stops see, [N]; on free joints they see none."""
    pairs = zip(tree.starts, tree.joint)
    return np.concatenate([start + np.arange(FREEDOMS[joint]) for start, joint in pairs])
