"""Masses, inertias and orientations from MuJoCo's XML: of `inertial`, or else of geoms."""

from xml.etree.ElementTree import Element

import numpy as np

from .mjcf_attributes import hold, numbers, scalar, shown
from .solids import Solid, solid


def read_inertia(body: Element, moves: bool, radians: bool) -> list[Solid]:
    """The `inertial` element of a body or, where it has none, its geoms; nothing if it is fixed."""
    inertials, geoms = body.findall("inertial"), body.findall("geom")
    if len(inertials) > 1:
        raise ValueError(f"from_mjcf: {shown(body, 'name')} has two <inertial>; leave one")
    counts = moves and not inertials
    for geom in geoms:
        hold(geom, counts)
    parts = [_read_inertial(one, radians) for one in inertials]
    parts += [_read_geom(geom, radians) for geom in geoms if counts]
    return parts if moves else []


def _read_inertial(inertial: Element, radians: bool) -> Solid:
    hold(inertial)
    full, diagonal = "fullinertia" in inertial.attrib, "diaginertia" in inertial.attrib
    if "mass" not in inertial.attrib or full == diagonal:
        raise ValueError(
            "from_mjcf: <inertial> says too little or too much; it must have mass and one of "
            "diaginertia and fullinertia"
        )
    xx, yy, zz, xy, xz, yz = numbers(inertial, "fullinertia", np.zeros(6))
    I = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    I = I + np.diag(numbers(inertial, "diaginertia", np.zeros(3)))
    a, b, c = np.linalg.eigvalsh(I)
    if a < 0 or a + b < c * (1 - 1e-9):
        name = "fullinertia" if full else "diaginertia"
        raise ValueError(
            f"from_mjcf: {shown(inertial, name)} has the principal moments {a:g}, {b:g} and "
            f"{c:g}; none may be negative, nor exceed the sum of the other two"
        )
    one = Solid(scalar(inertial, "mass", 0, 0), np.zeros(3), I)
    p = numbers(inertial, "pos", np.zeros(3))
    return one.moved(orientation(inertial, radians), p)


def _read_geom(geom: Element, radians: bool) -> Solid:
    size = numbers(geom, "size", np.zeros(0), (1, 3))
    p, R = numbers(geom, "pos", np.zeros(3)), orientation(geom, radians)
    kind = geom.get("type", "sphere")
    if "fromto" in geom.attrib:
        if kind in ("sphere", "plane") or "pos" in geom.attrib or len(size) == 0:
            raise ValueError(
                f"from_mjcf: {shown(geom, 'fromto')} needs a size, no pos, and the type capsule, "
                "cylinder, box or ellipsoid; change the geom"
            )
        ends = numbers(geom, "fromto", np.zeros(6))
        p, along = (ends[:3] + ends[3:]) / 2, ends[3:] - ends[:3]
        half = np.linalg.norm(along) / 2
        if half < 1e-14:
            raise ValueError(f"from_mjcf: {shown(geom, 'fromto')} has no length; part its ends")
        across = size[:1] if kind in ("capsule", "cylinder") else size[[0, 0]]
        size = np.array([*across, half])
        R = _towards(along / (2 * half))
    mass = None if geom.get("mass") is None else scalar(geom, "mass", 0, 0)
    density = scalar(geom, "density", 1000, 0)
    try:
        return solid(kind, size, mass, density).moved(R, p)
    except ValueError as error:
        raise ValueError(f"from_mjcf: <geom> of {kind!r}: {error}") from None


def orientation(element: Element, radians: bool) -> np.ndarray:
    """The rotation matrix of an element's `quat` (w x y z) or `axisangle`, else no rotation."""
    if "axisangle" in element.attrib and {"quat", "fromto"} & set(element.keys()):
        raise ValueError(
            f"from_mjcf: {shown(element, 'axisangle')} is not the only orientation; leave one"
        )
    name = "axisangle" if "axisangle" in element.attrib else "quat"
    values = numbers(element, name, np.array([1.0, 0, 0, 0]), 4)
    if name == "axisangle":
        *axis, angle = values
        half = angle * (1 if radians else np.pi / 180) / 2
        length = np.linalg.norm(axis)
        w, v = np.cos(half), np.sin(half) * np.array(axis) / (length or 1.0)
    else:
        length = np.linalg.norm(values)
        w, v = values[0] / (length or 1.0), values[1:] / (length or 1.0)
    if length < 1e-14:
        raise ValueError(f"from_mjcf: {shown(element, name)} is zero; give a direction")
    K = np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
    return np.eye(3) + 2 * w * K + 2 * K @ K


def _towards(z: np.ndarray) -> np.ndarray:
    """A rotation that takes the z axis to the unit vector `z`."""
    x = np.cross(np.eye(3)[np.argmin(np.abs(z))], z)
    x = x / np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z], 1)
