"""Reading mechanisms from MuJoCo's XML (MJCF): bodies, joints, inertias and geoms' masses.

What is read follows the XML reference of MuJoCo. Whatever would change the motion and is not known
here is refused by name (`mjcf_attributes`), contact of geoms too (`mjcf_contact`). Defaults are
written out before (`mjcf_defaults`); what only looks (materials, lights, cameras, sites) is passed
over.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import jax.numpy as jnp
import numpy as np

from jaxgpu.doors import explained

from .links import Link
from .mjcf_attributes import hold, numbers, scalar, shown, unsupported, word
from .mjcf_contact import Geoms
from .mjcf_defaults import spell_out
from .mjcf_inertia import orientation, read_inertia
from .solids import Solid, weld
from .tree import Tree, assemble

_PASSED_OVER = {"asset", "visual", "statistic", "size", "sensor", "custom"}
_IN_BODY = {"body", "joint", "freejoint", "inertial", "geom", "site", "light", "camera"}
_JOINTS = {"hinge": "revolute", "slide": "prismatic", "free": "free"}
_BOOLEAN = ("true", "false")
_FLAG = ("enable", "disable")
_DEEPEST = 10_000  # elements within elements; a chain of bodies nests once a link
_TINY = 1e-15  # MuJoCo's mjMINVAL: the least mass and inertia of what moves


@dataclass
class _Reader:
    radians: bool = False
    autolimits: bool = True
    gravity: np.ndarray = field(default_factory=lambda: np.array([0, 0, -9.81]))
    disabled: set[str] = field(default_factory=set)  # flags
    links: list[Link] = field(default_factory=list)
    solids: list[list[Solid]] = field(default_factory=list)
    labels: dict[int, str] = field(default_factory=dict)  # of bodies, by their last link
    above: dict[int, int] = field(default_factory=dict)  # the link that such a body hangs on
    geoms: Geoms = field(default_factory=Geoms)


@explained
def from_mjcf(text: str, ignore: Collection[str] = (), dtype: Any = jnp.float32) -> Tree:
    """The mechanism in the text of an MJCF file; `init` puts it where the file has it (qpos0).

    Contact of geoms is not computed: a file in which geoms could collide is refused unless `ignore`
    holds "contact". Keyframes are refused, not taken for the start. The time step and the settings
    of MuJoCo's solver are passed over: steps are those of `Simulation`, and so are joints' stops.

    Args:
        text: XML, `<mujoco>` at its root.
        ignore: names of elements and attributes to leave out although they would change the motion,
            such as "actuator", whose gains go into `Drive`, or "contact".
        dtype: of the tree's arrays.

    Raises:
        ValueError: not MJCF, a document type or entities, more than 10,000 elements one within the
            other, a value that cannot be, or the first element or attribute that is not
            supported, by name.

    >>> tree = from_mjcf('''<mujoco><worldbody><body><joint name="hip" axis="0 1 0"/>
    ... <geom size="0.1" mass="2"/></body></worldbody></mujoco>''')
    >>> tree.names, float(tree.mass[0])
    (('hip',), 2.0)
    """
    ignored = _names(ignore)
    root = _parse(text, ignored)
    spell_out(root)
    reader, worlds = _Reader(), []
    for part in root:
        if part.tag == "compiler":
            hold(part)
            if "angle" in part.attrib:
                reader.radians = word(part, "angle", "", ("degree", "radian")) == "radian"
            if "autolimits" in part.attrib:
                reader.autolimits = word(part, "autolimits", "", _BOOLEAN) == "true"
        elif part.tag == "option":
            hold(part)
            reader.gravity = numbers(part, "gravity", reader.gravity)
            for flag in part.findall("flag"):
                _read_flag(reader, flag)
        elif part.tag == "worldbody":
            worlds.append(part)
        elif part.tag not in _PASSED_OVER and not (part.tag == "keyframe" and len(part) == 0):
            raise unsupported(f"<{part.tag}>", part.tag)
    for world in worlds:
        _read_world(reader, world)
    if not reader.disabled & {"contact", "constraint"} and "contact" not in ignored:
        reader.geoms.refuse_contact(reader.above, "filterparent" not in reader.disabled)
    gravity = np.zeros(3) if "gravity" in reader.disabled else reader.gravity
    return assemble(_welded(reader), gravity.tolist(), dtype)


def _parse(text: Any, ignored: frozenset[str]) -> Element:
    """The root, without the elements and attributes that are to be left out."""
    if not isinstance(text, str | bytes):
        raise TypeError(f"from_mjcf: text is {type(text).__name__}; give the text of an MJCF file")
    try:
        root = ElementTree.fromstring(text, ElementTree.XMLParser(target=_Builder()))
    except _Refused as error:
        raise ValueError(f"from_mjcf: {error}") from None
    except (ElementTree.ParseError, ValueError) as error:
        raise ValueError(
            f"from_mjcf: not XML ({error}); give the text of an MJCF file, Path(file).read_text()"
        ) from None
    if root.tag != "mujoco":
        raise ValueError(f"from_mjcf: the root is <{root.tag}>; it must be <mujoco>")
    for element in root.iter():
        for name in ignored & set(element.keys()):
            del element.attrib[name]
        element[:] = [child for child in element if child.tag not in ignored]
    return root


class _Refused(Exception):
    """XML that is well formed, and is not read all the same."""


class _Builder(ElementTree.TreeBuilder):
    """Elements as they are read; it stops at what could make much of little before it is read."""

    depth = 0

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        """Called where a document type begins, before its entities."""
        raise _Refused("has a <!DOCTYPE>, which MJCF does not need; remove it, and its entities")

    def start(self, tag: str, attrs: dict[str, str], /) -> Element:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise _Refused(f"nests more than {_DEEPEST} elements; give a file that nests less")
        return super().start(tag, attrs)

    def end(self, tag: str, /) -> Element:
        self.depth -= 1
        return super().end(tag)


def _names(ignore: Collection[str]) -> frozenset[str]:
    if isinstance(ignore, str) or not all(isinstance(name, str) for name in ignore):
        raise TypeError(
            f"from_mjcf: ignore={ignore!r}; it must be a tuple of names; write ('contact',)"
        )
    return frozenset(ignore)


def _read_flag(reader: _Reader, flag: Element) -> None:
    """Keep what is switched off; later flags win."""
    hold(flag)
    for name in flag.keys():
        if word(flag, name, "", _FLAG) == "disable":
            reader.disabled.add(name)
        else:
            reader.disabled.discard(name)


def _read_world(reader: _Reader, world: Element) -> None:
    """Read all bodies, each before those in it, without recursion: files may nest deeply."""
    hold(world)
    for geom in world.findall("geom"):
        hold(geom, has_mass=False)
        reader.geoms.add(geom, world, -1)
    fixed = {"joint", "freejoint", "inertial"} & {child.tag for child in world}
    if fixed:
        raise ValueError(
            f"from_mjcf: <worldbody> has a <{min(fixed)}>; the world does not move; put it in a "
            "<body>"
        )
    waiting = [(world, -1, np.eye(3), np.zeros(3))]
    while waiting:
        body, link, R, p = waiting.pop()
        for child in body:
            if child.tag not in _IN_BODY:
                raise unsupported(f"<{child.tag}> in a body", str(child.tag))
        if body is not world:
            link, R, p = _read_body(reader, body, link, R, p)
        inner = [(child, link, R, p) for child in body if child.tag == "body"]
        waiting += inner[::-1]


def _read_body(
    reader: _Reader, body: Element, parent: int, R: np.ndarray, p: np.ndarray
) -> tuple[int, np.ndarray, np.ndarray]:
    """Read a body whose parent's frame lies at R, p in the frame of its link; give its own."""
    hold(body)
    p = p + R @ numbers(body, "pos", np.zeros(3))
    R = R @ orientation(body, reader.radians)
    link, joints = parent, [x for x in body if x.tag in ("joint", "freejoint")]
    for joint in joints:
        hold(joint)
        kind = "free" if joint.tag == "freejoint" else joint.get("type", "hinge")
        if kind not in _JOINTS:
            raise ValueError(
                f"from_mjcf: {shown(joint, 'type')} is not supported; use {', '.join(_JOINTS)}"
            )
        if kind == "free" and (len(joints) > 1 or parent >= 0):
            raise ValueError(
                f"from_mjcf: <{joint.tag}> of {shown(body, 'name')} is free beside or below "
                "another joint; a free body hangs on the world by that one joint"
            )
        anchor = np.zeros(3) if kind == "free" else numbers(joint, "pos", np.zeros(3))
        reader.links.append(_read_joint(reader, joint, kind, link, R, p + R @ anchor))
        reader.solids.append([])
        link, R, p = len(reader.links) - 1, np.eye(3), -anchor
    if joints:
        reader.labels[link], reader.above[link] = shown(body, "name"), parent
    for part in read_inertia(body, link >= 0, reader.radians):
        reader.solids[link].append(part.moved(R, p))
    for geom in body.findall("geom"):
        reader.geoms.add(geom, body, link)
    return link, R, p


