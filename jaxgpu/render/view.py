"""A view: points, capsules and triangles that move, as one page to be turned by hand.

The page needs nothing beside it: its program draws with the processor alone, into the picture of a
canvas, so it works wherever a browser does. Places are kept to 1/65534 of the box that is shown.
"""

import base64
import contextlib
import dataclasses
import hashlib
import html
import json
import re
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from jaxgpu.inputs import arguments
from jaxgpu.inputs.doors import explained
from jaxgpu.runs.files import replacing

from .palette import SERIES

MOST_POINTS, MOST_MOMENTS = 20_000, 120  # of a page; of more, every so many are shown
_ABSENT = 65535  # where something is not seen; places go to one less
_DATA = re.compile(r'<script type="application/json">(.*?)</script>', re.S)
_MARGIN = 0.75  # of the width that nearly all points need: what is further out is not shown


@dataclass(frozen=True)
class Points:
    """Bodies, particles or designs."""

    name: str  # what they are, for the legend
    x: np.ndarray  # [T, N, 3]; nan where one is not there
    colour: str = ""  # #rrggbb; by default one of the palette
    radius: float = 0.0  # in the units of x; 0: a dot of the same size at any distance
    hollow: bool = False  # rings in place of discs


@dataclass(frozen=True)
class Rods:
    """Capsules: all points within a radius of a segment."""

    start: np.ndarray  # [T, N, 3]
    end: np.ndarray  # [T, N, 3]
    radius: np.ndarray  # [N]
    colour: np.ndarray  # [N, 3] in 0 ... 1


@dataclass(frozen=True)
class Surface:
    """Triangles, the same in all frames but for their corners."""

    x: np.ndarray  # [T, V, 3]
    faces: np.ndarray  # [F, 3] indices of corners
    colour: str = ""  # #rrggbb; by default one of the palette


@dataclass(frozen=True)
class View:
    """What is seen, all with the same number of frames or with one; shows itself in a notebook.

    >>> view = View((Points("stars", np.zeros((1, 4, 3))),))
    >>> len(view.page()) < 300_000, view.page().startswith("<!doctype html>")
    (True, True)
    """

    points: tuple[Points, ...] = ()
    rods: tuple[Rods, ...] = ()
    surfaces: tuple[Surface, ...] = ()
    times: np.ndarray | None = None  # [T]
    axes: tuple[str, str, str] | None = None  # names of the coordinates, each scaled to its range
    up: int = 2  # the coordinate that points up

    def __repr__(self) -> str:
        named = lambda one: f" {one.name!r}" if one.name else ""
        seen = [f"{one.x.shape[1]} points{named(one)}" for one in self.points]
        seen += [f"{one.start.shape[1]} capsules" for one in self.rods]
        seen += [f"{len(one.faces)} triangles" for one in self.surfaces]
        return f"View of {', '.join(seen)}; {self.moments} moment{'' if self.moments == 1 else 's'}"

    def _repr_html_(self) -> str:
        page = html.escape(self.page())
        style = "width:100%;height:30rem;border:0"
        return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{page}"></iframe>'

    @property
    def moments(self) -> int:
        """How many moments there are."""
        parts = [one.x for one in (*self.points, *self.surfaces)] + [one.start for one in self.rods]
        return max((len(x) for x in parts), default=0)

    def save(self, path: str | Path) -> Path:
        """Write the page, and give its path."""
        path = arguments.path("View.save: path", path, "a file")
        with replacing(path) as file:
            file.write(self.page())
        return path

    @explained
    def page(self) -> str:
        """The page, which needs nothing beside it."""
        thinned, note = _thinned(self)
        return page_of(_data(thinned, note))


def page_of(data: Any) -> str:
    """The page of what its program reads, a value of JSON; it runs that program alone.

    >>> page_of({"note": "</script><script>"}).count("</script>")  # the data's and the program's
    2
    """
    script = _part("view.js")
    page = _part("view.html").replace("@HASH@", digest(script)).replace("@SCRIPT@", script)
    # "<" could end the script, and what is put in last is not searched for marks
    return page.replace("@DATA@", json.dumps(data).replace("<", "\\u003c"))


def data_of(page: str) -> Any:
    """What the program of a page reads; None where the page is no view.

    >>> data_of(page_of({"note": "</script>"})), data_of("<p>")
    ({'note': '</script>'}, None)
    """
    found = _DATA.search(page)
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(found[1]) if found else None
    return None


def program() -> str:
    """The script of every view: a page that shows some lets it run, and no other.

    >>> digest(program()) in page_of({})
    True
    """
    return _part("view.js")


