"""What is where in a mechanism: kinds, parents and addresses, which programs are compiled for."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .sensors import Sensor

WIDTH_Q = {"free": 7, "ball": 4, "slide": 1, "hinge": 1}
WIDTH_V = {"free": 6, "ball": 3, "slide": 1, "hinge": 1}


@dataclass(frozen=True)
class PairGroup:
    """Pairs of shapes that one kernel takes, whose contacts have the same dimension."""

    kinds: tuple[str, str]  # of the first and of the second shape, or `convex` of any two
    condim: int  # dimension of friction
    first: tuple[int, ...]  # geoms
    second: tuple[int, ...]  # geoms
    named: tuple[int, ...]  # the pair of the file, or -1
    window: tuple[int, int] = (0, 0)  # cells of a height field that shapes may reach, along y, x


@dataclass(frozen=True)
class Layout:
    """Kinds, parents and addresses. Numbers of things: bodies B, joints J, geoms G and so on."""

    body_parent: tuple[int, ...]  # [B]
    body_root: tuple[int, ...]  # [B] the body below the world that it hangs on
    body_weld: tuple[int, ...]  # [B] the body that it is fixed to, itself if it moves
    body_mocap: tuple[int, ...]  # [B] which of the placed bodies, or -1
    sliding: tuple[int, ...]  # bodies that slide, do not turn, and neither carry nor are carried
    joint_kind: tuple[str, ...]  # [J] free, ball, slide, hinge
    joint_body: tuple[int, ...]  # [J]
    joint_limited: tuple[bool, ...]  # [J]
    joint_springy: tuple[bool, ...]  # [J] whether a spring of a ball or free joint is counted
    geom_kind: tuple[str, ...]  # [G]
    geom_body: tuple[int, ...]  # [G]
    geom_hull: tuple[int, ...]  # [G] which of the hulls, or -1
    geom_field: tuple[int, ...]  # [G] which of the signed distances, or -1
    geom_ground: tuple[int, ...]  # [G] which of the height fields, or -1
    geom_priority: tuple[int, ...]  # [G]
    groups: tuple[PairGroup, ...]  # pairs that may touch
    site_body: tuple[int, ...]  # [S]
    site_kind: tuple[str, ...]  # [S]
    rubbing: tuple[int, ...]  # freedoms with friction loss
    tendon_rubbing: tuple[int, ...]  # tendons with friction loss
    tendon_limited: tuple[int, ...]  # tendons with limits
    equality_kind: tuple[str, ...]  # [E] connect, weld, joint, tendon
    equality_first: tuple[int, ...]  # [E] bodies, joints or tendons
    equality_second: tuple[int, ...]  # [E] or -1
    equality_active: tuple[bool, ...]  # [E] at the start
    motor_joint: tuple[int, ...]  # [U] the joint that it moves, or -1
    motor_tendon: tuple[int, ...]  # [U] the tendon that it pulls, or -1
    motor_dynamics: tuple[str, ...]  # [U] none, integrator, filter, filterexact
    motor_early: tuple[bool, ...]  # [U] whether the next activation acts at once
    motor_limited: tuple[tuple[bool, bool, bool], ...]  # [U] control, force, activation
    sensors: tuple[Sensor, ...]  # of the file, in its order
    integrator: str  # euler, rk4, implicitfast
    cone: str  # pyramidal, elliptic
    disabled: frozenset[str]  # flags of MuJoCo's option
    contacts: int  # the most contacts of a dimension that are kept at a time
    iterations: int  # Newton turns of the constraint solver
    compliant: bool  # whether contacts are springs and dampers at the end of the step
    has: frozenset[str]  # fluid, gravcomp
    geom_wet: tuple[int, ...]  # geoms that the fluid drags at as ellipsoids
    names: tuple[tuple[str, tuple[str, ...]], ...]  # by kind: body, joint, geom, site, tendon …

    def __post_init__(self) -> None:
        kinds = self.joint_kind
        known = lambda kind: isinstance(kind, str) and kind in WIDTH_Q
        if not isinstance(kinds, tuple) or not all(map(known, kinds)):
            raise ValueError(
                f"Layout: joint_kind={kinds!r:.80}; it must be a tuple of {', '.join(WIDTH_Q)}"
            )

    @property
    def nbody(self) -> int:
        """The number of bodies, with the world."""
        return len(self.body_parent)

    @property
    def nq(self) -> int:
        """The number of coordinates."""
        return sum(WIDTH_Q[kind] for kind in self.joint_kind)

    @property
    def nv(self) -> int:
        """The number of degrees of freedom."""
        return sum(WIDTH_V[kind] for kind in self.joint_kind)

    @property
    def nu(self) -> int:
        """The number of motors."""
        return len(self.motor_joint)

    @property
    def na(self) -> int:
        """The number of activations."""
        return sum(kind != "none" for kind in self.motor_dynamics)

    # Places are numbers of 32 bits: jax 0.12 keeps the type that an array which outlives a program
    # had there, and a program of the other precision in the same process could not take them.

    @cached_property
    def joint_q(self) -> np.ndarray:
        """[J] where a joint's coordinates begin."""
        widths = [WIDTH_Q[kind] for kind in self.joint_kind]
        return np.cumsum([0, *widths])[:-1].astype(np.int32)

    @cached_property
    def joint_v(self) -> np.ndarray:
        """[J] where a joint's degrees of freedom begin."""
        widths = [WIDTH_V[kind] for kind in self.joint_kind]
        return np.cumsum([0, *widths])[:-1].astype(np.int32)

    @cached_property
    def freedom_joint(self) -> np.ndarray:
        """[V] the joint of each degree of freedom."""
        widths = [WIDTH_V[kind] for kind in self.joint_kind]
        return np.repeat(np.arange(len(widths)), widths).astype(np.int32)

    @cached_property
    def freedom_body(self) -> np.ndarray:
        """[V] the body that each degree of freedom moves."""
        return np.array(self.joint_body, np.int32)[self.freedom_joint]

    @cached_property
    def below(self) -> np.ndarray:
        """[B, B] whether body i is body j or hangs below it; the world holds none."""
        out = np.eye(self.nbody, dtype=bool)
        for i, parent in enumerate(self.body_parent[1:], start=1):
            out[i] |= out[parent]
        out[:, 0] = False
        return out

    @cached_property
    def moves(self) -> np.ndarray:
        """[B, V] whether a degree of freedom moves a body."""
        return self.below[:, self.freedom_body]

    @cached_property
    def before(self) -> np.ndarray:
        """[V, V] whether freedom j lies on the way from the world to i, or is i."""
        same = self.freedom_body[:, None] == self.freedom_body[None]
        order = np.arange(self.nv)
        return (self.moves[self.freedom_body] & ~same) | (same & (order[None] <= order[:, None]))

    @cached_property
    def turned_by(self) -> np.ndarray:
        """[V, V] whether freedom j carries the axis of i along: those of joints before its own.

        The turns of a free joint are carried by its shifts, those of a ball by none of its own.
        """
        earlier = self.before & (self.freedom_joint[:, None] != self.freedom_joint[None])
        for joint, kind in enumerate(self.joint_kind):
            if kind == "free":
                at = int(self.joint_v[joint])
                earlier[at + 3 : at + 6, at : at + 3] = True
        return earlier

    @cached_property
    def lone(self) -> np.ndarray:
        """[n] where the freedoms of bodies begin that fly free and carry nothing."""
        parents = set(self.body_parent)
        alone = [
            kind == "free" and body not in parents
            for kind, body in zip(self.joint_kind, self.joint_body)
        ]
        return self.joint_v[np.flatnonzero(alone)]

    def kinds(self, kind: str) -> np.ndarray:
        """The joints of one kind."""
        return np.array([j for j, name in enumerate(self.joint_kind) if name == kind], int)

    def named(self, kind: str) -> tuple[str, ...]:
        """The names of all bodies, joints, geoms, sites, tendons, actuators or keys."""
        return dict(self.names)[kind]