def _read_joint(
    reader: _Reader, joint: Element, kind: str, parent: int, R: np.ndarray, p: np.ndarray
) -> Link:
    damping = 0.0 if "damper" in reader.disabled else scalar(joint, "damping", 0, 0)
    stiffness = 0.0 if "spring" in reader.disabled else scalar(joint, "stiffness", 0, 0)
    if kind == "free" and stiffness:
        raise unsupported(f"{shown(joint, 'stiffness')} on a free body", "stiffness")
    angle = 1.0 if reader.radians or kind != "hinge" else np.pi / 180
    lower, upper = _limits(reader, joint) if kind != "free" else (-np.inf, np.inf)
    axis = numbers(joint, "axis", (0.0, 0.0, 1.0)) if kind != "free" else np.array([0.0, 0, 1])
    if np.linalg.norm(axis) < 1e-14:
        raise ValueError(f"from_mjcf: {shown(joint, 'axis')} has no direction; give a longer one")
    return Link(
        parent,
        _JOINTS[kind],
        axis=axis.tolist(),
        position=p.tolist(),
        rotation=R,
        armature=scalar(joint, "armature", 0, 0),
        damping=damping,
        stiffness=stiffness,
        rest=scalar(joint, "springref", 0) * angle if stiffness else 0.0,
        lower=lower * angle,
        upper=upper * angle,
        name=joint.get("name", ""),
    )


