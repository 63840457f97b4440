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
from jax.core import Tracer

from jaxgpu.doors import explained
from jaxgpu.geometry import rotations
from jaxgpu.pytree import number, pytree
from jaxgpu.ranges import check, numbers

from .dynamics import accelerations
from .kinematics import (
    batch_first,
    check_position,
    check_rows,
    forward_kinematics,
    lift,
    rows,
)
from .links import DOFS
from .mobility import check_inertia
from .tree import Tree, check_tree


@pytree
class Drive:
    """A motor on each degree of freedom: stiffness (target - q) - damping v."""

    stiffness: Array = number(least=0)  # [N] N m/rad or N/m; 0 on free joints
    damping: Array = number(least=0)  # [N] N m s/rad or N s/m


@pytree
class State:
    """Where the mechanism is."""

    q: Array  # [..., Q] coordinates, rad or m; batch axes lead
    v: Array  # [..., N] velocities, rad/s or m/s


@pytree
class Simulation:
    """What is simulated, and in which steps: a mechanism with motors and stops.

    >>> from jaxgpu.physics.rigid import Link, assemble
    >>> falling = Simulation(tree := assemble([Link(-1, "prismatic")]), passive(tree), 0.1)
    >>> round(float(falling.step(falling.init()).v[0]), 5)
    -0.981
    """

    tree: Tree
    drive: Drive
    dt: Array | float = number(default=0.005, above=0, unit="s")  # [] s
    limit_stiffness: Array | float = number(default=1e4, least=0)  # [] of the stops, N m/rad or N/m
    limit_damping: Array | float = number(default=1e2, least=0)  # [] at a stop, N m s/rad or N s/m

    def init(self, batch: tuple[int, ...] = ()) -> State:
        """The state at rest at q = 0, free links where they were put; `batch` copies lead.

        Raises:
            ValueError: a number of the spec outside its range, motors for another number of degrees
                of freedom, or a link that moves without inertia.
        """
        check_simulation("Simulation.init", self)
        if not isinstance(batch, tuple) or not all(isinstance(n, int) and n > 0 for n in batch):
            raise ValueError(
                f"Simulation.init: batch={batch!r}; it must be a tuple of whole numbers above 0"
            )
        q = self.tree.rest_position
        q = jnp.broadcast_to(q.reshape((1,) * len(batch) + q.shape), (*batch, self.tree.nq))
        return State(q, jnp.zeros((*batch, self.tree.nv), q.dtype))

    def step(self, state: State, target: Any = None, force: Any = None) -> State:
        """The state after `dt`.

        Args:
            state: where it is.
            target: of the motors [..., N] or [N] for all copies, rad or m; zero by default.
            force: further forces on the degrees of freedom, N m or N, held over the step, of the
                same shapes.

        Differentiable in everything; at a stop's first touch the derivative has a jump.
        """
        name, tree, h = "Simulation.step", self.tree, self.dt
        check_simulation(name, self)
        q, v = check_position(name, tree, state.q), check_rows(name, "v", state.v, tree.nv)
        if target is not None:
            target = _for_all(check_rows(name, "target", target, tree.nv), v)
        if force is not None:
            force = _for_all(check_rows(name, "force", force, tree.nv), v)
        total, implicit = self._forces(q, v, target)
        total = total if force is None else total + force
        v = v + h * accelerations(tree, q, v, total, implicit)
        return State(batch_first(integrate(tree, q, v, h)), batch_first(v))

    def view(self, state: State) -> dict[str, tuple[Array, Array]]:
        """What `jaxgpu.show` shows at a state: ends [..., 2 L, 3] of the L links, m.

        A link goes from its parent's origin to its own, and on to its centre of mass.
        """
        tree = self.tree
        frames = forward_kinematics(tree, state.q)
        parent = np.array([i if above < 0 else above for i, above in enumerate(tree.parent)])
        com = jnp.broadcast_to(tree.com, frames.x.shape)
        centre = frames.x + jnp.sum(frames.R * com[..., None, :], -1)
        start = jnp.concatenate([frames.x[..., parent, :], frames.x], -2)
        return {"links": (start, jnp.concatenate([frames.x, centre], -2))}

    def _forces(self, q: Array, v: Array, target: Array | None) -> tuple[Array, Array]:
        """Of motors, springs, damping and stops at the end of the step, batch axes last: [N, ...].

        And h D + h^2 K, what an implicit step adds to the diagonal of the mass matrix for them.
        """
        tree, h = self.tree, self.dt
        now = rows(q, _coordinate_of(tree))
        soon = now + h * v
        stiffness, damping = lift(self.drive.stiffness, v), lift(self.drive.damping, v)
        total = stiffness * ((0.0 if target is None else target) - soon) - damping * v
        spring = lift(tree.stiffness, v)
        total = total + spring * (lift(tree.rest, v) - soon) - lift(tree.damping, v) * v

        lower, upper = lift(tree.lower, v), lift(tree.upper, v)
        low, high = soon < lower, soon > upper
        stopped = jnp.where(low | high, jnp.ones_like(v), 0.0)
        depth = jnp.where(low, lower - soon, jnp.where(high, upper - soon, 0.0))
        total = total + self.limit_stiffness * depth - self.limit_damping * stopped * v

        K = stiffness + spring + self.limit_stiffness * stopped
        D = damping + lift(tree.damping, v) + self.limit_damping * stopped
        return total, h * D + h * h * K


