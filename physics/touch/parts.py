"""Parts for assembly: pegs and their sockets, nuts and bolts, with contact points on them.

Sizes of pegs and holes are those of the insertion tasks of Factory (Narang et al. 2022,
arXiv:2205.03532) and TacSL (Akinola et al. 2024, arXiv:2408.06506), which follow the task board of
NIST. A hole is `clearance` wider than its peg, in diameter or width, unless its published size is
requested. Contact is tested at points: those of a part against the shape it goes into, and those on
an edge of that shape against the part, so that no corner slips through between points.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from jaxgpu.geometry import sdf
from jaxgpu.geometry.sockets import RoundSocket, SquareSocket
from jaxgpu.geometry.threads import Bolt, Nut, minor_diameter
from jaxgpu.inputs import ranges
from jaxgpu.inputs.explanations import explain_errors
from jaxgpu.inputs.fields import number, pytree

STEEL_DENSITY = 8000.0  # kg/m^3
PEG_LENGTH, SOCKET_HEIGHT, HOLE_DEPTH = (
    0.050,
    0.028,
    0.023,
)  # m: of pegs, of sockets, of the sockets' holes
HALF_WIDTH = 0.030  # m, half the width of a socket
PEGS = {  # widths of a peg along x and y, and of its hole along x, m; diameters if round
    "round-4": ((0.003988,), 0.004100),
    "round-8": ((0.007986,), 0.008100),
    "round-12": ((0.011983,), 0.012200),
    "round-16": ((0.015983,), 0.016500),
    "rectangular-4": ((0.003970, 0.003970), 0.004110),
    "rectangular-8": ((0.007964, 0.006910), 0.0081444),
    "rectangular-12": ((0.011957, 0.007910), 0.0121778),
    "rectangular-16": ((0.015957, 0.009910), 0.0162182),
}
# diameter, pitch, height of the nut and its width over the flats, m (ISO 261, ISO 4032)
THREADS = {
    "M8": (0.008, 0.00125, 0.0068, 0.013),
    "M12": (0.012, 0.00175, 0.0108, 0.018),
    "M16": (0.016, 0.002, 0.0148, 0.024),
}


@pytree
class Part:
    """A rigid part that moves; its frame is at the centre of mass, along the principal axes.

    >>> peg("round-12").points.shape
    (52, 3)
    """

    shape: Any  # signed distance, `jaxgpu.geometry.sdf`
    points: Any = number(unit="m")  # [S, 3] on its surface, which are tested against other shapes
    mass: Any = number(above=0, unit="kg", one=True)  # []
    inertia: Any = number(above=0, unit="kg m^2")  # [3] its principal moments
    tip: Any = number(above=0, unit="m", one=True)  # [] from the centre down to its lower face


@pytree
class Fixture:
    """A part that does not move, with z up and the origin at the centre of its underside.

    >>> round(1e3 * peg_and_socket().fixture.goal)  # mm, of the hole's floor
    5
    """

    shape: Any  # signed distance, `jaxgpu.geometry.sdf`
    points: Any = number(unit="m")  # [R, 3] on its edges, which are tested against moving parts
    goal: Any = number(unit="m", one=True)  # [] height of the tip of an assembled part
    top: Any = number(above=0, unit="m", one=True)  # [] height at which the part enters


class Pair(NamedTuple):
    """A moving part and the fixture that it belongs to."""

    part: Part
    fixture: Fixture


@explain_errors
def peg_and_socket(name: str = "round-8", clearance: float | None = 0.5e-3) -> Pair:
    """Return a steel peg and the socket with a blind hole for it.

    Args:
        name: a key of `PEGS`, "round-4" to "rectangular-16".
        clearance: width of the hole minus that of the peg, m; None selects the published hole. Its
            width along y is not published, and has the same clearance as along x.
    Raises:
        ValueError: an unknown name, or a clearance that is not positive.

    >>> part, fixture = peg_and_socket("round-8", None)
    >>> round(1e3 * float(part.mass), 2), round(2e3 * float(fixture.shape.radius), 3)
    (20.04, 8.1)
    """
    widths, hole = _look_up("peg_and_socket", name, PEGS)
    free = hole - widths[0] if clearance is None else clearance
    ranges.numbers("peg_and_socket: clearance", free, (), above=0, most=HALF_WIDTH, unit="m")
    part = peg(name)
    half = tuple(0.5 * (w + free) for w in widths)
    if len(widths) == 1:
        shape = RoundSocket(half[0], HOLE_DEPTH, HALF_WIDTH, SOCKET_HEIGHT)
        rim = _ring(half[0], 24)
    else:
        shape = SquareSocket(half, HOLE_DEPTH, (HALF_WIDTH, HALF_WIDTH), SOCKET_HEIGHT)
        rim = _rectangle(half, 6)
    rim = np.append(rim, np.full((len(rim), 1), SOCKET_HEIGHT), 1)
    return Pair(part, Fixture(shape, rim, SOCKET_HEIGHT - HOLE_DEPTH, SOCKET_HEIGHT))


@explain_errors
def peg_and_pad(name: str = "round-8", diameter: float = 0.1, height: float = 0.025) -> Pair:
    """Return a steel peg and the round pad, without a hole, on which it must be placed.

    Raises:
        ValueError: an unknown name, or a size that is not positive.

    >>> float(peg_and_pad().fixture.goal)
    0.025
    """
    ranges.numbers("peg_and_pad: diameter", diameter, (), above=0, unit="m")
    ranges.numbers("peg_and_pad: height", height, (), above=0, unit="m")
    part = peg(name)
    shape = sdf.Moved(sdf.Cylinder(0.5 * height, 0.5 * diameter), (0.0, 0.0, 0.5 * height))
    rim = np.append(_ring(0.5 * diameter, 24), np.full((24, 1), height), 1)
    return Pair(part, Fixture(shape, rim, height, height))


@explain_errors
def nut_and_bolt(name: str = "M16", clearance: float | None = None, length: float = 0.041) -> Pair:
    """Return a steel nut and an upright bolt, threaded over its full length.

    Args:
        name: "M8", "M12" or "M16", with the coarse pitch.
        clearance: diameter of the nut's thread minus that of the bolt's, m; if None a fifth of the
            pitch.
        length: of the bolt, m.
    Raises:
        ValueError: an unknown name, a clearance out of range, or a bolt shorter than its nut.

    >>> part, fixture = nut_and_bolt("M8")
    >>> round(1e3 * float(part.mass), 1), len(part.points)
    (5.5, 220)
    """
    diameter, pitch, height, over = _look_up("nut_and_bolt", name, THREADS)
    most = 0.3 * pitch  # above half of the overlap of the threads they would slip past each other
    clearance = 0.2 * pitch if clearance is None else clearance
    ranges.numbers("nut_and_bolt: clearance", clearance, (), above=0, most=most, unit="m")
    ranges.numbers("nut_and_bolt: length", length, (), least=height, unit="m")
    wide = diameter + clearance
    inner = 0.25 * (wide + float(minor_diameter(wide, pitch)))  # mean radius of the thread
    area = 0.5 * math.sqrt(3) * over**2 - math.pi * inner**2
    mass = STEEL_DENSITY * area * height
    # The moments of inertia are those of a ring of the same area about the thread.
    square = inner**2 + area / math.pi + inner**2  # sum of the squares of both radii
    along, across = 0.5 * mass * square, mass * (0.25 * square + height**2 / 12)
    shape = Nut(wide, pitch, 0.5 * height, 0.5 * over)
    part = Part(
        shape=shape,
        points=_nut_points(wide, pitch, height, over),
        mass=mass,
        inertia=np.array([across, across, along]),
        tip=0.5 * height,
    )
    bolt = sdf.Moved(Bolt(diameter, pitch, 0.5 * length), (0.0, 0.0, 0.5 * length))
    rim = np.append(
        _ring(0.5 * float(minor_diameter(diameter, pitch)), 12), np.full((12, 1), length), 1
    )
    return Pair(part, Fixture(bolt, rim, length, length))


@explain_errors
def peg(name: str = "round-8") -> Part:
    """Return a steel peg 50 mm long, with its centre at the origin and its axis along z.

    Points are on both rims, on the lower face and on two rings of the side.

    Raises:
        ValueError: an unknown name.

    >>> [round(1e7 * float(a), 2) for a in peg("round-8").inertia]  # kg m^2
    [42.54, 42.54, 1.6]
    """
    widths, _ = _look_up("peg", name, PEGS)
    half = 0.5 * PEG_LENGTH
    if len(widths) == 1:
        radius = 0.5 * widths[0]
        shape = sdf.Cylinder(half, radius)
        mass = STEEL_DENSITY * math.pi * radius**2 * PEG_LENGTH
        across = mass * (3 * radius**2 + PEG_LENGTH**2) / 12
        inertia = (across, across, 0.5 * mass * radius**2)
        edge, side = _ring(radius, 16), _ring(radius, 8)
    else:
        a, b = widths
        shape = sdf.Box((0.5 * a, 0.5 * b, half))
        mass = STEEL_DENSITY * a * b * PEG_LENGTH
        squares = (b * b + PEG_LENGTH**2, a * a + PEG_LENGTH**2, a * a + b * b)
        inertia = tuple(mass * s / 12 for s in squares)
        edge, side = _rectangle((0.5 * a, 0.5 * b), 4), _rectangle((0.5 * a, 0.5 * b), 2)
    levels = (
        (edge, -half),
        (0.5 * edge[::4], -half),
        (side, -half / 3),
        (side, half / 3),
        (edge, half),
    )
    points = np.concatenate([np.append(ring, np.full((len(ring), 1), z), 1) for ring, z in levels])
    return Part(shape=shape, points=points, mass=mass, inertia=np.array(inertia), tip=half)


def _look_up(function: str, name: str, table: dict[str, Any]) -> Any:
    if name not in table:
        raise ValueError(f"{function}: name={name!r}; it must be one of {', '.join(table)}")
    return table[name]


def _ring(radius: float, count: int) -> np.ndarray:
    """Return points [count, 2] evenly spaced on a circle."""
    angle = 2 * np.pi * np.arange(count) / count
    return radius * np.stack([np.cos(angle), np.sin(angle)], 1)


def _rectangle(half: Any, side: int) -> np.ndarray:
    """Return points [4 side, 2] on a rectangle: its corners, and evenly spaced ones between."""
    t = np.linspace(-1, 1, side, endpoint=False)
    one = np.ones(side)
    edges = ((t, -one), (one, t), (-t, one), (-one, -t))
    return np.concatenate([np.stack([half[0] * x, half[1] * y], 1) for x, y in edges])


def _nut_points(diameter: float, pitch: float, height: float, over: float) -> np.ndarray:
    """Return points [S, 3] along crest and flanks of the nut's thread, and on its faces."""
    along = np.linspace(-0.5, 0.5, 64) * height
    root, crest = 0.5 * float(minor_diameter(diameter, pitch)), 0.5 * diameter
    middle = 0.5 * (root + crest)
    lines = []
    # Offsets from the groove, in pitches, are those of the ridge and the middles of the flanks.
    for radius, offset in ((root, 0.5), (middle, -0.21875), (middle, 0.21875)):
        angle = 2 * np.pi * (along / pitch - offset)
        lines.append(np.stack([radius * np.cos(angle), radius * np.sin(angle), along], 1))
    corners = _ring(over / math.sqrt(3), 6)
    face = _ring(0.5 * (crest + 0.5 * over), 8)
    for z in (-0.5 * height, 0.5 * height):
        for ring in (corners, face):
            lines.append(np.append(ring, np.full((len(ring), 1), z), 1))
    return np.concatenate(lines)
