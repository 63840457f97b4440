"""Errors for features of MuJoCo that change the motion and are not simulated here."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..collision.kernels import num_contacts
from .layout import Layout

_ENABLE = {0: "override", 3: "invdiscrete", 4: "sleep", 5: "diagexact", 6: "ipc", 7: "speculative"}


def check_features(m: Any) -> None:
    """Raise an error that names the first unsupported feature that would change the motion."""
    for what, instead in _unsupported_features(m):
        raise ValueError(f"load: {what} is not supported; {instead}")


def check_pairs(layout: Layout) -> None:
    """Raise an error that names two geoms that can collide and have no collision kernel."""
    for group in layout.groups:
        if num_contacts(group.kinds) is not None:
            continue
        names = layout.element_names("geom")
        ends = (names[i] or f"number {i}" for i in (group.first[0], group.second[0]))
        raise ValueError(
            f"load: contact of a {group.kinds[0]} and a {group.kinds[1]} (geoms "
            f"{' and '.join(ends)}) is not supported; exclude it by contype, conaffinity or "
            "<exclude>, name a mesh in sdf, or use other shapes"
        )


def _unsupported_features(m: Any) -> Iterator[tuple[str, str]]:
    take_out = "remove it from the file"
    for count, what in (
        (m.nflex, "a flexible body (flex, composite)"),
        (m.nplugin, "a plugin"),
        (m.nplastic, "a plastic joint or tendon"),
        (m.nhistory, "a delay"),
    ):
        if count:
            yield what, take_out
    yield from _unsupported_options(m, take_out)
    yield from _unsupported_actuators(m, take_out)
    yield from _unsupported_joints(m, take_out)
    yield from _unsupported_contacts(m)
    for tendon in range(m.ntendon):
        start = m.tendon_adr[tendon]
        kinds = m.wrap_type[start : start + m.tendon_num[tendon]]
        if (kinds != 1).any():
            yield f"the spatial tendon {m.tendon(tendon).name!r}", "make it a fixed one"
    for i, kind in enumerate(m.eq_type):
        if kind > 3:
            yield f"the equality {i} of flexible bodies", take_out
        elif kind < 2 and m.eq_objtype[i] != 1:
            yield f"the equality {i} between sites", "name bodies and anchors instead"


def _unsupported_options(m: Any, take_out: str) -> Iterator[tuple[str, str]]:
    if m.opt.integrator not in (0, 1, 3):
        yield "this integrator", 'choose "Euler", "RK4" or "implicitfast"'
    if m.opt.noslip_iterations:
        yield "noslip_iterations", "set it to 0, and impratio higher"
    for bit, name in _ENABLE.items():
        if m.opt.enableflags & (1 << bit):
            yield f"the flag {name}", take_out
    if m.opt.disableactuator:
        yield "actuatorgroupdisable", take_out


def _unsupported_actuators(m: Any, take_out: str) -> Iterator[tuple[str, str]]:
    for i in range(m.nu):
        name = f"the actuator {m.actuator(i).name or i!r}"
        if m.actuator_trntype[i] not in (0, 1, 3):
            yield f"{name}, which moves no joint and no fixed tendon,", "move a joint"
        elif m.actuator_trntype[i] < 2 and m.jnt_type[m.actuator_trnid[i, 0]] < 2:
            yield f"{name} on a ball or free joint", "move hinges or slides"
        if m.actuator_gaintype[i] > 1 or m.actuator_biastype[i] > 1:
            yield f"{name}, a muscle or user-defined actuator,", "give it an affine gain and bias"
        if m.actuator_dyntype[i] > 3:
            yield f"the dynamics of {name}", 'choose "none", "integrator" or "filter"'
    for field in ("armature", "damping"):
        if np.any(getattr(m, f"actuator_{field}")):
            yield f"{field} of an actuator", "give it to the joint"


def _unsupported_joints(m: Any, take_out: str) -> Iterator[tuple[str, str]]:
    for what in ("jnt_stiffnesspoly", "dof_dampingpoly", "tendon_stiffnesspoly"):
        if np.any(getattr(m, what)):
            yield "a spring or damper that is not linear", "give one number"
    for what in ("jnt_actfrclimited", "tendon_actfrclimited"):
        if np.any(getattr(m, what)):
            yield "actuatorfrcrange", "give the actuators a forcerange"
    if np.any(m.tendon_armature):
        yield "armature of a tendon", take_out
    if np.any(m.jnt_springyield) or np.any(m.tendon_springyield):
        yield "springyield", take_out


def _unsupported_contacts(m: Any) -> Iterator[tuple[str, str]]:
    if np.any(m.geom_adhesion) or np.any(m.geom_surfacevel):
        yield "adhesion or a moving surface", "remove it from the file"
    if np.any(m.geom_gap) or np.any(m.pair_gap):
        yield "a gap of contacts", "give a smaller margin"