@explained
def passive(tree: Tree) -> Drive:
    """No motors."""
    check_tree("passive", tree)
    return Drive(jnp.zeros_like(tree.damping), jnp.zeros_like(tree.damping))


def check_simulation(name: str, spec: Simulation) -> None:
    """Raise one sentence, which begins with `name`, if the spec cannot be simulated."""
    check(name, spec)
    tree, drive, h = spec.tree, spec.drive, spec.dt
    check_tree(name, tree)
    for field in ("dt", "limit_stiffness", "limit_damping"):
        if jnp.size(getattr(spec, field)) == 0:
            raise ValueError(f"{name}: Simulation.{field} is empty; it must be a number")
    for gain in ("stiffness", "damping"):
        numbers(f"{name}: Drive.{gain}", getattr(drive, gain), (tree.nv,))
    if not any(isinstance(x, Tracer) for x in jax.tree.leaves((tree, drive, h))):
        stiffness, damping = (
            np.asarray(a, float) + np.asarray(b, float)
            for a, b in ((drive.stiffness, tree.stiffness), (drive.damping, tree.damping))
        )
        h = float(np.max(np.asarray(h)))
        check_inertia(name, tree, h * damping + h * h * stiffness)


def integrate(tree: Tree, q: Array, v: Array, h: Any) -> Array:
    """Coordinates [Q, ...] after moving with the velocities `v` [N, ...] for the time `h`."""
    if "free" not in tree.joint:
        return q + h * v
    parts, freedom = [], 0
    for joint, start in zip(tree.joint, tree.starts):
        move = h * v[freedom : freedom + DOFS[joint]]
        freedom += DOFS[joint]
        if joint == "free":
            parts += [q[start : start + 3] + move[:3], _turn(q[start + 3 : start + 7], move[3:])]
        else:
            parts.append(q[start : start + 1] + move)
    return jnp.concatenate(parts)


def _turn(quaternion: Array, angle: Array) -> Array:
    """The quaternion after a turn by the rotation vector `angle`, in the body's axes."""
    return rotations.unit(jnp.stack(rotations.product(quaternion, rotations.from_vector(angle))))


def _for_all(x: Array, like: Array) -> Array:
    """`x` [N] or [N, ...batch], with axes of length one where it has no batch axes."""
    return lift(x, like) if x.ndim == 1 else x


def _coordinate_of(tree: Tree) -> np.ndarray:
    """The coordinate that motors, springs and stops see, [N]; on free joints they see none."""
    pairs = zip(tree.starts, tree.joint)
    return np.concatenate([start + np.arange(DOFS[joint]) for start, joint in pairs])
