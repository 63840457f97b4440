"""Static structure of a mechanism: types, parents and addresses, fixed at compile time."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .sensors import Sensor

WIDTH_Q = {"free": 7, "ball": 4, "slide": 1, "hinge": 1}
WIDTH_V = {"free": 6, "ball": 3, "slide": 1, "hinge": 1}


@dataclass(frozen=True)
class PairGroup:
    """Geom pairs that share a collision kernel and a condim."""

    kinds: tuple[str, str]  # types of the first and second geom, or `convex` for any two
    condim: int  # contact dimension
    first: tuple[int, ...]  # geoms
    second: tuple[int, ...]  # geoms
    named: tuple[int, ...]  # index of the `<pair>` in the file, or -1
    window: tuple[int, int] = (0, 0)  # cells of a height field that geoms can overlap, along y, x


@dataclass(frozen=True)
class Layout:
    """Types, parents and addresses of elements: B bodies, J joints, G geoms and so on."""

    body_parent: tuple[int, ...]  # [B]
    body_root: tuple[int, ...]  # [B] root of its tree, a child of the world
    body_weld: tuple[int, ...]  # [B] body that it is welded to, itself if it moves
    body_mocap: tuple[int, ...]  # [B] index of the mocap body, or -1
    sliding: tuple[int, ...]  # bodies with slides only, alone in their tree (body_simple 2)
    joint_kind: tuple[str, ...]  # [J] free, ball, slide, hinge
    joint_body: tuple[int, ...]  # [J]
    joint_limited: tuple[bool, ...]  # [J]
    joint_springy: tuple[bool, ...]  # [J] whether a ball or free joint has a spring
    geom_kind: tuple[str, ...]  # [G]
    geom_body: tuple[int, ...]  # [G]
    geom_hull: tuple[int, ...]  # [G] index of its hull, or -1
    geom_field: tuple[int, ...]  # [G] index of its signed distance, or -1
    geom_ground: tuple[int, ...]  # [G] index of its height field, or -1
    geom_priority: tuple[int, ...]  # [G]
    groups: tuple[PairGroup, ...]  # pairs that can collide
    site_body: tuple[int, ...]  # [S]
    site_kind: tuple[str, ...]  # [S]
    rubbing: tuple[int, ...]  # dofs with friction loss
    tendon_rubbing: tuple[int, ...]  # tendons with friction loss
    tendon_limited: tuple[int, ...]  # tendons with limits
    equality_kind: tuple[str, ...]  # [E] connect, weld, joint, tendon
    equality_first: tuple[int, ...]  # [E] bodies, joints or tendons
    equality_second: tuple[int, ...]  # [E] or -1
    equality_active: tuple[bool, ...]  # [E] at the start
    motor_joint: tuple[int, ...]  # [U] joint of the actuator, or -1
    motor_tendon: tuple[int, ...]  # [U] tendon of the actuator, or -1
    motor_dynamics: tuple[str, ...]  # [U] none, integrator, filter, filterexact
    motor_early: tuple[bool, ...]  # [U] whether the next activation is used, `actearly`
    motor_limited: tuple[tuple[bool, bool, bool], ...]  # [U] limits: control, force, activation
    sensors: tuple[Sensor, ...]  # in file order
    integrator: str  # euler, rk4, implicitfast
    cone: str  # pyramidal, elliptic
    disabled: frozenset[str]  # disable flags of MuJoCo's option
    contacts: int  # maximum number of simultaneous contacts for each condim
    iterations: int  # Newton iterations of the constraint solver
    compliant: bool  # whether contacts are springs and dampers at the end of the step
    has: frozenset[str]  # fluid, gravcomp
    geom_wet: tuple[int, ...]  # geoms with fluid forces as ellipsoids
    names: tuple[tuple[str, tuple[str, ...]], ...]  # by type: body, joint, geom, site, tendon …

    def __post_init__(self) -> None:
        kinds = self.joint_kind
        is_known = lambda kind: isinstance(kind, str) and kind in WIDTH_Q
        if not isinstance(kinds, tuple) or not all(map(is_known, kinds)):
            raise ValueError(
                f"Layout: joint_kind={kinds!r:.80}; it must be a tuple of {', '.join(WIDTH_Q)}"
            )

    @property
    def nbody(self) -> int:
        """The number of bodies, including the world."""
        return len(self.body_parent)

    @property
    def nq(self) -> int:
        """The number of coordinates."""
        return sum(WIDTH_Q[kind] for kind in self.joint_kind)

    @property
    def nv(self) -> int:
        """The number of dofs."""
        return sum(WIDTH_V[kind] for kind in self.joint_kind)

    @property
    def nu(self) -> int:
        """The number of actuators."""
        return len(self.motor_joint)

    @property
    def na(self) -> int:
        """The number of activations."""
        return sum(kind != "none" for kind in self.motor_dynamics)

    # Indices are int32: for an array that outlives a program, jax 0.12 keeps the type that it had
    # there, and a program of the other precision in the same process could not use it.

    @cached_property
    def qposadr(self) -> np.ndarray:
        """Index [J] of the first coordinate of each joint."""
        widths = [WIDTH_Q[kind] for kind in self.joint_kind]
        return np.cumsum([0, *widths])[:-1].astype(np.int32)

    @cached_property
    def dofadr(self) -> np.ndarray:
        """Index [J] of the first dof of each joint."""
        widths = [WIDTH_V[kind] for kind in self.joint_kind]
        return np.cumsum([0, *widths])[:-1].astype(np.int32)

    @cached_property
    def dof_joint(self) -> np.ndarray:
        """Joint [V] of each dof."""
        widths = [WIDTH_V[kind] for kind in self.joint_kind]
        return np.repeat(np.arange(len(widths)), widths).astype(np.int32)

    @cached_property
    def dof_body(self) -> np.ndarray:
        """Body [V] that each dof moves relative to its parent."""
        return np.array(self.joint_body, np.int32)[self.dof_joint]

    @cached_property
    def is_descendant(self) -> np.ndarray:
        """Mask [B, B]: True if body i is body j or a descendant of it; False for the world as j."""
        out = np.eye(self.nbody, dtype=bool)
        for i, parent in enumerate(self.body_parent[1:], start=1):
            out[i] |= out[parent]
        out[:, 0] = False
        return out

    @cached_property
    def moves_body(self) -> np.ndarray:
        """Mask [B, V]: True if a dof moves a body."""
        return self.is_descendant[:, self.dof_body]

    @cached_property
    def ancestor_dofs(self) -> np.ndarray:
        """Mask [V, V]: True if dof j is on the path from the world to dof i, or is i."""
        same = self.dof_body[:, None] == self.dof_body[None]
        order = np.arange(self.nv)
        return (self.moves_body[self.dof_body] & ~same) | (same & (order[None] <= order[:, None]))

    @cached_property
    def carrier_dofs(self) -> np.ndarray:
        """Mask [V, V]: True if dof j, of an earlier joint, carries the axis of dof i.

        Within a joint, only the translations of a free joint carry its rotation axes.
        """
        earlier = self.ancestor_dofs & (self.dof_joint[:, None] != self.dof_joint[None])
        for joint, kind in enumerate(self.joint_kind):
            if kind == "free":
                at = int(self.dofadr[joint])
                earlier[at + 3 : at + 6, at : at + 3] = True
        return earlier

    @cached_property
    def lone_dofs(self) -> np.ndarray:
        """First dofs [n] of free bodies without children."""
        parents = set(self.body_parent)
        alone = [
            kind == "free" and body not in parents
            for kind, body in zip(self.joint_kind, self.joint_body)
        ]
        return self.dofadr[np.flatnonzero(alone)]

    def kinds(self, kind: str) -> np.ndarray:
        """Return the joints of one type."""
        return np.array([j for j, name in enumerate(self.joint_kind) if name == kind], int)

    def element_names(self, kind: str) -> tuple[str, ...]:
        """Return the names of all bodies, joints, geoms, sites, tendons, actuators or keys."""
        return dict(self.names)[kind]
