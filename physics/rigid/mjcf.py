"""Reading mechanisms from MuJoCo's XML (MJCF): bodies, joints, inertias and geoms' masses.

What is read follows the XML reference of MuJoCo. Whatever would change the motion and is not
known here is refused by name; what only looks (materials, lights, cameras, sites) is passed over.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any
from xml.etree import ElementTree

import jax.numpy as jnp
import numpy as np

from jaxgpu.physics.rigid.solids import Solid, solid, weld
from jaxgpu.physics.rigid.tree import Link, Tree, assemble

_PASSED_OVER = {"asset", "visual", "statistic", "size", "sensor", "keyframe", "custom"}
_IN_BODY = {"body", "joint", "freejoint", "inertial", "geom", "site", "light", "camera"}
_KNOWN = {
    "body": {"name", "pos", "quat", "axisangle"},
    "joint": {"name", "type", "pos", "axis", "range", "limited", "armature", "damping"}
    | {"stiffness", "springref", "group"},
    "freejoint": {"name", "group"},
    "inertial": {"pos", "quat", "mass", "diaginertia", "fullinertia"},
    "geom": {"name", "type", "size", "pos", "quat", "axisangle", "fromto", "mass", "density"}
    | {"rgba", "material", "group", "contype", "conaffinity"},
    "compiler": {"angle", "autolimits"},
    "option": {"gravity", "timestep", "integrator", "flag"},
}
_JOINTS = {"hinge": "revolute", "slide": "prismatic", "free": "free"}


@dataclass
class _Reader:
    ignore: frozenset[str]
    radians: bool = False
    autolimits: bool = True
    links: list[Link] = field(default_factory=list)
    solids: list[list[Solid]] = field(default_factory=list)


def from_mjcf(text: str, ignore: Collection[str] = (), dtype: Any = jnp.float32) -> Tree:
    """Read a mechanism from the text of an MJCF file.

    Args:
        text: XML, `<mujoco>` at its root.
        ignore: names of elements and attributes to leave out although they would change the motion,
            such as "actuator", whose gains go into `Drive`, or "contact".
        dtype: of the tree's arrays.

    Raises:
        ValueError: not MJCF, or the first element or attribute that is not supported, by name.

    >>> tree = from_mjcf('''<mujoco><worldbody><body><joint name="hip" axis="0 1 0"/>
    ... <geom size="0.1" mass="2"/></body></worldbody></mujoco>''')
    >>> tree.names, float(tree.mass[0])
    (('hip',), 2.0)
    """
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise ValueError(f"from_mjcf: not XML ({error}); give the text of an MJCF file") from None
    if root.tag != "mujoco":
        raise ValueError(f"from_mjcf: the root is <{root.tag}>; it must be <mujoco>")
    reader, gravity, worlds = _Reader(frozenset(ignore)), np.array([0, 0, -9.81]), []
    for part in root:
        if part.tag == "compiler":
            _check(reader, part)
            reader.radians = part.get("angle", "degree") == "radian"
            reader.autolimits = part.get("autolimits", "true") == "true"
        elif part.tag == "option":
            _check(reader, part)
            gravity = _numbers(part, "gravity", gravity)
        elif part.tag == "worldbody":
            worlds.append(part)
        elif part.tag not in _PASSED_OVER | reader.ignore:
            raise _unsupported(f"<{part.tag}>")
    for world in worlds:
        _read_children(reader, world, -1, np.eye(3), np.zeros(3))
    links = [replace(a, **weld(parts)) for a, parts in zip(reader.links, reader.solids)]
    return assemble(links, gravity.tolist(), dtype)


def _read_children(reader: _Reader, body: Any, link: int, R: np.ndarray, p: np.ndarray) -> None:
    """Read the bodies in `body`, whose frame lies at R, p in the frame of `link`."""
    for child in body:
        if child.tag not in _IN_BODY | reader.ignore:
            raise _unsupported(f"<{child.tag}> in a body")
        if child.tag == "body" and child.tag not in reader.ignore:
            _read_body(reader, child, link, R, p)


def _read_body(reader: _Reader, body: Any, link: int, R: np.ndarray, p: np.ndarray) -> None:
    _check(reader, body)
    p = p + R @ _numbers(body, "pos", np.zeros(3))
    R = R @ orientation(body, reader.radians)
    for joint in body:
        if joint.tag in ("joint", "freejoint"):
            _check(reader, joint)
            anchor = _numbers(joint, "pos", np.zeros(3))
            reader.links.append(_read_joint(reader, joint, link, R, p + R @ anchor))
            reader.solids.append([])
            link, R, p = len(reader.links) - 1, np.eye(3), -anchor
    if link >= 0:  # what is fixed to the world does not move
        reader.solids[link] += [part.moved(R, p) for part in _read_inertia(reader, body)]
    _read_children(reader, body, link, R, p)


def _read_joint(reader: _Reader, joint: Any, parent: int, R: np.ndarray, p: np.ndarray) -> Link:
    kind = "free" if joint.tag == "freejoint" else joint.get("type", "hinge")
    if kind not in _JOINTS:
        raise _unsupported(f'<joint type="{kind}">')
    if kind == "free":
        return Link(parent, "free", name=joint.get("name", ""))
    limited = joint.get("limited", "auto")
    if limited == "auto":
        limited = "true" if reader.autolimits and joint.get("range") else "false"
    angle = 1.0 if reader.radians or kind == "slide" else np.pi / 180
    limits = _numbers(joint, "range", np.zeros(2)) * angle
    lower, upper = limits.tolist() if limited == "true" else (-np.inf, np.inf)
    return Link(
        parent,
        _JOINTS[kind],
        axis=_numbers(joint, "axis", np.array([0.0, 0.0, 1.0])).tolist(),
        position=p.tolist(),
        rotation=R,
        armature=float(joint.get("armature", 0)),
        damping=float(joint.get("damping", 0)),
        stiffness=float(joint.get("stiffness", 0)),
        rest=float(joint.get("springref", 0)) * angle,
        lower=lower,
        upper=upper,
        name=joint.get("name", ""),
    )


def _read_inertia(reader: _Reader, body: Any) -> list[Solid]:
    """The `inertial` element of a body or, where it has none, those of its geoms."""
    for inertial in body.findall("inertial"):
        _check(reader, inertial)
        I = np.diag(_numbers(inertial, "diaginertia", np.zeros(3)))
        if inertial.get("fullinertia"):
            xx, yy, zz, xy, xz, yz = _numbers(inertial, "fullinertia", np.zeros(6))
            I = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        one = Solid(float(inertial.get("mass", 0)), np.zeros(3), I)
        R = orientation(inertial, reader.radians)
        return [one.moved(R, _numbers(inertial, "pos", np.zeros(3)))]
    return [_read_geom(reader, geom) for geom in body.findall("geom")]


def _read_geom(reader: _Reader, geom: Any) -> Solid:
    _check(reader, geom)
    size = _numbers(geom, "size", np.zeros(0))
    p, R = _numbers(geom, "pos", np.zeros(3)), orientation(geom, reader.radians)
    kind = geom.get("type", "sphere")
    if geom.get("fromto"):
        ends = _numbers(geom, "fromto", np.zeros(6))
        p, along = (ends[:3] + ends[3:]) / 2, ends[3:] - ends[:3]
        half = np.linalg.norm(along) / 2
        size = np.array([size[0], half])
        R = _towards(along / (2 * half))
    mass = geom.get("mass")
    density = float(geom.get("density", 1000))
    return solid(kind, size, None if mass is None else float(mass), density).moved(R, p)


def orientation(element: Any, radians: bool) -> np.ndarray:
    """The rotation matrix of an element's `quat` (w x y z) or `axisangle`, else no rotation."""
    if element.get("axisangle"):
        *axis, angle = _numbers(element, "axisangle", np.zeros(4))
        half = angle * (1 if radians else np.pi / 180) / 2
        w, v = np.cos(half), np.sin(half) * np.array(axis) / np.linalg.norm(axis)
    else:
        w, *v = _numbers(element, "quat", np.array([1.0, 0, 0, 0]))
        norm = np.sqrt(w * w + np.dot(v, v))
        w, v = w / norm, np.array(v) / norm
    K = np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
    return np.eye(3) + 2 * w * K + 2 * K @ K


def _towards(z: np.ndarray) -> np.ndarray:
    """A rotation that takes the z axis to the unit vector `z`."""
    x = np.cross(np.eye(3)[np.argmin(np.abs(z))], z)
    x = x / np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z], 1)


def _numbers(element: Any, name: str, default: np.ndarray) -> np.ndarray:
    given = element.get(name)
    return default if given is None else np.array(given.split(), float)


def _check(reader: _Reader, element: Any) -> None:
    known = _KNOWN["joint" if element.tag == "freejoint" else element.tag]
    for name in element.keys():
        if name not in known | reader.ignore:
            raise _unsupported(f'<{element.tag} {name}="{element.get(name)}">')


def _unsupported(what: str) -> ValueError:
    name = what.strip("<>").split()[-1].partition("=")[0] if "=" in what else what.strip("<>")
    return ValueError(
        f"from_mjcf: {what} is not supported; remove it, or leave it out with ignore=({name!r},)"
    )