def digest(script: str) -> str:
    """How a content security policy names a script.

    >>> digest("")
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _part(name: str) -> str:
    return resources.files("jaxgpu.render").joinpath(name).read_text()


def _thinned(view: View) -> tuple[View, str]:
    """At most so many frames and points, and the sentence that says what was left out."""
    said = []
    stride = -(-view.moments // MOST_MOMENTS)
    if stride > 1:
        said.append(f"Shown is one of {stride} of {view.moments} moments.")
    moments = lambda x: x[::stride] if len(x) > 1 else x
    points = []
    for one in view.points:
        every = -(-one.x.shape[1] // MOST_POINTS)
        if every > 1:
            said.append(f"Shown is one of {every} of {one.x.shape[1]} {one.name or 'points'}.")
        points.append(dataclasses.replace(one, x=moments(one.x)[:, ::every]))
    return dataclasses.replace(
        view,
        points=tuple(points),
        rods=tuple(
            dataclasses.replace(one, start=moments(one.start), end=moments(one.end))
            for one in view.rods
        ),
        surfaces=tuple(dataclasses.replace(one, x=moments(one.x)) for one in view.surfaces),
        times=None if view.times is None else moments(view.times),
    ), " ".join(said)


def _data(view: View, note: str) -> dict[str, Any]:
    """What the program of the page reads."""
    low, high = _box(view)
    packed = lambda x: _packed(x, low, high)
    rods = [
        {
            "start": packed(one.start),
            "end": packed(one.end),
            "radius": _plain(one.radius),
            "colour": [_hex(c) for c in one.colour],
        }
        for one in view.rods
    ]
    return {
        "low": _plain(low),
        "high": _plain(high),
        "up": view.up,
        "axes": view.axes,
        "frames": view.moments,
        "times": None if view.times is None else _plain(view.times),
        "note": note,
        "points": [
            {
                "name": one.name,
                "colour": one.colour or SERIES[i % len(SERIES)],
                "radius": float(one.radius),
                "hollow": one.hollow,
                "x": packed(one.x),
            }
            for i, one in enumerate(view.points)
        ],
        "rods": rods,
        "surfaces": [
            {
                "colour": one.colour or SERIES[-1],
                "faces": np.asarray(one.faces).ravel().tolist(),
                "x": packed(one.x),
            }
            for one in view.surfaces
        ],
    }


def _box(view: View) -> tuple[np.ndarray, np.ndarray]:
    """The corners of what is shown: all of it, but for points that are far from nearly all."""
    solid = [x for one in view.rods for x in (one.start, one.end)]
    solid += [one.x for one in view.surfaces]
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    for x in (a.reshape(-1, 3) for a in (*solid, *(one.x for one in view.points))):
        x = x[np.isfinite(x).all(1)]
        if len(x):
            low, high = np.minimum(low, x.min(0)), np.maximum(high, x.max(0))
    if not np.isfinite(low).all():
        return np.zeros(3), np.ones(3)
    cloud = np.concatenate([one.x.reshape(-1, 3) for one in view.points] or [np.zeros((0, 3))])
    cloud = cloud[np.isfinite(cloud).all(1)]
    if view.axes is None and not solid and len(cloud) > 100:
        near = np.quantile(cloud, [0.01, 0.99], axis=0)
        reach = _MARGIN * (near[1] - near[0])
        low, high = np.maximum(low, near[0] - reach), np.minimum(high, near[1] + reach)
    widest = max(float((high - low).max()), 1e-30)
    flat = high - low < 1e-6 * widest  # a plane, or a single point
    return np.where(flat, low - widest / 2, low), np.where(flat, high + widest / 2, high)


def _packed(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> dict[str, Any]:
    """Places [T, N, 3] as 16-bit numbers in base64."""
    share = (np.asarray(x, float) - low) / (high - low)
    seen = (np.isfinite(share) & (share >= -1e-9) & (share <= 1 + 1e-9)).all(-1, keepdims=True)
    words = np.where(seen, np.round(np.clip(np.nan_to_num(share), 0, 1) * (_ABSENT - 1)), _ABSENT)
    data = base64.b64encode(words.astype("<u2").tobytes()).decode()
    return {"frames": len(x), "count": x.shape[1], "data": data}


def _plain(x: Any) -> list[float]:
    return [float(f"{value:.6g}") for value in np.ravel(np.asarray(x, float))]


def _hex(colour: Any) -> str:
    return "#" + "".join(f"{round(255 * float(np.clip(c, 0, 1))):02x}" for c in colour)