def _limits(reader: _Reader, joint: Element) -> tuple[float, float]:
    """The range of a joint in the units of the file, infinite where it has none."""
    limited = word(joint, "limited", "auto", (*_BOOLEAN, "auto"))
    lower, upper = numbers(joint, "range", (0.0, 0.0)).tolist()
    given = (lower, upper) != (0.0, 0.0)
    if limited == "auto" and given and not reader.autolimits:
        raise ValueError(
            f"from_mjcf: {shown(joint, 'range')} without limited, and autolimits is false; say "
            'limited="true" or limited="false"'
        )
    if limited == "false" or (limited == "auto" and not given):
        return -np.inf, np.inf
    if not lower < upper:
        raise ValueError(
            f"from_mjcf: {shown(joint, 'range')} of a limited joint is {lower:g} to {upper:g}; "
            "the first must be less than the second"
        )
    off = reader.disabled & {"limit", "constraint"}
    return (-np.inf, np.inf) if off else (lower, upper)


def _welded(reader: _Reader) -> list[Link]:
    """The links with their masses; a body that moves must have mass and inertia, as in MuJoCo."""
    links = []
    for i, (link, parts) in enumerate(zip(reader.links, reader.solids)):
        whole = weld(parts)
        if i in reader.labels:
            least = min(whole["mass"], np.linalg.eigvalsh(whole["inertia"])[0])
            if least < _TINY:
                raise ValueError(
                    f"from_mjcf: {reader.labels[i]} moves but has no mass or no inertia; give it "
                    "geoms or an <inertial>"
                )
        links.append(replace(link, **whole))
    return links
